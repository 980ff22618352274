package moves

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Somebody moves a VM behind Berth's back to where a hard rule does not want it. That is seen, told and repaired.
func TestARuleThatIsBrokenByHandIsRepaired(t *testing.T) {
	s := begin(t)
	s.does("group", "add", "apart", "--vm-label", "web", "--vms-rule", "negative", "--vms-enforcing")
	from, to := s.hostNamed("node2"), s.hostNamed("node1")
	s.firmware("web1", "--node", to.Name, "--label", "web")
	s.firmware("web2", "--node", from.Name, "--label", "web")
	if status := s.passes("apart", 1).GetStatus(); !status.GetHolds() {
		t.Fatalf("the group's status is %v", status)
	}
	// Until it has been seen, nothing repairs it: the leader's look for it is then not a race with the repair.
	s.does("cluster", "set", "default", "--enforcement", "off")
	if _, err := from.Virsh(t.Context(), "migrate", "--live", "web2", "qemu+tls://"+to.Name+"/system", "--tls"); err != nil {
		t.Fatal(err)
	}
	s.comes("the broken rule is seen", func() error {
		if status := s.group("apart").GetStatus(); status.GetHolds() || status.GetBrokenSince() == nil {
			return fmt.Errorf("the group's status is %v", status)
		}
		return nil
	})
	if host := s.host("web2"); host != to.Name {
		t.Errorf("web2 was moved to %s by hand, and is on %s", to.Name, host)
	}
	s.berth(0, []string{"group", "show", "apart"}, "BROKEN", "web1 and web2 are both on "+to.Name)
	s.berth(0, []string{"events"}, "vm.moved-elsewhere", "was moved from "+from.Name+" to "+to.Name+" by somebody else", "group.broken")

	s.does("cluster", "set", "default", "--enforcement", "automatic")
	s.passes("apart", 2)
	s.comes("the rule is repaired", func() error {
		if status := s.group("apart").GetStatus(); !status.GetHolds() {
			return fmt.Errorf("the group's status is %v", status)
		}
		return nil
	})
	if hosts := s.hosts("web1", "web2"); hosts[0] == hosts[1] {
		t.Errorf("both are on %s", hosts[0])
	}
	repairs := s.plans("repair")
	if last := repairs[len(repairs)-1]; last.GetGroup() != "apart" || last.GetState() != "done" || moved(last) != 1 {
		t.Errorf("the repair is %v", last)
	}
	s.comes("it is told", func() error {
		if events := s.does("events"); !strings.Contains(events, "group.holds") {
			return fmt.Errorf("the events are %s", events)
		}
		return nil
	})
}

func TestWhatAGroupForbidsIsNotStarted(t *testing.T) {
	s := begin(t)
	s.does("group", "add", "apart", "--vm-label", "web", "--vms-rule", "negative", "--vms-enforcing")
	for _, host := range s.lab.Hosts[2:] {
		s.does("node", "maintenance", host.Name, "on")
	}
	s.firmware("web1", "--label", "web")
	s.firmware("web2", "--label", "web")
	if hosts := s.hosts("web1", "web2"); hosts[0] == hosts[1] {
		t.Errorf("both are on %s", hosts[0])
	}
	s.berth(2, []string{"vm", "start", "web3", "--memory", "64M", "--label", "web"}, "no node fits", "vm-affinity", "apart", "web1", "web2")
	s.berth(2, []string{"vm", "migrate", "web2", "--to", s.host("web1")}, "vm-affinity", "apart")
	s.berth(0, []string{"node", "drain", s.host("web2"), "--dry-run"}, "web2")
}

func TestVMsThatKeepTogetherAreStartedTogether(t *testing.T) {
	s := begin(t)
	names := []string{"app", "cache", "db"}
	for _, name := range names {
		s.does("vm", "add", name, "--memory", "64M")
	}
	s.does("group", "add", "together", "--vm", strings.Join(names, ","), "--vms-rule", "positive", "--vms-enforcing")
	s.berth(0, append([]string{"vm", "start"}, names...), "placed together with")
	if hosts := slices.Compact(s.hosts(names...)); len(hosts) != 1 {
		t.Errorf("they are on %v", hosts)
	}
	// One of them alone goes nowhere else.
	s.does("vm", "stop", "db", "--force")
	s.does("vm", "start", "db")
	if hosts := slices.Compact(s.hosts(names...)); len(hosts) != 1 {
		t.Errorf("after another start they are on %v", hosts)
	}
}
