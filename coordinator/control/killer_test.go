package control

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
)

// boot makes a node be heard again after its host has booted: nothing runs there any more.
func (w *world) boot(id string) {
	w.facts.change(id, func(f *model.NodeFacts) { f.Domains, f.InventoryAt = nil, time.Now() })
	w.speak(id, "another boot of "+id+" at "+time.Now().String())
}

// FAULTS.md, W14. A VM takes the host down that it runs on: it is restarted once, and then only by a person.
func TestAVMThatTakesItsHostsDownIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		lost := 0
		for range 120 {
			holder := w.guest(vm.ID).Holder
			if holder != "" && w.guest(vm.ID).Operation == "" && w.facts.Facts(holder, time.Now()).Liveness == model.Up {
				lost++
				w.silence(holder)
				go func() {
					time.Sleep(4 * time.Minute)
					w.boot(holder)
				}()
			}
			time.Sleep(30 * time.Second)
		}
		held := w.guest(vm.ID)
		if lost != model.MaxLosses || held.Holder != "" || held.Desired != model.Running || !held.Condition.Is(model.RestartHeld) {
			t.Fatalf("%d hosts are lost with it: %+v", lost, held)
		}
		const want = `^it is not restarted any more, because its hosts were lost soon after it had started: ` +
			`node\d at 2000-01-01 \d\d:\d\d:\d\d UTC, then node\d at 2000-01-01 \d\d:\d\d:\d\d UTC; ` +
			`look into its guest and the logs of those hosts; 'berth vm start web1' starts it again$`
		if !regexp.MustCompile(want).MatchString(held.Condition.Text) {
			t.Errorf("people are told %q", held.Condition.Text)
		}
		if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1", RequestID: "again", Caller: "operator/test"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if after := w.guest(vm.ID); after.Holder == "" || len(after.Losses) != 0 || after.Condition.Text != "" {
			t.Errorf("after somebody's word: %+v", after)
		}
		w.silence(w.guest(vm.ID).Holder)
		time.Sleep(5 * time.Minute)
		if after := w.guest(vm.ID); after.Holder == "" || len(after.Losses) != 1 {
			t.Errorf("after another loss: %+v", after)
		}
	})
}

// A host that boots anew before anybody has proven it to be off takes its VMs along as well.
func TestAHostThatBootsAnewIsLostWithItsVMs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		vm, plain := w.available("web1"), w.running("plain")
		w.silence(vm.Holder)
		time.Sleep(20 * time.Second)
		w.boot(vm.Holder)
		time.Sleep(5 * time.Second)
		if after := w.guest(vm.ID); len(after.Losses) != 1 || after.Losses[0].Node != w.host(vm.Holder).Name || d.asked() != 0 {
			t.Errorf("%d calls of a device: %+v", d.asked(), after)
		}
		if after := w.guest(plain.ID); len(after.Losses) != 0 {
			t.Errorf("a VM that nothing restarts: %+v", after.Losses)
		}
	})
}

// The wall clock jumps ahead by an hour while a VM has just started: the loss of its host is as soon after that as it was.
func TestALossIsSoonByTheLeadersOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		w.record(vm.ID, func(vm *model.VM) {
			vm.StartedAt = vm.StartedAt.Add(-time.Hour)
			vm.Losses = []model.Loss{{Node: "node9", At: vm.StartedAt}}
		})
		w.silence(vm.Holder)
		time.Sleep(20 * time.Second)
		w.boot(vm.Holder)
		time.Sleep(5 * time.Second)
		if after := w.guest(vm.ID); !after.LostTooMany() {
			t.Errorf("it came a moment ago, and the count begins anew: %+v", after.Losses)
		}
	})
}
