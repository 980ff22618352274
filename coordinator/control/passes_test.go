package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/coordinator/schema"
)

// evened gives the world a cluster with the settings. Its policy balances by the number of VMs: a node with more than two gives VMs
// away, and a node takes one if it has two fewer.
func (w *world) evened(settings map[string]string) {
	w.Helper()
	w.put(model.Resource{
		ID: "policy-even", Kind: model.KindPolicy, Name: "even",
		Settings: map[string]string{schema.SettingGate: "off", schema.SettingBalancer: "even-vm-count"},
		Lists: map[string][]string{
			schema.ListWeighers: {"vm-count=1"}, schema.ListParameters: {"HighVMCount=2", "MigrationThreshold=2"},
		},
	})
	record := defaultCluster(settings)
	record.Links = map[string]string{schema.LinkPolicy: "policy-even"}
	w.put(record)
	w.mirrored()
}

func (w *world) counts() string {
	var counts []string
	for _, node := range []string{"n1", "n2", "n3"} {
		counts = append(counts, fmt.Sprint(len(w.Store.Snapshot().VMsOn(node))))
	}
	return strings.Join(counts, "/")
}

func (w *world) plans(kind model.PlanKind, states ...model.PlanState) []model.Plan {
	return slices.DeleteFunc(w.Store.Snapshot().Plans(), func(p model.Plan) bool {
		return p.Kind != kind || len(states) > 0 && !slices.Contains(states, p.State)
	})
}

func TestAutomaticBalancingEndsAndNeverMovesAVMTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		for i := range 6 {
			w.on("n1", fmt.Sprintf("web%d", i), 1)
		}
		w.evened(map[string]string{model.SettingBalancing: "automatic"})
		w.takes(5 * time.Second)
		w.lose()
		w.lead(2)
		time.Sleep(59 * time.Second)
		if _, looked := w.LastPass(model.DefaultCluster); looked || w.counts() != "6/0/0" {
			t.Fatalf("a new leader began at once: %s", w.counts())
		}
		for range 20 {
			time.Sleep(30 * time.Second)
			if n := w.moving(); n > 1 {
				t.Fatalf("%d moves at once", n)
			}
		}
		if w.counts() != "2/2/2" {
			t.Errorf("VMs are %s", w.counts())
		}
		plans, moved := w.plans(model.PlanBalance), map[string]bool{}
		if len(plans) != 4 {
			t.Errorf("%d plans", len(plans))
		}
		for _, plan := range plans {
			if plan.State != model.PlanDone || plan.Caller != "berth" || len(plan.Moves) != 1 || moved[plan.Moves[0].VM] || plan.Reason == "" {
				t.Errorf("plan %+v", plan)
			}
			moved[plan.Moves[0].VM] = true
			if plan.ObservedAt.IsZero() || plan.Observed != plan.Predicted || plan.Predicted >= plan.Before || plan.Policy != "even" {
				t.Errorf("predicted %v from %v, observed %v at %s", plan.Predicted, plan.Before, plan.Observed, plan.ObservedAt)
			}
		}
		if last, _ := w.LastPass(model.DefaultCluster); last.Idle == "" || time.Since(last.At) > time.Minute {
			t.Errorf("the last pass: %+v", last)
		}
		before := len(w.agents.ordered(operation.ActMigrate))
		time.Sleep(2 * time.Hour) // past the cool-down
		if after := len(w.agents.ordered(operation.ActMigrate)); after != before || w.counts() != "2/2/2" {
			t.Errorf("%d more moves", after-before)
		}
	})
}

