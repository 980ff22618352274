package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/shared/units"
)

// FAULTS.md, W17. A guest whose pool has no space left stands still, and the record says which pool. It runs on once there is room, and
// not before; one that somebody has paused does not.
func TestAGuestRunsOnWhenItsPoolHasRoomAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		vm := w.running("db")
		pool := func(free units.Bytes) {
			w.facts.change(vm.Holder, func(f *model.NodeFacts) {
				f.Pools = []model.PoolFacts{{Name: "fast", Active: true, Capacity: 100 * units.GiB, Available: free, Path: "/srv/fast"}}
			})
		}
		stands := func(reason string) {
			w.edit(vm.Holder, vm, func(d *model.Domain) {
				d.State, d.Reason, d.Sources = model.DomainPaused, reason, []model.DiskSource{{Path: "/srv/fast/db.qcow2"}}
			})
		}
		unpaused := func() int { return len(w.agents.performed(func(t lead.Task) bool { return t.Unpause != nil })) }
		pool(units.GiB)
		stands(model.ReasonIOError)
		time.Sleep(time.Minute)
		condition := w.guest(vm.ID).Condition
		if !strings.Contains(condition.Text, "when pool fast there is less than 95 % full it runs on by itself") || unpaused() > 0 {
			t.Errorf("without room: %q, let run %d times", condition.Text, unpaused())
		}
		pool(50 * units.GiB)
		stands("user")
		time.Sleep(time.Minute)
		if unpaused() > 0 {
			t.Error("what somebody has paused is let run")
		}
		stands(model.ReasonIOError)
		time.Sleep(50 * time.Second)
		if unpaused() != 1 || len(w.told("vm.has-room")) != 1 {
			t.Errorf("with room it is let run %d times, which is told %d times", unpaused(), len(w.told("vm.has-room")))
		}
		time.Sleep(10 * time.Hour) // it stands still for another reason
		if n := unpaused(); n < 5 || n > 20 {
			t.Errorf("one that stands still again and again is let run %d times", n)
		}
		w.edit(vm.Holder, vm, func(d *model.Domain) { d.State, d.Reason = model.DomainRunning, "unpaused" })
		time.Sleep(time.Minute)
		if after := w.guest(vm.ID); after.Condition.Text != "" {
			t.Errorf("when it runs: %q", after.Condition.Text)
		}
	})
}

// A guest that has crashed and whose memory is kept does not count as recorded. One that is to be highly available makes way.
func TestAGuestThatHasCrashedIsNotAsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		plain, available := w.running("plain"), w.running("available")
		w.record(available.ID, func(vm *model.VM) { vm.HA = true })
		for _, vm := range []model.VM{plain, available} {
			w.edit(vm.Holder, vm, func(d *model.Domain) { d.State, d.Reason = model.DomainCrashed, "guest panicked" })
		}
		time.Sleep(30 * time.Second)
		if text := w.guest(plain.ID).Condition.Text; !strings.Contains(text, "its guest has crashed on ") ||
			!strings.Contains(text, "'berth vm stop plain' ends that") {
			t.Errorf("without high availability: %q", text)
		}
		ended := w.agents.performed(func(t lead.Task) bool { return t.Crashed != nil })
		if len(ended) == 0 || ended[0].task.Crashed.VM != available.ID || ended[0].task.Crashed.Epoch != available.Epoch {
			t.Errorf("ended: %+v", ended)
		}
		for _, one := range ended {
			if one.task.Crashed.VM == plain.ID {
				t.Error("the memory of one without high availability is not kept")
			}
		}
	})
}
