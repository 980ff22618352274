package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// A device says that a machine is off which runs on, and is only cut off from the coordinators: another node still reaches it.
func TestADeviceIsNotBelievedWhileAnotherNodeReachesTheMachine(t *testing.T) {
	for name, reach := range map[string]func(w *world, d *devices, silent string, answers bool){
		"node": func(w *world, _ *devices, silent string, answers bool) {
			w.agents.mu.Lock()
			defer w.agents.mu.Unlock()
			w.agents.reached = map[string]string{}
			for _, node := range w.Store.Snapshot().Nodes() {
				if answers && node.ID != silent {
					w.agents.reached[node.ID] = "10.0.0.9:16514"
					return
				}
			}
		},
		"coordinator": func(_ *world, d *devices, _ string, answers bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.reach = map[bool]string{true: "10.0.0.9:16514"}[answers]
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, d := fencedWorld(t)
				defer w.lose()
				w.store(state.RaiseLevel(state.FeatureLevel))
				vm := w.available("web1")
				silent := vm.Holder
				w.facts.change(silent, func(f *model.NodeFacts) { f.Peers = "10.0.0.9:16514,10.0.0.9:22" })
				time.Sleep(5 * time.Second)
				reach(w, d, silent, true)
				w.silence(silent)
				time.Sleep(model.DefaultFenceAfter + 10*time.Minute)
				node := w.host(silent)
				if node.Fenced() || w.guest(vm.ID).Holder != silent || d.asked() < 2 {
					t.Fatalf("%+v, asked %d times; the VM is held by %q", node.Fencing, d.asked(), w.guest(vm.ID).Holder)
				}
				held, known := w.FenceHeld(silent)
				want := name + " "
				if name == "coordinator" {
					want = "leading coordinator "
				}
				if !known || !strings.Contains(held.Why, want) || !strings.Contains(held.Why, "still reached it at 10.0.0.9:16514") ||
					!strings.Contains(held.Next, "--confirmed-off") {
					t.Errorf("held %t: %+v", known, held)
				}
				reach(w, d, silent, false) // a device that lags
				time.Sleep(10 * time.Minute)
				if after := w.guest(vm.ID); after.Holder == silent || after.Holder == "" {
					t.Errorf("when nobody reaches it: %+v, %+v", w.host(silent).Fencing, after)
				}
			})
		})
	}
}
