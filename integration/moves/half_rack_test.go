package moves

import (
	"fmt"
	"slices"
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

// A rack that is half full is still the VMs' rack, though the host beside it is idle: they start there, leave when it is drained, come
// back when it returns, and are brought back when somebody moves one away. Each policy that orders nodes in a way of its own keeps that.
func TestARackThatIsHalfFullKeepsItsVMs(t *testing.T) {
	for _, policy := range []string{"affinity", "evenly-distributed", "vm-evenly-distributed"} {
		t.Run(policy, func(t *testing.T) { halfRack(begin(t), policy) })
	}
}

func halfRack(s *site, policy string) {
	rack := []string{s.lab.Hosts[0].Name, s.lab.Hosts[1].Name}
	idle := s.lab.Hosts[len(s.lab.Hosts)-1].Name
	for _, name := range rack {
		s.does("node", "set", name, "--label", "rack-7")
	}
	s.does("cluster", "set", "default", "--policy", policy, "--cooldown", "1s")
	s.does("group", "add", "home", "--vm-label", "home", "--node-label", "rack-7", "--nodes-rule", "positive")
	// Others that belong there have more than half of what the rack has. Guests without a system touch little of it.
	vms := []string{"half1", "half2", "home1", "home2"}
	for i, name := range vms[:2] {
		s.firmware(name, "--memory", "2400M", "--label", "home", "--node", rack[i])
	}
	for _, name := range vms[2:] {
		s.firmware(name, "--label", "home")
	}
	outside := func(host string) bool { return !slices.Contains(rack, host) }
	if hosts := s.hosts(vms...); slices.ContainsFunc(hosts, outside) {
		s.Errorf("they started on %v, and the rack is %v", hosts, rack)
	}
	s.firmware("stranger")
	if host := s.host("stranger"); !outside(host) && policy != "evenly-distributed" { // that one weighs what the processors do: nothing
		s.Errorf("a VM without a rule is on %s: no other host is the better one, and this test shows nothing", host)
	}
	s.does("vm", "stop", "stranger", "--force")
	s.does("vm", "delete", "stranger", "--yes")

	for _, name := range rack {
		s.does("node", "drain", name, "--yes", "--reason", "new power supply")
	}
	inside := func(host string) bool { return !outside(host) }
	if hosts := s.hosts(vms...); slices.ContainsFunc(hosts, inside) {
		s.Errorf("the rack %v was drained, and they are on %v", rack, hosts)
	}
	for _, name := range rack {
		s.does("node", "undrain", name)
	}
	s.areHome(rack, vms)

	s.does("vm", "migrate", "home1", "--to", idle)
	s.areHome(rack, vms)
	if status := s.passes("home", 2).GetStatus(); !status.GetHolds() {
		s.Errorf("all are home, and the group's status is %v", status)
	}
	if hosts := s.hosts(vms...); slices.ContainsFunc(hosts, outside) {
		s.Errorf("they did not stay: they are on %v, and the rack is %v", hosts, rack)
	}
}

// areHome waits until VMs are on nodes and nothing is under way.
func (s *site) areHome(nodes, vms []string) {
	s.Helper()
	s.comes("all VMs are home", func() error {
		var list berthv1.ListVMsResponse
		if err := s.lab.Ask(s.Context(), &list, "vm", "list"); err != nil {
			return err
		}
		for _, vm := range list.GetVms() {
			if slices.Contains(vms, vm.GetName()) && (!slices.Contains(nodes, vm.GetNode()) || vm.GetOperationId() != "") {
				return fmt.Errorf("%s is on %s, operation %q", vm.GetName(), vm.GetNode(), vm.GetOperationId())
			}
		}
		return nil
	})
}
