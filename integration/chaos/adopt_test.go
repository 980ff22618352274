package chaos

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// counts checks that a guest that was made with virsh counts on, and has not left out a second.
func (s *site) counts(name string) {
	s.Helper()
	var before int
	s.within(90*time.Second, name+" counts on", func() error {
		ticks, err := s.lab.SerialLog(name)
		switch {
		case err != nil:
			return err
		case before == 0:
			before = max(len(ticks), 1)
			fallthrough
		case len(ticks) <= before:
			return fmt.Errorf("it has said %d ticks", len(ticks))
		}
		for i, tick := range ticks {
			if tick.Count != i+1 || tick.Boot != ticks[0].Boot || !tick.Intact {
				s.Fatalf("%s: tick %d is %+v, the first was %+v", name, i+1, tick, ticks[0])
			}
		}
		return nil
	})
}

// marked tells whether Berth's mark is in what libvirt has of a domain: of the one that runs, or of its definition.
func (s *site) marked(host *lab.Host, name string, flags ...string) bool {
	s.Helper()
	return strings.Contains(s.virsh(host, append([]string{"dumpxml", name}, flags...)...), "berth:vm")
}

func TestRunningDomainsAreAdoptedAndReleasedWithoutTheirGuestsNoticing(t *testing.T) {
	s := byHand(t)
	first, second, third := s.lab.Hosts[0], s.lab.Hosts[1], s.lab.Hosts[2]
	s.foreign("kept", first, true)
	s.virsh(first, "autostart", "kept")
	s.foreign("passing", second, false)
	s.virsh(second, "define", s.document("spare", s.lab.GuestXML("spare", 128, lab.Cmdline)))
	s.counts("kept")
	s.counts("passing")
	processes := map[string]int{"kept": s.qemu("kept", first), "passing": s.qemu("passing", second)}
	same := func(name string, on *lab.Host) {
		t.Helper()
		if is := s.qemu(name, on); is != processes[name] {
			t.Errorf("%s has process %d, and had %d", name, is, processes[name])
		}
		s.counts(name)
	}
	const inactive = "--inactive"

	s.within(30*time.Second, "node2 shows its domains", func() error {
		if said := s.does("node", "show", second.Name); !strings.Contains(said, "passing") || !strings.Contains(said, "spare") {
			return fmt.Errorf("it shows:\n%s", said)
		}
		return nil
	})
	if said := s.does("vm", "adopt", "--all", "--node", second.Name, "--dry-run"); said != "vm/passing on node2: would be adopted\n" {
		t.Errorf("the dry run says:\n%s", said)
	}
	s.answers([]string{"vm", "adopt", "spare"}, 1, "vm/spare on node2: not adopted: it is off", "'virsh start spare' on node2")
	if vms := s.does("vm", "list", "-o", "name"); vms != "" {
		t.Errorf("a dry run and a refusal have made %s", vms)
	}
	const switchedOff = "; its autostart is switched off: a host that boots would start it, wherever it runs by then\n"
	s.within(time.Minute, "Berth sees its autostart", func() error { // libvirt has no event for it
		if said := s.does("vm", "adopt", "kept", "--dry-run"); said != "vm/kept on node1: would be adopted"+switchedOff {
			return errors.New(said)
		}
		return nil
	})
	if said := s.does("vm", "adopt", "kept"); said != "vm/kept on node1: adopted"+switchedOff {
		t.Errorf("adopting one says:\n%s", said)
	}
	if said := s.does("vm", "adopt", "--all"); said != "vm/passing on node2: adopted\n" {
		t.Errorf("adopting all says:\n%s", said)
	}
	same("kept", first)
	same("passing", second)
	if !s.marked(first, "kept") || !s.marked(first, "kept", inactive) || !s.marked(second, "passing") {
		t.Error("the mark is missing from a domain that runs, or from its definition")
	}
	// A host that boots would start it, wherever it runs by then.
	if said := s.virsh(first, "list", "--all", "--autostart", "--name"); said != "" {
		t.Errorf("libvirt would start %s by itself", said)
	}
	s.virsh(first, "autostart", "kept")
	s.within(time.Minute, "Berth tells of the autostart", func() error {
		if vm, _ := s.show("kept"); !strings.Contains(vm.GetCondition(), "'virsh autostart --disable kept'") {
			return fmt.Errorf("condition %q", vm.GetCondition())
		}
		return nil
	})
	s.virsh(first, "autostart", "--disable", "kept")
	s.within(time.Minute, "Berth sees it switched off", func() error {
		if vm, _ := s.show("kept"); vm.GetCondition() != "" {
			return fmt.Errorf("condition %q", vm.GetCondition())
		}
		return nil
	})
	for name, host := range map[string]*lab.Host{"kept": first, "passing": second} {
		s.runsOnce(name, host)
		if vm, _ := s.show(name); !vm.GetAdopted() || vm.GetCondition() != "" || vm.GetEpoch() != 1 {
			t.Errorf("the VM is %v", vm)
		}
	}

	// Berth can do with them what it does with its own.
	moves := []*running{s.starts("vm", "migrate", "kept", "--to", third.Name), s.starts("vm", "migrate", "passing", "--to", third.Name)}
	for _, move := range moves {
		move.ends(0, "running on node3")
	}
	for name := range processes {
		s.runsOnce(name, third)
		s.counts(name)
		processes[name] = s.qemu(name, third)
	}
	if left := s.virsh(first, "list", "--all", "--name"); left != "" {
		t.Errorf("node1 still has %q", left)
	}
	if !s.marked(third, "kept", inactive) {
		t.Error("the definition has not gone along")
	}

	for name := range processes {
		if said := s.does("vm", "release", name); said != fmt.Sprintf("vm/%s released; its domain runs on, on node3\n", name) {
			t.Errorf("the release says:\n%s", said)
		}
		s.answers([]string{"vm", "show", name}, 4, name)
		same(name, third)
		if s.marked(third, name) {
			t.Errorf("%s has Berth's mark still", name)
		}
	}
	if s.marked(third, "kept", inactive) {
		t.Error("the definition has Berth's mark still")
	}
	if shown := s.virsh(second, "domstate", "spare"); shown != "shut off" {
		t.Errorf("a definition that is nobody's business is %q", shown)
	}
	var node berthv1.GetNodeResponse
	s.must(s.lab.Ask(t.Context(), &node, "node", "show", third.Name))
	for _, domain := range node.GetDomains() {
		if domain.GetManaged() {
			t.Errorf("node3 shows %s as Berth's", domain.GetName())
		}
	}
}
