package operation

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

func snapshotOperation(kind Kind, vm model.VM) Operation {
	op, _ := standingVM(kind)
	op.VM, op.VMName = vm.ID, vm.Name
	disk := model.SnapshotDisk{Target: "vda", Source: model.DiskSource{Path: "/srv/a"}}
	op.Snapshot = &SnapshotWork{Name: "weekly", Tag: op.ID, Disks: []model.SnapshotDisk{disk}}
	return op
}

// Whatever an operation on a snapshot comes to, the record has what may be in the files, and nothing is started half reverted.
func TestWhatWorkOnASnapshotComesTo(t *testing.T) {
	for _, kind := range []Kind{Snapshot, Restore, Forget} {
		for name, c := range map[string]struct {
			again  bool // an earlier operation has begun the same
			answer *Answer
			waited time.Duration
			result Result
			kept   bool // the snapshot is in the record
			whole  bool
			revert string // what it is being reverted to, of a revert
		}{
			"done":          {answer: &Answer{Outcome: OutcomeDone, Frozen: true}, result: Done, kept: kind != Forget, whole: kind != Forget},
			"refused":       {answer: &Answer{Outcome: OutcomeRefused}, result: Failed, kept: kind != Snapshot, whole: kind != Snapshot},
			"refused again": {again: true, answer: &Answer{Outcome: OutcomeRefused}, result: Failed, kept: kind != Snapshot, revert: "weekly"},
			"failed":        {answer: &Answer{Outcome: OutcomeFailed}, result: Failed, kept: true, revert: "weekly"},
			"in doubt":      {answer: &Answer{Outcome: OutcomeAmbiguous}, kept: true, revert: "weekly"},
			"no answer":     {waited: SnapshotPatience, result: Failed, kept: true, revert: "weekly"},
		} {
			_, vm := standingVM(kind)
			op := snapshotOperation(kind, vm)
			vm.Snapshots = []model.Snapshot{{Name: "weekly", Tag: op.ID, Disks: op.Snapshot.Disks, Partial: kind != Restore}}
			if kind == Restore {
				vm.Reverting, c.whole = "weekly", true
			}
			if c.again {
				op.Snapshot.Again, op.Snapshot.Before = true, "weekly"
			}
			next, moved := Next{Operation: op, VM: vm}, false
			if c.answer != nil {
				c.answer.Node, c.answer.Step = "n1", op.Step
				next, moved = Step(op, vm, *c.answer, noon)
			} else {
				next, moved = Overdue(op, vm, noon.Add(c.waited))
			}
			if waits := kind == Restore && name == "no answer" || name == "in doubt"; waits {
				if moved {
					t.Errorf("%s %s led to %+v", kind, name, next.Operation)
				}
				continue
			}
			is := next.VM.Snapshot("weekly")
			if !moved || next.Operation.Result != c.result || (is != nil) != c.kept || is != nil && !is.Partial != c.whole {
				t.Errorf("%s %s: moved %t to %s, the record has %+v", kind, name, moved, next.Operation.Result, is)
			}
			if kind == Restore && next.VM.Reverting != c.revert {
				t.Errorf("%s %s: it is being reverted to %q", kind, name, next.VM.Reverting)
			}
			if c.result == Failed && c.answer == nil && !strings.Contains(next.Operation.Message, "berth vm snapshot delete web1 --name weekly") {
				t.Errorf("%s %s: it says %q", kind, name, next.Operation.Message)
			}
			if kind == Snapshot && name == "done" && is.Consistency != model.ConsistentFrozen {
				t.Errorf("it is consistent as %q", is.Consistency)
			}
		}
	}
}

func TestSnapshotOrdersNameWhatTheyAreAbout(t *testing.T) {
	for kind, words := range map[Kind]string{
		Snapshot: "taking snapshot weekly on node1", Restore: "reverting to snapshot weekly on node1",
		Forget: "deleting snapshot weekly on node1",
	} {
		_, vm := standingVM(kind)
		op := snapshotOperation(kind, vm)
		orders := Orders(op, vm, 0)
		if len(orders) != 1 || orders[0].Action != Action(kind) || orders[0].Snapshot.Tag != op.ID || op.Doing() != words {
			t.Errorf("%s: ordered %+v, doing %q", kind, orders, op.Doing())
		}
		if next, moved := Off(op, vm, "n1", noon); !moved || next.Operation.Result != Failed {
			t.Errorf("%s: its node is off, and it is %+v", kind, next.Operation)
		}
	}
}
