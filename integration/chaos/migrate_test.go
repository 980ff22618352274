package chaos

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// move is a migration under way.
type move struct {
	*running
	vm               string
	source, target   *lab.Host
	leader, follower *lab.Coordinator
	before           lab.Tick
	begun            time.Time

	frozen []func() error // thaw what holds the migration at its moment
	hangs  string         // service and host of what is not to be thawed
}

// bandwidth makes the copy of a guest take some seconds.
const bandwidth = "16M"

// reaching begins to move a guest, from the first host to the second one or, if it is there already, to the next host, and
// returns at the moment.
func (s *site) reaching(name string, at moment) *move {
	s.Helper()
	m := &move{running: &running{site: s}, vm: name}
	if where, err := s.lab.HostOf(name); err == nil {
		m.source, m.before = where, s.tick(where, name)
	} else {
		m.source = s.lab.Hosts[0]
		m.before = s.guest(name, m.source)
	}
	m.target = s.lab.Hosts[1]
	if m.target == m.source {
		m.target = s.lab.Hosts[0]
	}
	leader, err := s.lab.Leader(s.Context())
	s.must(err)
	m.leader = leader
	for _, c := range s.lab.Coordinators {
		if c != leader {
			m.follower = c
		}
	}
	if at.hold != nil {
		at.hold(m)
	}
	m.begun = time.Now()
	m.running = s.starts("vm", "migrate", name, "--to", m.target.Name, "--bandwidth", bandwidth)
	m.reaches(at)
	return m
}

// copying waits until memory is under way.
func (s *site) copying(name string) *move {
	s.Helper()
	return s.reaching(name, copying)
}

// arrives checks a migration that ends on its target, with the same guest.
func (m *move) arrives() {
	m.Helper()
	m.ends(0, m.vm, m.target.Name)
	if op := m.ended(m.vm, 60*time.Second); op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE {
		m.Errorf("the migration ended %s: %s\n%q", op.GetResult(), op.GetMessage(), op.GetEvidence())
	}
	m.runsOnce(m.vm, m.target)
	m.sameGuest(m.vm, m.target, m.before)
	m.stops(m.vm)
}

// stays checks a migration that comes to nothing: the guest has never left its source, no trace of it is left on the
// target, and it can be moved again.
func (m *move) stays() {
	m.Helper()
	m.ends(1, m.vm, "next step: ")
	if op := m.ended(m.vm, 90*time.Second); op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_FAILED || op.GetMessage() == "" {
		m.Errorf("the migration ended %s: %q\n%q", op.GetResult(), op.GetMessage(), op.GetEvidence())
	}
	m.runsOnce(m.vm, m.source)
	m.sameGuest(m.vm, m.source, m.before)
	m.does("vm", "migrate", m.vm, "--to", m.target.Name)
	m.runsOnce(m.vm, m.target)
	m.sameGuest(m.vm, m.target, m.before)
	m.stops(m.vm)
}

func TestAMigrationOutlivesTheSourcesAgent(t *testing.T) {
	s := begin(t)
	s.isCell(cell{sourcesAgent, copying})
	m := s.copying("mover")
	m.restartAgent(m.source)
	m.arrives()
}

func TestAMigrationOutlivesTheTargetsAgent(t *testing.T) {
	s := begin(t)
	s.isCell(cell{targetsAgent, copying})
	m := s.copying("mover")
	m.restartAgent(m.target)
	m.arrives()
}

func TestAMigrationOutlivesTheLeader(t *testing.T) {
	s := begin(t)
	s.isCell(cell{theLeader, copying})
	m := s.copying("mover")
	m.killLeader()
	m.arrives()
}

func TestAMigrationWhoseSourceLosesLibvirtdIsRolledBack(t *testing.T) {
	s := begin(t)
	s.isCell(cell{sourcesLibvirtd, copying})
	m := s.copying("mover")
	m.restartLibvirtd(m.source)
	m.stays()
}

