package lifecycle

import (
	"fmt"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// EventOf is the event of something that happened to an operation.
func EventOf(op operation.Operation, caller, kind, message string) model.Event {
	return model.Event{
		At: op.UpdatedAt, Kind: kind, Subject: "vm/" + op.VMName, Message: message, Caller: caller,
		Operation: op.ID, Decision: op.Decision,
	}
}

// eventsOf tells the history of one committed step.
func eventsOf(before operation.Operation, next operation.Next) []model.Event {
	op := next.Operation
	add := func(kind, message string) []model.Event {
		return []model.Event{EventOf(op, op.Caller, kind, message)}
	}
	switch {
	case op.Result == operation.Parked:
		return add("vm.parked", op.Message+": a person has to decide")
	case op.Phase == operation.Ended:
		return add(endEvent(op))
	case op.Target != before.Target && before.Phase == operation.Queued:
		return add("vm.placed", fmt.Sprintf("is to start on %s, because %s does not answer starts", op.TargetName, before.TargetName))
	case op.Phase == operation.Queued && before.Phase == operation.Placing:
		return add("vm.placed", fmt.Sprintf("is to start on %s after: %s; %s", op.TargetName, before.Message, op.Message))
	case op.Phase == operation.Dispatched && before.Phase == operation.Placing:
		return add("vm.placed", fmt.Sprintf("starts on %s after: %s", op.TargetName, op.Message))
	case op.Phase == operation.Dispatched && before.Awaits():
		return add("vm."+string(op.Kind), op.Begun()+", which is heard again")
	case op.Phase == operation.Dispatched && before.Phase == operation.Queued:
		return add(
			"vm.start",
			fmt.Sprintf("starts on %s, after waiting %s for its turn", op.TargetName, op.UpdatedAt.Sub(before.UpdatedAt).Round(time.Millisecond)),
		)
	case op.Phase == operation.HandedOver:
		return add("vm.handed-over", fmt.Sprintf("%s has it; %s is done", op.TargetName, op.SourceName))
	case op.Phase == operation.Marking:
		return add("vm.kept", fmt.Sprintf("the copy on %s is the VM; the other node refuses it for good", keptNode(op)))
	case op.Phase == operation.Judging && before.Phase != operation.Judging:
		return add("vm.judging", "the end of the last order is in doubt: asking the nodes")
	case op.Phase == operation.Clearing && before.Phase != operation.Clearing:
		return add("vm.clearing", fmt.Sprintf("%s removes volumes that are of no use any more", clearingNode(op)))
	default:
		return nil
	}
}

func keptNode(op operation.Operation) string {
	if op.Resolution == operation.KeepSource {
		return op.SourceName
	}
	return op.TargetName
}

func clearingNode(op operation.Operation) string {
	if op.Leftover == op.Source {
		return op.SourceName
	}
	return op.TargetName
}

func endEvent(op operation.Operation) (kind, message string) {
	switch {
	case op.Cancelled():
		return fmt.Sprintf("vm.%s-cancelled", op.Kind), op.Message
	case op.Result == operation.Failed:
		return fmt.Sprintf("vm.%s-failed", op.Kind), op.Message
	}
	return op.Ended()
}
