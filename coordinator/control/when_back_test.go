package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

func (w *world) acts(kind operation.Kind, vm model.VM, whenBack bool) (operation.Operation, error) {
	return w.ActOnVM(w.Context(), lifecycle.ActOnVM{Kind: kind, VM: vm.ID, WhenBack: whenBack, RequestID: w.NewID(), Caller: "operator/test"})
}

// asked is how often a guest was asked to stop or to restart.
func (w *world) asked() int {
	return len(w.agents.ordered(operation.ActStop)) + len(w.agents.ordered(operation.ActReboot))
}

// A stop that nobody can carry out now is not carried out some minutes later without a word.
func TestAnUnreachableNodeIsGivenNoOrderForLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		w.silence(vm.Holder)
		for _, kind := range []operation.Kind{operation.Stop, operation.Reboot} {
			_, err := w.acts(kind, vm, false)
			refusedAs(t, string(kind), err, lead.Unavailable, "its guest cannot be asked to "+string(kind)+" now")
		}
		w.speak(vm.Holder, "")
		time.Sleep(time.Minute)
		if is := w.guest(vm.ID); w.asked() > 0 || is.Holder == "" || is.Operation != "" {
			t.Errorf("asked %d times; %+v", w.asked(), is)
		}
	})
}

// What is asked for in the seconds before a node counts as unreachable is taken back in time, by this leader or by the next one.
func TestAnOrderForASilentNodeIsTakenBack(t *testing.T) {
	for _, another := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer func() { w.lose() }()
			w.store(state.RaiseLevel(state.FeatureLevel))
			vm := w.running("web1")
			w.silence(vm.Holder)
			w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Liveness, f.LivenessReason = model.Suspect, "silent for 9s" })
			op, err := w.acts(operation.Stop, vm, false)
			if err != nil || !op.Awaits() || op.Doing() != "to stop on "+op.SourceName+"; waits for 30s at most: "+op.SourceName+
				" is suspect: silent for 9s" {
				t.Fatalf("%s, %v", op.Doing(), err)
			}
			time.Sleep(operation.AwaitPatience / 2)
			if w.guest(vm.ID).Operation != op.ID {
				t.Fatal("it waits no more")
			}
			if another {
				w.lose()
				w.lead(2)
			}
			time.Sleep(operation.AwaitPatience)
			w.speak(vm.Holder, "")
			time.Sleep(time.Minute)
			op, is := w.operation(op.ID), w.guest(vm.ID)
			if op.Result != operation.Failed || !strings.Contains(op.Message, "it is taken back, and the guest was not asked; next step: ") {
				t.Errorf("ended %s: %s", op.Result, op.Message)
			}
			if w.asked() > 0 || is.Holder == "" || is.Desired != model.Running || is.Operation != "" {
				t.Errorf("asked %d times; %+v", w.asked(), is)
			}
		})
	}
}

// Whoever wants a guest stopped when its node is back can have that, and take it back until then.
func TestAStopWaitsUntilItsNodeIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.running("web1")
		w.silence(vm.Holder)
		first, err := w.acts(operation.Stop, vm, true)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, err := w.CancelOperation(t.Context(), first.ID, "operator/test"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		op, is := w.operation(first.ID), w.guest(vm.ID)
		if op.Message != "cancelled while "+op.SourceName+" was silent: the guest was not asked" || is.Desired != model.Running {
			t.Errorf("%s: %s; %+v", op.Result, op.Message, is)
		}
		second, err := w.acts(operation.Stop, vm, true)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if w.asked() > 0 {
			t.Error("asked while its node is silent")
		}
		w.speak(vm.Holder, "")
		time.Sleep(10 * time.Second)
		if op, is := w.operation(second.ID), w.guest(vm.ID); op.Result != operation.Done || is.Holder != "" || w.asked() == 0 {
			t.Errorf("%s: %s; asked %d times; %+v", op.Result, op.Message, w.asked(), is)
		}
	})
}

// Once the guest may have been asked, nothing is taken back.
func TestAnOrderThatWasGivenIsNotTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if order.Action == operation.ActStop {
				return nil
			}
			return obedient(order)
		})
		defer w.lose()
		vm := w.running("web1")
		op, err := w.acts(operation.Stop, vm, false)
		if err != nil || op.Awaits() {
			t.Fatal(op, err)
		}
		time.Sleep(time.Second)
		w.silence(vm.Holder)
		_, err = w.CancelOperation(t.Context(), op.ID, "operator/test")
		refusedAs(t, "a cancel", err, lead.Conflict, "cannot be taken back once the guest was asked")
		time.Sleep(time.Hour)
		if op = w.operation(op.ID); !op.Live() {
			t.Errorf("ended %s: %s", op.Result, op.Message)
		}
	})
}

// A node that is proven to be off asks no guest: the VM is stopped.
func TestAStopThatWaitsEndsWithItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.running("web1")
		w.silence(vm.Holder)
		op, err := w.acts(operation.Stop, vm, true)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: vm.Holder, ConfirmedOff: true, Caller: "operator/test"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if op, is := w.operation(op.ID), w.guest(vm.ID); op.Result != operation.Done || is.Holder != "" || w.asked() > 0 {
			t.Errorf("%s: %s; %+v", op.Result, op.Message, is)
		}
	})
}