func TestAMigrationWhoseTargetLosesLibvirtdIsRolledBack(t *testing.T) {
	s := begin(t)
	s.isCell(cell{targetsLibvirtd, copying})
	m := s.copying("mover")
	m.restartLibvirtd(m.target)
	m.stays()
}

// libvirt gives up some time after it has last heard of the other side.
func TestAMigrationWhoseLinkIsCutIsRolledBack(t *testing.T) {
	s := begin(t)
	s.isCell(cell{theLink, copying})
	m := s.copying("mover")
	m.must(m.lab.Partition(t.Context(), m.source.Machine, m.target.Machine))
	m.Cleanup(func() { m.must(m.lab.Heal(m.background())) })
	op := m.ended(m.vm, 100*time.Second)
	m.runsOnce(m.vm, m.source)
	m.sameGuest(m.vm, m.source, m.before)
	t.Logf("given up after %s: %s", op.GetEndedAt().AsTime().Sub(op.GetCreatedAt().AsTime()).Round(time.Second), op.GetMessage())
	m.must(m.lab.Heal(t.Context()))
	m.stays()
}

// A host that loses power in the middle of a copy takes its guest with it. Nobody may start that guest elsewhere before
// it is known that it is gone: the host may only be silent.
func TestAMigrationWhoseSourceLosesPowerIsReportedAndNothingStartsTwice(t *testing.T) {
	s := begin(t)
	s.isCell(cell{theSource, copying})
	m := s.copying("mover")
	s.must(m.source.PowerOff())
	s.node(m.source, 40*time.Second, berthv1.NodeState_NODE_STATE_UNREACHABLE)
	if status := s.does("status"); !regexp.MustCompile(`node1 is unreachable.*it holds 1 VM`).MatchString(status) {
		t.Errorf("the status does not tell of the node and its VM:\n%s", status)
	}
	s.refuse(refusal{"started again", []string{"vm", "start", "mover"}, 1, []string{"mover"}})
	if running := s.watch.Running("mover"); running != 0 {
		t.Errorf("%d processes execute the guest whose host is dead", running)
	}
	s.must(s.mend(t.Context()))
	m.ends(1, "mover", "next step: ")
	op := s.ended("mover", 90*time.Second)
	if vm, _ := s.show("mover"); vm.GetState() != berthv1.VMState_VM_STATE_LOST ||
		op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_FAILED {
		t.Errorf("the VM is %s (%s), its migration %s: %s", vm.GetState(), vm.GetCondition(), op.GetResult(), op.GetMessage())
	}
	if where, err := s.noGuest("mover"); err != nil {
		t.Errorf("%s still has a copy: %v", where, err)
	}
	s.startsAgain("mover")
	s.stops("mover")
}

// libvirt alone would run the guest twice here: the target has finished, and the source does not hear of it and resumes
// its copy. Handed over in two steps, the target's copy has not run, and goes.
func TestAMigrationWhoseFinishReplyIsLostIsRolledBackAndNothingRunsTwice(t *testing.T) {
	s := begin(t)
	s.isCell(cell{theLink, replying})
	m := s.reaching("mover", replying)
	m.must(m.lab.Partition(t.Context(), m.source.Machine, m.target.Machine))
	m.letGo()
	s.within(2*noticed, "the source lets its copy run again", func() error {
		state, err := m.source.Virsh(t.Context(), "domstate", "mover")
		if err == nil && !strings.HasPrefix(state, "running") {
			err = fmt.Errorf("it is %s", strings.TrimSpace(state))
		}
		return err
	})
	op := m.ended("mover", 90*time.Second)
	if evidence := strings.Join(op.GetEvidence(), "\n"); op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_FAILED {
		t.Errorf("the migration ended %s: %s\n%s", op.GetResult(), op.GetMessage(), evidence)
	}
	m.runsOnce("mover", m.source)
	m.sameGuest("mover", m.source, m.before)
	m.must(m.lab.Heal(t.Context()))
	m.stays()
}
