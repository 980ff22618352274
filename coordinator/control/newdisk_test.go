package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/volumes"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

// attachingNew is the request to give a VM a disk that is made for it.
func (w *world) attachingNew(vm model.VM, name, pool string, size units.Bytes) lifecycle.ActOnVM {
	w.Helper()
	made := root(pool, size)
	made.ID, made.Name, made.CreatedAt = w.NewID(), name, w.Now()
	request := lifecycle.ActOnVM{Kind: operation.Attach, VM: vm.ID, NewDisk: made, RequestID: w.NewID(), Caller: "operator/alice"}
	if vm.Holder != "" {
		baseline, err := drift.Baseline(w.Store.Snapshot(), &vm)
		if err != nil {
			w.Fatal(err)
		}
		of, _ := w.Store.Snapshot().Resource(pool)
		edit, err := (&drift.Guest{VM: &vm, Baseline: baseline}).AttachDisk(model.Disk{
			Pool: model.PoolSettingsOf(&of).Source, Volume: model.VolumeName(made.ID, model.DiskFormat), Format: model.DiskFormat, Bus: "virtio",
		})
		if err != nil {
			w.Fatal(err)
		}
		request.Edits = []model.DeviceEdit{edit}
	}
	return request
}

// withPools is a VM that runs with a root disk, in a world that has two pools.
func withPools(t *testing.T, script func(operation.Order) *operation.Answer) (*world, model.VM) {
	w := newWorld(t, obedient)
	w.put(pools()...)
	w.store(state.RaiseLevel(state.FeatureLevel))
	for _, node := range w.Store.Snapshot().Nodes() {
		w.facts.change(node.ID, func(f *model.NodeFacts) { f.PoolsKnown = true })
	}
	vm := w.began("p-fast")
	w.answer(script)
	return w, vm
}

// A disk is made for a guest that runs: in its pool, in its guest, and in its record, so that the next start has it under the same name.
func TestANewDiskOfAGuestThatRuns(t *testing.T) {
	for pool, shared := range map[string]bool{"p-fast": false, "p-wide": true} {
		synctest.Test(t, func(t *testing.T) {
			w, vm := withPools(t, obedient)
			defer w.lose()
			op, err := w.ActOnVM(t.Context(), w.attachingNew(vm, "web1-disk1", pool, 20*units.GiB))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			order, disk, is := w.agents.ordered(operation.ActAmend)[0], w.disk("web1-disk1"), w.guest(vm.ID)
			if len(order.Volumes) != 1 || order.Volumes[0].Capacity != 20*units.GiB || order.Edits[0].Key != "vdb" {
				t.Errorf("ordered %+v, %+v", order.Volumes, order.Edits)
			}
			if w.operation(op.ID).Result != operation.Done || disk.Volume == nil || disk.Volume.Doomed || disk.Volume.Pool != pool ||
				(len(disk.Volume.Nodes) == 0) != shared || !slices.Contains(is.Disks, disk.ID) || is.Bound != "" {
				t.Errorf("%+v: disk %+v of %v, bound to %q", w.operation(op.ID), disk.Volume, is.Disks, is.Bound)
			}
			if err := w.DeleteDisk(t.Context(), volumes.DeleteDisk{Disk: disk.ID}); err == nil {
				t.Error("a disk of a VM could be deleted")
			}
			w.stops(is)
			source := disk.Volume.Name
			if with := w.againWith(w.guest(vm.ID)); !strings.HasPrefix(with, "vdb ") || !strings.HasSuffix(with, source) {
				t.Errorf("started with %q", with)
			}
			starts := w.agents.ordered(operation.ActStart)
			last := starts[len(starts)-1]
			if len(last.Spec.Disks) != 1 || len(last.Volumes) != 0 {
				t.Errorf("its spec has %+v, and the start makes %+v", last.Spec.Disks, last.Volumes)
			}
		})
	}
}

