package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// firmware starts a VM without a system: cheap, and enough where its inside does not matter.
func (s *site) firmware(name string, node *lab.Host) {
	s.Helper()
	s.does("vm", "start", name, "--memory", "64M", "--node", node.Name)
}

// guest starts a VM that counts, and returns once it does.
func (s *site) guest(name string, node *lab.Host) lab.Tick {
	s.Helper()
	return s.guests(node, name)[name]
}

// guests starts VMs that count, all at once, and returns once they do.
func (s *site) guests(node *lab.Host, names ...string) map[string]lab.Tick {
	s.Helper()
	var starts []*running
	for _, name := range names {
		starts = append(starts, s.starts("vm", "start", name, "--memory", "128M", "--node", node.Name,
			"--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline))
	}
	ticks := map[string]lab.Tick{}
	for i, name := range names {
		if starts[i].ends(0); s.Failed() {
			s.FailNow()
		}
		ticks[name] = s.tick(node, name)
	}
	return ticks
}

// tick is the next sign of life from the guest on that host.
func (s *site) tick(on *lab.Host, name string) lab.Tick {
	s.Helper()
	var tick lab.Tick
	s.within(90*time.Second, name+" ticks on "+on.Name, func() (err error) {
		tick, err = on.ReadTick(s.Context(), name)
		return err
	})
	return tick
}

// show is a VM and its last operation.
func (s *site) show(name string) (*berthv1.VM, *berthv1.Operation) {
	s.Helper()
	var answer berthv1.GetVMResponse
	s.must(s.lab.Ask(s.Context(), &answer, "vm", "show", name))
	return answer.GetVm(), answer.GetOperation()
}

// ended waits until no operation works on the VM, and returns the last one.
func (s *site) ended(name string, limit time.Duration) *berthv1.Operation {
	s.Helper()
	var op *berthv1.Operation
	s.within(limit, "the operation on "+name+" ends", func() error {
		var answer berthv1.GetVMResponse
		if err := s.lab.Ask(s.Context(), &answer, "vm", "show", name); err != nil {
			return err
		}
		if op = answer.GetOperation(); answer.GetVm().GetOperationId() != "" {
			return fmt.Errorf("operation %s (%s) is %s", op.GetId(), op.GetKind(), op.GetPhase())
		}
		return nil
	})
	return op
}

// runsOnce checks that the VM runs on this host and nowhere else, and that Berth says so.
func (s *site) runsOnce(name string, on *lab.Host) {
	s.Helper()
	s.within(30*time.Second, fmt.Sprintf("%s runs on %s and only there", name, on.Name), func() error {
		where, err := s.lab.HostOf(name)
		if err != nil {
			return err
		}
		if where != on {
			return fmt.Errorf("its process is on %s", where.Name)
		}
		if running := s.watch.Running(name); running != 1 {
			return fmt.Errorf("%d processes execute it", running)
		}
		var answer berthv1.GetVMResponse
		if err := s.lab.Ask(s.Context(), &answer, "vm", "show", name); err != nil {
			return err
		}
		if vm := answer.GetVm(); vm.GetState() != berthv1.VMState_VM_STATE_RUNNING || vm.GetNode() != on.Name {
			return fmt.Errorf("berth shows it %s on %q (%s)", vm.GetState(), vm.GetNode(), vm.GetCondition())
		}
		return nil
	})
}

// sameGuest checks that the guest on this host is the one that said an earlier tick, whole and without a break.
func (s *site) sameGuest(name string, on *lab.Host, earlier lab.Tick) {
	s.Helper()
	if err := s.tick(on, name).After(earlier); err != nil {
		s.Errorf("%s: %v", name, err)
	}
}

// stops checks that the VM can still be worked with: it is stopped, and is gone then.
func (s *site) stops(name string) {
	s.Helper()
	s.does("vm", "stop", name, "--force")
	for _, host := range s.lab.Hosts {
		for _, guest := range host.QEMUs() {
			if guest.Name == name {
				s.Errorf("%s is stopped and has a process on %s", name, host.Name)
			}
		}
	}
	if vm, _ := s.show(name); vm.GetState() != berthv1.VMState_VM_STATE_STOPPED {
		s.Errorf("%s is %s after it was stopped (%s)", name, vm.GetState(), vm.GetCondition())
	}
}

// startsAgain checks that a VM that is not running any more can be started, and runs once. It can be as soon as the node that
// had it has listed its domains without it.
func (s *site) startsAgain(name string) {
	s.Helper()
	s.within(time.Minute, name+" starts again", func() error {
		result := s.berth("vm", "start", name)
		if strings.Contains(result.Stderr, "has not listed its domains since") {
			return errors.New(result.Stderr)
		}
		s.check([]string{"berth", "vm", "start", name}, result, 0)
		return nil
	})
	vm, _ := s.show(name)
	host, err := s.lab.Machine(vm.GetNode())
	s.must(err)
	for _, h := range s.lab.Hosts {
		if h.Machine == host {
			s.runsOnce(name, h)
		}
	}
}

// settled waits until Berth has written down what it sees of a VM: two of its looks have changed nothing.
func (s *site) settled(name string) {
	s.Helper()
	const looks = 12 * time.Second
	was, _ := s.show(name)
	since := time.Now()
	s.within(time.Minute, "the record of "+name+" stays as it is", func() error {
		if is, _ := s.show(name); is.GetRevision() != was.GetRevision() {
			was, since = is, time.Now()
		}
		if time.Since(since) < looks {
			return fmt.Errorf("it has revision %d for %s", was.GetRevision(), time.Since(since))
		}
		return nil
	})
}

// restartAgent kills the agent and starts it again.
func (s *site) restartAgent(h *lab.Host) {
	s.Helper()
	s.must(h.KillAgent())
	s.must(h.StartAgent(s.Context()))
}

// restartLibvirtd kills libvirtd and starts it again.
func (s *site) restartLibvirtd(h *lab.Host) {
	s.Helper()
	s.must(h.Kill(lab.Libvirtd))
	s.must(h.StartLibvirtd(s.Context()))
}

// killLeader kills the coordinator that leads and returns it.
func (s *site) killLeader() *lab.Coordinator {
	s.Helper()
	leader, err := s.lab.Leader(s.Context())
	s.must(err)
	s.must(leader.Kill())
	return leader
}

// node waits until a node is in a state, and returns it. One that is up has sent its inventory too, so that VMs may be placed there. The
// reason of its state has to have all these words: an agent that has just begun has not reached libvirt yet, and says so.
func (s *site) node(host *lab.Host, limit time.Duration, state berthv1.NodeState, words ...string) *berthv1.Node {
	s.Helper()
	var answer berthv1.GetNodeResponse
	s.within(limit, fmt.Sprintf("node %s is %s", host.Name, state), func() error {
		ctx, cancel := context.WithTimeout(s.Context(), commandLimit)
		defer cancel()
		answer.Reset()
		if err := s.lab.Ask(ctx, &answer, "node", "show", host.Name); err != nil {
			return err
		}
		if is := answer.GetNode().GetState(); is != state {
			return fmt.Errorf("it is %s (%s)", is, answer.GetNode().GetStateReason())
		}
		for _, word := range words {
			if reason := answer.GetNode().GetStateReason(); !strings.Contains(reason, word) {
				return fmt.Errorf("the reason does not say %q: %s", word, reason)
			}
		}
		if state == up && answer.GetNode().GetLedgers() == nil {
			return errors.New("it has sent no inventory")
		}
		return nil
	})
	return answer.GetNode()
}
