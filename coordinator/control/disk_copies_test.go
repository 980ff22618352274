package control

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// withCopies loses a VM while it moves with its disk: the source's machine dies after the guest stood still, and before it could say so.
func withCopies(t *testing.T, ha bool, then func(w *world, vm model.VM, source string, op operation.Operation)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		vm := w.began("p-fast")
		source := vm.Holder
		w.record(vm.ID, func(vm *model.VM) { vm.HA = ha })
		w.agents.mu.Lock()
		w.agents.script = func(order operation.Order) *operation.Answer {
			switch {
			case order.Action == operation.ActMigrate:
				w.facts.change(source, func(f *model.NodeFacts) { f.Boot, f.Domains, f.Liveness = "boot-2", nil, model.Up })
				return &operation.Answer{
					Outcome: operation.OutcomeAmbiguous, Error: "it went down", Seen: operation.Observation{State: model.DomainUnknown},
				}
			case order.Action == operation.ActInspect && order.Node == source:
				return &operation.Answer{Outcome: operation.OutcomeDone, Seen: operation.Observation{State: model.DomainAbsent}}
			case order.Action == operation.ActInspect:
				return &operation.Answer{Outcome: operation.OutcomeDone, Seen: operation.Observation{State: model.DomainPaused, Epoch: order.Epoch}}
			case order.Action == operation.ActStart:
				return nil // its disks are not there
			}
			return obedient(order)
		}
		w.agents.mu.Unlock()
		moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(source), CopyStorage: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		then(w, w.vm("web1"), source, w.operation(moved.Operation.ID))
	})
}

func TestCopiesThatMayBeTheLastStay(t *testing.T) {
	withCopies(t, true, func(w *world, vm model.VM, source string, op operation.Operation) {
		if op.Result != operation.Failed || vm.Holder != "" || vm.Copies == nil || !vm.Copies.Whole || vm.Copies.Node != other(source) {
			t.Fatalf("%+v, VM %+v", op, vm)
		}
		for _, word := range []string{
			"whole copies of them on node", "berth operation resolve " + op.ID + " --keep target", "'--keep source' removes them",
		} {
			if !strings.Contains(op.Message, word) {
				t.Errorf("the operation does not say %q: %s", word, op.Message)
			}
		}
		w.wantLeft("n1 web1-root", "n2 web1-root")
		// It starts where its disks are, and nowhere else. Until it runs there nobody has seen them.
		time.Sleep(time.Minute)
		w.wantLeft("n1 web1-root", "n2 web1-root")
		if starts := w.agents.ordered(operation.ActStart); starts[len(starts)-1].Node != source || w.vm("web1").Copies == nil {
			t.Errorf("started on %s, record %+v", starts[len(starts)-1].Node, w.vm("web1"))
		}
		w.agents.mu.Lock()
		w.agents.script = obedient
		w.agents.mu.Unlock()
		time.Sleep(time.Minute)
		w.wantLeft(source + " web1-root")
		if after := w.vm("web1"); after.Holder != source || after.Copies != nil || len(w.told("vm.copies-removed")) != 1 {
			t.Errorf("it runs, and the record is %+v, told %v", after, w.told("vm.copies-removed"))
		}
	})
}

func TestSomebodyDecidesAboutCopiesOfDisks(t *testing.T) {
	resolve := func(w *world, op operation.Operation, keep string) error {
		_, err := w.ResolveOperation(w.Context(), lifecycle.ResolveOperation{ID: op.ID, Keep: keep, Caller: "operator/test"})
		return err
	}
	lost := func(w *world, vm model.VM) {
		w.record(vm.ID, func(vm *model.VM) { vm.HA, vm.Operation, vm.Holder = false, "", "" })
	}
	withCopies(t, true, func(w *world, vm model.VM, source string, op operation.Operation) {
		if start, live := w.Store.Snapshot().LiveOperationOf(vm.ID); live {
			refusedAs(t, "while it is started", resolve(w, op, "target"), lead.Busy, "")
			w.Logf("%s", start.Kind)
		}
		lost(w, vm)
		refusedAs(t, "none", resolve(w, op, "none"), lead.Invalid, "whose disks")
		_, err := w.DeleteVM(w.Context(), lifecycle.DeleteVM{VM: vm.ID})
		refusedAs(t, "a deletion", err, lead.Conflict, "has copies of its disks which may be the last")
		if err := resolve(w, op, "target"); err != nil {
			t.Fatal(err)
		}
		after, disk := w.vm("web1"), w.disk("web1-root")
		if after.Copies != nil || len(disk.Volume.Nodes) != 1 || disk.Volume.Nodes[0] != other(source) {
			t.Errorf("record %+v, disk on %v", after, disk.Volume.Nodes)
		}
		want := "where its disks were, volumes may be left, " + disk.Volume.Name + " of pool fast: remove them by hand"
		if !after.Condition.Is(model.VolumesLeft) || !strings.Contains(after.Condition.Text, want) {
			t.Errorf("condition %q, want %q", after.Condition.Text, want)
		}
	})
	withCopies(t, true, func(w *world, vm model.VM, source string, op operation.Operation) {
		lost(w, vm)
		if err := resolve(w, op, "source"); err != nil {
			t.Fatal(err)
		}
		w.wantLeft(source + " web1-root")
		if after := w.vm("web1"); after.Copies != nil {
			t.Errorf("record %+v", after)
		}
	})
	withCopies(t, true, func(w *world, vm model.VM, _ string, op operation.Operation) {
		lost(w, vm)
		w.record(vm.ID, func(vm *model.VM) { vm.Copies.Whole = false })
		refusedAs(t, "copies that may be incomplete", resolve(w, op, "target"), lead.Conflict, "may be incomplete")
	})
}

// Of a VM that was lost after its hand-over the copies are those of the source: to keep that side makes them its disks.
func TestSomebodyDecidesAboutTheDisksOfASource(t *testing.T) {
	for keep, used := range map[string]bool{"source": true, "target": false} {
		withCopies(t, true, func(w *world, vm model.VM, source string, op operation.Operation) {
			w.record(vm.ID, func(vm *model.VM) { vm.HA, vm.Operation, vm.Holder, vm.Copies.Source = false, "", "", true })
			_, err := w.DeleteVM(w.Context(), lifecycle.DeleteVM{VM: vm.ID})
			refusedAs(t, "a deletion", err, lead.Conflict, "has copies of its disks which may be the last")
			var refused *lead.Error
			if errors.As(err, &refused) && !strings.Contains(refused.NextStep, "--keep target' or '--keep source'") {
				t.Errorf("next step %q", refused.NextStep)
			}
			_, err = w.ResolveOperation(w.Context(), lifecycle.ResolveOperation{ID: op.ID, Keep: keep, Caller: "operator/test"})
			if err != nil {
				t.Fatal(err)
			}
			if on := w.disk("web1-root").Volume.Nodes[0]; w.vm("web1").Copies != nil || (on == other(source)) != used {
				t.Errorf("keep %s: its disk is on %s, record %+v", keep, on, w.vm("web1"))
			}
			if !used {
				w.wantLeft(source + " web1-root")
			}
		})
	}
}
