package control

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// What a device says makes Berth panic once. The next attempt proves that the node is off, and the VM restarts.
func TestAFencingThatPanicsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		var times atomic.Int32
		d.mu.Lock()
		d.off = func() {
			if times.Add(1) == 1 {
				panic("poison")
			}
		}
		d.mu.Unlock()
		w.silence(vm.Holder)
		time.Sleep(model.DefaultFenceAfter + 10*time.Minute)
		if after := w.guest(vm.ID); after.Holder == vm.Holder || after.Holder == "" || times.Load() != 2 {
			t.Errorf("after %d attempts: %+v, the VM %+v", times.Load(), w.host(vm.Holder).Fencing, after)
		}
	})
}

func TestACopyWhoseSuspendingPanicsStopsNobodyElses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		first, second := w.on("n1", "web1", 1), w.on("n1", "web2", 1)
		time.Sleep(time.Minute)
		var other atomic.Int32
		w.agents.does(func(_ string, task lead.Task) error {
			if task.Suspend != nil && task.Suspend.VM == first.ID {
				panic("poison")
			}
			if task.Suspend != nil {
				other.Add(1)
			}
			return nil
		})
		w.shows("n2", first, nil)
		w.shows("n2", second, nil)
		time.Sleep(10 * time.Second)
		if other.Load() == 0 || w.guest(first.ID).Condition.Text == "" {
			t.Errorf("the other one's copy was suspended %d times; this one is told of as %q", other.Load(), w.guest(first.ID).Condition.Text)
		}
	})
}
