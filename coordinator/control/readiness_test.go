package control

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/model"
	"berth/shared/units"
)

// What would not work in an emergency is known before: devices are asked now and then although nothing is wrong.
func TestWhatNothingWouldProve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		says := func(when, why, next string) {
			t.Helper()
			node := w.host("n1")
			gotWhy, gotNext := w.Unprovable(&node)
			if why == "" && gotWhy != "" || !strings.Contains(gotWhy, why) || !strings.Contains(gotNext, next) {
				t.Errorf("%s: %q; %q", when, gotWhy, gotNext)
			}
		}
		set := func(change func()) {
			d.mu.Lock()
			change()
			d.mu.Unlock()
		}
		time.Sleep(time.Minute)
		says("a device that answers", "", "")
		set(func() { d.fail = errors.New("no route to host") })
		time.Sleep(61 * time.Minute)
		says("one that does not", "its fence device fence_x plug=n1 does not answer (no route to host)", "berth node fence node1 --check")
		set(func() { d.fail, d.dark = nil, true })
		time.Sleep(61 * time.Minute)
		says("one of another machine", "says that it is off, and it answers", "--check")
		w.device("n1", supply("n1", "n1/b"))
		time.Sleep(time.Minute)
		says("a power supply that has failed", "", "")
		set(func() { d.dark = false })
		w.device("n1", model.FenceDevice{})
		says("none", "nothing can prove that it is off", "'berth node set node1 --fence METHOD'")
		w.device("n1", model.FenceDevice{Method: model.FenceManual})
		says("people", "only somebody's word", "")
		w.device("n1", model.FenceDevice{Method: model.FenceWatchdog})
		says("a watchdog that is not armed", "its watchdog is not armed", "berth-agent doctor")
	})
}

func TestWhereAVMWouldBeRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.available("web1")
		if why := w.Elsewhere(w.Store.Snapshot(), vm); why != "" {
			t.Errorf("two other nodes are empty: %s", why)
		}
		for _, id := range []string{"n1", "n2", "n3"} {
			if id != vm.Holder {
				w.facts.change(id, func(f *model.NodeFacts) { f.Memory = 64 * units.MiB })
			}
		}
		if why := w.Elsewhere(w.Store.Snapshot(), vm); !strings.Contains(why, "memory") {
			t.Errorf("the other nodes are too small: %q", why)
		}
	})
}
