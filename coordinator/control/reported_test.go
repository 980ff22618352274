package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/plans"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// A new leader begins no move before all nodes have reported to it, or have had a minute to come.
func TestANewLeaderMovesNothingWhileNodesAreOnTheirWay(t *testing.T) {
	for name, comes := range map[string]time.Duration{"the last node comes": 20 * time.Second, "the last node stays away": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer func() { w.lose() }()
				w.on("n1", "web1", 1)
				w.lose()
				reported := func(is bool) {
					w.facts.change("n3", func(f *model.NodeFacts) { f.Inventory, f.Telemetry = is, is })
				}
				reported(false)
				w.lead(2)
				if _, err := w.DrainNode(t.Context(), plans.DrainNode{Node: "n1", RequestID: "drain", Caller: "operator/test"}); err != nil {
					t.Fatal(err)
				}
				begins := min(comes, evidence.FenceGrace)
				time.Sleep(begins - time.Second)
				if orders := w.agents.ordered(operation.ActMigrate); len(orders) > 0 {
					t.Fatalf("it moves after %s: %+v", begins, orders)
				}
				time.Sleep(time.Second)
				reported(comes < evidence.FenceGrace)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if orders := w.agents.ordered(operation.ActMigrate); len(orders) != 1 {
					t.Errorf("after %s it moves %+v", begins, orders)
				}
			})
		})
	}
}

// What the leader does of its own accord waits while people's calls do, and while a fence device is being asked.
func TestBalancingComesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		vm := w.on("n1", "db", 1)
		w.evened(map[string]string{model.SettingBalancing: "automatic"})
		w.put(group("licensed", rules("nodes positive!"), []string{vm.ID}, "n2"))
		w.lose()
		w.callsWait.Store(true)
		w.lead(2)
		idle := func(want string) {
			t.Helper()
			time.Sleep(3 * time.Minute)
			if last, _ := w.LastPass(model.DefaultCluster); !strings.HasPrefix(last.Idle, want) || len(w.plans(model.PlanRepair)) > 0 {
				t.Errorf("the last pass %+v, plans %+v", last, w.plans(model.PlanRepair))
			}
		}
		idle("what people ask for goes first")
		fencing := func(phase model.FencingPhase) {
			w.node("n3", func(n *model.Node) { n.Fencing = model.Fencing{ID: "f1", Phase: phase, AskedAt: time.Now()} })
		}
		fencing(model.FencingAsked)
		w.callsWait.Store(false)
		idle("the fence device of node3 is being asked")
		fencing(model.FencingFailed)
		time.Sleep(8 * time.Minute)
		if w.vm("db").Holder != "n2" {
			t.Errorf("db is on %s: %+v", w.vm("db").Holder, w.plans(model.PlanRepair))
		}
	})
}