// When a VM was moved last is in its record, so that the next leader lets it rest, too.
func TestACoolDownSurvivesAChangeOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		for i := range 3 {
			w.on("n1", fmt.Sprintf("web%d", i), 1)
		}
		w.evened(map[string]string{model.SettingBalancing: "automatic"})
		time.Sleep(3 * time.Minute)
		plans := w.plans(model.PlanBalance)
		if len(plans) != 1 || plans[0].Moves[0].Result != model.MoveMoved {
			t.Fatalf("plans %+v", plans)
		}
		moved := w.vm(plans[0].Moves[0].VMName)
		w.lose()
		w.lead(2)
		for i := range 4 { // its node has the most VMs now, and only it may be moved
			name := fmt.Sprintf("fixed%d", i)
			w.on(moved.Holder, name, 1)
			w.record(w.vm(name).ID, func(vm *model.VM) { vm.Migration = model.MigrateManual })
		}
		for w.vm(moved.Name).MovedAt.Equal(moved.MovedAt) && time.Since(moved.MovedAt) < time.Hour {
			time.Sleep(time.Minute)
		}
		if rested := w.vm(moved.Name).MovedAt.Sub(moved.MovedAt); rested < model.DefaultCooldown || rested > model.DefaultCooldown+5*time.Minute {
			t.Errorf("it was moved again after %s, want %s", rested, model.DefaultCooldown)
		}
	})
}

func TestManualBalancingProposesUntilSomebodySaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		for i := range 4 {
			w.on("n1", fmt.Sprintf("web%d", i), 1)
		}
		w.evened(map[string]string{model.SettingBalancing: "manual"})
		time.Sleep(5 * time.Minute)
		waiting := w.plans(model.PlanBalance)
		if len(waiting) != 1 || waiting[0].State != model.PlanProposed || w.moving() > 0 || w.counts() != "4/0/0" {
			t.Fatalf("after five passes: %+v, VMs %s", waiting, w.counts())
		}
		w.lose()
		w.lead(2) // the proposal is in the record: the next leader keeps it
		time.Sleep(5 * time.Minute)
		if now := w.plans(model.PlanBalance); len(now) != 1 || now[0].ID != waiting[0].ID || now[0].State != model.PlanProposed {
			t.Errorf("after a change of leader: %+v", now)
		}
		if moves := moving.Moves(w.Store.Snapshot(), waiting[0]); len(moves) != 1 || moves[0].State != moving.Waiting {
			t.Errorf("moves %+v", moves)
		}
		running, err := w.ApplyPlan(t.Context(), plans.ApplyPlan{Plan: waiting[0].ID, RequestID: "a", Caller: "operator/test"})
		if err != nil || running.State != model.PlanRunning {
			t.Fatalf("%+v, %v", running, err)
		}
		done := w.ended(running.ID, 30*time.Second)
		if done.State != model.PlanDone || done.Moves[0].Result != model.MoveMoved {
			t.Errorf("plan %+v", done)
		}
		if again, err := w.ApplyPlan(
			t.Context(), plans.ApplyPlan{Plan: waiting[0].ID, RequestID: "a", Caller: "operator/test"},
		); err != nil || again.State != model.PlanDone {
			t.Errorf("the same request again: %+v, %v", again, err)
		}
		time.Sleep(2 * time.Minute)
		next := w.plans(model.PlanBalance, model.PlanProposed)
		if len(next) != 1 {
			t.Fatalf("the next proposal: %+v", next)
		}
		if _, err := w.DiscardPlan(t.Context(), plans.DiscardPlan{Plan: next[0].ID, Caller: "operator/test"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		if again := w.plans(model.PlanBalance, model.PlanProposed); slices.ContainsFunc(
			again, func(p model.Plan) bool { return p.Moves[0].VM == next[0].Moves[0].VM },
		) {
			t.Errorf("what was discarded is proposed again: %+v", again)
		}
	})
}

func TestAProposalThatIsOutOfDateGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		for i := range 4 {
			w.on("n1", fmt.Sprintf("web%d", i), 1)
		}
		w.evened(map[string]string{model.SettingBalancing: "manual"})
		mine, err := w.ProposePlan(t.Context(), plans.ProposePlan{Cluster: model.DefaultCluster, RequestID: "p", Caller: "operator/test"})
		if err != nil || mine.State != model.PlanProposed || len(mine.Moves) != 2 {
			t.Fatalf("%+v, %v", mine, err)
		}
		tried, err := w.ProposePlan(t.Context(), plans.ProposePlan{Cluster: model.DefaultCluster, Most: 1, DryRun: true, Caller: "operator/test"})
		if err != nil || tried.ID != "" || len(tried.Moves) != 1 {
			t.Errorf("tried out: %+v, %v", tried, err)
		}
		time.Sleep(5 * time.Minute)
		if now := w.plans(model.PlanBalance); len(now) != 1 || now[0].ID != mine.ID {
			t.Fatalf("the loop did not leave the proposal alone: %+v", now)
		}
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: mine.Moves[0].VM}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		gone, _ := w.Store.Snapshot().Plan(mine.ID)
		if want := "out of date: " + mine.Moves[0].VMName + " is no longer on node1"; gone.State != model.PlanDiscarded || gone.Message != want {
			t.Errorf("plan is %s: %q, want %q", gone.State, gone.Message, want)
		}
	})
}