// What fails leaves neither a record nor a link; what nobody can tell leaves a record with which it can be removed.
func TestANewDiskThatIsNotAttached(t *testing.T) {
	doubt := func(order operation.Order) *operation.Answer {
		if order.Action == operation.ActAmend {
			return &operation.Answer{Outcome: operation.OutcomeAmbiguous, Error: "libvirt is away"}
		}
		return obedient(order)
	}
	for name, c := range map[string]struct {
		script func(operation.Order) *operation.Answer
		stays  bool
		says   string
	}{
		"failed":  {answers(operation.ActAmend, operation.OutcomeFailed, model.DomainRunning), false, "it broke"},
		"refused": {answers(operation.ActAmend, operation.OutcomeRefused, model.DomainRunning), true, "'berth disk delete web1-disk1' removes"},
		"in doubt": {
			doubt, true, "'berth disk delete web1-disk1' removes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *world
				w, vm := withPools(t, func(order operation.Order) *operation.Answer {
					if order.Action == operation.ActAmend {
						if made := w.disk("web1-disk1"); made.Volume == nil || !made.Volume.Doomed {
							t.Errorf("before its end the disk is %+v", made.Volume)
						}
					}
					return c.script(order)
				})
				defer w.lose()
				op, err := w.ActOnVM(t.Context(), w.attachingNew(vm, "web1-disk1", "p-fast", units.GiB))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(operation.AmendPatience + time.Minute)
				ended, is, disk := w.operation(op.ID), w.guest(vm.ID), w.disk("web1-disk1")
				if ended.Result != operation.Failed || !strings.Contains(ended.Message, c.says) || len(is.Disks) != 1 || is.Drift != nil {
					t.Errorf("%+v; it has %v, %+v", ended, is.Disks, is.Drift)
				}
				if (disk.ID != "") != c.stays || c.stays && !disk.Volume.Doomed {
					t.Errorf("the record is %+v", disk)
				}
				if c.stays {
					w.answer(obedient)
					if err := w.DeleteDisk(t.Context(), volumes.DeleteDisk{Disk: disk.ID}); err != nil || w.disk("web1-disk1").ID != "" {
						t.Errorf("it cannot be removed: %v", err)
					}
				}
			})
		})
	}
}

// The next leader goes on with the same order, and one disk comes of it.
func TestANewDiskOutlivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, vm := withPools(t, func(operation.Order) *operation.Answer { return nil })
		op, err := w.ActOnVM(t.Context(), w.attachingNew(vm, "web1-disk1", "p-fast", units.GiB))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.lose()
		w.answer(obedient)
		w.lead(2)
		defer w.lose()
		time.Sleep(time.Minute)
		if ended := w.operation(op.ID); ended.Result != operation.Done || len(w.guest(vm.ID).Disks) != 2 || w.disk("web1-disk1").Volume.Doomed {
			t.Errorf("%+v, %v", ended, w.guest(vm.ID).Disks)
		}
	})
}

func TestANewDiskIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, vm := withPools(t, obedient)
		defer w.lose()
		try := func(what, name, pool string, size units.Bytes, code lead.Code, saying string) {
			t.Helper()
			_, err := w.ActOnVM(t.Context(), w.attachingNew(vm, name, pool, size))
			refusedAs(t, what, err, code, saying)
		}
		try("a name that is taken", "web1-root", "p-fast", units.GiB, lead.Exists, `disk "web1-root" exists already`)
		try("more than the pool has", "new", "p-fast", 5000*units.GiB, lead.Conflict, "pool fast of")
		w.facts.change(vm.Holder, func(f *model.NodeFacts) {
			f.Pools = slices.DeleteFunc(slices.Clone(f.Pools), func(p model.PoolFacts) bool { return p.Name == "wide" })
		})
		try("a pool that its node has not", "new", "p-wide", units.GiB, lead.Conflict, "cannot use pool wide: the node has no such pool")
		dry := w.attachingNew(vm, "new", "p-fast", units.GiB)
		dry.DryRun = true
		if op, err := w.ActOnVM(t.Context(), dry); err != nil || op.ID != "" || w.disk("new").ID != "" {
			t.Errorf("a dry run: %+v, %v", op, err)
		}
		if len(w.agents.ordered(operation.ActAmend)) != 0 {
			t.Error("something was ordered")
		}
	})
}

