package control

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/outofband"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// performed are the tasks of a kind that nodes were given.
func (n *nodes) performed(which func(lead.Task) bool) []done {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []done
	for _, one := range n.tasks {
		if which(one.task) {
			found = append(found, one)
		}
	}
	return found
}

func (n *nodes) does(task func(node string, task lead.Task) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.task = task
}

func suspends(t lead.Task) bool { return t.Suspend != nil }

// edit changes what a node shows of a VM.
func (w *world) edit(node string, vm model.VM, change func(*model.Domain)) {
	w.facts.change(node, func(f *model.NodeFacts) {
		for i := range f.Domains {
			if f.Domains[i].UUID == vm.ID {
				change(&f.Domains[i])
			}
		}
	})
}

// unheld puts a VM on a node, whose record says that it runs nowhere, and changes what the node shows of it.
func (w *world) unheld(node string, change func(*model.Domain)) {
	vm := w.on(node, "web1", 1)
	w.record(vm.ID, func(vm *model.VM) { vm.Holder = "" })
	w.edit(node, vm, change)
}

// stoppedBeside is a VM, as it was recorded on n1, that has ended there beside Berth since, for long enough that Berth has found that out.
func (w *world) stoppedBeside() model.VM {
	vm := w.on("n1", "web1", 1)
	time.Sleep(time.Minute)
	w.facts.change("n1", without(vm.ID))
	time.Sleep(3 * outofband.Every)
	return vm
}

// The guest powered off, or somebody destroyed it: what is wanted of it stays, and nobody but a person or the loop for highly
// available VMs starts it again.
func TestAVMThatStoppedBesideBerth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.stoppedBeside()
		after := w.vm("web1")
		want := "out of band: it stopped on node1, and not by Berth: 'berth vm start web1' starts it, 'berth vm stop web1' leaves it off"
		if after.Holder != "" || after.LastNode != "n1" || after.Desired != model.Running || after.Epoch != vm.Epoch ||
			after.Condition.Text != want {
			t.Errorf("vm %+v", after)
		}
		refused := w.agents.performed(func(t lead.Task) bool { return t.Refuse != nil })
		if len(refused) != 1 || refused[0].node != "n1" || *refused[0].task.Refuse != (lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}) {
			t.Errorf("refused by %+v", refused)
		}
		if stops := w.agents.ordered(operation.ActStop); len(stops) != 0 {
			t.Errorf("stop orders could end what came back: %+v", stops)
		}
		time.Sleep(time.Minute)
		if events := w.told("vm.stopped-out-of-band"); len(events) != 1 || w.vm("web1").Condition.Text != want {
			t.Errorf("told %+v, condition %q", events, w.vm("web1").Condition.Text)
		}
		op, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID, RequestID: "off", Caller: "operator/test"})
		if err != nil || op.Result != operation.Done || op.Live() {
			t.Fatalf("left off: %+v, %v", op, err)
		}
		if after = w.vm("web1"); after.Desired != model.Stopped || after.Condition.Text != "" || after.Operation != "" {
			t.Errorf("vm %+v", after)
		}
		again, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID, RequestID: "off", Caller: "operator/test"})
		if err != nil || again.ID != op.ID {
			t.Errorf("repeated: %+v, %v", again, err)
		}
		if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"}); err != nil {
			t.Errorf("started again: %v", err)
		}
	})
}

// It stopped where Berth had it, and somebody runs it on another node: a stop would end nothing there, so it is not said to be done.
func TestAStopOfAVMThatRunsBesideBerthIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.stoppedBeside()
		stop := func(id string) (operation.Operation, error) {
			return w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID, RequestID: id, Caller: "operator/test"})
		}
		w.showing("n2", domainOf(vm))
		_, err := stop("early")
		refusedAs(t, "while it runs on node2", err, lead.Conflict, `VM "web1" is on node2 and not on node1 any more`)
		if after := w.vm("web1"); after.Desired != model.Running {
			t.Errorf("it is wanted %s", after.Desired)
		}
		w.facts.change("n2", without(vm.ID))
		if op, err := stop("late"); err != nil || op.Result != operation.Done {
			t.Errorf("once it runs nowhere: %+v, %v", op, err)
		}
	})
}

// It stopped, was found to have, and somebody started it again with virsh: it is taken back, under a new epoch.
func TestAVMThatCameBackIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.stoppedBeside()
		w.show(vm)
		if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"}); err == nil || !strings.Contains(
			err.Error(), "Berth has not started it there",
		) {
			t.Errorf("a second copy was started: %v", err)
		}
		time.Sleep(3 * outofband.Every)
		if after := w.vm("web1"); after.Holder != "n1" || after.Epoch != vm.Epoch+1 || after.Condition.Text != "" || after.Operation != "" {
			t.Errorf("vm %+v", after)
		}
	})
}

