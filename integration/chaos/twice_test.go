package chaos

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// secondCopy runs a VM a second time, as somebody may who knows no better.
func (s *site) secondCopy(name string, from, on *lab.Host, marked bool) {
	s.Helper()
	text := s.virsh(from, "dumpxml", "--migratable", name)
	if !marked {
		bare, err := domxml.WithoutMark(text)
		s.must(err)
		text = bare
	}
	s.virsh(on, "create", s.document("second-"+name, text))
}

// suspended waits until the copy on a host stands still, and tells how long the guest ran twice.
func (s *site) suspended(name string, on *lab.Host) {
	s.Helper()
	s.within(30*time.Second, "the copy of "+name+" on "+on.Name+" is suspended", func() error {
		if is := s.virsh(on, "domstate", "--reason", name); is != "paused (user)" {
			return fmt.Errorf("it is %s", is)
		}
		return nil
	})
	for _, overlap := range s.watch.Planted() {
		if overlap.First.Name == name {
			s.Logf("%s ran twice for %s", name, overlap.Length.Round(time.Millisecond))
		}
	}
}

// Nothing can keep somebody with virsh from running a VM twice. The copy that is not its holder's is suspended at once, nothing
// is killed, and which one lives is for a person to say; what the condition tells them to do does it.
func TestASecondCopyIsSuspendedAndAPersonDecides(t *testing.T) {
	s := byHand(t)
	here, there := s.lab.Hosts[0], s.lab.Hosts[1]
	s.watch.Plant("first", "second", "stranger")
	s.firmware("stranger", here)
	original := s.guests(here, "first", "second")
	operations := s.does("operation", "list", "-o", "name")
	for _, name := range []string{"first", "second", "stranger"} {
		s.secondCopy(name, here, there, name != "stranger")
	}
	told := map[string]string{}
	for _, name := range []string{"first", "second", "stranger"} {
		s.suspended(name, there)
		mark := "epoch 1"
		if name == "stranger" {
			mark = "without Berth's mark"
		}
		told[name] = s.condition(
			name, fmt.Sprintf("runs twice: on node1 (epoch 1, its holder) and node2 (%s); what is not its holder's is suspended", mark),
		)
		if running := s.watch.Running(name); running != 1 {
			t.Errorf("%s is executed %d times", name, running)
		}
		s.qemu(name, here)
		s.qemu(name, there)
	}
	if status := s.does("status"); strings.Count(status, "runs twice: on node1") != 3 {
		t.Errorf("the status does not tell of all three:\n%s", status)
	}
	for name := range told { // the lab's events of other tests are there as well
		events := s.does("events", "--vm", name)
		if strings.Count(events, "vm.copy-suspended") != 1 || strings.Count(events, "vm.runs-twice") != 1 {
			t.Errorf("the events of %s are:\n%s", name, events)
		}
	}
	if now := s.does("operation", "list", "-o", "name"); now != operations {
		t.Errorf("something was begun by itself:\n%s", now)
	}
	copied := s.qemu("second", there)

	s.follows(s.part(told["first"], "to keep the one on node1, ", ";"), here)
	s.follows(s.part(told["second"], "to keep the one on node2, ", ";"), there)
	s.follows(s.part(told["stranger"], "to keep the one on node2, ", ";"), there)
	s.recovers("first", berthv1.VMState_VM_STATE_RUNNING)
	s.runsOnce("first", here)
	s.sameGuest("first", here, original["first"])
	for _, name := range []string{"second", "stranger"} {
		if vm := s.recovers(name, berthv1.VMState_VM_STATE_RUNNING); vm.GetNode() != there.Name || vm.GetEpoch() != 2 {
			t.Errorf("%s is on %s under epoch %d", name, vm.GetNode(), vm.GetEpoch())
		}
		s.runsOnce(name, there)
	}
	if tick := s.tick(there, "second"); s.qemu("second", there) != copied || tick.Boot == original["second"].Boot {
		t.Errorf("what runs on node2 is not the copy that was suspended there: %+v", tick)
	}
}

