package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// pauseHA stores that high availability is paused until a time, or that it goes on.
func (w *world) pauseHA(until time.Time, on bool) {
	stored := ""
	if on {
		stored = model.HAPause{Reason: "new switches", Caller: "ann", Since: time.Now(), Until: until}.Stored()
	}
	w.store(state.Command{Meta: map[string]string{model.MetaHAPause: stored}})
}

func TestWhileHAIsPausedNothingIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		crashed := w.available("web2")
		w.pauseHA(time.Now().Add(time.Hour), true)
		w.silence(vm.Holder)
		w.facts.change(crashed.Holder, func(f *model.NodeFacts) { f.Domains = nil })
		time.Sleep(30 * time.Minute)
		held, known := w.FenceHeld(vm.Holder)
		if d.asked() != 0 || !known || !strings.Contains(held.Why, "paused by ann: new switches") || held.Next != model.HAResume {
			t.Fatalf("asked %d times; held %t: %+v", d.asked(), known, held)
		}
		time.Sleep(40 * time.Minute) // it goes on by itself
		if after := w.guest(vm.ID); after.Holder == vm.Holder || after.Holder == "" || d.asked() != 1 {
			t.Errorf("when it goes on: asked %d times, %+v", d.asked(), after)
		}
	})
}

// A watchdog is armed as long as a VM that is to be highly available runs on its node. The record says that it proves nothing before
// it is disarmed, and what is heard of an armed one counts again only when the node has said that it was disarmed.
func TestAWatchdogThatNothingNeedsIsDisarmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		w.device(vm.Holder, model.FenceDevice{Method: model.FenceWatchdog})
		armed := func(is time.Duration) {
			w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Watchdog, f.HeardAt = is, time.Now() })
			time.Sleep(5 * time.Second)
		}
		w.Leased(vm.Holder, true)
		armed(time.Minute)
		if is := w.host(vm.Holder); is.Watchdog != time.Minute {
			t.Fatalf("armed, and the record says %s", is.Watchdog)
		}
		w.pauseHA(time.Time{}, true)
		time.Sleep(5 * time.Second)
		if is := w.host(vm.Holder); is.Watchdog != 0 {
			t.Fatalf("nothing needs it, and the record says %s", is.Watchdog)
		}
		w.Leased(vm.Holder, false)
		w.pauseHA(time.Time{}, false)
		w.Leased(vm.Holder, true)
		armed(time.Minute) // older than what it was told
		if is := w.host(vm.Holder); is.Watchdog != 0 {
			t.Fatalf("it may be disarmed, and the record says %s", is.Watchdog)
		}
		armed(0)
		armed(time.Minute)
		if is := w.host(vm.Holder); is.Watchdog != time.Minute {
			t.Errorf("armed again, and the record says %s", is.Watchdog)
		}
	})
}
