package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	"berth/shared/domxml"
)

// resizing checks a change of the size that somebody asks for, and writes it into the operation with what it holds on the node meanwhile.
func resizing(l *Lifecycle, snapshot *state.Snapshot, op *operation.Operation, vm *model.VM, request ActOnVM) error {
	if snapshot.FeatureLevel() < state.SizeLevel {
		return notAllKnow(vm, "change the size of a VM that runs")
	}
	op.Size = request.Size
	if vm.Spec.XML != "" {
		if _, err := domxml.Resize(vm.Spec.XML, int64(op.Size.Memory), op.Size.VCPUs); err != nil {
			return &lead.Error{
				Code: lead.Invalid, Subject: "vm/" + vm.Name,
				Message:  fmt.Sprintf("the size of VM %q cannot be changed alone: %s", vm.Name, err),
				NextStep: fmt.Sprintf("change its document with 'berth vm edit %s': its next start has that", vm.Name),
			}
		}
	}
	if vm.Holder == "" {
		return nil
	}
	facts := l.Inventory.Facts(vm.Holder, l.Now())
	if domain := facts.Domain(vm.ID); domain != nil && domain.State.Holds() && domain.Memory > 0 && op.Size.Memory > domain.Memory {
		return &lead.Error{
			Code: lead.Conflict, Subject: "vm/" + vm.Name,
			Message: fmt.Sprintf("VM %q was started with %v of memory: while it runs it gets no more", vm.Name, domain.Memory),
			NextStep: fmt.Sprintf("'berth vm set %s --memory %d' without --now: its next start has that; --max-memory gives it room to grow",
				vm.Name, op.Size.Memory),
		}
	}
	now := vm.SizeOn(facts.Domain(vm.ID))
	after := now
	if op.Size.Memory > 0 {
		after.Memory = op.Size.Memory
	}
	if op.Size.VCPUs > 0 {
		after.VCPUs = op.Size.VCPUs
	}
	op.Memory, op.VCPUs = max(now.Memory, after.Memory), max(now.VCPUs, after.VCPUs)
	if after.Memory > now.Memory || after.VCPUs > now.VCPUs {
		return roomToGrow(l, snapshot, vm, after, request.Caller)
	}
	return nil
}

// room are the constraints that a VM which is on a node already has to pass to be larger there. Whether it should be there is not asked.
var room = []string{"fresh", "memory-promised", "memory-physical", "headroom"}

// roomToGrow asks the engine whether a VM that runs could be larger on its node, and if not, where it could be.
func roomToGrow(l *Lifecycle, snapshot *state.Snapshot, vm *model.VM, size model.Size, caller string) error {
	judge := func(purpose placement.Purpose, change func(*placement.Request)) (searched, placement.Decision, error) {
		search, err := l.search(snapshot, snapshot, *vm, purpose)
		if err != nil {
			return searched{}, placement.Decision{}, err
		}
		search.ask(func(r *placement.Request) {
			r.Memory, r.VCPUs = size.Memory, size.VCPUs
			change(r)
		})
		return search, l.decide(search, caller), nil
	}
	_, decision, err := judge(placement.ForStart, func(r *placement.Request) { r.Pinned = vm.Holder })
	if err != nil {
		return err
	}
	decision = placement.Explain(decision)
	at := slices.IndexFunc(decision.Nodes, func(n placement.NodeResult) bool { return n.Node == vm.Holder })
	var why []string
	if at >= 0 {
		for _, one := range decision.Nodes[at].Constraints {
			if !one.Passed && slices.Contains(room, one.Constraint) {
				why = append(why, one.Message)
			}
		}
	} else if decision.Outcome == placement.Refused {
		why = append(why, decision.Reason)
	}
	if len(why) == 0 {
		return nil
	}
	if !l.ViewComplete(snapshot) {
		return errNotYet
	}
	node, asked := lead.NodeName(snapshot, vm.Holder), operation.SizeText(size)
	refused := &lead.Error{
		Code: lead.NoNodeFits, Subject: "vm/" + vm.Name,
		Message:  fmt.Sprintf("node %s cannot hold VM %q with %s: %s", node, vm.Name, asked, strings.Join(why, "; ")),
		NextStep: "no other node can take it either: ask for less, or free memory on " + node,
	}
	search, elsewhere, err := judge(placement.ForMigrate, func(r *placement.Request) { r.Leave = true })
	if err == nil && elsewhere.Outcome == placement.Placed && l.movable(snapshot, *vm, &search, wantedMove{}) == nil {
		refused.NextStep = fmt.Sprintf("move it first: 'berth vm migrate %s --to %s', which has room for that", vm.Name, elsewhere.WinnerName)
	}
	return refused
}
