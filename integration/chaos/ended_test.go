package chaos

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// FAULTS.md, W17. A guest panics, with its memory kept and without, and the QEMU of another is killed: each is told as what it is, with
// what to do. One that is to be highly available is restarted, but not for ever.
func TestHowAGuestHasEndedIsTold(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	device := strings.Replace(s.lab.GuestXML("panics", 128, lab.Cmdline), "</devices>", "<panic model='isa'/></devices>", 1)
	kept := strings.Replace(strings.ReplaceAll(device, "panics", "kept"), "<on_crash>destroy<", "<on_crash>preserve<", 1)
	for name, xml := range map[string]string{"panics": device, "kept": kept} {
		s.does("vm", "start", name, "--xml", s.document(name, xml), "--node", host.Name)
	}
	s.firmware("dies", host)
	kill := func(name string, on *lab.Host) {
		t.Helper()
		s.must(syscall.Kill(s.qemu(name, on), syscall.SIGKILL))
	}
	told := func(name string, kind berthv1.ConditionKind, words ...string) {
		t.Helper()
		s.condition(name, words...)
		if vm, _ := s.show(name); vm.GetConditionKind() != kind {
			t.Errorf("the kind of %s is %s, want %s", name, vm.GetConditionKind(), kind)
		}
	}
	// The monitor writes to the port of the panic device as the kernel of a guest does.
	for _, name := range []string{"panics", "kept"} {
		s.virsh(host, "qemu-monitor-command", name, "--hmp", "o/b 0x505 1")
	}
	kill("dies", host)
	told("panics", berthv1.ConditionKind_CONDITION_KIND_GUEST_PANICKED, "its guest has crashed on "+host.Name, "berth vm start panics")
	told("kept", berthv1.ConditionKind_CONDITION_KIND_GUEST_PANICKED, "keeps its memory", "virsh dump kept", "berth vm stop kept")
	told("dies", berthv1.ConditionKind_CONDITION_KIND_PROCESS_DIED, "its QEMU process on "+host.Name+" has died", "qemu/dies.log")
	if status := s.does("status"); !strings.Contains(status, "VM dies: ") || !strings.Contains(status, "VM kept: ") {
		t.Errorf("the status does not tell of them:\n%s", status)
	}
	for _, name := range []string{"panics", "dies"} {
		s.startsAgain(name)
		if vm, _ := s.show(name); vm.GetCondition() != "" {
			t.Errorf("%s runs, and it is said that %s", name, vm.GetCondition())
		}
	}

	s.does("vm", "start", "again", "--memory", "64M", "--ha")
	for n := range 4 {
		var where *lab.Host
		s.within(time.Minute, fmt.Sprintf("it runs after %d restarts", n), func() (err error) {
			if vm, _ := s.show("again"); vm.GetState() != berthv1.VMState_VM_STATE_RUNNING || int(vm.GetRestarts()) != n {
				return fmt.Errorf("it is %s, and was restarted %d times", vm.GetState(), vm.GetRestarts())
			}
			where, err = s.lab.HostOf("again")
			return err
		})
		kill("again", where)
	}
	told("again", berthv1.ConditionKind_CONDITION_KIND_RESTART_RESTS, "it was restarted 3 times", "berth vm start again")
}
