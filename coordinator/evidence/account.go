package evidence

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// account is what is known of how a VM left its holder.
type account struct {
	lacks bool   // its holder has listed its domains since it got the VM, and it is not among them
	asks  bool   // nobody can say that no other node has it: all have to be heard
	anew  bool   // its host has booted since it ran there
	why   string // it runs nowhere, once nothing is in the way

	// after is what other nodes have to have listed their domains after; zero: it does not matter when. Watched tells that the VM ran on
	// its holder from then on, without leaving it: a node that was heard later need not be heard now.
	after   time.Time
	watched bool
}

// accountOf finds out how a VM left its holder.
func (s *Survey) accountOf(vm *model.VM) account {
	missing := vm.Whereabouts.Missing
	out := account{asks: !missing.IsZero(), after: missing, why: "every node is heard or off, and none has it"}
	holder := s.of(vm.Holder)
	switch {
	case holder == nil && vm.Whereabouts.Beside(vm.Holder):
		return s.strayAccount(vm, out)
	case holder == nil && !out.asks:
		out.why = "it was stopped, or its end was proven, before"
		return out
	case holder == nil:
		return out
	}
	name, facts := holder.node.Name, &holder.facts
	ending, ended := facts.Endings[vm.ID], holder.sawEnd(vm)
	out.lacks = holder.worth == heard && s.Lacks(*vm)
	switch {
	case holder.worth != off && !out.lacks:
	case ended && ending.Whole:
		out.asks, out.why = false, fmt.Sprintf("it ended on %s, whose agent has watched it since it came there", name)
	case ended:
		out.asks, out.after, out.watched = true, ending.RanSince, true
		out.why = fmt.Sprintf("it ended on %s, and every other node was heard without it or is off", name)
	case out.asks:
	case holder.worth == off && !holder.seenWithout(vm):
		out.why = fmt.Sprintf("its node %s is proven to be off", name)
	case out.lacks && holder.bootedSince(vm):
		out.anew, out.why = true, fmt.Sprintf("%s has booted anew since the VM ran there", name)
	default:
		out.asks = true
	}
	return out
}

// strayAccount finds out how a VM that nobody holds left the node that showed it beside Berth. Whoever started it there may have moved it.
func (s *Survey) strayAccount(vm *model.VM, out account) account {
	seen := vm.Whereabouts.Missing
	out.after = time.Time{}
	one := s.under(vm.Whereabouts.Boot)
	if one == nil {
		return out
	}
	ending, told := one.facts.Endings[vm.ID]
	switch ended := told && one.facts.DomainsKnown && ending.At.After(seen); {
	case one.worth == off && !one.seenWithout(vm):
		out.asks, out.why = false, fmt.Sprintf("%s, where it ran beside Berth, is proven to be off", one.node.Name)
	case ended && !ending.Whole:
		out.after, out.watched = ending.RanSince, true
	case ended:
		out.asks, out.why = false, fmt.Sprintf("it ended on %s, where it ran beside Berth", one.node.Name)
	}
	return out
}

// since tells whether something was after a VM came to its holder.
func since(at time.Time, vm *model.VM) bool { return at.After(vm.StartedAt) && at.After(vm.MovedAt) }

// sawEnd tells whether a node has told how the VM ended there.
func (h *hearing) sawEnd(vm *model.VM) bool {
	ending, told := h.facts.Endings[vm.ID]
	return told && h.facts.DomainsKnown && since(ending.At, vm)
}

// EndUnwatched tells whether a VM that its holder does not run any more has left it in a way that nobody has seen.
func (s *Survey) EndUnwatched(vm *model.VM) bool {
	if vm.Holder == "" {
		return false
	}
	holder := s.of(vm.Holder)
	return holder == nil || !holder.sawEnd(vm)
}

// seenWithout tells whether a node that is silent was last seen without the VM, or while the VM was being moved away. If this leader
// has not seen what ran there, what is recorded counts. It is no evidence that the VM is not there: the node may have been seen before
// the VM came.
func (h *hearing) seenWithout(vm *model.VM) bool {
	facts := &h.facts
	return facts.Inventory && facts.DomainsKnown && leaving(facts.Domain(vm.ID))
}

// bootedSince tells whether a node has booted anew since it ran the VM. If this leader has seen it without the VM before that, it has
// not run the VM until then.
func (h *hearing) bootedSince(vm *model.VM) bool {
	was, facts := vm.Whereabouts.Boot, &h.facts
	return was != "" && facts.Boot != "" && facts.Boot != was && (facts.Before.Boot != was || !leaving(facts.Before.Domain(vm.ID)))
}

// leaving tells whether a domain has left, or may have.
func leaving(domain *model.Domain) bool {
	return domain == nil || !domain.State.Holds() || domain.JobActive || domain.State == model.DomainPausedMigration
}
