package operation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// judged puts the looks at both nodes to a driver in phase Judging. A look without a state is of a node that is off.
func judged(t *testing.T, input Input, source, target Observation) Next {
	t.Helper()
	d := NewDriver(0)
	if source.State == "" {
		input.Fenced = []string{"n1"}
	}
	for _, order := range d.Look(input, noon).Orders {
		seen := source
		if order.Node == "n2" {
			seen = target
		}
		answer := inspected(order, seen.State, seen.Epoch)
		answer.Seen.Boot, answer.Seen.Ended, answer.Seen.Unseen = seen.Boot, seen.Ended, seen.Unseen
		if next, moved := d.Answer(answer, noon); moved {
			return next
		}
	}
	t.Fatalf("source %+v, target %+v: nothing followed", source, target)
	return Next{}
}

// When the reply to Finish is lost, libvirt lets the guest run on at the source. Its host then goes down: the target has an
// older copy, and only the boot tells this from a guest that was handed over.
func TestASourceThatBootedAnewHasNotLetGo(t *testing.T) {
	absent := func(boot string) Observation { return Observation{State: model.DomainAbsent, Boot: boot} }
	ended := absent("boot-1")
	ended.Ended = true
	unseen := absent("boot-1")
	unseen.Unseen = true
	paused := Observation{State: model.DomainPaused, Epoch: 5, Boot: "other"}
	for name, tc := range map[string]struct {
		source   Observation
		ha       bool
		boot     string // recorded
		holder   string
		phase    Phase
		result   Result
		leftover string
	}{
		"up since":    {source: absent("boot-1"), boot: "boot-1", holder: "n1", phase: HandedOver},
		"booted anew": {source: absent("boot-2"), boot: "boot-1", holder: "n1", phase: Judging, result: Parked},
		"off":         {boot: "boot-1", holder: "n1", phase: Judging, result: Parked},
		"booted anew, restarted if need be": {
			source: absent("boot-2"), ha: true, boot: "boot-1", holder: "n1", phase: Discarding, leftover: "n2",
		},
		"off, restarted if need be":            {ha: true, boot: "boot-1", holder: "n1", phase: Discarding, leftover: "n2"},
		"nothing tells how it went":            {source: unseen, boot: "boot-1", holder: "n1", phase: Judging, result: Parked},
		"nothing tells, restarted if need be":  {source: unseen, ha: true, boot: "boot-1", holder: "n1", phase: Judging, result: Parked},
		"nothing tells after the hand-over":    {source: unseen, boot: "boot-1", holder: "n2", phase: HandedOver},
		"ended there":                          {source: ended, boot: "boot-1", holder: "n1", phase: Discarding, leftover: "n2"},
		"ended there after the hand-over":      {source: ended, boot: "boot-1", holder: "n2", phase: HandedOver},
		"booted anew after the hand-over":      {source: absent("boot-2"), boot: "boot-1", holder: "n2", phase: HandedOver},
		"begun by a release that kept no boot": {source: absent("boot-2"), holder: "n1", phase: HandedOver},
	} {
		input := judging()
		input.Operation.SourceBoot, input.VM.HA, input.VM.Holder = tc.boot, tc.ha, tc.holder
		next := judged(t, input, tc.source, paused)
		op := next.Operation
		if op.Phase != tc.phase || op.Result != tc.result || op.Leftover != tc.leftover {
			t.Errorf("%s: phase %s, result %q, leftover %q; want %+v\n%q", name, op.Phase, op.Result, op.Leftover, tc, op.Evidence)
		}
		if tc.result == Parked && !strings.Contains(next.VM.Condition.Text, "may be older than what the guest did since") &&
			!strings.Contains(next.VM.Condition.Text, "and then the copy on node2 is older than its disks") {
			t.Errorf("%s: condition %q", name, next.VM.Condition.Text)
		}
	}
}

// The old copy of a VM that is to be restarted goes first, so that it can never be resumed next to the new one.
func TestAVMWhoseSourceDiedIsLostOnceTheOldCopyIsGone(t *testing.T) {
	input := judging()
	input.VM.HA = true
	next := judged(t, input, Observation{State: model.DomainAbsent, Boot: "boot-2"}, Observation{State: model.DomainPaused, Epoch: 5})
	next = mustStep(t, next.Operation, next.VM, Answer{Node: "n2", Outcome: OutcomeDone, Seen: Observation{State: model.DomainAbsent}})
	if next.Operation.Result != Failed || next.VM.Holder != "" || !strings.HasPrefix(
		next.VM.Condition.Text, "lost during a migration: the source's host went down",
	) {
		t.Errorf("ended as %s, holder %q, condition %q", next.Operation.Result, next.VM.Holder, next.VM.Condition.Text)
	}
	if next.VM.Desired != model.Running {
		t.Errorf("it is to be %s, and would not be restarted", next.VM.Desired)
	}
}

