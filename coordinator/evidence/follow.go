package evidence

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
)

// Touched is what may be another than it was at the look before, by ID. Some may be named twice, and some that are as they were.
type Touched struct {
	All bool // nobody knows: anything may be
	IDs []string
}

// Follower remembers what the last look has found about VMs: what two looks show alike is believed. It is not safe for
// concurrent use.
type Follower struct {
	before  map[string]string    // in words by VM ID
	missing map[string]time.Time // by VM ID: since when its holder lacks it, and nobody has seen how it left
	odd     map[string]bool      // by ID: the VMs that did not run as they should; nil: no look was made yet
}

// Found is what has become of a VM beside Berth.
type Found struct {
	VM model.VM
	Finding
}

// Look is what this look and the last one have found alike, of VMs that no operation works on, and the records of VMs of which more is seen
// than is written down. It looks at those that were touched since the last look, and at those that did not run as they should then: nothing
// follows for any other.
func (f *Follower) Look(s *Survey, touched Touched) (seen []model.VM, found []Found) {
	odd := f.turn(s, touched)
	now, missing := map[string]string{}, map[string]time.Time{}
	for _, vm := range odd {
		if vm.Operation != "" {
			continue
		}
		as := *vm
		if since, known := f.missing[vm.ID]; known && vm.Whereabouts.Missing.IsZero() {
			as.Whereabouts.Missing = since // it may not be written down yet
		}
		finding := s.besideRemoved(vm, Beside(*vm, s.sighting(&as)))
		if missing[vm.ID] = as.Whereabouts.Missing; finding.Missing && as.Whereabouts.Missing.IsZero() {
			missing[vm.ID] = s.At
		}
		if missing[vm.ID].IsZero() || !finding.Missing && finding.Verdict != StoppedHere {
			delete(missing, vm.ID)
		}
		if finding.asItShouldBe() && !IsOutOfBand(vm.Condition) {
			continue // as nearly all are: nothing follows
		}
		now[vm.ID] = fmt.Sprint(finding.Verdict, finding.Condition, finding.Node, len(finding.Leftovers))
		if f.before[vm.ID] == now[vm.ID] {
			own, _ := s.VM(vm.ID)
			found = append(found, Found{own, finding})
		}
	}
	f.before, f.missing = now, missing
	return s.seen(odd), found
}

// turn finds out which VMs do not run as they should, and gives them by name, with those of which something is remembered.
func (f *Follower) turn(s *Survey, touched Touched) []*model.VM {
	look := func(vm *model.VM) {
		if s.plain(vm) {
			delete(f.odd, vm.ID)
		} else {
			f.odd[vm.ID] = true
		}
	}
	if touched.All || f.odd == nil {
		f.odd = map[string]bool{}
		for vm := range s.SharedVMs() {
			look(vm)
		}
	} else {
		again := append(slices.Collect(maps.Keys(f.odd)), touched.IDs...)
		for i := range s.Removed {
			for _, domain := range s.Removed[i].Domains {
				again = append(again, domain.UUID)
			}
		}
		for _, id := range again {
			if vm := s.SharedVM(id); vm != nil {
				look(vm)
			} else {
				delete(f.odd, id)
			}
		}
	}
	var odd []*model.VM
	for id := range f.odd {
		odd = append(odd, s.SharedVM(id))
	}
	for id := range f.missing {
		if vm := s.SharedVM(id); vm != nil && !f.odd[id] {
			odd = append(odd, vm)
		}
	}
	slices.SortFunc(odd, func(a, b *model.VM) int { return strings.Compare(a.Name, b.Name) })
	return odd
}

