package evidence

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// keeps has a node show the VM off, with its memory kept.
func (s *estate) keeps(node string) {
	s.shows(node, model.DomainShutoff, 3)
	s.change(node, func(f *model.NodeFacts) { f.Domains[0].Saved = true })
}

// FAULTS.md, W24. A VM whose memory libvirt keeps on a node is started nowhere else, whatever is known of its end and of that node's
// power: somebody, or a service at the host's boot, lets it run on there.
func TestAVMWhoseMemoryIsKeptIsStartedNowhere(t *testing.T) {
	for name, is := range map[string]func(*estate){
		"where it ran": func(s *estate) { s.ended(time.Hour, true); s.keeps("n1") },
		"where it was released": func(s *estate) {
			s.vm.Holder = ""
			s.keeps("n1")
		},
		"elsewhere": func(s *estate) { s.ended(time.Hour, true); s.keeps("n3") },
		"on a node that is silent": func(s *estate) {
			s.vm.Holder = ""
			s.keeps("n1")
			s.silent("n1", time.Minute)
		},
		"on a node that is off": func(s *estate) { s.keeps("n1"); s.fenced("n1") },
	} {
		t.Run(name, func(t *testing.T) {
			s := running()
			is(s)
			answer := s.survey().Of(&s.vm)
			missing, next := answer.Missing()
			if answer.May || answer.Runs || !strings.Contains(missing, "keeps") || !strings.Contains(next, "'virsh start db' on node") ||
				!strings.Contains(next, "'virsh managedsave-remove db' there gives its memory up") {
				t.Errorf("may %t, runs %t; %s; %s", answer.May, answer.Runs, missing, next)
			}
		})
	}
	s := running()
	s.ended(time.Hour, true)
	s.shows("n1", model.DomainShutoff, 3)
	if answer := s.survey().Of(&s.vm); !answer.May {
		t.Errorf("one whose memory was given up: %+v", answer)
	}
}

func TestPeopleAreToldOfMemoryThatIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		is   func(*estate)
		want string
	}{
		"where it ran": {
			is: func(s *estate) { s.ended(time.Hour, true); s.keeps("n1") },
			want: "its memory is saved on node1, so it is started nowhere else: 'virsh start db' on node1 lets it run on, and " +
				"'virsh managedsave-remove db' there gives its memory up",
		},
		"beside the VM": {
			is: func(s *estate) { s.keeps("n2") },
			want: "node2 keeps memory of it from before, with which 'virsh start' or a boot of that host lets it run a second time: " +
				"'virsh managedsave-remove db' there gives that up",
		},
		"of a VM that somebody has stopped": {
			is: func(s *estate) {
				s.vm.Holder, s.vm.Desired = "", model.Stopped
				s.keeps("n1")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := running()
			tc.is(s)
			survey := s.survey()
			if found := Beside(s.vm, survey.sighting(&s.vm)); found.Why != tc.want {
				t.Errorf("people are told %q", found.Why)
			}
		})
	}
}
