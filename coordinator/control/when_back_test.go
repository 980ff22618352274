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

// answer has the agents answer otherwise from now on.
func (w *world) answer(script func(operation.Order) *operation.Answer) {
	w.agents.mu.Lock()
	defer w.agents.mu.Unlock()
	w.agents.script = script
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

// What went out to a node that nobody hears is taken back in time: only that node knows whether it has begun. One that has goes on.
func TestAnOrderThatANodeMayNotHaveIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		another, begun bool
		after          time.Duration
		result         operation.Result
		says           string
	}{
		"not begun": {
			false, false, time.Hour, operation.Failed,
			" was silent for 30s: it is taken back, and the guest was not asked; next step: 'berth vm stop web1 --when-back'",
		},
		"not begun, another leader": {true, false, time.Hour, operation.Failed, "it is taken back, and the guest was not asked"},
		"begun":                     {false, true, time.Hour, operation.Done, ""},
		"back in time":              {false, false, 20 * time.Second, operation.Done, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer func() { w.lose() }()
				w.store(state.RaiseLevel(state.FeatureLevel))
				vm := w.running("web1")
				w.answer(func(operation.Order) *operation.Answer { return nil })
				op, err := w.acts(operation.Stop, vm, false)
				if err != nil || op.Awaits() {
					t.Fatal(op, err)
				}
				w.silence(vm.Holder)
				if c.another {
					w.lose()
					w.lead(2)
					w.silence(vm.Holder)
				}
				time.Sleep(c.after)
				if is := w.operation(op.ID); !is.Live() || c.after > operation.AwaitPatience && !strings.Contains(is.Message,
					" was silent for 30s: unless the guest was asked before, it is not asked any more") {
					t.Fatalf("%s: %s", is.Result, is.Message)
				}
				w.answer(func(order operation.Order) *operation.Answer {
					if order.TakenBack && !c.begun {
						return &operation.Answer{Outcome: operation.OutcomeRefused, Code: operation.TooLate, Error: "too late"}
					}
					return obedient(order)
				})
				w.speak(vm.Holder, "")
				time.Sleep(time.Minute)
				op, is := w.operation(op.ID), w.guest(vm.ID)
				stopped := c.result == operation.Done
				if op.Result != c.result || !strings.Contains(op.Message, c.says) || (is.Holder == "") != stopped || is.Operation != "" ||
					(is.Desired == model.Stopped) != stopped {
					t.Errorf("%s: %s; %+v", op.Result, op.Message, is)
				}
			})
		})
	}
}

// A cancel of what a silent node may not have begun is taken, and the node decides what it comes to. One that is heard has begun it.
func TestAnOrderOfASilentNodeCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		w.answer(func(operation.Order) *operation.Answer { return nil })
		op, err := w.acts(operation.Stop, vm, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.CancelOperation(t.Context(), op.ID, "operator/test")
		refusedAs(t, "a cancel", err, lead.Conflict, "cannot be taken back once the guest was asked")
		w.silence(vm.Holder)
		if _, err = w.CancelOperation(t.Context(), op.ID, "operator/test"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // an order that was on its way before the cancel is one that the node never heard
		w.answer(func(order operation.Order) *operation.Answer {
			if order.TakenBack {
				return &operation.Answer{Outcome: operation.OutcomeRefused, Code: operation.TooLate, Error: "too late"}
			}
			return obedient(order)
		})
		w.speak(vm.Holder, "")
		time.Sleep(time.Minute)
		op, is := w.operation(op.ID), w.guest(vm.ID)
		if op.Message != "cancelled while "+op.SourceName+" was silent: the guest was not asked" || is.Holder == "" {
			t.Errorf("%s: %s; %+v", op.Result, op.Message, is)
		}
	})
}

// A snapshot that is taken while a stop waits for its node is what the next start uses.
func TestAStopThatWaitedLooksAtTheDisksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.withImage(diskAt("vda", image))
		w.silence(vm.Holder)
		if op, err := w.acts(operation.Stop, vm, true); err != nil || !op.Awaits() {
			t.Fatal(op, err)
		}
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.DomainsKnown = false })
		w.runsWith(vm, diskAt("vda", overlay))
		w.speak(vm.Holder, "")
		time.Sleep(10 * time.Second)
		if w.asked() > 0 {
			t.Fatal("it went out before the node has listed its guests")
		}
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.DomainsKnown = true })
		time.Sleep(10 * time.Second)
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains = nil })
		if is := w.guest(vm.ID); is.Holder != "" {
			t.Fatalf("it is not stopped: %+v", is)
		}
		if with := w.againWith(w.guest(vm.ID)); with != "vda "+overlay {
			t.Errorf("it is started with %q", with)
		}
	})
}

