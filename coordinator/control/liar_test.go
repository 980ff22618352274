package control

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/model"
	"berth/shared/units"
)

// atOnce is what a node may cause to be committed at once by what it says unasked; then it is one a second.
const atOnce = 1024

// left is what is left of that for a node. Nothing is after it was asked.
func (w *world) left(node string) (left int) {
	for w.Spend(node) {
		left++
	}
	return left
}

// A node says all the time that its guest has other disks. Each time that would be written down, with an event of its own.
func TestAGuestThatChangesAllTheTimeIsWrittenDownSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.changedTo(vm, diskAt("vda", image))
		if had := w.left(vm.Holder); had < atOnce-5 {
			t.Fatalf("the test is worth nothing: %d commits were left", had)
		}
		before := w.guest(vm.ID).Revision
		const flips = 60
		for i := range flips {
			w.runsWith(vm, diskAt("vda", []string{overlay, attached}[i%2]))
			w.facts.mu.Lock()
			w.facts.changed = append(w.facts.changed, model.ToldDevices{VM: vm.ID, Node: vm.Holder, Epoch: vm.Epoch})
			w.facts.mu.Unlock()
			time.Sleep(500 * time.Millisecond)
		}
		if wrote := len(w.told("vm.changed-beside")); wrote > flips/2+2 {
			t.Errorf("%d of %d changes within %d seconds were written down", wrote, flips, flips/2)
		}
		w.changedTo(vm, diskAt("vda", overlay))
		time.Sleep(5 * time.Second)
		if is := w.guest(vm.ID); is.Revision == before || len(is.Edits()) != 1 {
			t.Errorf("what it has in the end is not written down: %+v", is.Drift)
		}
	})
}

// A node shows others' guests and hides them again. That is told at its own expense: what happens to theirs later is written down as ever.
func TestANodeThatLiesAboutOthersGuestsTakesNothingFromThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		available := 64 * units.GiB
		w.facts.change("n1", func(f *model.NodeFacts) { f.Memory, f.Available = available, &available })
		var vms []model.VM
		for i := range 10 {
			vms = append(vms, w.on("n1", fmt.Sprint("web", i), 1))
		}
		time.Sleep(time.Minute)
		for range 300 {
			for _, vm := range vms {
				w.shows("n2", vm, nil)
			}
			time.Sleep(2 * time.Second)
			for _, vm := range vms {
				w.facts.change("n2", without(vm.ID))
			}
			time.Sleep(3 * time.Second)
		}
		if told := len(w.told("vm.runs-twice")); told < 300 {
			t.Errorf("the test is worth nothing: it was told %d times", told)
		}
		if left := w.left("n2"); left > atOnce/2 {
			t.Errorf("the liar has %d commits left", left)
		}
		if left := w.left("n1"); left < atOnce-20 {
			t.Errorf("of those of the node that it lies about %d are left", left)
		}
	})
}
