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

// Agreed is the record that says what the nodes show, and in words what changed; empty when nothing did.
func Agreed(vm model.VM, copies []Copy) (after model.VM, why string) {
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
		after.Holder, after.Whereabouts.Boot = "", ""
		after.Condition = model.Condition{Kind: model.NowhereSeen, Text: fmt.Sprintf(
			"it ran when the backup was made, and no node shows it now: somebody may have stopped it since; 'berth vm start %s' starts it, "+
				"'berth vm stop %s' leaves it off", vm.Name, vm.Name,
		)}
		return after, after.Condition.Text
	}
	here := copies[0]
	if vm.Holder == here.Node && vm.Epoch == here.Domain.Epoch {
		return vm, ""
	}
	after.Holder, after.LastNode, after.Desired, after.Condition = here.Node, here.Node, model.Running, model.Condition{}
	after.Epoch = max(vm.Epoch, here.Domain.Epoch)
	return after, fmt.Sprintf("runs on %s, epoch %d, as its node shows", here.Name, here.Domain.Epoch)
}
