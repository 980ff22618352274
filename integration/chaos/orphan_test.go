package chaos

import (
	"strconv"
	"strings"
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// libvirtd is restarted and does not know a guest any more, whose process runs on. The guest is highly available, and yet it is
// started nowhere: the alarm names the process and what ends it. When that was done the guest is restarted.
func TestAGuestThatLibvirtForgotIsNotRestartedBesideItsProcess(t *testing.T) {
	s := byHand(t)
	host := s.lab.Hosts[0]
	s.does("vm", "start", "orphan", "--memory", "64M", "--node", host.Name, "--ha")
	s.must(host.Forget(t.Context(), "orphan"))
	s.node(host, 30*time.Second, up)
	condition := s.condition("orphan", "process", host.Name, "libvirt there does not list it", "kill")
	inner := s.part(condition, "process ", " on ")
	if _, err := strconv.Atoi(inner); err != nil {
		t.Errorf("no process is named: %s", condition)
	}
	s.says(host.Machine, []string{"berth-agent", "doctor"}, 1, "process "+inner+" runs it", "kill "+inner)
	if status := s.berth("status"); !strings.Contains(status.Stdout, "process "+inner+" on "+host.Name) {
		t.Errorf("status does not say it:\n%s", status.Stdout)
	}
	s.settled("orphan") // what Berth writes down of it by itself is no change by what is refused
	s.refuse(refusal{"started by hand", []string{"vm", "start", "orphan"}, 1, []string{"process " + inner, host.Name}})
	s.refuse(refusal{"adopted", []string{"vm", "adopt", "orphan"}, 1, []string{"process " + inner, host.Name}})
	time.Sleep(45 * time.Second) // an inventory and two looks more
	if running := s.watch.Running("orphan"); running != 1 {
		t.Fatalf("it is executed %d times", running)
	}
	if vm, _ := s.show("orphan"); vm.GetNode() != host.Name || vm.GetState() != berthv1.VMState_VM_STATE_UNKNOWN {
		t.Errorf("it is %s on %q", vm.GetState(), vm.GetNode())
	}
	if _, err := host.Exec(t.Context(), "kill", inner); err != nil {
		t.Fatal(err)
	}
	s.recovers("orphan", berthv1.VMState_VM_STATE_RUNNING)
	if running := s.watch.Running("orphan"); running != 1 {
		t.Errorf("it is executed %d times", running)
	}
	s.stops("orphan")
}
