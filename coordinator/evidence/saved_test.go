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
		"on a node that is off, as another leader was told": func(s *estate) {
			s.vm.Kept = "n1"
			s.fenced("n1")
			s.change("n1", func(f *model.NodeFacts) { *f = model.NodeFacts{Liveness: model.Unreachable} })
		},
		"on a node that is silent, as another leader was told": func(s *estate) {
			s.vm.Holder, s.vm.Kept = "", "n3"
			s.gone()
			s.change("n3", func(f *model.NodeFacts) { *f = model.NodeFacts{Liveness: model.Unreachable} })
		},
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

// The next leader may not hear the node that keeps memory of a VM, so it is written down.
func TestWhoKeepsMemoryIsWrittenDown(t *testing.T) {
	s := running()
	seen := func(want string) {
		t.Helper()
		for _, vm := range seenOf(s.survey()) {
			s.vm = vm
		}
		if s.vm.Kept != want {
			t.Errorf("kept by %q, want %q", s.vm.Kept, want)
		}
	}
	seen("")
	s.ended(time.Hour, true)
	s.vm.Holder = ""
	s.keeps("n3")
	seen("n3")
	s.silent("n3", time.Minute)
	seen("n3")
	s.change("n3", func(f *model.NodeFacts) { *f = model.NodeFacts{Liveness: model.Unreachable} })
	s.fenced("n3")
	seen("n3")
	s.keeps("n2")
	seen("n3") // it is in the way while nobody has said otherwise
	s.nodes[2].Fencing = model.Fencing{}
	s.change("n3", func(f *model.NodeFacts) {
		*f = model.NodeFacts{Liveness: model.Up, HeardAt: s.at, Boot: "anew", Inventory: true, DomainsKnown: true, InventoryAt: s.at}
	})
	seen("n2")
	s.lists("n2")
	seen("")
	s.vm.Kept = "n9" // it was removed
	seen("")
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
			want: "its memory is saved on node1, so it is started nowhere else: 'virsh start db' on node1 lets it run on, and " +
				"'virsh managedsave-remove db' there gives its memory up",
		},
		"of a stopped VM that a host starts when it boots": {
			is: func(s *estate) {
				s.vm.Holder, s.vm.Desired = "", model.Stopped
				s.shows("n2", model.DomainShutoff, 3)
				s.change("n2", func(f *model.NodeFacts) { f.Domains[0].Autostart = true })
				s.lists("n1")
			},
			want: "libvirt on node2 starts it when that host boots, and it is stopped: 'virsh autostart --disable db' there keeps it from that",
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