// A backup that has begun while a stop waited for its node is not broken off by it.
func TestAStopThatWaitedBreaksNoBackup(t *testing.T) {
	for _, whenBack := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer w.lose()
			w.store(state.RaiseLevel(state.FeatureLevel))
			vm := w.on("n1", "web1", 1)
			w.silence("n1")
			w.facts.change("n1", func(f *model.NodeFacts) { f.Liveness = model.Suspect })
			_, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{
				Kind: operation.Stop, VM: vm.ID, WhenBack: true, InterruptBackup: true, RequestID: w.NewID(), Caller: "operator/test",
			})
			refusedAs(t, "a promise about what nobody sees", err, lead.Conflict, "nobody knows what a stop of VM \"web1\" would interrupt")
			op, err := w.acts(operation.Stop, vm, whenBack)
			if err != nil || !op.Awaits() {
				t.Fatal(op, err)
			}
			w.bind(vm, backup)
			w.speak("n1", "")
			time.Sleep(time.Minute)
			op = w.operation(op.ID)
			if op.Live() != whenBack || w.asked() > 0 || !strings.Contains(op.Message, "what the backup has written is not whole") {
				t.Fatalf("%s: %s; asked %d times", op.Result, op.Message, w.asked())
			}
			w.bind(vm, virtiofs)
			time.Sleep(time.Minute)
			if op = w.operation(op.ID); op.Live() || (w.guest(vm.ID).Holder == "") != whenBack {
				t.Errorf("after the backup: %s: %s", op.Result, op.Message)
			}
		})
	}
}

// Until its node has listed its guests nobody knows what a stop would break off: a leader that was elected a moment ago does not, nor does
// one whose node has a libvirt that hangs. The stop waits for the list, not for long, and who takes the risk need not wait.
func TestAStopWaitsUntilItsNodeHasListedItsGuests(t *testing.T) {
	for name, c := range map[string]struct {
		lists   bool
		backup  bool
		request lifecycle.ActOnVM
		stopped bool
		says    string
	}{
		"it lists a backup":    {lists: true, backup: true, says: "what the backup has written is not whole"},
		"it lists no backup":   {lists: true, stopped: true},
		"it never lists":       {says: "did not list its guests for 30s, so nobody knows what the stop would break off: it is taken back"},
		"it may be broken off": {backup: true, request: lifecycle.ActOnVM{InterruptBackup: true}, stopped: true},
		"by force":             {backup: true, request: lifecycle.ActOnVM{Force: true}, stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				w.store(state.RaiseLevel(state.FeatureLevel))
				vm := w.on("n1", "web1", 1)
				w.facts.change("n1", func(f *model.NodeFacts) { f.DomainsKnown, f.LivenessReason = false, "libvirtd does not answer" })
				c.request.Kind, c.request.VM, c.request.RequestID, c.request.Caller = operation.Stop, vm.ID, w.NewID(), "operator/test"
				op, err := w.ActOnVM(t.Context(), c.request)
				if waits := !c.request.InterruptBackup && !c.request.Force; err != nil || op.Awaits() != waits {
					t.Fatalf("it waits %t: %v", op.Awaits(), err)
				}
				if op.Awaits() && !strings.Contains(op.Doing(), "waits for 30s at most: node1 has not listed its guests, so nobody knows what "+
					"the stop would break off: libvirtd does not answer") {
					t.Errorf("it says %q", op.Doing())
				}
				time.Sleep(10 * time.Second)
				if op.Awaits() && w.asked() > 0 {
					t.Fatal("it went out before the list")
				}
				if c.lists {
					if c.backup {
						w.bind(vm, backup)
					}
					w.facts.change("n1", func(f *model.NodeFacts) { f.DomainsKnown, f.LivenessReason = true, "" })
				}
				time.Sleep(time.Minute)
				if op = w.operation(op.ID); op.Live() || (w.guest(vm.ID).Holder == "") != c.stopped || !strings.Contains(op.Message, c.says) {
					t.Errorf("ended %s: %s; %+v", op.Result, op.Message, w.guest(vm.ID))
				}
			})
		})
	}
}

// What an older member would never carry out as the next leader is ordered at once, as that member does.
func TestAnOlderLeaderIsLeftNoStopThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.facts.change("n1", func(f *model.NodeFacts) { f.DomainsKnown = false })
		if op, err := w.acts(operation.Stop, vm, false); err != nil || op.Awaits() {
			t.Errorf("it waits %t: %v", op.Awaits(), err)
		}
	})
}

// Whoever wants it however late gets it however late.
func TestAnOrderThatIsToWaitHasNoDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.running("web1")
		w.answer(func(operation.Order) *operation.Answer { return nil })
		op, err := w.acts(operation.Stop, vm, true)
		if err != nil {
			t.Fatal(err)
		}
		w.silence(vm.Holder)
		time.Sleep(time.Hour)
		for _, order := range w.agents.ordered(operation.ActStop) {
			if order.TakenBack {
				t.Fatal("it was taken back")
			}
		}
		if is := w.operation(op.ID); !is.Live() || is.GivenUp != "" {
			t.Errorf("%s: %s", is.Result, is.Message)
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
