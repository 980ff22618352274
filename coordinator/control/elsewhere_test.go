package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/adoption"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/outofband"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// ended has a node tell that it has seen how a VM ended there, which it has watched since the VM came.
func ended(vm string) func(*model.NodeFacts) {
	return func(f *model.NodeFacts) {
		without(vm)(f)
		f.Endings = map[string]model.Ending{vm: {At: time.Now(), RanSince: time.Now().Add(-time.Minute), Whole: true}}
	}
}

// third is a node that is neither of two.
func third(one, two string) string {
	return slices.DeleteFunc([]string{"n1", "n2", "n3"}, func(id string) bool { return id == one || id == two })[0]
}

// deadWorld is one with a highly available VM, of which a node that has no VM fell silent long ago. Nothing proves that it is off.
func deadWorld(t *testing.T) (w *world, vm model.VM, dead string) {
	w, _ = fencedWorld(t)
	w.store(state.RaiseLevel(state.FeatureLevel))
	vm = w.available("web1")
	dead = third(vm.Holder, "")
	w.device(dead, model.FenceDevice{})
	w.silence(dead)
	time.Sleep(time.Hour)
	return w, vm, dead
}

// One node that stays away does not keep highly available VMs from being restarted which cannot be there: their end was seen, or their
// host has booted anew, or was switched off.
func TestOneDeadNodeDoesNotStopRestarts(t *testing.T) {
	for name, fails := range map[string]struct {
		how    func(w *world, vm model.VM)
		within time.Duration
	}{
		"it crashes": {func(w *world, vm model.VM) { w.facts.change(vm.Holder, ended(vm.ID)) }, time.Minute},
		"its host reboots": {func(w *world, vm model.VM) {
			w.silence(vm.Holder)
			time.Sleep(30 * time.Second)
			w.facts.change(vm.Holder, without(vm.ID))
			w.speak(vm.Holder, "b2")
		}, time.Minute},
		"its host dies": {func(w *world, vm model.VM) { w.silence(vm.Holder) }, model.DefaultFenceAfter + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, vm, dead := deadWorld(t)
				defer w.lose()
				if name == "its host dies" { // two of three are many: one more that is heard makes it one of four
					w.store(state.Command{Nodes: []model.Node{{ID: "n4", Name: "node4", Cluster: model.DefaultCluster}}},
						state.Expectation{Table: state.Nodes, ID: "n4"})
					w.node(dead, func(n *model.Node) { n.Maintenance = true })
					w.facts.change("n4", func(f *model.NodeFacts) { *f = w.facts.nodes[third(vm.Holder, dead)] })
				}
				fails.how(w, vm)
				took := w.within(fails.within, func() bool {
					now := w.guest(vm.ID)
					return now.Holder != "" && now.Epoch > vm.Epoch
				})
				t.Logf("it runs again after %s", took)
				if now := w.guest(vm.ID); now.Holder == dead || !w.isFenced(vm.Holder) && name == "its host dies" {
					t.Errorf("it is restarted: %+v", now)
				}
				if w.isFenced(dead) {
					t.Error("a node that nothing can prove to be off counts as off")
				}
			})
		})
	}
}

// Where nobody has seen how a VM left its node, it may run on a node that is silent. That one is waited for, and it is proven off
// although it holds no such VM itself.
func TestANodeThatAMissingVMMayBeOnIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, vm, dead := deadWorld(t)
		defer w.lose()
		w.facts.change(vm.Holder, without(vm.ID))
		time.Sleep(3 * time.Minute)
		now := w.guest(vm.ID)
		if now.Holder != vm.Holder || now.Whereabouts.Missing.IsZero() || !strings.Contains(now.Condition.Text, "cannot be asked") {
			t.Fatalf("while a node is silent that may have it: %+v", now)
		}
		if verdict, held := w.FenceHeld(dead); !held || verdict.Act != evidence.FenceHeld || !strings.Contains(verdict.Next, "--confirmed-off") {
			t.Errorf("what is said of that node: %+v", verdict)
		}
		w.device(dead, model.FenceDevice{Method: model.FenceCommand, Program: "fence_x", Arguments: map[string]string{"plug": dead}})
		w.within(time.Minute, func() bool { return w.isFenced(dead) })
		w.within(time.Minute, func() bool { return w.guest(vm.ID).Holder != "" && w.guest(vm.ID).Epoch > vm.Epoch })
		if now := w.guest(vm.ID); !now.Whereabouts.Missing.IsZero() {
			t.Errorf("it is restarted: %+v", now)
		}
	})
}

