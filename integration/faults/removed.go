package faults

import (
	"context"
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/agents"
	"berth/coordinator/evidence"
	"berth/coordinator/operation"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
	berthv1 "berth/shared/gen/berth/v1"
)

// thawRemoved lets the machine of a node go on that stood still when it was removed, long ago. It runs a copy of a VM, of an earlier
// epoch, that no other machine knows of. FAULTS.md, W19.
func thawRemoved(w *World, what script.Happening, _ *host) {
	vm, known := w.store.Snapshot().VMByName(vmName(what.VM))
	if !known || w.removed != nil || !w.fencing {
		return
	}
	w.Draw(script.Removed)
	w.removed = &host{world: w, Machine: w.NewRemoved("removed", int64(8*vm.Spec.Memory), hypervisor.Domain{
		UUID: vm.ID, Name: vm.Name, MemoryBytes: int64(vm.Spec.Memory), VCPUs: vm.Spec.VCPUs, Managed: true, Epoch: max(vm.Epoch, 2) - 1,
	})}
	w.removed.Begin = w.removed.live
	w.removed.live()
}

// strayed is what a leader has heard of a removed node.
type strayed struct {
	session *session
	listed  *evidence.Removed // nil: nothing yet
}

// admitRemoved opens the session of a node that is not on record, as agents does.
func (k *keeper) admitRemoved(s *session) {
	if k.world.bug == plant.RemovedSentAway {
		s.hangUp()
		return
	}
	s.served = true
	k.strayed = strayed{session: s}
	s.report()
}

// listenTo takes what a removed node lists.
func (k *keeper) listenTo(s *session, message *berthv1.SessionRequest) {
	if k.strayed.session == s && message.GetInventory() != nil && !message.GetInventory().GetDomainsUnknown() {
		k.strayed.listed = &evidence.Removed{
			Node: s.life.host.ID, Name: s.life.host.ID, At: k.world.Now, Domains: agents.Shows(message.GetInventory().GetDomains()),
		}
	}
}

// removedNodes are those that were removed and speak.
func (k *keeper) removedNodes() []evidence.Removed {
	if s := k.strayed.session; s == nil || !s.open || k.strayed.listed == nil {
		return nil
	}
	return []evidence.Removed{*k.strayed.listed}
}

// suspendRemoved has the copies suspended that run on a removed node.
func (k *keeper) suspendRemoved() {
	moment := k.moment(k.view())
	for _, vm := range moment.VMs() {
		for _, one := range evidence.Running(moment.RemovedCopies(&vm)) {
			s := k.strayed.session
			k.performOn(s, "suspends", one.Node, vm.ID, func(l *life) error {
				return l.host.Libvirt(l).Suspend(context.Background(), vm.ID, one.Domain.Epoch)
			}, func() {
				s.send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: s.life.inventory()}})
			})
		}
	}
}

// checkRemoved asks of a start whether the leader has heard of a copy that runs on a removed node.
func (r *rules) checkRemoved(op *operation.Operation) {
	if r.leader == nil || op.Caller != "berth" && op.Caller != "sim" {
		return
	}
	for _, one := range r.leader.keeper.removedNodes() {
		for _, domain := range one.Domains {
			if domain.UUID == op.VM && domain.State == "running" && op.CreatedAt.Sub(one.At) > time.Second && op.Attempt <= 1 {
				r.Broken("removed", op.ID, "is started while a node that was removed has shown for %s that it runs it", op.CreatedAt.Sub(one.At))
			}
		}
	}
}

// judgeRemoved asks whether the copy on a removed node is suspended when everything has come to rest, and was not ended.
func (r *rules) judgeRemoved() {
	if r.removed == nil {
		return
	}
	for _, vm := range r.store.Snapshot().VMs() {
		d := r.removed.Domains[vm.ID]
		if d != nil && d.State == hypervisor.Running {
			r.Broken("removed", vm.ID, "a copy of it runs on a node that was removed, and nobody has suspended it")
		}
	}
	if len(r.removed.Domains) == 0 {
		r.Broken("removed", r.removed.ID, "the guest of a node that was removed was ended")
	}
}
