package control

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/volumes"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/shared/units"
)

func TestADeletedVMTakesItsVolumesAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		vm := w.began("p-fast")
		_, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID})
		refusedAs(t, "while it runs", err, lead.Conflict, "is not stopped")
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.show(vm)
		_, err = w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID})
		refusedAs(t, "while its node shows it", err, lead.Conflict, "a domain with the UUID")
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains = nil })
		op, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID, RequestID: "d"})
		if err != nil || op.ID == "" {
			t.Fatal(op, err)
		}
		synctest.Wait()
		if done := w.operation(op.ID); done.Result != operation.Done || w.vm("web1").ID != "" || w.disk("web1-root").ID != "" {
			t.Errorf("%+v", done)
		}
		w.wantLeft()
		if again, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID, RequestID: "d"}); err != nil || again.ID != op.ID {
			t.Errorf("again: %s, %v", again.ID, err)
		}
	})
}

func TestAVMThatNeverRanGoesWithTheDiskThatWasNeverMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		added, err := w.AddVM(t.Context(), lifecycle.AddVM(disked("p-wide")))
		if err != nil || len(added.VM.Disks) != 1 || w.disk("web1-root").ID != added.VM.Disks[0] {
			t.Fatalf("%+v, %v", added.VM, err)
		}
		op, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: added.VM.ID, RequestID: "d"})
		if err != nil || op.ID != "" || w.vm("web1").ID != "" || w.disk("web1-root").ID != "" {
			t.Errorf("%+v, %v, disk %+v", op, err, w.disk("web1-root"))
		}
		if op, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: added.VM.ID, RequestID: "d"}); err != nil || op.ID != "" {
			t.Errorf("again: %+v, %v", op, err)
		}
		w.wantLeft()
	})
}

func TestDisksThatAreKeptOutliveTheirVM(t *testing.T) {
	for name, keep := range map[string]bool{"by request": true, "by themselves": false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer w.lose()
			w.put(pools()...)
			vm := w.halted("p-wide")
			if disk := w.disk("web1-root"); !keep {
				disk.Settings["keep"] = "true"
				w.put(disk)
			}
			op, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID, KeepDisks: keep})
			if err != nil || op.ID != "" || w.vm("web1").ID != "" || w.disk("web1-root").Volume.Doomed {
				t.Errorf("%s: %+v, %v", name, op, err)
			}
			w.wantLeft("shared web1-root")
			if err := w.DeleteDisk(t.Context(), volumes.DeleteDisk{Disk: w.disk("web1-root").ID}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			w.wantLeft()
		})
	}
}

// The seed image of cloud-init has no record: it goes where the first disk goes, and with its VM also when the disk stays.
func TestTheSeedGoesWithItsVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		request := disked("p-fast")
		request.VM.Spec.UserData = "#cloud-config"
		w.must(request)
		synctest.Wait()
		vm := w.vm("web1")
		w.show(vm)
		w.wantLeft(vm.Holder+" web1-root", vm.Holder+" web1-seed")
		if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder), CopyStorage: true}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.wantLeft(other(vm.Holder)+" web1-root", other(vm.Holder)+" web1-seed")
		if orders := w.agents.ordered(operation.ActPrepare); orders[0].Spec.UserData == "" {
			t.Error("the target cannot write the seed: it has no user data")
		}
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains = nil })
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		op, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID, KeepDisks: true})
		if err != nil || op.Source != other(vm.Holder) {
			t.Fatal(op, err)
		}
		synctest.Wait()
		if disk := w.disk("web1-root"); w.vm("web1").ID != "" || disk.Volume == nil || disk.Volume.Doomed {
			t.Errorf("disk %+v", disk)
		}
		w.wantLeft(other(vm.Holder) + " web1-root")
	})
}

func TestADeletionWaitsForItsNodeAndCanBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if silent.Load() {
				return nil
			}
			return obedient(order)
		})
		defer w.lose()
		w.put(pools()...)
		vm := w.halted("p-fast")
		silent.Store(true)
		op, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if w.operation(op.ID).Phase != operation.Clearing || w.vm("web1").ID == "" {
			t.Fatalf("did not wait: %+v", w.operation(op.ID))
		}
		if _, err := w.CancelOperation(t.Context(), op.ID, "operator/test"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if ended := w.operation(op.ID); ended.Result != operation.Failed {
			t.Fatalf("cancelled: %+v", ended)
		}
		_, err = w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"})
		refusedAs(t, "a start with half a disk", err, lead.Conflict, `disk "web1-root" of VM "web1" is being removed`)
		silent.Store(false)
		if _, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if w.vm("web1").ID != "" {
			t.Error("it is still there")
		}
		w.wantLeft()
	})
}

func TestDisksInUseAreNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		vm := w.halted("p-wide")
		disk := w.disk("web1-root")
		refusedAs(t, "of a VM", w.DeleteDisk(t.Context(), volumes.DeleteDisk{Disk: disk.ID}), lead.Conflict, `in use by VM "web1"`)
		refusedAs(t, "none", w.DeleteDisk(t.Context(), volumes.DeleteDisk{Disk: "nope"}), lead.NotFound, "no disk")
		w.record(vm.ID, func(vm *model.VM) { vm.Disks = nil })
		for _, node := range []string{"n1", "n2", "n3"} {
			w.agents.away[node] = true
		}
		refusedAs(t, "by a silent "+
			"node", w.DeleteDisk(t.Context(), volumes.DeleteDisk{Disk: disk.ID, RequestID: "d"}), lead.Unavailable, "does not answer")
		if !w.disk("web1-root").Volume.Doomed {
			t.Error("something may still use it")
		}
		w.agents.away = map[string]bool{}
		for range 2 {
			if err := w.DeleteDisk(t.Context(), volumes.DeleteDisk{Disk: disk.ID, RequestID: "d"}); err != nil {
				t.Fatal(err)
			}
		}
		w.wantLeft()
		for _, node := range []string{"n1", "n2", "n3"} {
			w.facts.change(node, func(f *model.NodeFacts) { f.Pools = nil })
		}
		lost := model.Resource{
			ID: "d-lost", Kind: model.KindDisk, Name: "lost",
			Volume: &model.Volume{Pool: "p-wide", Name: "x", Format: "qcow2", Capacity: units.GiB},
		}
		w.put(lost)
		refusedAs(t, "of a pool that vanished", w.DeleteDisk(t.Context(), volumes.DeleteDisk{Disk: "d-lost"}), lead.Unavailable, "pool wide")
	})
}