func TestABrokenRuleIsToldAndRepaired(t *testing.T) {
	for _, mode := range []string{"automatic", "manual", "off"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer func() { w.lose() }() // of the last leader
				vm := w.on("n1", "db", 1)
				w.evened(map[string]string{model.SettingEnforcement: mode})
				w.put(group("licensed", rules("nodes positive!"), []string{vm.ID}, "n2"))
				time.Sleep(5 * time.Second)
				record, _ := w.Store.Snapshot().Resource("group-licensed")
				told := w.told("group.broken")
				if len(told) != 1 || told[0].Subject != "group/licensed" || !strings.Contains(told[0].Message, "db") {
					t.Errorf("told %+v", told)
				}
				time.Sleep(4 * time.Minute)
				repairs, holds := w.plans(model.PlanRepair), w.told("group.holds")
				last, _ := w.LastPass(model.DefaultCluster)
				switch mode {
				case "automatic":
					if !record.HeldSince.IsZero() {
						t.Errorf("while it is broken it has held since %s", record.HeldSince)
					}
					w.lose() // who leads next knows
					w.lead(2)
					if mended, _ := w.Store.Snapshot().Resource(record.ID); len(holds) == 1 && !mended.HeldSince.Equal(holds[0].At) {
						t.Errorf("it holds since %s, told %+v", mended.HeldSince, holds)
					}
					if w.vm("db").Holder != "n2" || len(repairs) != 1 || repairs[0].State != model.PlanDone ||
						repairs[0].Group != record.ID || len(holds) != 1 {
						t.Errorf("db is on %s, repairs %+v, told %+v", w.vm("db").Holder, repairs, holds)
					}
				case "manual":
					if w.vm("db").Holder != "n1" || len(repairs) != 1 || repairs[0].State != model.PlanProposed || len(holds) != 0 ||
						record.BrokenSince.IsZero() {
						t.Errorf("db is on %s, repairs %+v, broken since %s", w.vm("db").Holder, repairs, record.BrokenSince)
					}
				default:
					if w.vm("db").Holder != "n1" || len(repairs) != 0 || record.BrokenSince.IsZero() || last.Unrepaired[record.ID] == "" {
						t.Errorf("db is on %s, repairs %+v, last pass %+v", w.vm("db").Holder, repairs, last)
					}
				}
			})
		})
	}
}

// A VM for which two rules of different scope ask is told of when the second of them is broken, and not by every pass after it.
func TestAVMThatTwoRulesAskToMoveIsToldOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		vm, other := w.on("n1", "db", 1), w.on("n1", "web", 1)
		w.evened(map[string]string{model.SettingEnforcement: "off"})
		w.put(group("licensed", rules("nodes positive!"), []string{vm.ID}, "n2"))
		time.Sleep(5 * time.Minute)
		if told := w.told("vm.two-repairs"); len(told) > 0 {
			t.Errorf("for one rule: %+v", told)
		}
		w.put(group("apart", rules("vms negative!"), []string{vm.ID, other.ID}))
		time.Sleep(5 * time.Minute)
		w.lose()
		w.lead(2)
		w.put(group("third", rules("nodes positive!"), []string{w.on("n1", "cache", 1).ID}, "n2")) // about another VM
		time.Sleep(5 * time.Minute)
		told := w.told("vm.two-repairs")
		if len(told) != 1 || told[0].Subject != "vm/db" || !strings.Contains(told[0].Message, "group licensed: ") ||
			!strings.Contains(told[0].Message, "group apart: ") {
			t.Errorf("for two rules: %+v", told)
		}
	})
}

func TestAClusterWhereSomethingMovesIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm, other := w.on("n1", "db", 1), w.on("n3", "web1", 1)
		w.evened(map[string]string{model.SettingBalancing: "automatic"})
		w.put(group("licensed", rules("nodes positive!"), []string{vm.ID}, "n2"))
		w.takes(10 * time.Minute)
		if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: other.ID, Node: "n2"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		last, _ := w.LastPass(model.DefaultCluster)
		if want := `VM "web1" migrates from node3 to node2`; last.Idle != want || last.Unrepaired["group-licensed"] != want {
			t.Errorf("the last pass %+v", last)
		}
		if w.moving() != 1 || len(w.plans(model.PlanRepair)) > 0 {
			t.Error("another move began")
		}
		w.takes(0)
		time.Sleep(8 * time.Minute)
		if w.vm("db").Holder != "n2" {
			t.Errorf("db is on %s: %+v", w.vm("db").Holder, w.plans(model.PlanRepair))
		}
	})
}

// When many nodes are silent at once, the fault is more likely in between: nothing is moved until they are heard again.
func TestNothingIsMovedWhileManyNodesAreSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "db", 1)
		w.evened(map[string]string{model.SettingBalancing: "automatic"})
		w.put(group("licensed", rules("nodes positive!"), []string{vm.ID}, "n2"))
		heard := func(liveness model.Liveness) {
			for _, node := range []string{"n1", "n3"} {
				w.facts.change(node, func(f *model.NodeFacts) { f.Liveness = liveness })
			}
		}
		heard(model.Suspect)
		time.Sleep(5 * time.Minute)
		last, _ := w.LastPass(model.DefaultCluster)
		if !strings.HasPrefix(last.Idle, "2 of 3 nodes are silent at once") || len(w.plans(model.PlanRepair)) > 0 {
			t.Errorf("the last pass %+v, plans %+v", last, w.plans(model.PlanRepair))
		}
		heard(model.Up)
		time.Sleep(8 * time.Minute)
		if w.vm("db").Holder != "n2" {
			t.Errorf("db is on %s: %+v", w.vm("db").Holder, w.plans(model.PlanRepair))
		}
	})
}

// Two VMs that a hard rule keeps together leave a node one after the other, for the same target, and room is kept there
// for the second.
func TestAUnitIsDrainedToOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		app, web := w.on("n1", "app1", 2), w.on("n1", "app2", 1)
		w.on("n1", "single", 2)
		w.on("n2", "other2", 2)
		w.on("n3", "other3", 3)
		w.put(group("app", rules("vms positive!"), []string{app.ID, web.ID}))
		w.mirrored()
		w.takes(10 * time.Second)
		plan := w.drain("n1")
		for range 10 {
			time.Sleep(2 * time.Second)
			both := 0
			for _, op := range w.Store.Snapshot().LiveOperations() {
				if op.VM == app.ID || op.VM == web.ID {
					both++
				}
			}
			if both > 1 {
				t.Fatal("both moved at once")
			}
		}
		plan = w.ended(plan.ID, time.Minute)
		if a, b := w.vm("app1").Holder, w.vm("app2").Holder; a != b || a == "n1" || plan.Message != "3 moved" {
			t.Errorf("app1 is on %s, app2 on %s: %s", a, b, plan.Message)
		}
		for _, op := range w.Store.Snapshot().OperationsOfPlan(plan.ID) {
			decision, _ := w.Store.Snapshot().Decision(op.Decision)
			if unit := decision.Request.Unit; op.VM == app.ID && (unit == nil || !slices.Equal(unit.VMs, []string{web.ID})) {
				t.Errorf("app1 was placed with %+v", unit)
			}
		}
	})
}

// A hard rule among VMs does not keep them on a node that is emptied, unless the policy says so.
func TestADrainPartsVMsIfThePolicyLetsIt(t *testing.T) {
	for _, ignores := range []string{"true", "false"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer w.lose()
			a, b, c := w.on("n1", "a", 1), w.on("n2", "b", 1), w.on("n3", "c", 1)
			w.evened(map[string]string{model.SettingEnforcement: "off"})
			policy, _ := w.Store.Snapshot().Resource("policy-even")
			policy.Settings[schema.SettingDrainIgnores] = ignores
			w.put(policy)
			w.put(group("apart", rules("vms negative!"), []string{a.ID, b.ID, c.ID}))
			plan := w.ended(w.drain("n1").ID, 2*time.Minute)
			if gone := w.vm("a").Holder != "n1"; gone != (ignores == "true") {
				t.Errorf("ignores %s: a is on %s: %s", ignores, w.vm("a").Holder, plan.Message)
			}
			if ignores == "false" && !strings.Contains(results(plan), "apart") {
				t.Errorf("nothing says which group keeps it: %s", results(plan))
			}
		})
	}
}