// parked is what two migrations come to whose source's agent was away, and somebody has let each guest run on both nodes.
func (s *site) parked(names []string, source, target *lab.Host) map[string]*berthv1.Operation {
	s.Helper()
	documents, moves := map[string]string{}, map[string]*running{}
	for _, name := range names {
		documents[name] = s.document("again-"+name, s.virsh(source, "dumpxml", "--migratable", name))
	}
	for _, name := range names {
		moves[name] = s.starts("vm", "migrate", name, "--to", target.Name, "--bandwidth", "1M")
	}
	for _, name := range names {
		s.within(momentLimit, "the copy of "+name, func() error {
			migration, err := source.Migration(name)
			if err == nil && migration.Status != "active" {
				err = fmt.Errorf("QEMU says %q", migration.Status)
			}
			return err
		})
	}
	s.must(source.Pause(lab.Agent))
	for _, name := range names {
		s.virsh(source, "migrate-setspeed", name, "64")
	}
	s.within(momentLimit, "libvirt ends the migrations", func() error {
		if left := s.virsh(source, "list", "--name"); left != "" {
			return fmt.Errorf("node1 has %q", strings.Fields(left))
		}
		return nil
	})
	for _, name := range names {
		s.virsh(target, "resume", name)
		s.virsh(source, "create", documents[name])
	}
	s.must(source.Continue(lab.Agent))
	operations := map[string]*berthv1.Operation{}
	for _, name := range names {
		moves[name].ends(1, "is parked, an operator has to decide: both nodes run it", "berth operation resolve")
		_, operations[name] = s.show(name)
		s.suspended(name, target)
	}
	return operations
}

// What no rule can decide waits for a person, who sees what both nodes have, and is told what stands in the way of a decision.
func TestAMigrationThatNoRuleCanDecideIsDecidedByAPerson(t *testing.T) {
	s := byHand(t)
	source, target := s.lab.Hosts[0], s.lab.Hosts[1]
	names := []string{"source", "target", "none"}
	s.watch.Plant(names...)
	s.guests(source, names...)
	parked := s.parked(names, source, target)
	kept := map[string]*lab.Host{"source": source, "target": target}
	pids := map[string]int{}
	for name, host := range kept {
		pids[name] = s.qemu(name, host)
	}
	status := s.does("status")
	for _, name := range names {
		op := parked[name]
		var answer berthv1.GetOperationResponse
		s.must(s.lab.Ask(t.Context(), &answer, "operation", "show", op.GetId()))
		views := answer.GetOperation().GetViews()
		if len(views) != 2 || views[0].GetNode() != source.Name || views[0].GetState() != berthv1.DomainState_DOMAIN_STATE_RUNNING ||
			!views[0].GetHolder() ||
			views[1].GetNode() != target.Name || views[1].GetState() != berthv1.DomainState_DOMAIN_STATE_PAUSED || views[1].GetHolder() {
			t.Errorf("the nodes' views are %v", views)
		}
		said := s.answers([]string{"operation", "show", op.GetId()}, 0, "parked", "node1", "node2", "paused", "running")
		next := s.part(said.Stdout, "decide which copy is the VM: 'berth ", " --keep")
		if !strings.Contains(status, op.GetId()) {
			t.Errorf("the status does not name operation %s:\n%s", op.GetId(), status)
		}
		s.answers([]string{"vm", "stop", name}, 1, op.GetId())
		decide := append(strings.Fields(next), "--keep", name)
		before := strings.Count(said.Stdout, "absent") // the target answered its ticket before it had a copy
		// What is to be done first is said, and when it is done the same command works.
		for refused := 0; ; refused++ {
			result := s.berth(decide...)
			if result.Code == 0 {
				break
			}
			if refused > 1 {
				t.Fatalf("berth %s: %s", strings.Join(decide, " "), result.Stderr)
			}
			s.follows(s.part(result.Stderr, "end that copy with ", ", and"), source)
			s.within(30*time.Second, "the nodes show what was done", func() error {
				if result := s.berth("operation", "show", op.GetId()); strings.Count(result.Stdout, "absent") != before+refused+1 {
					return errors.New(result.Stdout)
				}
				return nil
			})
		}
		var resolved berthv1.GetOperationResponse
		s.must(s.lab.Ask(t.Context(), &resolved, "operation", "show", op.GetId()))
		if got := resolved.GetOperation(); got.GetResolution() != name || got.GetResolvedBy() == "" || got.GetEndedAt() == nil {
			t.Errorf("the operation is %v", got)
		}
	}
	s.recovers("none", berthv1.VMState_VM_STATE_STOPPED)
	s.startsAgain("none")
	for name, host := range kept {
		if vm := s.recovers(name, berthv1.VMState_VM_STATE_RUNNING); vm.GetNode() != host.Name || s.qemu(name, host) != pids[name] {
			t.Errorf("%s is on %s", name, vm.GetNode())
		}
		s.runsOnce(name, host)
	}
	before := s.tick(target, "target")
	s.does("vm", "migrate", "target", "--to", s.lab.Hosts[2].Name)
	s.sameGuest("target", s.lab.Hosts[2], before)
}
