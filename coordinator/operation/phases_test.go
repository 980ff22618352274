package operation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// guestKinds are the kinds of operation that change a guest where it runs, and an attachment that makes its disk. An edit of a document is
// no operation: it changes the record alone.
var guestKinds = []struct {
	kind Kind
	made bool // the disk is made for it
}{
	{Attach, false},
	{Attach, true},
	{Detach, false},
	{Media, false},
	{Resize, false},
	{Pause, false},
	{Resume, false},
	{Reboot, false},
	{Snapshot, false},
	{Restore, false},
	{Forget, false},
}

// The phases of all of them are a text: what each answer, the proof that the node is off and the end of patience lead to, in which phase
// the operation is then, and what of the VM's record that changes. A change of it has to be explained.
func TestPhaseTable(t *testing.T) {
	var table strings.Builder
	for _, one := range guestKinds {
		name := string(one.kind)
		if one.made {
			name += "+new"
		}
		for _, happens := range phaseEvents {
			op, vm := guestOperation(one.kind, one.made)
			next, moved := happens.so(op, vm)
			to := "stays " + string(op.Phase)
			if moved {
				to = strings.TrimSpace(fmt.Sprintf("%s %s", next.Operation.Phase, next.Operation.Result))
				if changes := recordChanges(&vm, &next); changes != "" {
					to += "  " + changes
				}
			}
			fmt.Fprintf(&table, "%-10s  %-24s  %s\n", name, happens.name, to)
			if op.Live() && moved && next.Operation.Live() && next.Operation.Step == op.Step && next.Operation.Message == op.Message {
				t.Errorf("%s, %s: something is written that changes nothing", name, happens.name)
			}
		}
	}
	golden(t, "phases.txt", table.String())
}

// phaseEvents are what can happen to an operation whose node has its order, and last to one whose node has not got it.
var phaseEvents = []struct {
	name string
	so   func(op Operation, vm model.VM) (Next, bool)
}{
	{"done", answered(Answer{Outcome: OutcomeDone})},
	{"failed", answered(Answer{Outcome: OutcomeFailed})},
	{"refused", answered(Answer{Outcome: OutcomeRefused})},
	{"refused, journal", answered(Answer{Outcome: OutcomeRefused, Code: Journal})},
	{"refused, an older term", answered(Answer{Outcome: OutcomeRefused, Code: StaleTerm})},
	{"refused, an older epoch", answered(Answer{Outcome: OutcomeRefused, Code: StaleEpoch})},
	{"refused, taken back", answered(Answer{Outcome: OutcomeRefused, Code: TooLate})},
	{"in doubt", answered(Answer{Outcome: OutcomeAmbiguous})},
	{"of another node", func(op Operation, vm model.VM) (Next, bool) {
		return Step(op, vm, Answer{Node: "n2", Step: op.Step, Outcome: OutcomeDone}, noon)
	}},
	{"its node is off", func(op Operation, vm model.VM) (Next, bool) { return Off(op, vm, "n1", noon) }},
	{"a minute", func(op Operation, vm model.VM) (Next, bool) { return Overdue(op, vm, noon.Add(time.Minute)) }},
	{"a day", func(op Operation, vm model.VM) (Next, bool) { return Overdue(op, vm, noon.Add(24*time.Hour)) }},
	{"never given", func(op Operation, vm model.VM) (Next, bool) {
		if !op.Kind.Dated() {
			return Next{}, false
		}
		op.Phase = Queued
		t := newTransition(op, vm, noon)
		takenBack(t)
		return t.Next, true
	}},
}

func answered(answer Answer) func(Operation, model.VM) (Next, bool) {
	return func(op Operation, vm model.VM) (Next, bool) {
		answer.Node, answer.Step, answer.Error = "n1", op.Step, "it broke"
		answer.Seen = shows(model.DomainRunning, 4)
		return Step(op, vm, answer, noon)
	}
}

