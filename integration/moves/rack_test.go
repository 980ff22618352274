package moves

import (
	"fmt"
	"slices"
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

// The designs' own use case: VMs belong on the hosts of a rack. While it is off they run elsewhere; when it is back they come
// home by themselves, one after the other.
func TestVMsComeHomeToARackThatWasOff(t *testing.T) {
	s := begin(t)
	rack, vms := s.lab.Hosts[:2], []string{"home1", "home2", "home3"}
	names := []string{rack[0].Name, rack[1].Name}
	for _, name := range names {
		s.does("node", "set", name, "--label", "rack-7")
	}
	s.does("group", "add", "home", "--vm-label", "home", "--node-label", "rack-7", "--nodes-rule", "positive")
	// A soft rule is repaired when its VM has rested from its last move.
	s.does("cluster", "set", "default", "--cooldown", "1s")
	for _, name := range vms {
		s.firmware(name, "--label", "home")
	}
	inside := func(host string) bool { return slices.Contains(names, host) }
	for i, host := range s.hosts(vms...) {
		if !inside(host) {
			t.Errorf("%s started on %s, outside of its rack", vms[i], host)
		}
	}

	for _, name := range names {
		s.does("node", "drain", name, "--yes", "--reason", "new power supply")
	}
	for i, host := range s.hosts(vms...) {
		if inside(host) {
			t.Errorf("%s is on %s, which was drained", vms[i], host)
		}
	}
	for _, host := range rack {
		s.must(host.PowerOff())
	}
	s.comes("the rack is off", func() error { return s.liveness(names, berthv1.NodeState_NODE_STATE_UP, false) })
	if status := s.passes("home", 1).GetStatus(); status.GetHolds() || status.GetUnrepaired() == "" {
		t.Errorf("while its rack is off the group's status is %v", status)
	}

	for _, host := range rack {
		s.must(powerOn(t.Context(), host))
	}
	s.comes("the rack is back", func() error { return s.liveness(names, berthv1.NodeState_NODE_STATE_UP, true) })
	before := len(s.plans("repair"))
	for _, name := range names {
		s.does("node", "undrain", name)
	}
	s.areHome(names, vms)
	if status := s.passes("home", 2).GetStatus(); !status.GetHolds() {
		t.Errorf("the VMs are home, and the group's status is %v", status)
	}
	s.hosts(vms...)
	repairs := s.plans("repair")[before:]
	if len(repairs) != len(vms) {
		t.Errorf("%d repairs brought %d VMs home", len(repairs), len(vms))
	}
	for i, plan := range repairs {
		if len(plan.GetMoves()) != 1 || plan.GetState() != "done" || plan.GetGroup() != "home" {
			t.Errorf("repair %d is %v", i, plan)
		}
		if i > 0 && plan.GetCreatedAt().AsTime().Before(repairs[i-1].GetEndedAt().AsTime()) {
			t.Errorf("repair %d began before the one before had ended: %v", i, plan)
		}
	}
	s.berth(0, []string{"events", "--backlog", "200"}, "group.broken", "group.holds")
}

// liveness tells which of these nodes is not yet in a state, or still is.
func (s *site) liveness(names []string, state berthv1.NodeState, wanted bool) error {
	var list berthv1.ListNodesResponse
	if err := s.lab.Ask(s.Context(), &list, "node", "list"); err != nil {
		return err
	}
	for _, node := range list.GetNodes() {
		if slices.Contains(names, node.GetName()) && (node.GetState() == state) != wanted {
			return fmt.Errorf("node %s is %s (%s)", node.GetName(), node.GetState(), node.GetStateReason())
		}
	}
	return nil
}