func (s *Survey) sighting(vm *model.VM) Sighting {
	seen := Sighting{Copies: s.marked(vm, s.copies(vm))}
	holder := s.of(vm.Holder)
	if holder == nil {
		if vm.Holder == "" && !vm.Whereabouts.Missing.IsZero() {
			seen.Answer = s.Of(vm)
		}
		return seen
	}
	seen.Starved = starvedOf(holder.facts.Domain(vm.ID), &holder.facts)
	seen.Holder, seen.Astray = holder.node.Name, s.strayed(*vm, holder.node)
	seen.SincePause = holder.facts.InventoryAt.After(vm.Paused.At)
	seen.HolderOff, seen.HolderLacks = holder.worth == off, holder.worth == heard && s.Lacks(*vm)
	seen.HolderSilent = holder.worth != off && holder.worth != heard
	seen.HolderLeft = seen.HolderSilent && holder.seenWithout(vm) && !holder.sawEnd(vm)
	if holder.sawEnd(vm) {
		seen.Cause = holder.facts.Endings[vm.ID].Cause
	}
	if seen.HolderOff || seen.HolderLacks {
		seen.Answer = s.Of(vm)
	}
	return seen
}

// seen are the records of VMs of which more is seen than is written down: their holders show them under another boot than it was
// last, or after they had been missing; or nobody holds them, and a node shows them that somebody has started beside Berth, or shows them
// no more; or another node shows them while an operation waits for a holder that does not answer. All VMs that do not run as they should
// are among odd.
func (s *Survey) seen(odd []*model.VM) []model.VM {
	var all []model.VM
	for _, vm := range odd {
		if vm.Operation != "" || s.plain(vm) {
			continue
		}
		if is, kept := s.whereabouts(vm), s.keeper(vm); is != vm.Whereabouts || kept != vm.Kept {
			own, _ := s.VM(vm.ID)
			own.Whereabouts, own.Kept = is, kept
			all = append(all, own)
		}
	}
	return append(all, s.away()...)
}

// whereabouts are what is to be kept of a VM that no operation works on.
func (s *Survey) whereabouts(vm *model.VM) model.Whereabouts {
	if vm.Holder == "" {
		return s.beside(vm)
	}
	holder := s.of(vm.Holder)
	if holder == nil || holder.worth != heard || holder.facts.Boot == "" {
		return vm.Whereabouts
	}
	if domain := holder.facts.Domain(vm.ID); domain == nil || !domain.State.Lives() {
		return vm.Whereabouts
	}
	return model.Whereabouts{Boot: holder.facts.Boot}
}

// beside is what is to be kept of a VM that nobody holds. The node that shows it may not be heard any more when somebody has moved it on,
// and nothing else would tell a later look, or another leader, that it may run.
func (s *Survey) beside(vm *model.VM) model.Whereabouts {
	is, boot := vm.Whereabouts, ""
	for _, one := range s.copies(vm) {
		switch shown := s.of(one.Node).facts.Boot; {
		case !one.Domain.State.Lives():
		case shown == is.Boot:
			return is
		default:
			boot = shown
		}
	}
	if boot != "" {
		return model.Whereabouts{Boot: boot, Missing: s.At}
	}
	if !is.Beside("") {
		return is
	}
	one := s.under(is.Boot)
	switch out := s.accountOf(vm); {
	case !out.asks:
		return model.Whereabouts{}
	case out.watched, one != nil && one.worth != heard && one.worth != off:
		return is // its node may tell more
	}
	return model.Whereabouts{Missing: s.At}
}

// away are the VMs that an operation works on at a holder which does not answer, while another node shows them: somebody has moved
// them before. No follower looks at a VM with an operation, and once the holder is off that alone would end the operation. The next leader
// may not hear the node that shows the VM, so it has to be written down now.
func (s *Survey) away() []model.VM {
	var all []model.VM
	for _, op := range s.LiveOperations() {
		vm, known := s.VM(op.VM)
		holder := s.of(vm.Holder)
		moves := op.Target != "" && op.Target != op.Source
		if !known || holder == nil || holder.worth == heard || moves || !vm.Whereabouts.Missing.IsZero() {
			continue
		}
		for _, one := range s.copies(&vm) {
			if one.Node != vm.Holder && one.Is(&vm) && one.Domain.State.Lives() && since(s.of(one.Node).facts.InventoryAt, &vm) {
				vm.Whereabouts.Missing = s.At
				all = append(all, vm)
				break
			}
		}
	}
	return all
}