// guestOperation is an operation of a kind whose node has just been given its order, and its VM.
func guestOperation(kind Kind, made bool) (Operation, model.VM) {
	op, vm := standingVM(kind)
	vm.Disks = []string{"d0"}
	edit := model.DeviceEdit{Kind: "disk", Key: "vdb", Is: "fast/data", XML: "<disk/>", By: "operator/alice", At: noon}
	switch kind {
	case Attach:
		op.Edits = []model.DeviceEdit{edit}
	case Detach:
		vm.Drift = &model.Drift{Node: "n1", Since: noon, Edits: []model.DeviceEdit{edit}}
		op.Edits = []model.DeviceEdit{{Kind: "disk", Key: "vdb", Was: "fast/data", By: "operator/alice", At: noon}}
	case Media:
		op.Edits = []model.DeviceEdit{{Kind: "disk", Key: "sda", Was: "empty", Is: "/iso", Media: true, XML: "<disk/>"}}
	case Resize:
		op.Size = model.Size{Memory: 512 << 20}
	case Resume:
		vm.Paused = model.Stand{By: "operator/bob", At: noon}
	case Snapshot, Restore, Forget:
		op = snapshotOperation(kind, vm)
		vm.Snapshots = []model.Snapshot{{Name: "weekly", Tag: op.ID, Disks: op.Snapshot.Disks, Partial: kind != Restore}}
		if kind == Restore {
			vm.Reverting = "weekly"
		}
	}
	if made {
		op.Disks, vm.Disks = []string{"d1"}, []string{"d0", "d1"}
		op.Volumes = []model.VolumeOrder{{Disk: "d1", DiskName: "web-disk1", Pool: "p1", PoolName: "fast", Name: "berth-d1.qcow2"}}
	}
	return op, vm
}

// recordChanges are what becomes of the records with a step, in words.
func recordChanges(before *model.VM, next *Next) string {
	after := &next.VM
	var changes []string
	add := func(changed bool, format string, args ...any) {
		if changed {
			changes = append(changes, fmt.Sprintf(format, args...))
		}
	}
	add(before.Operation != "" && after.Operation == "", "VM free")
	add(len(before.Drifted()) != len(after.Drifted()), "%d devices changed", len(after.Drifted()))
	add(!slices.Equal(before.Disks, after.Disks), "disks %v", after.Disks)
	add(before.Paused != after.Paused, "paused by %q", after.Paused.By)
	add(before.Spec.Memory != after.Spec.Memory, "memory %s", after.Spec.Memory)
	add(before.Reverting != after.Reverting, "reverting %q", after.Reverting)
	if was, is := before.Snapshot("weekly"), after.Snapshot("weekly"); was != nil {
		add(is == nil, "no snapshot")
		add(is != nil && was.Partial != is.Partial, "snapshot whole")
	}
	for _, disk := range next.DeleteDisks {
		add(true, "record of %s deleted", disk)
	}
	for _, disk := range []string{"d1"} {
		volume, has := next.Volumes[disk]
		add(has, "volume of %s made on %v, doomed %t", disk, volume.Nodes, volume.Doomed)
	}
	return strings.Join(changes, ", ")
}

// The evidence of an operation that a node has let go says so in its own words: those of the refusal would read as a failure, also where
// the operation is done.
func TestWhatANodeHasLetGoIsNoFailureInTheEvidence(t *testing.T) {
	op, vm := guestOperation(Reboot, false)
	next, _ := answered(Answer{Outcome: OutcomeRefused, Code: StaleEpoch})(op, vm)
	evidence := strings.Join(next.Operation.Evidence, "\n")
	if !strings.Contains(evidence, "takes no more orders about this copy of the VM") || strings.Contains(evidence, "it broke") {
		t.Errorf("evidence %q", evidence)
	}
	next, _ = answered(Answer{Outcome: OutcomeFailed, Code: NoError})(op, vm)
	if evidence := strings.Join(next.Operation.Evidence, "\n"); !strings.Contains(evidence, "it broke") {
		t.Errorf("a failure is told without its reason: %q", evidence)
	}
}