// Two that are asked for at a time do not get the same room.
func TestNewDisksShareTheRoomOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, vm := withPools(t, obedient)
		defer w.lose()
		other := w.on(vm.Holder, "web2", 1)
		w.answer(func(operation.Order) *operation.Answer { return nil })
		if _, err := w.ActOnVM(t.Context(), w.attachingNew(vm, "a", "p-fast", 60*units.GiB)); err != nil {
			t.Fatal(err)
		}
		_, err := w.ActOnVM(t.Context(), w.attachingNew(other, "b", "p-fast", 60*units.GiB))
		refusedAs(t, "the rest", err, lead.Conflict, "left to promise")
	})
}

func TestANewDiskOfAVMThatDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, vm := withPools(t, obedient)
		defer w.lose()
		w.stops(vm)
		vm = w.guest(vm.ID)
		op, err := w.ActOnVM(t.Context(), w.attachingNew(vm, "web1-disk1", "p-fast", units.GiB))
		if err != nil || op.Result != operation.Done || w.disk("web1-disk1").Volume != nil || len(w.guest(vm.ID).Disks) != 2 {
			t.Fatalf("%+v, %v", op, err)
		}
		w.againWith(vm)
		starts := w.agents.ordered(operation.ActStart)
		if last := starts[len(starts)-1]; len(last.Spec.Disks) != 2 || len(last.Volumes) != 1 {
			t.Errorf("started with %+v, and made %+v", last.Spec.Disks, last.Volumes)
		}

		// An empty disk must not take the place of the one that it boots from, nor be lost on one with a document.
		for name, spec := range map[string]model.VMSpec{
			"would boot from the empty disk": {Memory: units.GiB, VCPUs: 1, Disks: []model.Disk{{Path: image, Format: "qcow2", Bus: "virtio"}}},
			"has the disks of its document":  {Memory: units.GiB, VCPUs: 1, XML: "<domain type='kvm'><name>d</name></domain>"},
		} {
			plain := model.VM{ID: w.NewID(), Name: fmt.Sprintf("plain%d", len(name)), Desired: model.Stopped, Spec: spec}
			w.store(state.Command{VMs: []model.VM{plain}}, state.Expectation{Table: state.VMs, ID: plain.ID})
			_, err := w.ActOnVM(t.Context(), w.attachingNew(plain, "other", "p-fast", units.GiB))
			refusedAs(t, name, err, lead.Conflict, name)
		}
	})
}

// What was attached is detached again: the guest and the next start lose it, and its content stays as a disk of no VM.
func TestANewDiskIsDetachedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, vm := withPools(t, obedient)
		defer w.lose()
		if _, err := w.ActOnVM(t.Context(), w.attachingNew(vm, "web1-disk1", "p-fast", units.GiB)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		is := w.guest(vm.ID)
		edit := is.Drifted()[0]
		edit.Was, edit.Is, edit.Source, edit.XML = edit.Is, "", model.DiskSource{}, ""
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{
			Kind: operation.Detach, VM: vm.ID, Edits: []model.DeviceEdit{edit}, Caller: "operator/alice",
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if is := w.guest(vm.ID); len(is.Disks) != 1 || is.Drift != nil || w.disk("web1-disk1").Volume == nil {
			t.Errorf("it has %v, %+v", is.Disks, is.Drift)
		}
	})
}

// A document that names a disk of another VM is refused, and says whose it is, as an attachment is.
func TestADocumentWithADiskOfAnotherVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		with := func(file string) *model.VM {
			return &model.VM{ID: w.NewID(), Name: "edited", LastNode: vm.Holder, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, XML: "<domain>" +
				"<devices><disk type='file' device='disk'><source file='" + file + "'/><target dev='vda' bus='virtio'/></disk></devices></domain>"}}
		}
		before := with("/srv/own")
		refusedAs(t, "of a VM that runs", w.DocumentUnused(before, with(image)), lead.Conflict, "web1")
		w.stops(vm)
		refusedAs(t, "of one that is off", w.DocumentUnused(before, with(image)), lead.Conflict, `is one of VM "web1"`)
		if err := w.DocumentUnused(before, with("/srv/own")); err != nil {
			t.Errorf("its own: %v", err)
		}
	})
}
