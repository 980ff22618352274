package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// slowEmulator holds a guest back for some seconds before it becomes QEMU, so that there is time for harm while libvirtd
// starts it. libvirtd's questions to the emulator itself are answered at once.
const slowEmulator = `#!/bin/sh
case " $* " in *" -uuid "*) sleep 4 ;; esac
exec /usr/bin/qemu-system-x86_64 "$@"
`

// startSlowly begins a start that takes seconds, and returns once libvirtd is at it. The VM may run on any of the nodes
// that are not in maintenance; these are the first two.
func (s *site) startSlowly(name string, flags ...string) (*running, *lab.Host) {
	s.Helper()
	emulator := filepath.Join(lab.SharedDir, "slow-qemu")
	s.must(os.WriteFile(s.lab.Operator.Path(emulator), []byte(slowEmulator), 0o755))
	// libvirtd learns what the emulator can before it is in the way of anything.
	for _, host := range s.lab.Hosts {
		s.must(ignore(host.Virsh(s.Context(), "domcapabilities", "--emulatorbin", emulator)))
	}
	xml := s.file(name+".xml", fmt.Sprintf(`<domain type="qemu">
  <name>%s</name>
  <memory unit="MiB">64</memory>
  <os><type arch="x86_64" machine="pc">hvm</type></os>
  <devices><emulator>%s</emulator></devices>
</domain>
`, name, emulator))
	start := s.starts(append([]string{"vm", "start", "--xml", xml}, flags...)...)
	var target *lab.Host
	s.within(20*time.Second, "a libvirtd is starting "+name, func() error {
		for _, host := range s.lab.Hosts {
			if _, err := host.Exec(s.Context(), "pgrep", "-f", "slow-qemu.*guest="+name+","); err == nil {
				target = host
				return nil
			}
		}
		return errors.New("no host has its emulator yet")
	})
	return start, target
}

// came checks the end of a start that something happened to: it runs once, on the node that Berth names, and can be used.
func (s *site) came(name string) *lab.Host {
	s.Helper()
	if op := s.ended(name, 90*time.Second); op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE {
		s.Fatalf("the start ended %s: %s\n%q", op.GetResult(), op.GetMessage(), op.GetEvidence())
	}
	vm, _ := s.show(name)
	host, err := s.lab.Host(vm.GetNode())
	if err != nil {
		s.Fatalf("%s is on %q: %v", name, vm.GetNode(), err)
	}
	s.runsOnce(name, host)
	return host
}

func TestAnAgentThatDiesDuringAStartFindsTheGuestAgain(t *testing.T) {
	s := begin(t)
	start, target := s.startSlowly("born")
	s.must(target.KillAgent())
	s.must(target.StartAgent(t.Context()))
	start.ends(0, "born", target.Name)
	if host := s.came("born"); host != target {
		t.Errorf("it runs on %s, and was being started on %s", host.Name, target.Name)
	}
	s.stops("born")
}

func TestAnAgentThatStaysAwayDuringAStartDoesNotMakeASecondOne(t *testing.T) {
	s := begin(t)
	start, target := s.startSlowly("born")
	s.must(target.KillAgent())
	s.node(target, 30*time.Second, berthv1.NodeState_NODE_STATE_UNREACHABLE)
	// The guest runs by now, and nobody but libvirtd knows. It must not be placed again.
	if vm, op := s.show("born"); vm.GetOperationId() == "" {
		t.Errorf("the start has ended (%s, %s) without its node's word", op.GetResult(), op.GetMessage())
	}
	s.must(target.StartAgent(t.Context()))
	start.ends(0, "born", target.Name)
	if host := s.came("born"); host != target {
		t.Errorf("it runs on %s, and was being started on %s", host.Name, target.Name)
	}
	s.stops("born")
}

func TestALeaderThatDiesDuringAStartIsSucceededInIt(t *testing.T) {
	s := begin(t)
	start, target := s.startSlowly("born")
	s.killLeader()
	start.ends(0, "born", target.Name)
	if host := s.came("born"); host != target {
		t.Errorf("it runs on %s, and was being started on %s", host.Name, target.Name)
	}
	s.stops("born")
}

// Right is either end: libvirt may have kept the guest or not. There is one or none, as Berth says.
func TestALibvirtdThatDiesDuringAStartLeavesOneGuestOrNone(t *testing.T) {
	s := begin(t)
	start, target := s.startSlowly("born")
	s.restartLibvirtd(target)
	start.wait()
	switch op := s.last("start"); op.GetResult() {
	case berthv1.OperationResult_OPERATION_RESULT_DONE:
		start.ends(0, "born")
		s.came("born")
	case berthv1.OperationResult_OPERATION_RESULT_FAILED:
		start.ends(1, "born", "next step: ")
		s.within(30*time.Second, "no guest is left of a failed start", func() error { return ignore(s.noGuest("born")) })
		s.does(start.args...)
		s.came("born")
	default:
		t.Fatalf("the start is %s: %s\n%q", op.GetResult(), op.GetMessage(), op.GetEvidence())
	}
	s.stops("born")
}

// The start order reaches a libvirtd that hangs. Nobody may conclude from the silence that there is no guest.
func TestALibvirtdThatHangsDuringAStartIsNotTakenForAFailure(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	s.must(host.Pause(lab.Libvirtd))
	start := s.starts("vm", "start", "born", "--memory", "64M", "--node", host.Name)
	s.node(host, 30*time.Second, degraded)
	s.restartAgent(host)
	time.Sleep(5 * time.Second) // the new agent asks, and gets no answer
	s.must(host.Continue(lab.Libvirtd))
	start.wait()
	switch op := s.last("start"); op.GetResult() {
	case berthv1.OperationResult_OPERATION_RESULT_DONE:
		start.ends(0, "born", host.Name)
		s.came("born")
	case berthv1.OperationResult_OPERATION_RESULT_FAILED:
		start.ends(1, "born", "next step: ")
		time.Sleep(5 * time.Second) // what libvirtd had in hand comes out now, if ever
		if where, err := s.noGuest("born"); err != nil {
			t.Errorf("the start failed, and yet %s has the guest: %v", where, err)
		}
		s.firmware("born", host)
		s.came("born")
	default:
		t.Fatalf("the start is %s: %s\n%q", op.GetResult(), op.GetMessage(), op.GetEvidence())
	}
	s.stops("born")
}

// last is the newest operation of a kind.
func (s *site) last(kind string) *berthv1.Operation {
	s.Helper()
	var answer berthv1.ListOperationsResponse
	s.must(s.lab.Ask(s.Context(), &answer, "operation", "list"))
	for _, op := range answer.GetOperations() {
		if op.GetKind() == kind {
			return op
		}
	}
	s.Fatalf("there is no %s among %v", kind, answer.GetOperations())
	return nil
}

// noGuest is an error, and where it is, when a host has a process of the guest.
func (s *site) noGuest(name string) (string, error) {
	for _, host := range s.lab.Hosts {
		for _, guest := range host.QEMUs() {
			if guest.Name == name {
				return host.Name, fmt.Errorf("%s has a process of %s", host.Name, name)
			}
		}
	}
	return "", nil
}
