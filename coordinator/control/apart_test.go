package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

// lies lets some nodes have storage of their own under the name of the shared pool, and waits until that was tried.
func (w *world) lies(liars ...string) {
	made := map[string]string{}
	storage := func(node string) string {
		for _, liar := range liars {
			if liar == node {
				return node
			}
		}
		return "the server"
	}
	w.agents.mu.Lock()
	w.agents.lock = func(node string, order *lead.TryLock) (bool, error) {
		if order.Step == lead.HoldLock {
			made[order.Volume] = storage(node)
		}
		if order.Step == lead.LookAtLock && made[order.Volume] != storage(node) {
			return false, &lead.TaskError{Code: operation.NoVolume}
		}
		return true, nil
	}
	w.agents.mu.Unlock()
	time.Sleep(11 * time.Minute) // what was tried before without success is tried again
}

const onAnother = "pool wide on node3 is not the one on node1: node3 did not see a file that node2 had made there, tried "

// A VM with a volume in a pool that is called shared, or with a file in its folder, is neither moved to nor started on a node where the
// pool is another one, by name or by choice; the others are bound by nothing.
func TestAPoolThatIsNotSharedKeepsVMsOnTheirSide(t *testing.T) {
	for name, lay := range map[string]func(*world) model.VM{
		"a volume": func(w *world) model.VM {
			request := disked("p-wide")
			request.Node = "n1"
			w.must(request)
			synctest.Wait()
			w.show(w.vm("web1"))
			return w.vm("web1")
		},
		"a file": func(w *world) model.VM {
			vm := w.on("n1", "web1", 1)
			w.record(vm.ID, func(vm *model.VM) {
				vm.Spec.Disks = []model.Disk{{Path: "/srv/wide/web1.raw", Format: "raw", Bus: "virtio"}}
			})
			return w.guest(vm.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer func() { w.lose() }()
				w.put(pools()...)
				for _, node := range []string{"n1", "n2", "n3"} {
					w.facts.change(node, func(f *model.NodeFacts) { f.Pools[1].Path = "/srv/wide" })
				}
				free := w.on("n1", "free", 1)
				vm := lay(w)
				w.lies("n3")
				if pool, _ := w.Store.Snapshot().Resource("p-wide"); w.PoolLocks(w.Store.Snapshot(), &pool).Verdict != evidence.NotShared {
					t.Fatalf("found is %+v", w.PoolLocks(w.Store.Snapshot(), &pool))
				}
				for _, request := range []lifecycle.MigrateVM{{VM: vm.ID, Node: "n3"}, {VM: vm.ID, Node: "n3", DryRun: true}} {
					_, err := w.MigrateVM(t.Context(), request)
					if refusal, is := isRefusal(err); !is || !strings.Contains(refusal.Message, onAnother) {
						t.Errorf("%+v: %v", request, err)
					}
				}
				w.facts.change("n2", func(f *model.NodeFacts) { f.Memory = 0 }) // none fits there, so n3 would be the best
				tried, err := w.DrainNode(t.Context(), plans.DrainNode{Node: "n1", DryRun: true, Caller: "operator/test"})
				if err != nil {
					t.Fatal(err)
				}
				plan := w.drain("n1")
				plan = w.ended(plan.ID, 10*time.Minute)
				for what, moves := range map[string][]model.Move{"the dry run": tried.Plan.Moves, "the drain": plan.Moves} {
					for _, move := range moves {
						if move.Stays != (move.VM == vm.ID) || move.Stays && !strings.Contains(move.Reason, onAnother) {
							t.Errorf("%s: %+v", what, move)
						}
					}
				}
				if w.guest(vm.ID).Holder != "n1" || w.guest(free.ID).Holder != "n3" {
					t.Errorf("%+v and %+v", w.guest(vm.ID), w.guest(free.ID))
				}
				w.stops(vm)
				for _, node := range []string{"n3", ""} {
					_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1", Node: node, RequestID: "again " + node, Caller: "operator/test"})
					if refusal, is := isRefusal(err); !is || !strings.Contains(refusal.Message, onAnother) {
						t.Errorf("started on %q: %v", node, err)
					}
				}
				for _, order := range w.agents.ordered(operation.ActMigrate) {
					if order.VM == vm.ID {
						t.Error("a move was tried")
					}
				}
				w.lies() // somebody has mounted it
				mended := lifecycle.StartVM{Name: "web1", Node: "n3", RequestID: "mended", Caller: "operator/test"}
				if _, err := w.StartVM(t.Context(), mended); err != nil {
					t.Errorf("nothing is apart any more: %v", err)
				}
			})
		})
	}
}

