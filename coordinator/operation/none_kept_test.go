package operation

import (
	"strings"
	"testing"

	"berth/coordinator/model"
)

// The host that a guest was leaving with its disks died, and somebody ends the guest's copy as well. What is on the target may be all that
// is left of the disks: whoever keeps neither guest has not said that the copies may go.
func TestWhoKeepsNeitherGuestKeepsTheDisksOfBoth(t *testing.T) {
	for name, c := range map[string]struct {
		handed bool
		keep   string
		left   string // node that has volumes which are not the VM's
		whole  bool
		says   string
	}{
		"neither":                    {false, KeepNone, "n2", true, "whole copies of them on node2"},
		"neither, after the handing": {true, KeepNone, "n1", true, "those from before the move on node1"},
		"the target's":               {false, KeepTarget, "", false, ""},
		"the source's":               {false, KeepSource, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			op, vm := parkedWithDisks(t)
			if c.handed {
				vm.Holder, vm.Epoch, vm.Copies = "n2", 5, nil
			}
			seen := agents{"n1": nothing, "n2": nothing}
			switch c.keep {
			case KeepTarget:
				seen["n2"] = shows(model.DomainPaused, 5)
			case KeepSource:
				seen["n1"] = shows(model.DomainRunning, 4)
			}
			next, obstacle := Resolve(op, vm, c.keep, seen, "operator/ann", noon)
			if obstacle != nil {
				t.Fatalf("in the way: %+v", obstacle)
			}
			for next.Operation.Live() {
				order := Orders(next.Operation, next.VM, 1)[0]
				removes := len(order.Volumes) > 0 && (order.Action == ActDiscard || order.Action == ActClear)
				if removes && order.Node == "n2" && c.keep != KeepSource || removes && c.keep == KeepNone {
					t.Errorf("ordered %s on %s with %d volumes", order.Action, order.Node, len(order.Volumes))
				}
				next = mustStep(t, next.Operation, next.VM, seen.answer(order))
			}
			copies := next.VM.Copies
			switch {
			case c.left == "":
				if copies != nil {
					t.Errorf("copies %+v", copies)
				}
			case copies == nil || copies.Node != c.left || copies.Whole != c.whole || copies.Operation != op.ID || len(copies.Volumes) != 2:
				t.Errorf("copies %+v", copies)
			case !next.VM.Condition.Is(model.VolumesLeft) || !strings.Contains(next.VM.Condition.Text, c.says) ||
				!strings.Contains(next.Operation.Message, "berth operation resolve "+op.ID):
				t.Errorf("condition %+v, message %q", next.VM.Condition, next.Operation.Message)
			}
		})
	}
}
