package guests

import (
	"fmt"
	"slices"

	"berth/coordinator/api/answer"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Readiness is what control knows of whether high availability would work.
type Readiness interface {
	// Unprovable says why nothing but somebody's word would prove that a node is off if it fell silent now, and what ends that; empty:
	// something would.
	Unprovable(node *model.Node) (why, next string)
	// IdentityOf is what a node's fence devices say about which machine they switch.
	IdentityOf(node *model.Node) model.FenceIdentities
	// PowerTried says when they were asked last for the power state, and what came of that; empty: not by this leader.
	PowerTried(node *model.Node) string
	// Elsewhere says why a VM would be restarted nowhere if its node were lost now; empty: some node would take it.
	Elsewhere(snapshot *state.Snapshot, vm model.VM) string
	// Nowhere are the VMs of which Elsewhere has said so last, in the leader's own time, by ID.
	Nowhere() map[string]string
}

// HAGaps is what would keep a VM with ha from being restarted by itself if its node were lost now, and what ends that. None: nothing is
// known that would, or it runs nowhere.
func HAGaps(p *answer.Moment, vm *model.VM, control Readiness) (gaps []string) {
	node, known := p.Node(vm.Holder)
	if !vm.HA || !known {
		return nil
	}
	if !vm.Guarded() {
		return append(gaps, fmt.Sprintf("it is never started again by itself: 'berth vm set %s --restart ha' changes that", vm.Name))
	}
	if why, next := control.Unprovable(&node); why != "" {
		gap := fmt.Sprintf("if %s fell silent: %s", node.Name, why)
		if next != "" {
			gap += "; " + next
		}
		gaps = append(gaps, gap)
	}
	if why := control.Elsewhere(p.Snapshot, *vm); why != "" {
		gaps = append(gaps, fmt.Sprintf("without %s: %s", node.Name, why))
	}
	return gaps
}

// ReadinessProblems are the nodes that run VMs with ha and that nothing would prove to be off. Not those where people are to prove it, nor
// those whose device is known to switch another machine, which is told elsewhere. Nodes without a device are one line.
func ReadinessProblems(p *answer.Moment, control Readiness) (lines []string) {
	if _, paused := model.HAPauseOf(p.Meta(model.MetaHAPause), p.At); paused {
		return nil // that is told, and disarms the watchdogs
	}
	var without, vms []string
	for holder, names := range guardedOn(p) {
		node, known := p.Node(holder)
		method := node.Fence.Method
		if !known || method == model.FenceManual || node.Fenced() || node.Maintenance {
			continue
		}
		if refused, _ := control.IdentityOf(&node).Refused(&node); refused != "" {
			continue
		}
		why, next := control.Unprovable(&node)
		switch {
		case why == "":
		case method == model.FenceNone:
			without, vms = append(without, node.Name), append(vms, names...)
		default:
			lines = append(lines, fmt.Sprintf("node %s runs VMs with ha (%s), which would wait for somebody's word if it fell silent: %s; %s",
				node.Name, evidence.SomeOf(names), why, next))
		}
	}
	if never := neverStarted(p); len(never) > 0 {
		lines = append(lines, fmt.Sprintf("VMs with ha (%s) are never started again by themselves, because restart is never: "+
			"'berth vm set %s --restart ha' changes that", evidence.SomeOf(never), never[0]))
	}
	if line := nowhere(p, control); line != "" {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	if len(without) == 0 {
		return lines
	}
	slices.Sort(without)
	slices.Sort(vms)
	return append(lines, fmt.Sprintf("VMs with ha (%s) would wait for somebody's word if their nodes fell silent: "+
		"nothing can prove that %s is off; 'berth node set %s --fence METHOD' names a device that proves it",
		evidence.SomeOf(vms), evidence.SomeOf(without), without[0]))
}

// guardedOn are the names of the VMs that are to run with ha and be started again, ascending, by the node that holds them.
func guardedOn(p *answer.Moment) map[string][]string {
	names := make(map[string][]string)
	for vm := range p.SharedVMsMarked(model.MarkGuarded) {
		if vm.Holder != "" {
			names[vm.Holder] = append(names[vm.Holder], vm.Name)
		}
	}
	for _, held := range names {
		slices.Sort(held)
	}
	return names
}

// nowhere tells of VMs with ha that no other node would take: of want of room, or because what they have is on their node alone.
func nowhere(p *answer.Moment, control Readiness) string {
	found := control.Nowhere()
	var names []string
	why := map[string]string{} // by name
	for id, reason := range found {
		if vm, there := p.VM(id); there && vm.HA && vm.Holder != "" && vm.Guarded() {
			names, why[vm.Name] = append(names, vm.Name), reason
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("VMs with ha (%s) would be started again nowhere if their nodes were lost; %s: %s; next step: 'berth vm show %s' "+
		"tells of each what is lacking", evidence.SomeOf(names), names[0], why[names[0]], names[0])
}

// neverStarted names the VMs with ha that nothing starts again by itself, ascending.
func neverStarted(p *answer.Moment) (names []string) {
	for _, vm := range p.VMsMarked(model.MarkLeft) {
		names = append(names, vm.Name)
	}
	slices.Sort(names)
	return names
}
