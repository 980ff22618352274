package evidence

import (
	"slices"

	"berth/coordinator/model"
)

// Discardable sorts the paused copies that operations had to leave on silent nodes. Due are those whose nodes answer again.
// Over are those that there is nothing to do about any more: their node is proven to be off, or is no member; or somebody has
// let the copy run, and what it has done since is for a person to judge.
func Discardable(m Moment, vm *model.VM) (due, over []model.Discard) {
	for _, left := range vm.Discards {
		node, known := m.Node(left.Node)
		facts := m.Facts(left.Node)
		domain := facts.Domain(vm.ID)
		switch {
		case !known, node.Fenced():
			over = append(over, left)
		case facts.Liveness != model.Up, !facts.Inventory, !facts.DomainsKnown:
		case domain != nil && domain.Epoch == left.Epoch && domain.State == model.DomainRunning:
			over = append(over, left)
		default:
			due = append(due, left)
		}
	}
	return due, over
}

// isLeft tells whether a copy is one that is to be discarded. One that runs is not.
func isLeft(vm *model.VM, node string, domain *model.Domain) bool {
	return domain.Managed && domain.State != model.DomainRunning && slices.Contains(
		vm.Discards, model.Discard{Node: node, Epoch: domain.Epoch},
	)
}

// WithoutDiscards is a VM's record without some that are to be discarded.
func WithoutDiscards(vm model.VM, over []model.Discard) model.VM {
	left := slices.DeleteFunc(slices.Clone(vm.Discards), func(one model.Discard) bool { return slices.Contains(over, one) })
	if vm.Discards = left; len(left) == 0 {
		vm.Discards = nil
	}
	return vm
}

// Resumed are those of the copies to be discarded that somebody has let run.
func Resumed(vm *model.VM, running []Copy) []model.Discard {
	var over []model.Discard
	for i := range running {
		if one := (model.Discard{Node: running[i].Node, Epoch: running[i].Domain.Epoch}); slices.Contains(vm.Discards, one) {
			over = append(over, one)
		}
	}
	return over
}