// What is held by nobody and does not run as Berth left it is not taken back: it is told, with what does take it.
func TestAVMThatCameBackOtherwise(t *testing.T) {
	const here = "where Berth has not started it: "
	for name, c := range map[string]struct {
		change    func(*model.Domain)
		condition string
	}{
		"under another name": {
			func(d *model.Domain) { d.Name = "db1" },
			"it is called db1 on node1: shut it down, name it back with 'virsh domrename db1 web1', and start it with 'berth vm start web1'",
		},
		"paused": {
			func(d *model.Domain) { d.State = model.DomainPaused },
			"it is paused on node1 (epoch 1), " + here + "'virsh resume web1' there takes it over, 'virsh destroy web1' there ends it",
		},
		"paused, without its mark": {
			func(d *model.Domain) { d.State, d.Managed, d.Epoch = model.DomainPaused, false, 0 },
			"it is paused on node1 (without Berth's mark), " + here +
				"'virsh resume web1' there and then 'berth vm adopt web1' take it over, 'virsh destroy web1' there ends it",
		},
		"without its mark": {
			func(d *model.Domain) { d.Managed, d.Epoch = false, 0 },
			"it is running on node1 (without Berth's mark), " + here + "'berth vm adopt web1' takes it over, 'virsh destroy web1' there ends it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				w.unheld("n1", c.change)
				time.Sleep(time.Minute)
				if after := w.vm("web1"); after.Holder != "" || after.Condition.Text != "out of band: "+c.condition {
					t.Errorf("holder %q, condition %q\nwant %q", after.Holder, after.Condition.Text, "out of band: "+c.condition)
				}
				if orders := w.agents.ordered(operation.ActAdopt); len(orders) != 0 {
					t.Errorf("ordered %+v", orders)
				}
			})
		})
	}
}

// A node that refuses to have a VM marked refuses it again: it is not asked at each look.
func TestATakeOverThatFailsIsTriedAgainAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if order.Action != operation.ActAdopt {
				return obedient(order)
			}
			return &operation.Answer{
				Outcome: operation.OutcomeFailed, Code: "denied", Error: "not allowed", Seen: operation.Observation{
					State: model.DomainRunning, Epoch: 1,
				},
			}
		})
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.record(vm.ID, func(vm *model.VM) { vm.Holder = "" })
		time.Sleep(3 * outofband.TakeOverPause)
		if tried := len(w.agents.ordered(operation.ActAdopt)); tried < 2 || tried > 3 {
			t.Errorf("tried %d times", tried)
		}
	})
}

func TestAlarms(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*model.Domain)
		condition string
	}{
		"paused": {
			func(d *model.Domain) { d.State, d.Reason = model.DomainPaused, "user" },
			"out of band: paused on node1 (user): 'berth vm resume web1' lets it run",
		},
		"its mark is gone": {
			func(d *model.Domain) { d.Managed, d.Epoch = false, 0 },
			"out of band: Berth's mark is not in its metadata on node1, and Berth touches nothing without it: 'berth vm adopt web1' writes it again",
		},
		"forgotten by libvirt": {
			func(d *model.Domain) {
				*d = model.Domain{UUID: d.UUID, Name: d.Name, State: model.DomainOrphan, Reason: "process 1234 runs it", PID: 1234}
			},
			"out of band: process 1234 on node1 runs it, and libvirt there does not list it: it is started nowhere as long as that process " +
				"lives; shut its guest down from inside, or end it with 'kill 1234' on node1",
		},
		"another epoch": {
			func(d *model.Domain) { d.Epoch = 9 },
			"out of band: its metadata on node1 say epoch 9, and it is 1: 'berth vm adopt web1' writes a new one",
		},
		"another name": {
			func(d *model.Domain) { d.Name = "db1" },
			"out of band: it is called db1 on node1: shut it down, name it back with 'virsh domrename db1 web1', and start it with 'berth vm " +
				"start web1'",
		},
		"undefined": {
			func(d *model.Domain) { d.Persistent = false },
			"out of band: libvirt on node1 has no definition of it any more: it runs, and Berth has what it is started with; 'virsh define' " +
				"there keeps it with libvirt again",
		},
		"autostart": {
			func(d *model.Domain) { d.Autostart = true },
			"out of band: libvirt on node1 starts it when that host boots, even if it runs elsewhere by then: 'virsh autostart --disable web1' " +
				"there keeps it from that",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				vm := w.on("n1", "web1", 1)
				w.record(vm.ID, func(vm *model.VM) { vm.Persistent = true })
				w.edit("n1", vm, func(d *model.Domain) { d.Persistent = true })
				time.Sleep(time.Minute)
				before := w.vm("web1")
				if before.Condition.Text != "" {
					t.Fatalf("condition %q", before.Condition.Text)
				}
				orders := len(w.agents.orders)
				w.edit("n1", vm, c.change)
				time.Sleep(time.Minute)
				after := w.vm("web1")
				if after.Condition.Text != c.condition {
					t.Errorf("condition %q\nwant      %q", after.Condition.Text, c.condition)
				}
				if after.Holder != "n1" || after.Epoch != before.Epoch || after.Name != before.Name || len(w.agents.orders) != orders ||
					len(w.agents.tasks) != 0 {
					t.Errorf("something was done: %+v, orders %+v", after, w.agents.orders[orders:])
				}
				if events := w.told("vm.out-of-band"); len(events) != 1 {
					t.Errorf("told %+v", events)
				}
				w.edit("n1", vm, func(d *model.Domain) { *d = domainOf(before); d.Persistent = true })
				time.Sleep(3 * outofband.Every)
				if after := w.vm("web1"); after.Condition.Text != "" {
					t.Errorf("put back, condition %q", after.Condition.Text)
				}
			})
		})
	}
}