// The holder of a missing VM is proven to be off: the VM is not restarted before it is known that it runs nowhere else, under another
// leader too.
func TestAMissingVMIsNotRestartedBecauseItsHolderIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, vm, dead := deadWorld(t)
		defer func() { w.lose() }()
		w.facts.change(vm.Holder, without(vm.ID))
		time.Sleep(3 * outofband.Every)
		w.node(vm.Holder, func(n *model.Node) {
			n.Fencing = model.Fencing{ID: "f1", Phase: model.FencingProven, Boot: "b1", EndedAt: time.Now(), Message: "its plug is off"}
		})
		w.silence(vm.Holder)
		// The next leader knows nothing of it.
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { *f = model.NodeFacts{Liveness: model.Unreachable} })
		w.lose()
		w.lead(2)
		time.Sleep(5 * time.Minute)
		if starts := w.agents.ordered(operation.ActStart); len(starts) != 1 {
			t.Errorf("it is started while %s may run it: %+v", dead, starts)
		}
		w.speak(dead, "b1")
		w.within(time.Minute, func() bool { return w.guest(vm.ID).Holder != "" && w.guest(vm.ID).Epoch > vm.Epoch })
	})
}

// Somebody has moved a VM to a node that fell silent then. A start by hand asks for the same evidence as a restart.
func TestAStartByHandAsksWhereTheVMMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, vm, dead := deadWorld(t)
		defer w.lose()
		w.record(vm.ID, func(vm *model.VM) { vm.HA = false })
		w.facts.change(vm.Holder, without(vm.ID))
		again := lifecycle.StartVM{Name: "web1", Caller: "operator/alice"}
		refused := func(when string) {
			t.Helper()
			_, err := w.StartVM(t.Context(), again)
			refusal, is := isRefusal(err)
			name := lead.NodeName(w.Store.Snapshot(), dead)
			if !is || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, name+" is silent for 1h0m") ||
				!strings.Contains(refusal.NextStep, "berth node fence "+name) {
				t.Errorf("%s: %v, %+v", when, err, refusal)
			}
			if _, err := w.StartVMs(t.Context(), lifecycle.StartVMs{VMs: []string{vm.ID}}); err != nil {
				t.Errorf("%s, one of several: %v", when, err)
			}
			if started := w.agents.ordered(operation.ActStart); len(started) != 1 {
				t.Fatalf("%s it is started: %+v", when, started)
			}
		}
		refused("at once")
		time.Sleep(3 * outofband.Every)
		refused("when it is known to be missing")
		if _, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID}); err == nil {
			t.Error("it is deleted while it may run")
		}
		again.Force, again.Reason = true, "I have pulled its plug"
		started, err := w.StartVM(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		said := "forced by operator/alice without a proof that it runs nowhere (node"
		if op := w.operation(started.Operation.ID); len(op.Evidence) == 0 || !strings.HasPrefix(op.Evidence[0], said) ||
			!strings.HasSuffix(op.Evidence[0], "): I have pulled its plug") {
			t.Errorf("what the operation keeps of it: %q", op.Evidence)
		}
		if event := w.lastOf("vm.start"); !strings.Contains(event.Message, said) {
			t.Errorf("what is told of it: %q", event.Message)
		}
		if now := w.guest(vm.ID); now.Holder == "" || !now.Whereabouts.Missing.IsZero() {
			t.Errorf("it runs again: %+v", now)
		}
	})
}

// Every start asks where the VM may be, that of a VM whose end was proven too: somebody may have started it beside Berth since.
func TestAStartOfAStoppedVMAsksWhereItMayBe(t *testing.T) {
	stopped := func(t *testing.T) (*world, model.VM) {
		w := newWorld(t, obedient)
		vm := w.on("n1", "web1", 1)
		w.record(vm.ID, func(vm *model.VM) { vm.Holder = "" })
		w.facts.change("n1", without(vm.ID))
		return w, vm
	}
	t.Run("a node is silent that showed it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, vm := stopped(t)
			defer w.lose()
			w.shows("n2", vm, nil)
			w.silence("n2")
			_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"})
			if refusal, is := isRefusal(err); !is || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, "node2 is silent") {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("it was started again where it was last, and that node is silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, vm := stopped(t)
			defer w.lose()
			time.Sleep(time.Minute)
			w.shows("n1", vm, func(d *model.Domain) { d.Since = time.Now() })
			w.silence("n1")
			_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"})
			if refusal, is := isRefusal(err); !is || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, "node1 is silent") {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("a node has not told yet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, vm := stopped(t)
			defer w.lose()
			w.facts.change("n2", func(f *model.NodeFacts) { f.Inventory, f.DomainsKnown = false, false })
			_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"})
			if refusal, is := isRefusal(err); !is || refusal.Code != lead.Busy || !strings.Contains(refusal.Message, "has not listed its domains") {
				t.Errorf("%v", err)
			}
			// Where the leader is new, the start waits.
			w.facts.mu.Lock()
			w.facts.waiting = true
			w.facts.mu.Unlock()
			begun := time.Now()
			time.AfterFunc(3*time.Second, func() {
				w.facts.change("n2", func(f *model.NodeFacts) { f.Inventory, f.DomainsKnown = true, true })
			})
			if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"}); err != nil || time.Since(begun) < 3*time.Second {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
			synctest.Wait()
			if now := w.guest(vm.ID); now.Epoch <= vm.Epoch {
				t.Errorf("%+v", now)
			}
		})
	})
	t.Run("somebody else's domain has the UUID", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, vm := stopped(t)
			defer w.lose()
			vm.ID = "99999999-0000-4000-8000-000000000001"
			w.shows("n2", vm, func(d *model.Domain) { d.Managed = false })
			_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web2", VM: &model.VM{ID: vm.ID, Spec: vm.Spec}})
			if refusal, is := isRefusal(err); !is || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, "is on node2") {
				t.Errorf("%v", err)
			}
		})
	})
}

