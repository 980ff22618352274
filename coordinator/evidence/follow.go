package evidence

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// Follower remembers what the last look has found about VMs: what two looks show alike is believed. It is not safe for
// concurrent use.
type Follower struct {
	before  map[string]string    // in words by VM ID
	missing map[string]time.Time // by VM ID: since when its holder lacks it, and nobody has seen how it left
}

// Found is what has become of a VM beside Berth.
type Found struct {
	VM model.VM
	Finding
}

// Look is what this look and the last one have found alike, of VMs that no operation works on.
func (f *Follower) Look(s *Survey) []Found {
	var all []Found
	now, missing := map[string]string{}, map[string]time.Time{}
	for _, vm := range s.VMs() {
		if vm.Operation != "" {
			continue
		}
		as := vm
		if since, known := f.missing[vm.ID]; known && vm.Whereabouts.Missing.IsZero() {
			as.Whereabouts.Missing = since // it may not be written down yet
		}
		finding := Beside(vm, s.sighting(&as))
		if missing[vm.ID] = as.Whereabouts.Missing; finding.Missing && as.Whereabouts.Missing.IsZero() {
			missing[vm.ID] = s.At
		}
		if missing[vm.ID].IsZero() || !finding.Missing && finding.Verdict != StoppedHere {
			delete(missing, vm.ID)
		}
		now[vm.ID] = fmt.Sprint(finding.Verdict, finding.Condition, finding.Node, len(finding.Leftovers))
		if f.before[vm.ID] == now[vm.ID] {
			all = append(all, Found{vm, finding})
		}
	}
	f.before, f.missing = now, missing
	return all
}

func (s *Survey) sighting(vm *model.VM) Sighting {
	seen := Sighting{Copies: s.copies(vm)}
	holder := s.of(vm.Holder)
	if holder == nil {
		if vm.Holder == "" && !vm.Whereabouts.Missing.IsZero() {
			seen.Answer = s.Of(vm)
		}
		return seen
	}
	seen.Holder, seen.Astray = holder.node.Name, s.strayed(*vm, holder.node)
	seen.HolderOff, seen.HolderLacks = holder.worth == off, holder.worth == heard && s.Lacks(*vm)
	seen.HolderSilent = holder.worth != off && holder.worth != heard
	seen.HolderLeft = seen.HolderSilent && holder.seenWithout(vm) && !holder.sawEnd(vm)
	if seen.HolderOff || seen.HolderLacks {
		seen.Answer = s.Of(vm)
	}
	return seen
}

// Seen are the records of VMs that their holders show and of which that is not written down: under another boot than it was last, or
// after they had been missing.
func (s *Survey) Seen() []model.VM {
	var all []model.VM
	for _, vm := range s.VMs() {
		holder := s.of(vm.Holder)
		if vm.Operation != "" || holder == nil || holder.worth != heard || holder.facts.Boot == "" {
			continue
		}
		domain := holder.facts.Domain(vm.ID)
		if is := (model.Whereabouts{Boot: holder.facts.Boot}); domain != nil && domain.State.Lives() && vm.Whereabouts != is {
			vm.Whereabouts = is
			all = append(all, vm)
		}
	}
	return all
}
