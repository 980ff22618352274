package control

import (
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/units"
)

// Disks that are volumes are followed as files are: the next start uses what ran last, where the volume is.
func TestVolumesThatAreChangedBesideBerth(t *testing.T) {
	volume := func(key, pool, name string) model.Device {
		return model.Device{Kind: "disk", Key: key, Source: model.DiskSource{Pool: pool, Volume: name}, Format: "qcow2"}
	}
	for name, tc := range map[string]struct {
		live  []model.Device
		with  string
		bound bool
	}{
		"as recorded": {live: []model.Device{volume("vda", "wide", "root"), volume("vdb", "wide", "data")}},
		"another volume of a shared pool": {
			live: []model.Device{volume("vda", "wide", "root"), volume("vdb", "wide", "data2")}, with: "vdb wide/data2",
		},
		"another volume of a local pool": {
			live: []model.Device{volume("vda", "wide", "root"), volume("vdb", "near", "data")}, with: "vdb near/data", bound: true,
		},
		"taken away": {live: []model.Device{volume("vda", "wide", "root")}, with: "vdb "},
		"attached": {
			live: []model.Device{volume("vda", "wide", "root"), volume("vdb", "wide", "data"), volume("vdc", "near", "more")},
			with: "vdc near/more", bound: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				w.store(state.RaiseLevel(state.FeatureLevel))
				w.put(model.Resource{ID: "p1", Kind: model.KindPool, Name: "wide", Settings: map[string]string{
					model.SettingScope: string(model.PoolShared),
				}})
				for _, one := range w.Store.Snapshot().Nodes() {
					w.facts.change(one.ID, func(f *model.NodeFacts) {
						f.PoolsKnown, f.Pools = true, []model.PoolFacts{
							{Name: "near", Active: true, Path: "/near"}, {Name: "wide", Active: true, Path: "/wide"},
						}
					})
				}
				disk := func(name string) model.Disk {
					return model.Disk{Pool: "wide", Volume: name, Format: "qcow2", Bus: "virtio"}
				}
				started, err := w.StartVM(w.Context(), lifecycle.StartVM{
					Name: "web1", RequestID: "web1", Caller: "operator/test",
					VM: &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Disks: []model.Disk{disk("root"), disk("data")}}},
				})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				vm := w.guest(started.VM.ID)
				w.show(vm)
				w.changedTo(vm, tc.live...)
				time.Sleep(2 * time.Second)
				if is := w.guest(vm.ID); (is.Bound != "") != tc.bound || (is.Drift != nil) != (tc.with != "") {
					t.Errorf("it is bound to %q, and its record has %+v", is.Bound, is.Drift)
				}
				w.stops(vm)
				if with := w.againWith(vm); with != tc.with {
					t.Errorf("its next start has %q beside its record, wanted %q", with, tc.with)
				}
				if again := w.guest(vm.ID); tc.bound && again.Holder != vm.Holder {
					t.Errorf("it is on %s, its disk on %s", again.Holder, vm.Holder)
				}
			})
		})
	}
}
