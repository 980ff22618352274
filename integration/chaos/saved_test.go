package chaos

import (
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// FAULTS.md, W24. Somebody has libvirt keep a guest's memory, as libvirt-guests does when a host is shut down. The guest is highly
// available, and yet it is started nowhere else: it runs on where it was, or its memory is given up and it is restarted.
func TestAGuestWhoseMemoryIsKeptIsNotRestartedElsewhere(t *testing.T) {
	s := byHand(t)
	host := s.lab.Hosts[0]
	s.foreign("kept", host, true)
	s.within(lookLimit, "Berth sees it", func() error { return ignore(s.lab.Berth(t.Context(), "vm", "adopt", "kept")) })
	s.does("vm", "set", "kept", "--ha=true")

	s.virsh(host, "managedsave", "kept")
	s.condition("kept", "its memory is saved on "+host.Name, "'virsh start kept' on "+host.Name, "'virsh managedsave-remove kept' there")
	s.answers([]string{"vm", "why-not-started", "kept"}, 0, host.Name+" keeps its memory", "virsh start kept")
	s.refuse(refusal{"started by hand", []string{"vm", "start", "kept"}, 1, []string{host.Name + " keeps its memory"}})
	time.Sleep(75 * time.Second) // two inventories and looks more
	if running := s.watch.Running("kept"); running != 0 {
		t.Fatalf("it is executed %d times", running)
	}
	s.virsh(host, "start", "kept")
	s.recovers("kept", berthv1.VMState_VM_STATE_RUNNING)
	s.runsOnce("kept", host)

	s.virsh(host, "managedsave", "kept")
	s.condition("kept", "its memory is saved on "+host.Name)
	s.virsh(host, "managedsave-remove", "kept")
	s.within(2*time.Minute, "it is restarted", func() error { return ignore(s.lab.HostOf("kept")) })
	s.recovers("kept", berthv1.VMState_VM_STATE_RUNNING)
	s.stops("kept")
}
