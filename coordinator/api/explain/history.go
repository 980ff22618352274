package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// VMHistory tells where a VM was, since when and why, as far as the records of it are kept.
func (s *DecisionCalls) VMHistory(
	ctx context.Context, request *connect.Request[berthv1.VMHistoryRequest],
) (*connect.Response[berthv1.VMHistoryResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, known := p.VMByRef(request.Msg.GetVm())
	if !known {
		return nil, refusal.NotFound("vm", request.Msg.GetVm())
	}
	stays, trimmed := past{p}.stays(&vm)
	slices.Reverse(stays)
	return connect.NewResponse(&berthv1.VMHistoryResponse{
		SchemaVersion: wire.SchemaVersion, Vm: vm.Name, Stays: stays, Trimmed: trimmed,
	}), nil
}

// past finds in a moment where a VM was.
type past struct{ *answer.Moment }

// stays are the times that a VM spent on nodes, oldest first. It was somewhere before them if trimmed.
func (p past) stays(vm *model.VM) (stays []*berthv1.VMStay, trimmed bool) {
	all := slices.DeleteFunc(p.Operations(), func(op operation.Operation) bool { return op.VM != vm.ID })
	ends := p.endings(vm, all)
	trimmed = vm.Epoch > 0
	arrivals := slices.DeleteFunc(all, func(op operation.Operation) bool { return !op.Kind.Brings() })
	slices.SortStableFunc(arrivals, func(a, b operation.Operation) int { return cmp.Compare(a.Epoch, b.Epoch) })
	var at string // ID of the node of the last stay
	for i := range arrivals {
		op := &arrivals[i]
		if i == 0 { // each arrival has an epoch of its own, so that the first one is known by it
			trimmed = op.Epoch > 1 && !op.Created && (op.Kind != operation.Adopt || op.Source != "")
		}
		if op.Result != operation.Done {
			continue
		}
		if last := len(stays) - 1; last >= 0 {
			end(stays[last], op.EndedAt, ends)
		}
		stays, at = append(stays, p.stay(op)), op.Target
	}
	last := len(stays) - 1
	switch {
	case vm.Holder != "" && vm.Holder != at:
		// What brought it here is forgotten, or it was taken over from a backup.
		if last >= 0 {
			end(stays[last], time.Time{}, ends)
		}
		stays = append(stays, &berthv1.VMStay{Node: p.NodeName(vm.Holder), Since: moved(vm)})
	case vm.Holder == "" && last >= 0:
		end(stays[last], time.Time{}, ends)
	}
	return stays, trimmed
}

// moved is when a VM came to where it is, as its own record has it.
func moved(vm *model.VM) *timestamppb.Timestamp {
	at := vm.StartedAt
	if vm.MovedAt.After(at) {
		at = vm.MovedAt
	}
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}

// endings are the times, oldest first, when a VM came off its node without coming to another one.
func (p past) endings(vm *model.VM, all []operation.Operation) []time.Time {
	var ends []time.Time
	for i := range all {
		if all[i].Kind.Stops() && all[i].Result == operation.Done {
			ends = append(ends, all[i].EndedAt)
		}
	}
	for _, event := range p.Events(0) {
		if event.Subject == "vm/"+vm.Name && !event.At.Before(vm.CreatedAt) && slices.Contains(leaving, event.Kind) {
			ends = append(ends, event.At)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends
}

// leaving are the kinds of events by which a VM comes off its node without an operation: it ended there, or the node is off.
var leaving = []string{"vm.stopped-out-of-band", "vm.released"}

// end says until when a stay lasted: until the VM came off the node, or at the latest until it came to the next one. Neither
// may be known.
func end(stay *berthv1.VMStay, next time.Time, ends []time.Time) {
	since := stay.GetSince().AsTime()
	for _, at := range ends {
		if !at.Before(since) && (next.IsZero() || at.Before(next)) {
			next = at
			break
		}
	}
	if !next.IsZero() {
		stay.Until = timestamppb.New(next)
	}
}

// stay is what an operation that has come to its end began.
func (p past) stay(op *operation.Operation) *berthv1.VMStay {
	stay := &berthv1.VMStay{
		Node: op.TargetName, Since: timestamppb.New(op.EndedAt), CameBy: string(op.Kind), From: op.SourceName, Caller: op.Caller,
		OperationId: op.ID, DecisionId: op.Decision, PlanId: op.Plan,
	}
	decision, kept := p.Decision(op.Decision)
	switch {
	case op.Kind == operation.Adopt && op.Source != "":
		stay.CameBy, stay.Reason = "out-of-band", fmt.Sprintf("somebody else moved it here from %s", op.SourceName)
	case op.Kind == operation.Adopt:
		stay.Reason = "it ran here when Berth took it under management"
	case op.Decision == "":
	case !kept:
		stay.Reason = fmt.Sprintf("decision %s is no longer kept", op.Decision)
	default:
		stay.CameBy, stay.Reason = string(decision.Request.Purpose), decision.Reason
		if decision.Request.Restart {
			stay.CameBy, stay.Reason = "restart", "its node had failed; "+decision.Reason
		}
	}
	if plan, kept := p.Plan(op.Plan); kept && op.Plan != "" {
		stay.CameBy = string(plan.Kind)
		at := slices.IndexFunc(plan.Moves, func(move model.Move) bool { return move.VM == op.VM })
		if at >= 0 && plan.Moves[at].Reason != "" && plan.Moves[at].Reason != stay.GetReason() {
			stay.Reason = fmt.Sprintf("%s; %s", plan.Moves[at].Reason, stay.GetReason())
		}
	}
	return stay
}