// What others have written about a VM is not overwritten.
func TestAnAlarmLeavesOtherConditionsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.record(vm.ID, func(vm *model.VM) { vm.Condition.Text = "a volume may be left" })
		w.edit("n1", vm, func(d *model.Domain) { d.State = model.DomainPaused })
		time.Sleep(time.Minute)
		w.edit("n1", vm, func(d *model.Domain) { d.State = model.DomainRunning })
		time.Sleep(time.Minute)
		if after := w.vm("web1"); after.Condition.Text != "a volume may be left" {
			t.Errorf("condition %q", after.Condition.Text)
		}
	})
}

// A definition on a node that does not have the VM would be a second VM if somebody started it.
func TestDefinitionsThatAreLeftAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.record(vm.ID, func(vm *model.VM) { vm.Epoch, vm.LastEpoch = 4, 4 })
		w.edit("n1", vm, func(d *model.Domain) { d.Epoch = 4 })
		left := func(node string, change func(*model.Domain)) {
			w.shows(node, vm, func(d *model.Domain) {
				d.State, d.Epoch = model.DomainShutoff, 3
				change(d)
			})
		}
		left("n2", func(*model.Domain) {})
		left("n3", func(d *model.Domain) { d.Managed, d.Epoch = false, 0 }) // nobody knows whose
		shown := func(node string) model.NodeFacts { return w.facts.Facts(node, time.Now()) }
		time.Sleep(time.Minute)
		if d := shown("n2"); d.Domain(vm.ID) != nil {
			t.Errorf("it is left: %+v", d.Domain(vm.ID))
		}
		if d := shown("n3"); d.Domain(vm.ID) == nil {
			t.Error("a definition without Berth's mark was removed")
		}
		if events := w.told("vm.undefined"); len(events) != 1 || !strings.Contains(events[0].Message, "node2") {
			t.Errorf("told %+v", events)
		}
		if after := w.vm("web1"); after.Condition.Text != "" || after.Holder != "n1" {
			t.Errorf("vm %+v", after)
		}
		// While its node does not show it, a definition may be all that there is.
		w.facts.change("n1", without(vm.ID))
		left("n2", func(*model.Domain) {})
		time.Sleep(time.Minute)
		if d := shown("n2"); d.Domain(vm.ID) == nil {
			t.Error("the last definition was removed")
		}
	})
}

