package evidence

import (
	"fmt"
	"slices"

	"berth/coordinator/model"
)

// Told tells whether it is known what a node runs: it shows that itself, and no order of before is still being carried out
// there; or it is proven to be off.
func Told(node *model.Node, facts *model.NodeFacts) bool {
	if facts.Liveness != model.Up {
		return node.Fenced() && facts.Liveness == model.Unreachable
	}
	return facts.Inventory && facts.DomainsKnown && len(facts.Working) == 0
}

// Running are all domains that hold memory, by UUID, and the names of the nodes that have not told theirs.
func (m Moment) Running() (running map[string][]Copy, missing []string) {
	running = map[string][]Copy{}
	for _, node := range m.Nodes() {
		facts := m.Facts(node.ID)
		if !Told(&node, &facts) {
			missing = append(missing, node.Name)
			continue
		}
		if facts.Liveness != model.Up {
			continue // it is off
		}
		for _, domain := range facts.Domains {
			if domain.State.Holds() {
				running[domain.UUID] = append(running[domain.UUID], Copy{Node: node.ID, Name: node.Name, Domain: domain})
			}
		}
	}
	slices.Sort(missing)
	return running, missing
}

// Agreed are the records of a VM, and of its disks that are elsewhere than a backup says, as the nodes show them; and in words what
// changed, empty when nothing did.
func (m Moment) Agreed(vm model.VM, copies []Copy) (after model.VM, disks []model.Resource, why string) {
	after, why = agreed(vm, copies)
	return after, m.agreedDisks(&vm, copies), why
}

func agreed(vm model.VM, copies []Copy) (after model.VM, why string) {
	after = vm
	copies = slices.DeleteFunc(slices.Clone(copies), func(one Copy) bool { return isLeft(&vm, one.Node, &one.Domain) })
	switch {
	case len(copies) > 1:
		after.Condition = TwiceCondition(twice(vm, nil, vm.Holder, copies))
		return after, after.Condition.Text
	case len(copies) == 0 && vm.Holder == "" && vm.Desired != model.Running:
		return vm, ""
	case len(copies) == 0:
		// The backup does not know what people have done since. So it is started by their word only, also if it is to be highly available.
		after.Holder, after.Whereabouts.Boot, after.Unwatched = "", "", vm.Epoch
		after.Condition = model.Condition{Kind: model.NowhereSeen, Text: fmt.Sprintf(
			"it ran when the backup was made, and no node shows it now: somebody may have stopped it since; 'berth vm start %s' starts it, "+
				"'berth vm stop %s' leaves it off", vm.Name, vm.Name,
		)}
		return after, after.Condition.Text
	}
	here := copies[0]
	if here.mayBeOld(&vm) {
		after.Condition = alarm(here.Node, "it is %s, and the backup does not know how it came there: %s; 'virsh destroy %s' there ends it, "+
			"and then it is started from the disks that its record has", Places(copies), here.takenBy(&vm), vm.Name).Condition
		return after, after.Condition.Text
	}
	home := vm.Home
	if home != "" && here.complete() {
		home = here.Node // it runs there, so its disk is there: where the backup has it an older one may be left
	}
	if vm.Holder == here.Node && vm.Epoch == here.Domain.Epoch && vm.Home == home {
		return vm, ""
	}
	after.Home = home
	after.Holder, after.LastNode, after.Desired, after.Condition = here.Node, here.Node, model.Running, model.Condition{}
	after.Epoch = max(vm.Epoch, here.Domain.Epoch)
	return after, fmt.Sprintf("runs on %s, epoch %d, as its node shows", here.Name, here.Domain.Epoch)
}

// complete tells whether a copy is no part of a migration that is under way: it has all of the VM's memory, and its disks are whole.
func (c Copy) complete() bool {
	return c.Domain.State.Lives() && c.Domain.State != model.DomainPausedMigration && !c.Domain.JobActive
}

// agreedDisks are the records of a VM's disks that are elsewhere than a backup says: the only node that shows the VM writes to volumes
// of these names on its own. What is left of them where the backup has them is older.
func (m Moment) agreedDisks(vm *model.VM, copies []Copy) []model.Resource {
	if len(copies) != 1 || !copies[0].complete() || copies[0].mayBeOld(vm) {
		return nil
	}
	var all []model.Resource
	facts := m.Facts(copies[0].Node)
	for _, id := range vm.Disks {
		disk, _ := m.Resource(id)
		if disk.Volume == nil || len(disk.Volume.Nodes) == 0 || slices.Contains(disk.Volume.Nodes, copies[0].Node) {
			continue
		}
		pool, _ := m.Resource(disk.Volume.Pool)
		is := model.DiskSource{Pool: model.PoolSettingsOf(&pool).Source, Volume: disk.Volume.Name}
		if !slices.ContainsFunc(copies[0].Domain.Sources, func(one model.DiskSource) bool { return inPool(one, &facts) == is }) {
			continue
		}
		volume := *disk.Volume
		volume.Nodes = []string{copies[0].Node}
		disk.Volume = &volume
		all = append(all, disk)
	}
	return all
}
