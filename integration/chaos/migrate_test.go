package chaos

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// move is a migration under way.
type move struct {
	*running
	vm             string
	source, target *lab.Host
	before         lab.Tick
}

// bandwidth makes the copy of a guest take some seconds.
const bandwidth = "16M"

// beginMove starts a guest on the first host and begins to move it to the second one.
func (s *site) beginMove(name string) *move {
	s.Helper()
	m := &move{vm: name, source: s.lab.Hosts[0], target: s.lab.Hosts[1]}
	m.before = s.guest(name, m.source)
	m.running = s.starts("vm", "migrate", name, "--to", m.target.Name, "--bandwidth", bandwidth)
	return m
}

// copying waits until memory is under way.
func (s *site) copying(name string) *move {
	s.Helper()
	m := s.beginMove(name)
	m.reaches(copying)
	return m
}

var sent = regexp.MustCompile(`Data processed: +([1-9][0-9]*\.?[0-9]*) [KMG]iB`)

// moment is a point in the life of a migration.
type moment struct {
	name    string
	reached func(*move) error
}

var (
	recorded = moment{"as soon as it is on record", func(m *move) error {
		if _, op := m.show(m.vm); op.GetKind() != "migrate" {
			return fmt.Errorf("the last operation is a %s", op.GetKind())
		}
		return nil
	}}
	copying = moment{"while memory is copied", func(m *move) error {
		job, err := m.source.Virsh(m.Context(), "domjobinfo", m.vm)
		if err == nil && !sent.MatchString(job) {
			err = fmt.Errorf("nothing is copied yet: %s", job)
		}
		return err
	}}
	switching = moment{"when the guest stands still on its source", func(m *move) error {
		for _, run := range m.watch.Runs() {
			if run.Name == m.vm && run.Host == m.source.Name && !run.To.IsZero() {
				return nil
			}
		}
		return fmt.Errorf("it still runs on %s", m.source.Name)
	}}
	resumed = moment{"when the guest runs on its target", func(m *move) error {
		for _, run := range m.watch.Runs() {
			if run.Name == m.vm && run.Host == m.target.Name {
				return nil
			}
		}
		return fmt.Errorf("it does not run on %s", m.target.Name)
	}}
)

// reaches waits for the moment, closely: it does not last.
func (m *move) reaches(at moment) {
	m.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		err := at.reached(m)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			m.Fatalf("the migration never came to the moment %s: %v", at.name, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
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
	m := begin(t).copying("mover")
	m.restartAgent(m.source)
	m.arrives()
}

func TestAMigrationOutlivesTheTargetsAgent(t *testing.T) {
	m := begin(t).copying("mover")
	m.restartAgent(m.target)
	m.arrives()
}

func TestAMigrationOutlivesTheLeader(t *testing.T) {
	m := begin(t).copying("mover")
	m.killLeader()
	m.arrives()
}

func TestAMigrationWhoseSourceLosesLibvirtdIsRolledBack(t *testing.T) {
	m := begin(t).copying("mover")
	m.restartLibvirtd(m.source)
	m.stays()
}

func TestAMigrationWhoseTargetLosesLibvirtdIsRolledBack(t *testing.T) {
	m := begin(t).copying("mover")
	m.restartLibvirtd(m.target)
	m.stays()
}

// libvirt gives up half a minute after it has last heard of the other side.
func TestAMigrationWhoseLinkIsCutIsRolledBack(t *testing.T) {
	m := begin(t).copying("mover")
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
	if vm, _ := s.show("mover"); vm.GetState() != berthv1.VMState_VM_STATE_LOST || op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_FAILED {
		t.Errorf("the VM is %s (%s), its migration %s: %s", vm.GetState(), vm.GetCondition(), op.GetResult(), op.GetMessage())
	}
	if where, err := s.noGuest("mover"); err != nil {
		t.Errorf("%s still has a copy: %v", where, err)
	}
	s.startsAgain("mover")
	s.stops("mover")
}