// A node that has lost its mount does not keep the VMs to itself that had their disks there before.
func TestALostMountKeepsNoVMFromItsDisk(t *testing.T) {
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer w.lose()
			w.put(pools()...)
			request := disked("p-wide")
			request.Node = "n1"
			w.must(request)
			synctest.Wait()
			vm := w.vm("web1")
			w.show(vm)
			left := vm.CameAt().Add(-time.Minute)
			if before {
				left = vm.CameAt().Add(time.Minute)
			}
			w.facts.SetApart(model.PoolsApart{"p-wide": {
				Name: "wide", Source: "wide", Sides: map[string]string{"n1": "n1", "n2": "n2", "n3": "n2"}, Each: true,
				Left: map[string]time.Time{"n1": left}, Names: map[string]string{"n1": "node1", "n2": "node2", "n3": "node3"},
			}})
			_, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: "n3", DryRun: true})
			if (err == nil) != before {
				t.Errorf("it came before the mount was lost: %t; it moves: %v", before, err)
			}
		})
	}
}

// The next leader has it from the pool's record before it has tried anything, and takes it out of there once it is mended.
func TestTheNextLeaderKnowsWhichNodesAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		w.store(state.RaiseLevel(state.FeatureLevel))
		w.put(pools()...)
		w.lies("n3")
		recorded := func() model.Resource {
			pool, _ := w.Store.Snapshot().Resource("p-wide")
			return pool
		}
		if apart := w.facts.Apart()["p-wide"]; apart == nil || !apart.Apart("n1", "n3") || apart.Apart("n1", "n2") {
			t.Fatalf("told is %+v", apart)
		}
		before := recorded()
		if len(before.Trials) != 3 {
			t.Errorf("recorded is %+v", before.Trials)
		}
		time.Sleep(time.Hour) // what shows the same again is not written again
		if recorded().Revision != before.Revision {
			t.Error("a trial that showed nothing new was written")
		}
		w.lose()
		w.lead(2)
		synctest.Wait()
		if apart := w.facts.Apart()["p-wide"]; apart == nil || !apart.Apart("n1", "n3") || apart.Apart("n1", "n2") {
			t.Errorf("the next leader has %+v", apart)
		}
		w.lies() // somebody has mounted it
		if apart, left := w.facts.Apart(), recorded().Trials; len(apart) > 0 || len(left) > 0 {
			t.Errorf("mended, and apart are %+v, recorded %+v", apart, left)
		}
	})
}

// A VM that is to be highly available is restarted where its disk is, after the death of its node too.
func TestARestartStaysOnItsSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer func() { w.lose() }()
		w.put(pools()...)
		w.mirrored()
		request := disked("p-wide")
		request.Node = "n1"
		w.must(request)
		synctest.Wait()
		w.lies("n3")
		vm := w.vm("web1")
		w.record(vm.ID, func(vm *model.VM) { vm.HA = true })
		few, much := units.Bytes(10), 8*units.GiB
		w.facts.change("n2", func(f *model.NodeFacts) { f.Available = &few }) // n3 is the only other one with room
		w.silence("n1")
		time.Sleep(10 * time.Minute)
		if holder := w.guest(vm.ID).Holder; holder == "n3" {
			t.Error("it was restarted from another file of the same name")
		}
		if !w.isFenced("n1") {
			t.Error("its node was not proven off, so nothing was tried")
		}
		w.facts.change("n2", func(f *model.NodeFacts) { f.Available = &much })
		time.Sleep(10 * time.Minute)
		if holder := w.guest(vm.ID).Holder; holder != "n2" {
			t.Errorf("it is on %q", holder)
		}
	})
}

// A move is not told to leave files where they are in a pool that is another one on its target.
func TestAMoveLeavesNothingInAPoolThatIsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		w.put(pools()...)
		free := w.on("n1", "free", 1)
		w.facts.SetApart(model.PoolsApart{"p-wide": {
			Name: "wide", Source: "wide", Sides: map[string]string{"n1": "n1", "n2": "n1", "n3": "n3"}, Each: true,
		}})
		for _, node := range []string{"n2", "n3"} {
			if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: free.ID, Node: node}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			w.show(w.guest(free.ID))
		}
		for _, order := range w.agents.ordered(operation.ActMigrate) {
			if same := order.Node == "n1"; slices.Contains(order.SharedPools, "wide") != same {
				t.Errorf("from %s to %s files may stay in %q", order.Node, order.TargetNode, order.SharedPools)
			}
		}
	})
}
