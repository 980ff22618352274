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
		tried := func(want string) {
			t.Helper()
			node := w.host("n1")
			if is := w.PowerTried(&node); !strings.Contains(is, "asked for the power state at 20") || !strings.Contains(is, want) {
				t.Errorf("it was tried: %q, want %q", is, want)
			}
		}
		tried("UTC, and it answered")
		set(func() { d.fail = errors.New("no route to host") })
		time.Sleep(60 * time.Minute)
		says("one that did not once", "", "")
		time.Sleep(10 * time.Minute)
		tried("does not answer (no route to host)")
		says("one that does not", "its fence device fence_x plug=n1 does not answer (no route to host)", "berth node fence node1 --check")
		set(func() { d.fail, d.dark = nil, true })
		time.Sleep(10 * time.Minute)
		says("one of another machine", "says that it is off, and it answers", "--check")
		w.device("n1", supply("n1", "n1/b"))
		time.Sleep(10 * time.Minute)
		says("a power supply that has failed", "", "")
		set(func() { d.fail = errors.New("no route to host") })
		time.Sleep(70 * time.Minute)
		says("one that does not again", "does not answer", "--check")
		set(func() { d.fail = nil })
		if _, err := w.NodePower(t.Context(), "n1"); err != nil {
			t.Error(err)
		}
		says("one that somebody has mended and tried", "", "")
		set(func() { d.dark = false })
		w.device("n1", model.FenceDevice{})
		says("none", "nothing can prove that it is off", "'berth node set node1 --fence METHOD'")
		w.device("n1", model.FenceDevice{Method: model.FenceManual})
		says("people", "only somebody's word", "")
		w.device("n1", model.FenceDevice{Method: model.FenceWatchdog})
		says("a watchdog that is not armed", "its watchdog is not armed", "berth-agent doctor")
	})
}

// A power strip may let one caller in at a time, so a question that nobody needs ends before a node is fenced.
func TestATrialMakesWayForAFencing(t *testing.T) {
	for offset := 150 * time.Second; offset < 210*time.Second; offset += 7 * time.Second { // trials are under way in most of that time
		synctest.Test(t, func(t *testing.T) {
			w, d := fencedWorld(t)
			defer w.lose()
			vm := w.available("web1")
			d.mu.Lock()
			d.hangs = true
			d.mu.Unlock()
			time.Sleep(70*time.Minute + offset)
			w.silence(vm.Holder)
			time.Sleep(model.DefaultFenceAfter + 2*time.Minute)
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.beside != 0 || len(d.calls) == 0 {
				t.Errorf("%s later: of %d calls %d were beside another one", offset, len(d.calls), d.beside)
			}
		})
	}
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

// A VM with ha that no other node would take is found before its node is lost, and is no more when there is room again.
func TestVMsThatWouldBeStartedNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		w.show(vm)
		time.Sleep(2 * time.Minute)
		if found := w.Nowhere(); len(found) != 0 {
			t.Errorf("with room elsewhere: %v", found)
		}
		for _, node := range w.Store.Snapshot().Nodes() {
			if node.ID != vm.Holder {
				w.node(node.ID, func(n *model.Node) { n.Maintenance = true })
			}
		}
		time.Sleep(2 * time.Minute)
		if found := w.Nowhere(); len(found) != 1 || found[vm.ID] == "" {
			t.Errorf("without: %v", found)
		}
		w.node(other(vm.Holder), func(n *model.Node) { n.Maintenance = false })
		time.Sleep(2 * time.Minute)
		if found := w.Nowhere(); len(found) != 0 {
			t.Errorf("with room again: %v", found)
		}
	})
}
