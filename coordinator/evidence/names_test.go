package evidence

import (
	"fmt"
	"strings"
	"testing"

	"berth/coordinator/model"
)

// A domain is called what its node says, and a node may say anything. In a command that a person may copy its name is NAME.
func TestNoCommandHasANameAsANodeTellsIt(t *testing.T) {
	const called = "x' ; rm -rf / ; '"
	said := map[string]string{}
	look := func(what string, is func(*estate)) {
		s := running()
		is(s)
		for _, node := range []string{"n1", "n2"} {
			s.change(node, func(f *model.NodeFacts) {
				for i := range f.Domains {
					f.Domains[i].Name = called
				}
			})
		}
		survey := s.survey()
		found := Beside(s.vm, survey.sighting(&s.vm))
		said[what] = fmt.Sprint(found.Why, " | ", found.Condition.Text)
		for _, word := range survey.Of(&s.vm).Words {
			said[what] += " | " + word.Next
		}
	}
	off := func(s *estate) { s.vm.Holder, s.vm.Desired = "", model.Stopped }
	look("another epoch", func(s *estate) { s.shows("n2", model.DomainRunning, 9) })
	look("paused elsewhere", func(s *estate) { s.gone(); s.shows("n2", model.DomainPaused, 9) })
	look("another name", func(s *estate) { s.shows("n1", model.DomainRunning, s.vm.Epoch) })
	look("saved where it ran", func(s *estate) { s.gone(); s.keeps("n1") })
	look("saved elsewhere", func(s *estate) { s.keeps("n2") })
	look("started at boot", func(s *estate) {
		off(s)
		s.gone()
		s.shows("n2", model.DomainShutoff, 3)
		s.change("n2", func(f *model.NodeFacts) { f.Domains[0].Autostart = true })
	})

	vm := running().vm
	copies := []Copy{
		{Node: "n1", Name: "node1", Domain: model.Domain{UUID: vm.ID, Name: called, State: model.DomainRunning, Managed: true, Epoch: vm.Epoch}},
		{Node: "n2", Name: "node2", Domain: model.Domain{UUID: vm.ID, Name: called, State: model.DomainRunning}},
	}
	said["twice"], _ = Twice(vm, nil, copies)
	said["removed"] = removedCopy(&vm, copies).Condition.Text
	use := DiskUse{Node: "node2", Domain: copies[1].Domain}
	said["a disk in use"] = use.Next()

	for what, text := range said {
		if !strings.Contains(text, " NAME") {
			t.Errorf("%s: the test is worth nothing: %q", what, text)
		}
		for _, part := range strings.Split(text, "'virsh ")[1:] {
			if command, _, _ := strings.Cut(part, "'"); strings.Contains(command, called[:1]+" ") || strings.HasSuffix(command, " x") {
				t.Errorf("%s: a command has it: 'virsh %s'", what, part)
			}
		}
	}
}
