package control

import (
	"testing"
	"testing/synctest"

	"berth/coordinator/control/adoption"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
)

// An earlier release has bound a VM to a node that does not have its disk, because somebody's migration to it had failed. Who knows where
// the disk is starts the guest there with virsh, which only works where it is, and has Berth adopt it: from then on it stays there.
func TestAVMThatIsBoundToTheWrongNodeIsFreedByAdoptingIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.changedTo(vm, diskAt("vda", image))
		wrong, right := vm.Holder, other(vm.Holder)
		w.stops(vm)
		if is := w.guest(vm.ID); is.Bound != wrong || is.Holder != "" {
			t.Fatalf("it is bound to %q and on %q", is.Bound, is.Holder)
		}
		w.foreign(right, vm.ID, vm.Name, func(d *model.Domain) { d.Persistent, d.Devices = false, []model.Device{diskAt("vda", image)} })
		rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{Domains: []string{vm.Name}, Caller: "operator/test"})
		if err != nil || len(rows) != 1 || rows[0].Problem != "" {
			t.Fatalf("%+v, %v", rows, err)
		}
		synctest.Wait()
		w.show(w.guest(vm.ID))
		w.changedTo(w.guest(vm.ID), diskAt("vda", image)) // its node tells the new mark, and what it has
		is := w.guest(vm.ID)
		if is.Bound != right || is.Holder != right {
			t.Fatalf("adopted on %s it is bound to %q and on %q", right, is.Bound, is.Holder)
		}
		w.stops(is)
		start := lifecycle.StartVM{Name: vm.Name, Node: wrong, RequestID: w.NewID(), Caller: "operator/test"}
		if _, err := w.StartVM(w.Context(), start); err == nil {
			t.Error("it is started on the node that does not have its disk")
		}
		if with := w.againWith(is); with != "" || w.guest(vm.ID).Holder != right {
			t.Errorf("started again it is on %q, with %q", w.guest(vm.ID).Holder, with)
		}
	})
}