// An operator may know that the guest did not run on.
func TestACopyWhoseSourceDiedCanBeKept(t *testing.T) {
	next := judged(t, judging(), Observation{State: model.DomainAbsent, Boot: "boot-2"}, Observation{State: model.DomainPaused, Epoch: 5})
	shows := map[string]Observation{"n1": {State: model.DomainAbsent}, "n2": {State: model.DomainPaused, Epoch: 5}}
	kept, obstacle := Resolve(next.Operation, next.VM, KeepTarget, shows, "anna", noon)
	if obstacle != nil {
		t.Fatalf("in the way: %+v", obstacle)
	}
	for range 4 {
		orders := Orders(kept.Operation, kept.VM, 0)
		if len(orders) == 0 {
			break
		}
		kept = mustStep(t, kept.Operation, kept.VM, Answer{
			Node: orders[0].Node, Outcome: OutcomeDone, Seen: Observation{State: model.DomainPaused, Epoch: orders[0].Epoch},
		})
	}
	if kept.Operation.Live() || kept.VM.Holder != "n2" || kept.VM.Condition.Text != "" {
		t.Errorf(
			"ended as %s, holder %q, condition %q\n%q", kept.Operation.Phase, kept.VM.Holder, kept.VM.Condition.Text, kept.Operation.Evidence,
		)
	}
}

// A silent node keeps the old copy. The record says so: it is discarded when the node is back, and nothing waits for that.
func TestAnOldCopyThatIsLeftBehindIsKeptInMind(t *testing.T) {
	input := judging()
	input.VM.HA = true
	next := judged(t, input, Observation{State: model.DomainAbsent, Boot: "boot-2"}, Observation{State: model.DomainPaused, Epoch: 5})
	if given, over := Overdue(next.Operation, next.VM, noon.Add(DiscardPatience-1)); over {
		t.Errorf("given up early: %+v", given.Operation)
	}
	for name, c := range map[string]struct {
		given func(op Operation, vm model.VM, at time.Time) (Next, bool)
		left  []model.Discard
	}{
		"its node is silent": {Overdue, []model.Discard{{Node: "n2", Epoch: 5}}},
		"its node is off":    {func(op Operation, vm model.VM, at time.Time) (Next, bool) { return Off(op, vm, "n2", at) }, nil},
	} {
		after, over := c.given(next.Operation, next.VM, noon.Add(DiscardPatience))
		if !over || after.Operation.Result != Failed || after.VM.Holder != "" || !slices.Equal(after.VM.Discards, c.left) {
			t.Errorf("%s: %t, %+v, %+v", name, over, after.Operation, after.VM.Discards)
		}
	}
}

// An earlier migration had to leave a paused copy on the target, and the guest has ended at its source. The copy goes once no operation
// works on the VM, so this one must not wait for that.
func TestACopyThatAnEarlierMigrationHasLeftIsNoneOfThisOne(t *testing.T) {
	left := Observation{State: model.DomainPaused, Epoch: 3}
	input := judging()
	input.VM.Discards = []model.Discard{{Node: "n2", Epoch: 3}}
	next := judged(t, input, Observation{State: model.DomainAbsent}, left)
	if next.Operation.Result != Failed || next.VM.Holder != "" || len(next.VM.Discards) != 1 {
		t.Errorf("%+v of %+v", next.Operation, next.VM)
	}
	for name, change := range map[string]func(*Input, *Observation){
		"nobody has left it":       func(input *Input, _ *Observation) { input.VM.Discards = nil },
		"it was left elsewhere":    func(input *Input, _ *Observation) { input.VM.Discards[0].Node = "n3" },
		"somebody has let it run":  func(_ *Input, seen *Observation) { seen.State = model.DomainRunning },
		"it is of another attempt": func(_ *Input, seen *Observation) { seen.Epoch = 2 },
	} {
		input, seen := judging(), left
		input.VM.Discards = []model.Discard{{Node: "n2", Epoch: 3}}
		change(&input, &seen)
		d := NewDriver(0)
		for _, order := range d.Look(input, noon).Orders {
			one := seen
			if order.Node != "n2" {
				one = Observation{State: model.DomainAbsent}
			}
			if next, moved := d.Answer(inspected(order, one.State, one.Epoch), noon); moved {
				t.Errorf("%s: %+v", name, next.Operation)
			}
		}
	}
}