// A holder that is off cannot refuse a VM, and need not: the VM is followed to where it is shown, and taken over there by hand where it has
// lost its mark.
func TestAVMIsTakenFromAHolderThatIsOff(t *testing.T) {
	for name, byHand := range map[string]bool{"followed": false, "adopted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				before := w.on("n1", "web1", 1)
				time.Sleep(time.Minute)
				w.node("n1", func(n *model.Node) {
					n.Fencing = model.Fencing{ID: "f1", Phase: model.FencingProven, Boot: "b1", EndedAt: time.Now(), Message: "its plug is off"}
				})
				w.facts.change("n1", func(f *model.NodeFacts) { *f = model.NodeFacts{Liveness: model.Unreachable} })
				w.shows("n2", before, func(d *model.Domain) { d.Managed = !byHand })
				time.Sleep(3 * outofband.Every)
				if byHand {
					if now := w.vm("web1"); now.Holder != "n1" {
						t.Fatalf("without a mark it is followed: %+v", now)
					}
					rows, err := w.AdoptVMs(t.Context(), adoption.AdoptVMs{Domains: []string{"web1"}, Caller: "operator/test"})
					if err != nil || len(rows) != 1 || rows[0].Problem != "" {
						t.Fatalf("%+v, %v", rows, err)
					}
					time.Sleep(outofband.Every)
				}
				if now := w.vm("web1"); now.Holder != "n2" || now.Epoch <= before.Epoch {
					t.Errorf("%+v", now)
				}
				if asked := w.agents.performed(func(task lead.Task) bool { return task.Refuse != nil }); len(asked) > 0 {
					t.Errorf("asked to refuse it: %+v", asked)
				}
			})
		})
	}
}

// A stopped VM that somebody has started on a node which fell silent then keeps its record and its disks.
func TestAVMIsNotDeletedThatASilentNodeShowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		time.Sleep(time.Minute)
		w.record(vm.ID, func(vm *model.VM) { vm.Holder, vm.Desired = "", model.Stopped })
		w.facts.change("n1", without(vm.ID))
		w.shows("n3", vm, nil)
		w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		_, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID})
		if refusal, is := isRefusal(err); !is || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, "may run still") ||
			!strings.Contains(refusal.Message, "node3") {
			t.Errorf("%v", err)
		}
		w.facts.change("n3", without(vm.ID))
		w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Up })
		if _, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID}); err != nil {
			t.Errorf("once it is gone there: %v", err)
		}
	})
}

// What a node shows is not left out of account, whoever says so.
func TestNobodyForcesAStartBesideACopyThatIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, vm, dead := deadWorld(t)
		defer w.lose()
		w.facts.change(vm.Holder, without(vm.ID))
		w.shows(third(vm.Holder, dead), vm, func(d *model.Domain) { d.State = model.DomainPaused })
		forced := lifecycle.StartVM{Name: "web1", Caller: "operator/alice", Force: true, Reason: "I know"}
		if _, err := w.StartVM(t.Context(), forced); !isCode(err, lead.Conflict) {
			t.Errorf("beside a paused copy: %v", err)
		}
		w.facts.change(third(vm.Holder, dead), without(vm.ID))
		w.shows(dead, vm, nil) // when it was heard last
		if _, err := w.StartVM(t.Context(), forced); !isCode(err, lead.Conflict) {
			t.Errorf("beside a copy that a silent node showed: %v", err)
		}
		w.show(vm)
		if _, err := w.StartVM(t.Context(), forced); !isCode(err, lead.Conflict) && !isCode(err, lead.Exists) {
			t.Errorf("beside the VM: %v", err)
		}
		if started := w.agents.ordered(operation.ActStart); len(started) != 1 {
			t.Errorf("started: %+v", started)
		}
	})
}

// The holder of a VM that ended there refuses it for good before it is started elsewhere: an order that is still on its way could bring
// it back.
func TestTheHolderRefusesWhatIsStartedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, vm, _ := deadWorld(t)
		defer w.lose()
		refusals := func() int { return len(w.agents.performed(func(task lead.Task) bool { return task.Refuse != nil })) }
		w.record(vm.ID, func(vm *model.VM) { vm.HA = false })
		w.agents.does(func(_ string, task lead.Task) error {
			if task.Refuse != nil {
				return &lead.TaskError{Code: operation.Busy, Message: "a start of the VM may still take effect"}
			}
			return nil
		})
		w.facts.change(vm.Holder, ended(vm.ID))
		if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"}); !isCode(err, lead.Busy) {
			t.Errorf("before its holder refuses it: %v", err)
		}
		before := refusals()
		w.agents.does(nil)
		if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"}); err != nil {
			t.Errorf("once its holder refuses it: %v", err)
		}
		if now := refusals(); now != before+1 {
			t.Errorf("%d refusals, then %d", before, now)
		}
	})
}
