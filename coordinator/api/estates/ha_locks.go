package estates

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/binding"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/shared/rpc"
)

// A VM with ha is started elsewhere on the proof that its node is off. If that proof were wrong, the lock of its disk would end the second
// copy. Where it was seen that a lock would not, somebody has to say that fencing alone is to be relied on.

// LocksOf is what is known of the locks of a shared pool. Package control has it.
type LocksOf func(snapshot *state.Snapshot, pool *model.Resource) evidence.Locks

// MayBeHA refuses a VM with ha that has a disk in a pool whose locks were seen not to stop another node. More are disks that are made
// with it.
func MayBeHA(p *answer.Moment, vm *model.VM, of LocksOf, more ...model.Resource) error {
	if !vm.HA {
		return nil
	}
	if vm.Bound != "" {
		return bound(p, vm)
	}
	for _, pool := range p.Resources(model.KindPool) {
		settings := model.PoolSettingsOf(&pool)
		if settings.Scope != model.PoolShared || settings.HAWithoutLock || !liesIn(p, vm, &pool, more...) {
			continue
		}
		if locks := of(p.Snapshot, &pool); locks.Doubtful() {
			return refusal.New(rpc.Conflict, "vm/"+vm.Name, haNext(&pool, &locks),
				"VM %q with ha has a disk in pool %s, where nothing would stop a second copy of it: %s", vm.Name, pool.Name, locks.Why)
		}
	}
	return nil
}

// bound refuses a VM that starts on one node alone, by the reason for that.
func bound(p *answer.Moment, vm *model.VM) error {
	node := p.NodeName(vm.Bound)
	if lacks := binding.Lacks(p, vm, p.ClusterOf(vm)); lacks != "" {
		return refusal.New(rpc.Conflict, "vm/"+vm.Name, fmt.Sprintf("let it through with 'berth vm accept %s'", vm.Name),
			"VM %q has something of its host that needs %s, which its cluster does not permit: it could be restarted nowhere else", vm.Name, lacks)
	}
	if facts := p.Soft.Facts(vm.Bound, p.At); facts.Liveness == model.Up && !facts.PoolsKnown {
		next := fmt.Sprintf("try again in half a minute; where it stays, 'berth node show %s' says what ails libvirt there", node)
		return refusal.New(rpc.Conflict, "vm/"+vm.Name, next, "VM %q has run on %[2]s, and %[2]s has not told yet which storage pools it has: "+
			"a disk of the VM may be there alone", vm.Name, node)
	}
	return refusal.New(rpc.Conflict, "vm/"+vm.Name, "move its disks into a pool that all nodes see, or declare the one that they are in: "+
		"'berth pool add --help'", "VM %q has a disk that only %s is known to have: it could be restarted nowhere else", vm.Name, node)
}

// haNext is what to do about a pool whose locks do not stop another node.
func haNext(pool *model.Resource, locks *evidence.Locks) string {
	if locks.Verdict == evidence.NotShared {
		return fmt.Sprintf("mount the same storage on both, or declare pool %s with scope local", pool.Name)
	}
	return fmt.Sprintf("let locks reach the server (NFS: mount it without nolock and local_lock), or, if fencing alone is to be relied on, "+
		"'berth pool set %s --ha-without-lock true'", pool.Name)
}

// liesIn tells whether a VM has a disk in a pool, or will have one. More are disks that are made with it.
func liesIn(p *answer.Moment, vm *model.VM, pool *model.Resource, more ...model.Resource) bool {
	in := func(disk model.Resource) bool {
		return disk.Links[schema.LinkPool] == pool.ID || disk.VolumeIn(pool.ID) != nil
	}
	linked := func(id string) bool {
		disk, known := p.Resource(id)
		return known && in(disk)
	}
	source := model.PoolSettingsOf(pool).Source
	named := func(disk model.Disk) bool { return disk.Pool == source }
	return slices.ContainsFunc(more, in) || slices.ContainsFunc(vm.Disks, linked) || slices.ContainsFunc(vm.Spec.Disks, named)
}

// LockProblems are the pools that are not what VMs with ha need: another node does not see what is written there, or its locks.
func LockProblems(p *answer.Moment, of LocksOf) []string {
	var lines []string
	for _, pool := range p.Resources(model.KindPool) {
		settings := model.PoolSettingsOf(&pool)
		if settings.Scope != model.PoolShared {
			continue
		}
		switch locks := of(p.Snapshot, &pool); {
		case locks.Verdict == evidence.NotShared:
			what := "it is tried again whether all nodes have the same storage there"
			if len(locks.Sides) > 0 {
				what = "VMs with disks there are moved and started on their side alone, which is " + sidesOf(locks.Sides)
			}
			lines = append(lines, fmt.Sprintf("pool %s is declared as shared, and %s: %s: %s",
				pool.Name, locks.Why, what, haNext(&pool, &locks)))
		case locks.Verdict == evidence.LocksStay && !settings.HAWithoutLock:
			if names := haIn(p, &pool); len(names) > 0 {
				lines = append(lines, fmt.Sprintf("no lock in pool %s would stop a second copy of VMs with ha (%s): %s: %s",
					pool.Name, evidence.SomeOf(names), locks.Why, haNext(&pool, &locks)))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// sidesOf names the nodes of each side of a pool.
func sidesOf(sides [][]string) string {
	texts := make([]string, 0, len(sides))
	for _, side := range sides {
		texts = append(texts, evidence.SomeOf(side))
	}
	const most = 4
	if len(texts) > most {
		texts = append(texts[:most], fmt.Sprintf("one of %d more", len(texts)-most))
	}
	return strings.Join(texts, " or ")
}

// haIn are the VMs with ha that have disks in a pool.
func haIn(p *answer.Moment, pool *model.Resource) []string {
	var names []string
	for vm := range p.SharedVMs() {
		if vm.HA && liesIn(p, vm, pool) {
			names = append(names, vm.Name)
		}
	}
	slices.Sort(names)
	return names
}