// within waits until something is so, and tells how long it took.
func (w *world) within(limit time.Duration, so func() bool) time.Duration {
	w.Helper()
	began := time.Now()
	for !so() {
		if time.Since(began) > limit {
			w.Fatalf("not so after %s", limit)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(began)
}

func TestACopyTooManyIsSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*world, model.VM)
		suspended []string // nodes, ascending
		condition string
	}{
		"on another node": {
			func(w *world, vm model.VM) { w.shows("n2", vm, nil) },
			[]string{"n2"},
			"runs twice: on node1 (epoch 1, its holder) and node2 (epoch 1); what is not its holder's is suspended, and nothing is killed: " +
				"to keep the one on node1, 'virsh destroy web1' on node2; to keep the one on node2, 'virsh destroy web1' on node1, then 'virsh " +
				"resume web1' on node2",
		},
		"without a mark": {func(w *world, vm model.VM) {
			w.shows("n2", vm, func(d *model.Domain) { d.Managed, d.Epoch = false, 0 })
		}, []string{"n2"}, "runs twice: on node1 (epoch 1, its holder) and node2 (without Berth's mark); what is not its holder's is " +
			"suspended, and nothing is killed: " +
			"to keep the one on node1, 'virsh destroy web1' on node2; " +
			"to keep the one on node2, 'virsh destroy web1' on node1, then 'virsh resume web1' on node2 and 'berth vm adopt web1'"},
		"under another name": {
			func(w *world, vm model.VM) { w.shows("n2", vm, func(d *model.Domain) { d.Name = "db1" }) },
			[]string{"n2"},
			"runs twice: on node1 (epoch 1, its holder) and node2 (epoch 1); what is not its holder's is suspended, and nothing is killed: " +
				"to keep the one on node1, 'virsh destroy db1' on node2; to keep the one on node2, 'virsh destroy web1' on node1, then 'virsh " +
				"resume db1' on node2",
		},
		"of the wrong epoch": {func(w *world, vm model.VM) {
			w.edit("n1", vm, func(d *model.Domain) { d.Epoch = 7 })
			w.shows("n2", vm, nil)
		}, []string{"n1", "n2"}, "runs twice: on node1 (epoch 7) and node2 (epoch 1)"},
		"two others": {func(w *world, vm model.VM) {
			w.facts.change("n1", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
			w.shows("n2", vm, nil)
			w.shows("n3", vm, nil)
			w.agents.mu.Lock()
			w.agents.away["n1"] = true
			w.agents.mu.Unlock()
		}, []string{"n2", "n3"}, "runs twice: on node2 (epoch 1) and node3 (epoch 1)"},
		"under a parked operation": {func(w *world, vm model.VM) {
			op := operation.Operation{
				ID: "parked", Kind: operation.Migrate, VM: vm.ID, VMName: vm.Name, Source: "n1", Target: "n2", Epoch: 2, SourceEpoch: 1,
				Phase: operation.Judging, Result: operation.Parked, CreatedAt: time.Now(),
			}
			now := w.vm("web1")
			before := now.Revision
			now.Operation, now.LastEpoch = op.ID, 2
			w.store(state.Command{VMs: []model.VM{now}, Operations: []operation.Operation{op}},
				state.Expectation{Table: state.VMs, ID: now.ID, Revision: before}, state.Expectation{Table: state.Operations, ID: op.ID})
			w.shows("n2", vm, func(d *model.Domain) { d.Epoch = 2 })
		}, []string{"n2"}, "runs twice: on node1 (epoch 1, its holder) and node2 (epoch 2); what is not its holder's is suspended, and " +
			"nothing is killed: " +
			"'berth operation resolve parked' decides which one is the VM"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				vm := w.on("n1", "web1", 1)
				time.Sleep(time.Minute)
				c.change(w, vm)
				took := w.within(2*time.Second, func() bool { return len(w.agents.performed(suspends)) >= len(c.suspended) })
				t.Logf("suspended after %s", took)
				time.Sleep(time.Minute)
				asked := w.agents.performed(suspends)
				if len(asked) != len(c.suspended) {
					t.Fatalf("suspended %+v", asked)
				}
				for _, node := range c.suspended {
					domain := w.facts.Facts(node, time.Now())
					if d := domain.Domain(vm.ID); d == nil || d.State != model.DomainPaused {
						t.Errorf("on %s: %+v", node, d)
					}
				}
				after := w.vm("web1")
				if after.Holder != "n1" || !strings.HasPrefix(after.Condition.Text, c.condition) {
					t.Errorf("holder %s, condition %q", after.Holder, after.Condition.Text)
				}
				if events := w.told("vm.runs-twice"); len(events) != 1 {
					t.Errorf("told %+v", events)
				}
				if events := w.told("vm.copy-suspended"); len(events) != len(c.suspended) {
					t.Errorf("told %+v", events)
				}
				for _, action := range []operation.Action{operation.ActStop, operation.ActDiscard, operation.ActResume} {
					if orders := w.agents.ordered(action); len(orders) > 0 {
						t.Errorf("ordered %+v", orders)
					}
				}
			})
		})
	}
}

