package faults

import (
	"slices"
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
	"berth/integration/faults/promised"
	"berth/integration/faults/setup"
)

// checkNodes compares what a command says of nodes, and of VMs that they have no more, with the machines.
func (r *rules) checkNodes(before *state.Snapshot, command *state.Command) {
	if !r.fencing {
		return
	}
	for i := range command.Nodes {
		node := &command.Nodes[i]
		was, _ := before.Node(node.ID)
		switch is := node.Fencing; {
		case is.Phase == model.FencingAsked && was.Fencing.ID != is.ID && is.Caller != "sim":
			r.checkCause(before, node)
			r.standStill()
		case is.Phase == model.FencingProven && was.Fencing.Phase != model.FencingProven:
			if h := r.host(node.ID); h.On && h.BootID() == is.Boot {
				r.Broken("proof", node.ID, "is said to be off, by %s, and is on since it booted as %s", is.Method, is.Boot)
			}
			r.result.Proven++
			r.unheard[node.ID] = is.Boot == ""
			if is.Method == model.FenceWatchdog {
				r.checkCause(before, node)
			}
		}
	}
	for i := range command.VMs {
		vm := &command.VMs[i]
		was, known := before.VM(vm.ID)
		if known && was.Holder != "" && vm.Holder == "" && len(command.Operations) == 0 {
			r.checkLetGo(&was)
		}
	}
}

// untilLogged is how long it takes at most from a decision to the log, also while disks are slow.
const untilLogged = 2 * time.Second

// checkCause asks whether a node may be fenced without anybody's word: it is silent for long enough, a VM waits for that, and
// not too many others are silent, too. What is compared is what has really come to the leader.
func (r *rules) checkCause(before *state.Snapshot, node *model.Node) {
	m := r.leader
	if m == nil {
		return
	}
	since := func(heard time.Time) time.Duration {
		if heard.Before(m.since) {
			heard = m.since
		}
		return r.Now.Sub(heard)
	}
	is := since(m.keeper.heard.Last[node.ID])
	if is < untilLogged { // it has come back since the decision
		is = since(m.keeper.heard.Silent[node.ID])
	}
	if is < model.DefaultFenceAfter-untilLogged && !r.isSick(node.ID) {
		r.Broken("cause", node.ID, "is fenced, and is silent for %s only", is)
	}
	if leads := r.Now.Sub(m.since); leads < evidence.FenceGrace-untilLogged {
		r.Broken("cause", node.ID, "is fenced by a leader that leads for %s", leads)
	}
	waits := false
	for _, vm := range before.VMs() {
		op, _ := before.Operation(vm.Operation)
		waits = waits || vm.HA && (vm.Holder == node.ID || op.Source == node.ID || op.Target == node.ID || !vm.Whereabouts.Missing.IsZero())
	}
	if !waits {
		r.Broken("cause", node.ID, "is fenced, and no VM waits for that")
	}
	r.checkMass(before, node)
}

// checkMass asks whether not too many others are silent, a rack that is dark as a whole counted once.
func (r *rules) checkMass(before *state.Snapshot, node *model.Node) {
	site := promised.Silence{Racked: len(node.Labels) > 0 && node.Labels[0] == setup.RackLabel}
	for i, h := range r.hosts {
		if record, _ := before.Node(h.ID); record.Fenced() && (record.Fencing.Method == model.FenceManual ||
			r.Now.Sub(record.Fencing.EndedAt) > evidence.FencedCounts/2) {
			continue // somebody has seen what is wrong with it, or it is off for long
		}
		lost := r.leader.lost[h.ID]
		dark := r.leader.sessions[h.ID] == nil && !lost.IsZero() && r.Now.Sub(lost) > model.SessionGrace-untilLogged
		site.Count(r.silence(h.ID) > model.UnreachableAfter+untilLogged, dark, i < r.rack)
	}
	if many, all, tooMany := site.TooMany(); tooMany {
		r.Broken("cause", node.ID, "is fenced while %d of %d are silent", many, all)
	}
}

