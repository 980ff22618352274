package faults

import (
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// checkNodes compares what a command says of nodes, and of VMs that they have no more, with the machines.
func (w *World) checkNodes(before *state.Snapshot, command *state.Command) {
	if !w.fencing {
		return
	}
	for i := range command.Nodes {
		node := &command.Nodes[i]
		was, _ := before.Node(node.ID)
		switch is := node.Fencing; {
		case is.Phase == model.FencingAsked && was.Fencing.ID != is.ID && is.Caller != "sim":
			w.checkCause(before, node)
			w.standStill()
		case is.Phase == model.FencingProven && was.Fencing.Phase != model.FencingProven:
			if h := w.host(node.ID); h.on && h.bootID() == is.Boot {
				w.broken("proof", node.ID, "is said to be off, by %s, and is on since it booted as %s", is.Method, is.Boot)
			}
			w.result.Proven++
			w.unheard[node.ID] = is.Boot == ""
			if is.Method == model.FenceWatchdog {
				w.checkCause(before, node)
			}
		}
	}
	for i := range command.VMs {
		vm := &command.VMs[i]
		was, known := before.VM(vm.ID)
		if known && was.Holder != "" && vm.Holder == "" && len(command.Operations) == 0 {
			w.checkLetGo(&was)
		}
	}
}

// standStill lets the leader that has just written down that it asks a device stand still, or die.
func (w *World) standStill() {
	m, what := w.leader, w.stops
	if m == nil || what == nil {
		return
	}
	w.stops = nil
	w.after(0, func() {
		if what.Hard {
			w.crashMember(m)
			w.later(what.For, func() { m.alive = true })
		} else {
			w.freezeMember(m)
			w.later(what.For, func() { w.thawMember(m) })
		}
	})
}

// checkCause asks whether a node may be fenced without anybody's word: it is silent for long enough, a VM waits for that, and
// not too many others are silent, too. What is compared is what has really come to the leader.
func (w *World) checkCause(before *state.Snapshot, node *model.Node) {
	m := w.leader
	if m == nil {
		return
	}
	silent := func(id string) time.Duration {
		heard := m.heard[id]
		if heard.Before(m.since) {
			heard = m.since
		}
		return w.now.Sub(heard)
	}
	const slack = time.Second // from the decision to the log
	if is := silent(node.ID); is < model.DefaultFenceAfter-slack {
		w.broken("cause", node.ID, "is fenced, and is silent for %s only", is)
	}
	if leads := w.now.Sub(m.since); leads < evidence.FenceGrace-slack {
		w.broken("cause", node.ID, "is fenced by a leader that leads for %s", leads)
	}
	waits := false
	for _, vm := range before.VMs() {
		op, _ := before.Operation(vm.Operation)
		waits = waits || vm.HA && (vm.Holder == node.ID || op.Source == node.ID || op.Target == node.ID)
	}
	if !waits {
		w.broken("cause", node.ID, "is fenced, and no VM waits for that")
	}
	many := 0
	for _, h := range w.hosts {
		if silent(h.id) > model.UnreachableAfter+slack {
			many++
		}
	}
	if many > model.MaxSilentNodes || many > 1 && many*100 > len(w.hosts)*model.MaxSilentPercent {
		w.broken("cause", node.ID, "is fenced while %d of %d are silent", many, len(w.hosts))
	}
}

// checkLetGo asks whether a VM whose record has lost its holder runs nowhere.
func (w *World) checkLetGo(was *model.VM) {
	key := [2]string{was.Holder, was.ID}
	w.void[key] = max(w.void[key], was.Epoch)
	if d := w.truth(was.ID); d != nil {
		w.broken("I2", was.ID, "its holder %s is taken away while it is %s on %s, epoch %d", was.Holder, d.State, d.host.id, d.Epoch)
	}
}

// truth is the copy of a VM that runs, is about to, or is paused by its owner; nil: there is none.
func (w *World) truth(vm string) *domain {
	for _, h := range w.hosts {
		if d := h.domains[vm]; d != nil && !d.byHand && (d.byOwner || d.State == hypervisor.Running || d.State == hypervisor.Starting) {
			return d
		}
	}
	return nil
}

// judgeNodes compares the nodes and what they had with the records when everything has come to rest.
func (w *World) judgeNodes(snapshot *state.Snapshot) {
	if !w.fencing {
		return
	}
	for _, vm := range w.waiting() {
		w.broken("down", vm.ID, "is to be highly available, and does not run: the record says holder %q, %q", vm.Holder, vm.Condition.Text)
	}
	for _, node := range snapshot.Nodes() {
		if h := w.host(node.ID); node.Fenced() && h.on && !w.unheard[node.ID] {
			w.broken("proof", node.ID, "counts as off, by %s of %s, and is on as %s", node.Fencing.Method, node.Fencing.Boot, h.bootID())
		}
	}
}