// A node may show a copy running for a moment after it was suspended. It is suspended again, and told of once, each time that
// it runs.
func TestACopyThatIsShownLateIsToldOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		time.Sleep(time.Minute)
		for times := 1; times <= 2; times++ {
			began := time.Now()
			running := func() { w.shows("n2", vm, func(d *model.Domain) { d.Since = began }) }
			var asked atomic.Int32
			w.agents.does(func(_ string, task lead.Task) error {
				if task.Suspend != nil && asked.Add(1) < 3 {
					time.AfterFunc(time.Millisecond, running)
				}
				return nil
			})
			running()
			time.Sleep(time.Minute)
			if events := w.told("vm.copy-suspended"); asked.Load() != 3 || len(events) != times {
				t.Errorf("suspended %d times, and told %+v", asked.Load(), events)
			}
		}
	})
}

// onlyTickets answers that a target has a ticket, and nothing else: the migration goes on.
func onlyTickets(order operation.Order) *operation.Answer {
	if order.Action == operation.ActPrepare {
		return obedient(order)
	}
	return nil
}

func TestCopiesThatAreAsTheyShouldBe(t *testing.T) {
	for name, change := range map[string]func(*world, model.VM){
		"a migration by hand, paused on the target": func(w *world, vm model.VM) {
			w.shows("n2", vm, func(d *model.Domain) { d.State = model.DomainPausedMigration })
		},
		"a migration of Berth's, paused on the target": func(w *world, vm model.VM) {
			w.agents.mu.Lock()
			w.agents.script = onlyTickets
			w.agents.mu.Unlock()
			if _, err := w.MigrateVM(w.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: "n2", Caller: "operator/test"}); err != nil {
				w.Fatal(err)
			}
			w.shows("n2", vm, func(d *model.Domain) { d.State, d.Epoch = model.DomainPaused, 2 })
		},
		"a migration of Berth's, whose news trail": func(w *world, vm model.VM) {
			w.agents.mu.Lock()
			w.agents.script = onlyTickets
			w.agents.mu.Unlock()
			if _, err := w.MigrateVM(w.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: "n2", Caller: "operator/test"}); err != nil {
				w.Fatal(err)
			}
			w.shows("n2", vm, func(d *model.Domain) { d.Epoch = 2 })
		},
		"a migration by hand, whose news trail": func(w *world, vm model.VM) {
			w.agents.does(func(_ string, task lead.Task) error {
				if task.Refuse != nil {
					w.facts.change("n1", without(vm.ID)) // it is gone there, which nobody has told yet
				}
				return nil
			})
			w.shows("n2", vm, nil)
		},
		"what is not Berth's": func(w *world, vm model.VM) {
			stranger := vm
			stranger.ID = "11111111-2222-4333-8444-555555555555"
			w.shows("n1", stranger, nil)
			w.shows("n2", stranger, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				vm := w.on("n1", "web1", 1)
				time.Sleep(time.Minute)
				change(w, vm)
				time.Sleep(30 * time.Second)
				if asked := w.agents.performed(suspends); len(asked) > 0 {
					t.Errorf("suspended %+v", asked)
				}
				if after := w.vm("web1"); after.Condition.Is(model.RunsTwice) {
					t.Errorf("condition %q", after.Condition.Text)
				}
			})
		})
	}
}

func TestOneCopyLessEndsTheCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.shows("n2", vm, nil)
		time.Sleep(time.Minute)
		if !w.vm("web1").Condition.Is(model.RunsTwice) {
			t.Fatal("two copies are no condition")
		}
		w.facts.change("n2", without(vm.ID))
		time.Sleep(time.Minute)
		if after := w.vm("web1"); after.Condition.Text != "" || after.Holder != "n1" {
			t.Errorf("vm %+v", after)
		}
		if events := w.told("vm.as-recorded"); len(events) != 1 {
			t.Errorf("told %+v", events)
		}
	})
}

// Whoever decides for the other copy is followed.
func TestThePersonDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.shows("n2", vm, nil)
		time.Sleep(time.Minute)
		w.facts.change("n1", without(vm.ID))
		time.Sleep(time.Minute)
		if after := w.vm("web1"); after.Holder != "n1" || !strings.Contains(after.Condition.Text, "it is paused on node2") {
			t.Errorf("vm %+v", after)
		}
		w.edit("n2", vm, func(d *model.Domain) { d.State = model.DomainRunning })
		time.Sleep(time.Minute)
		if after := w.vm("web1"); after.Holder != "n2" || after.Epoch != vm.Epoch+1 || after.Condition.Text != "" {
			t.Errorf("vm %+v", after)
		}
	})
}