// silence is for how long the leader has not heard a node, at most since it leads.
func (r *rules) silence(node string) time.Duration {
	heard := r.leader.keeper.heard.Last[node]
	if heard.Before(r.leader.since) {
		heard = r.leader.since
	}
	return r.Now.Sub(heard)
}

// checkLetGo asks whether a VM whose record has lost its holder runs nowhere. Of one started by hand elsewhere nobody can know yet.
func (r *rules) checkLetGo(was *model.VM) {
	r.release(was.Holder, was.ID, was.Epoch)
	if d := r.truth(was.ID); d != nil && (d.At.ID == was.Holder || !r.leader.isToldOf(was.ID)) {
		r.Broken("I2", was.ID, "its holder %s is taken away while it is %s on %s, epoch %d", was.Holder, d.State, d.At.ID, d.Epoch)
	}
}

// truth is the copy of a VM that runs, is about to, or is paused by its owner; nil: there is none.
func (r *rules) truth(vm string) *machine.Domain {
	for _, h := range r.hosts {
		if d := h.Domains[vm]; d != nil && (d.ByOwner || d.State == hypervisor.Running || d.State == hypervisor.Starting) {
			return d
		}
	}
	return nil
}

// judgeNodes compares the nodes and what they had with the records when everything has come to rest.
func (r *rules) judgeNodes(snapshot *state.Snapshot) {
	if !r.fencing {
		return
	}
	for _, vm := range r.waiting() {
		r.Broken("down", vm.ID, "is to be highly available, and does not run: the record says holder %q, %q", vm.Holder, vm.Condition.Text)
	}
	for _, node := range snapshot.Nodes() {
		if h := r.host(node.ID); node.Fenced() && h.On && !r.unheard[node.ID] {
			r.Broken("proof", node.ID, "counts as off, by %s of %s, and is on as %s", node.Fencing.Method, node.Fencing.Boot, h.BootID())
		}
	}
}

// waiting are the VMs that are to be highly available and run nowhere, though a node has room for them.
func (r *rules) waiting() []model.VM {
	snapshot := r.store.Snapshot()
	if r.quarantined() {
		return nil // a node has not told yet
	}
	if slices.ContainsFunc(snapshot.Nodes(), func(node model.Node) bool { return node.Fenced() && r.unheard[node.ID] && r.host(node.ID).On }) {
		return nil // nobody knows whether it has booted since it was proven to be off: what it shows is not believed, and VMs wait for it
	}
	used := r.leader.promises(snapshot)
	return slices.DeleteFunc(snapshot.VMs(), func(vm model.VM) bool {
		roomy := slices.ContainsFunc(r.hosts, func(h *host) bool {
			return h.On && used[h.ID]+vm.Spec.Memory <= h.Capacity() && (vm.Home == "" || vm.Home == h.ID) && (vm.Bound == "" || vm.Bound == h.ID)
		})
		told := vm.Condition.Beside() // nobody can say that its end came from its host
		last := r.host(vm.LastNode)   // without ha, it is started again only when that is back
		again := r.ran[vm.ID] && !told && (last == nil || !last.Lost)
		down := (vm.HA || again) && vm.Desired == model.Running && vm.Operation == "" && r.truth(vm.ID) == nil
		held := vm.LostTooMany() && vm.Condition.Is(model.RestartHeld) // until somebody starts it
		// A dead machine keeps its memory, or has told so last: until somebody gives that up it is started nowhere (W24).
		keeps := func(h *host) bool { return h.Lost && (machine.Keeps(h.Machine, vm.ID) || r.showed(h, vm.ID) != nil) }
		kept := slices.ContainsFunc(r.hosts, keeps)
		nowhere := vm.Condition.Is(model.NowhereSeen) || r.shelf.Torn[vm.ID] // after a restore: until somebody starts it
		return !down || nowhere || !roomy || held || kept || r.vmWaits(snapshot, &vm) || r.diskless(&vm) || vm.Restarts >= evidence.MaxRestarts
	})
}