func TestANodeThatIsUndrainedGetsItsVMsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		for i := range 3 {
			w.on("n1", fmt.Sprintf("web%d", i), 1)
		}
		w.on("n2", "db", 1)
		w.evened(map[string]string{model.SettingBalancing: "off"})
		w.ended(w.drain("n1").ID, time.Minute)
		if len(w.Store.Snapshot().VMsOn("n1")) > 0 {
			t.Fatal("the node is not empty")
		}
		tried, err := w.UndrainNode(t.Context(), plans.UndrainNode{Node: "n1", Return: true, DryRun: true, Caller: "operator/test"})
		if node, _ := w.Store.Snapshot().Node("n1"); err != nil || tried.ID != "" || len(tried.Moves) == 0 || !node.Maintenance {
			t.Fatalf("tried out: %+v, %v", tried, err)
		}
		request := plans.UndrainNode{Node: "n1", Return: true, RequestID: "u", Caller: "operator/test"}
		plan, err := w.UndrainNode(t.Context(), request)
		if err != nil || plan.Kind != model.PlanReturn || plan.State != model.PlanRunning {
			t.Fatalf("%+v, %v", plan, err)
		}
		plan = w.ended(plan.ID, time.Minute)
		if node, _ := w.Store.Snapshot().Node("n1"); node.Maintenance || len(
			w.Store.Snapshot().VMsOn("n1"),
		) == 0 || plan.State != model.PlanDone {
			t.Errorf("maintenance %t, VMs %s, plan %s: %s", node.Maintenance, w.counts(), plan.State, plan.Message)
		}
		if _, moved := w.Store.Snapshot().VMByName("db"); !moved || w.vm("db").Holder != "n2" {
			t.Errorf("db, which was never drained, is on %s", w.vm("db").Holder)
		}
		again, err := w.UndrainNode(t.Context(), request)
		if err != nil || again.ID != plan.ID {
			t.Errorf("the same request again: %+v, %v", again, err)
		}
		if _, err := w.UndrainNode(t.Context(), plans.UndrainNode{Node: "n1", Return: true}); !isCode(err, lead.Conflict) {
			t.Errorf("once they are back: %v", err)
		}
	})
}

// Whoever changes their mind says so once: a drain ends what brings VMs back, and what was not brought back can be.
func TestADrainEndsTheReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		for i := range 3 {
			w.on("n1", fmt.Sprintf("web%d", i), 1)
		}
		w.evened(map[string]string{model.SettingBalancing: "off"})
		w.ended(w.drain("n1").ID, time.Minute)
		w.takes(20 * time.Second)
		back, err := w.UndrainNode(t.Context(), plans.UndrainNode{Node: "n1", Return: true, Caller: "operator/test"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := w.UndrainNode(
			t.Context(), plans.UndrainNode{Node: "n1", Return: true},
		); !isCode(err, lead.Conflict) || !strings.Contains(err.Error(), back.ID) {
			t.Errorf("twice: %v", err)
		}
		drained, err := w.DrainNode(t.Context(), plans.DrainNode{Node: "n1", Caller: "operator/test"})
		if err != nil {
			t.Fatal(err)
		}
		back = w.ended(back.ID, 30*time.Second)
		if back.State != model.PlanCancelled || !strings.HasPrefix(back.Message, "node1 is drained again: ") {
			t.Errorf("the return is %s: %q", back.State, back.Message)
		}
		w.ended(drained.Plan.ID, 2*time.Minute)
		if left := w.Store.Snapshot().VMsOn("n1"); len(left) > 0 {
			t.Errorf("%d VMs are on the node", len(left))
		}
		again, err := w.UndrainNode(t.Context(), plans.UndrainNode{Node: "n1", Return: true, DryRun: true})
		if err != nil || len(again.Moves) != 3 {
			t.Errorf("what would come back: %+v, %v", again.Moves, err)
		}
	})
}
