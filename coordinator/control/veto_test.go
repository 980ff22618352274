package control

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
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

// A management board says which machine it switches, and that is not the node.
func TestADeviceOfAnotherMachineIsNotAsked(t *testing.T) {
	t.Run("the only one", func(t *testing.T) { anotherMachine(t, func(node string) model.FenceDevice { return supply(node) }) })
	t.Run("the second one", func(t *testing.T) {
		anotherMachine(t, func(node string) model.FenceDevice { return supply(node+"/a", node) })
	})
}

func anotherMachine(t *testing.T, fences func(node string) model.FenceDevice) {
	const here, there = "4c4c4544-0042-3510-8052-b4c04f4d3732", "11111111-0042-3510-8052-b4c04f4d3732"
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.available("web1")
		silent := vm.Holder
		w.facts.change(silent, func(f *model.NodeFacts) { f.Hardware, f.Source = here, model.HardwareProduct })
		time.Sleep(5 * time.Second)
		d.mu.Lock()
		d.machines = map[string]string{silent: here, silent + "/a": here}
		d.mu.Unlock()
		w.device(silent, fences(silent))
		time.Sleep(100 * time.Minute)
		node := w.host(silent)
		if is := w.IdentityOf(&node).Says(&node); !strings.Contains(is, "checked: it says") || strings.Contains(is, "unchecked") {
			t.Fatalf("of the right one: %s", is)
		}
		d.mu.Lock()
		d.machines[silent] = there // somebody has swapped cables; nobody has asked since
		d.mu.Unlock()
		w.silence(silent)
		time.Sleep(model.DefaultFenceAfter + 5*time.Minute)
		held, known := w.FenceHeld(silent)
		node = w.host(silent)
		if node.Fenced() || d.asked() != 0 || !known || !strings.Contains(held.Why, there+", and its firmware says "+here) ||
			!strings.Contains(held.Next, "--fence-machine "+there) {
			t.Fatalf("asked %d times; held %t: %+v", d.asked(), known, held)
		}
		_, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: silent, Caller: "ann"})
		refusal := (*lead.Error)(nil)
		if !errors.As(err, &refusal) || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, there) {
			t.Errorf("by hand: %v", err)
		}
		d.mu.Lock()
		d.machines[silent] = here // mended
		d.mu.Unlock()
		time.Sleep(2 * time.Hour)
		if after := w.guest(vm.ID); after.Holder == silent || after.Holder == "" || d.asked() != 1 {
			t.Errorf("when it is mended: asked %d times, %+v", d.asked(), after)
		}
	})
}
