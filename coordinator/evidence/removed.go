package evidence

import (
	"fmt"
	"strings"

	"berth/coordinator/model"
)

// Copies are the guests that a removed node has shown last.
func (r *Removed) Copies() []Copy {
	all := make([]Copy, len(r.Domains))
	for i, domain := range r.Domains {
		all[i] = Copy{Node: r.Node, Name: r.Name, Domain: domain}
	}
	return all
}

// RemovedCopies are the copies of a VM on nodes that were removed.
func (m Moment) RemovedCopies(vm *model.VM) []Copy {
	var all []Copy
	for i := range m.Removed {
		for _, one := range m.Removed[i].Copies() {
			if one.Domain.UUID == vm.ID {
				all = append(all, one)
			}
		}
	}
	return all
}

// Running are those of some copies that run.
func Running(copies []Copy) []Copy {
	var all []Copy
	for _, one := range copies {
		if one.Domain.State == model.DomainRunning {
			all = append(all, one)
		}
	}
	return all
}

// removedCopy is the alarm that removed nodes have copies of a VM.
func removedCopy(vm *model.VM, copies []Copy) Finding {
	var on, steps []string
	for i := range copies {
		one := &copies[i]
		on = append(on, fmt.Sprintf("%s on %s (%s)", one.Domain.State, one.Name, one.mark()))
		steps = append(steps, fmt.Sprintf("'virsh destroy %s' on %s ends it", one.argument(), one.Name))
	}
	return alarm("", "a copy of it is %s, which was removed: it is suspended there and nothing else is done to it; %s. To keep that one "+
		"instead, stop the VM with 'berth vm stop %s', enrol the machine again with 'berth-agent join', and 'berth vm adopt %s'",
		strings.Join(on, " and "), strings.Join(steps, ", "), vm.Name, vm.Name)
}

// besideRemoved adds to what has become of a VM that a removed node has a copy of it. What the members show comes first.
func (s *Survey) besideRemoved(vm *model.VM, finding Finding) Finding {
	if finding.Verdict != AsRecorded {
		return finding
	}
	if copies := s.RemovedCopies(vm); len(copies) > 0 {
		alarmed := removedCopy(vm, copies)
		alarmed.Leftovers = finding.Leftovers
		return alarmed
	}
	return finding
}

// removedWords are what removed nodes say of a VM. One that runs there is not started elsewhere until it is suspended.
func (s *Survey) removedWords(vm *model.VM) []Word {
	var words []Word
	for _, one := range Running(s.RemovedCopies(vm)) {
		domain := one.Domain
		words = append(words, Word{
			Node: one.Node, Name: one.Name, Standing: ShowsIt, Domain: &domain, InTheWay: true,
			Why: "was removed, and runs a copy of it", Next: fmt.Sprintf("it is being suspended; 'virsh destroy %s' there ends it", one.argument()),
		})
	}
	return words
}
