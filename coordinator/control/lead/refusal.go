package lead

import (
	"fmt"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// Code is the stable word of an expected refusal. The words are those of shared/rpc.
type Code string

// The codes of refusals.
const (
	NoNodeFits  Code = "no_node_fits"
	NotFound    Code = "not_found"
	Exists      Code = "exists"
	Busy        Code = "busy"
	Invalid     Code = "invalid"
	StaleView   Code = "stale"
	NoLeader    Code = "no_leader"
	Unavailable Code = "unavailable"
	Conflict    Code = "conflict"
)

// Error is an expected refusal: what it is about, and what to do now.
type Error struct {
	Code      Code
	Subject   string // vm/NAME, node/NAME
	Message   string
	NextStep  string
	Operation string              // ID of the operation in the way, if one is
	Decision  *placement.Decision // of a refusal by placement

	cause error // what an agent answered
}

func (e *Error) Error() string { return e.Message }

// Unwrap is an agent's answer, if that is what stands behind it: a *TaskError.
func (e *Error) Unwrap() error { return e.cause }

// ErrNotLeading refuses what only the leader does.
var ErrNotLeading = &Error{
	Code: NoLeader, Message: "this coordinator does not lead",
	NextStep: "try again: the call is forwarded once a leader is known",
}

// TooBusy refuses a decision that the state has changed under too often.
func TooBusy(subject string) *Error {
	return &Error{
		Code: StaleView, Subject: subject, Message: "the state changed five times under the decision",
		NextStep: "try again; if it lasts, look at 'berth operation list' for what changes it",
	}
}

// RefusalOf says in words what the state has refused.
func RefusalOf(refusal *state.Refusal, vm string) *Error {
	code, next := Invalid, "this is a defect of berth: please report it with 'berth operation list' and the coordinator's log"
	switch refusal.Code {
	case state.NameTaken:
		code, next = Exists, "choose another name"
	case state.InUse:
		code, next = Conflict, "name another disk or NIC, or take this one from the VM that has it"
	}
	return &Error{Code: code, Subject: "vm/" + vm, Message: refusal.Message, NextStep: next}
}

// VMBusy refuses work on a VM that an operation works on.
func VMBusy(snapshot *state.Snapshot, vm model.VM) error {
	what := "an operation"
	if op, known := snapshot.Operation(vm.Operation); known {
		what = fmt.Sprintf("operation %s (%s, %s)", op.ID, op.Kind, op.Phase)
		if op.Result == operation.Parked {
			return &Error{
				Code: Busy, Subject: "vm/" + vm.Name, Operation: op.ID,
				Message:  fmt.Sprintf("VM %q is locked by the parked operation %s: %s", vm.Name, op.ID, op.Message),
				NextStep: fmt.Sprintf("see 'berth operation show %s' for what both nodes show", op.ID),
			}
		}
	}
	return &Error{
		Code: Busy, Subject: "vm/" + vm.Name, Operation: vm.Operation,
		Message:  fmt.Sprintf("%s works on VM %q", what, vm.Name),
		NextStep: fmt.Sprintf("wait for it with 'berth operation watch %s'", vm.Operation),
	}
}

// Quarantined refuses work on VMs while the records come from a backup that was not yet compared with the nodes.
func Quarantined(snapshot *state.Snapshot) error {
	reason := snapshot.Meta(state.MetaQuarantine)
	if reason == "" {
		return nil
	}
	return &Error{
		Code: Unavailable, Subject: "cluster", Message: "quarantine: no VM is started, stopped or moved, because the state was " + reason,
		NextStep: "wait until every node has reported: 'berth status' names those that have not; " +
			"of one whose machine is off say so with 'berth node fence NODE --confirmed-off'",
	}
}

// NodeName is how people are told of a node; its ID if it is no member any more.
func NodeName(snapshot *state.Snapshot, id string) string {
	if node, known := snapshot.Node(id); known {
		return node.Name
	}
	return id
}
