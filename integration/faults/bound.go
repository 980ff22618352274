package faults

import (
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/bound"
	"berth/integration/faults/machine"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
)

func bind(w *World, what script.Happening, _ *host) {
	bound.Begin(w.Site, w.machines(), uuidOf(vmName(what.VM)), what)
}

// tied asks what a VM's node has told of what binds it.
func (m *member) tied(snapshot *state.Snapshot, vm *model.VM, by func(*state.Snapshot, *model.VM, *model.NodeFacts) bool) bool {
	if !m.world.fencing {
		return false
	}
	facts := m.keeper.facts.Facts(vm.Holder, m.world.Now)
	return by(snapshot, vm, &facts)
}

// checkBound asks of an operation that begins whether what it is to do can be.
func (r *rules) checkBound(op *operation.Operation) {
	if !r.fencing || r.leader == nil || op.Source == "" || len(r.clones) > 0 {
		return
	}
	facts := r.leader.keeper.facts.Facts(op.Source, r.Now)
	if rule, text := bound.Breach(op, r.host(op.Source).Domains[op.VM], &facts); rule != "" {
		r.Broken(rule, op.ID, "%s", text)
	}
}

// machines are those of the hosts.
func (w *World) machines() (all []*machine.Machine) {
	for _, h := range w.hosts {
		all = append(all, h.Machine)
	}
	return all
}

// tryPools has the nodes try from now on what they have under the name of the pool.
func (k *keeper) tryPools() {
	if k.pools = nil; !k.world.Wide {
		return
	}
	k.pools = &bound.Pools{
		Site: k.world.Site, Machines: k.world.machines(), Moment: func() evidence.Moment { return k.moment(k.view()) },
		Ask: func(what, node string, task func(*machine.Machine) error, then func()) {
			k.perform(what, node, machine.WidePool, func(l *life) error { return task(l.host.Machine) }, then)
		},
		OneTrial: k.world.bug == plant.OneLiarBindsAll,
	}
	k.every(bound.Every, k.pools.Try)
}

func (k *keeper) factsOf(node string) model.NodeFacts { return k.facts.Facts(node, k.world.Now) }

// bindLocal writes down which node alone has a disk of a VM, as control does.
func (k *keeper) bindLocal() {
	before, after := bound.Settled(k.world.Site, k.view(), k.factsOf)
	for i := range before {
		k.keepBeside(before[i], after[i])
	}
}

// barred tells whether a node has another file than a VM's last one, as far as is known.
func (m *member) barred(snapshot *state.Snapshot, vm *model.VM, node string) bool {
	if vm.Bound != "" && vm.Bound != node {
		m.world.Draw(script.LocalFile)
		return m.world.bug != plant.LocalMoves
	}
	if m.keeper.pools == nil || !m.keeper.pools.Bars(snapshot, vm, node) {
		return false
	}
	m.world.Draw(script.LyingPool)
	return m.world.bug != plant.WrongFile
}

// checkFile asks whether the target of an operation has the file that its VM wrote last, or could have it as far as the leader knew.
func (r *rules) checkFile(op *operation.Operation) {
	if op.Target == "" || r.leader == nil || r.leader.keeper.pools == nil || op.Kind == operation.Adopt || !r.byHand.At(op.VM).IsZero() {
		return
	}
	vm, _ := r.store.Snapshot().VM(op.VM)
	if strays := r.leader.keeper.pools.Strays(op, &vm); strays != "" {
		r.Broken("file", op.ID, "%s", strays)
	}
}
