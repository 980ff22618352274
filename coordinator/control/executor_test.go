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
	"berth/shared/units"
)

// on starts a VM of so many GiB on a node and waits until it runs there.
func (w *world) on(node, name string, gib int) model.VM {
	w.Helper()
	started, err := w.StartVM(w.Context(), lifecycle.StartVM{
		Name: name, Node: node, RequestID: "start " + name, Caller: "operator/test",
		VM: &model.VM{Spec: model.VMSpec{Memory: units.Bytes(gib) * units.GiB, VCPUs: 1, Kernel: "/vmlinuz"}},
	})
	if err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
	vm, _ := w.Store.Snapshot().VM(started.VM.ID)
	if vm.Holder != node {
		w.Fatalf("%s is on %q, want %s", name, vm.Holder, node)
	}
	w.show(vm)
	return vm
}

func (w *world) drain(node string) model.Plan {
	w.Helper()
	drained, err := w.DrainNode(w.Context(), plans.DrainNode{Node: node, RequestID: "drain " + node, Caller: "operator/test"})
	if err != nil {
		w.Fatal(err)
	}
	return drained.Plan
}

// ended is the plan once it has ended, after at most so long.
func (w *world) ended(id string, within time.Duration) model.Plan {
	w.Helper()
	time.Sleep(within)
	plan, _ := w.Store.Snapshot().Plan(id)
	if plan.EndedAt.IsZero() {
		w.Fatalf("after %s the plan is %s: %+v", within, plan.State, moving.Moves(w.Store.Snapshot(), plan))
	}
	return plan
}

// moving is the most migrations that ran at once, of those orders that were answered after the agents' time.
func (w *world) moving() int {
	n := 0
	for _, op := range w.Store.Snapshot().LiveOperations() {
		if op.Kind == operation.Migrate {
			n++
		}
	}
	return n
}

func results(plan model.Plan) string {
	var all []string
	for _, move := range plan.Moves {
		one := move.VMName + " " + move.Result
		if move.Result == model.MoveMoved {
			one += " to " + move.TargetName
		}
		if move.Reason != "" {
			one += " (" + move.Reason + ")"
		}
		all = append(all, one)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestADrainEmptiesTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		var vms []model.VM
		for i := range 4 {
			vms = append(vms, w.on("n1", fmt.Sprintf("web%d", i), 1))
		}
		bystander := w.on("n2", "db", 1)
		w.takes(10 * time.Second)
		plan := w.drain("n1")
		if plan.State != model.PlanRunning || plan.NodeName != "node1" || plan.Parallel != model.DefaultParallelMoves {
			t.Errorf("plan %+v", plan)
		}
		node, _ := w.Store.Snapshot().Node("n1")
		if !node.Maintenance {
			t.Error("the node still takes VMs")
		}
		for range 3 {
			time.Sleep(7 * time.Second)
			if n := w.moving(); n > 2 {
				t.Errorf("%d moves at once", n)
			}
		}
		plan = w.ended(plan.ID, 10*time.Second)
		if plan.State != model.PlanDone || plan.Message != "4 moved" || len(plan.Moves) != 4 {
			t.Errorf("plan is %s: %q\n%s", plan.State, plan.Message, results(plan))
		}
		for _, vm := range vms {
			after := w.vm(vm.Name)
			if after.Holder == "n1" || after.Holder == "" || after.MovedAt.IsZero() || after.Desired != model.Running {
				t.Errorf("vm %+v", after)
			}
			decision, _ := w.Store.Snapshot().Decision(after.Decision)
			if decision.Request.Purpose != "drain" || !decision.Request.Leave {
				t.Errorf("decided as %+v", decision.Request)
			}
		}
		if after := w.vm(bystander.Name); after.Holder != "n2" || !after.MovedAt.IsZero() {
			t.Errorf("bystander %+v", after)
		}
		if node, _ = w.Store.Snapshot().Node("n1"); !node.Maintenance {
			t.Error("the node takes VMs again")
		}
		if len(w.agents.ordered(operation.ActStop)) > 0 {
			t.Error("a drain stopped a VM")
		}
		again, err := w.DrainNode(t.Context(), plans.DrainNode{Node: "n1", RequestID: "drain n1", Caller: "operator/test"})
		if err != nil || again.Plan.ID != plan.ID || again.Plan.State != model.PlanDone {
			t.Errorf("the same request again: %+v, %v", again.Plan, err)
		}
	})
}

func TestAFailedMoveGoesElsewhereAndIsGivenUpInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		lucky, hopeless := w.on("n1", "lucky", 1), w.on("n1", "hopeless", 1)
		failed := ""
		w.agents.mu.Lock()
		w.agents.script = func(order operation.Order) *operation.Answer {
			if order.Action == operation.ActMigrate && (order.VM == hopeless.ID || failed == "" || order.TargetNode == failed) {
				if order.VM == lucky.ID {
					failed = order.TargetNode
				}
				return &operation.Answer{
					Outcome: operation.OutcomeFailed, Error: "no route",
					Seen: operation.Observation{State: model.DomainRunning, Epoch: order.Epoch},
				}
			}
			return obedient(order)
		}
		w.agents.mu.Unlock()
		begun := time.Now()
		plan := w.drain("n1")
		time.Sleep(3 * time.Second)
		for _, move := range moving.Moves(w.Store.Snapshot(), plan) {
			if move.State != moving.Waiting || move.Message != "no route" || move.Attempts != 1 {
				t.Errorf("after the first attempt %s is %s after %d: %q", move.VMName, move.State, move.Attempts, move.Message)
			}
		}
		plan = w.ended(plan.ID, 27*time.Second)
		if plan.State != model.PlanFailed || plan.Message != "1 moved; 1 failed: hopeless (no route)" {
			t.Errorf("plan is %s: %q", plan.State, plan.Message)
		}
		if took := plan.EndedAt.Sub(begun); took < 20*time.Second {
			t.Errorf("three attempts took %s", took)
		}
		if after := w.vm(lucky.Name); after.Holder == "n1" || after.Holder == failed {
			t.Errorf("lucky went to %s, which failed before: %s", after.Holder, failed)
		}
		if after := w.vm(hopeless.Name); after.Holder != "n1" || after.Operation != "" {
			t.Errorf("hopeless %+v", after)
		}
		if tried := w.Store.Snapshot().OperationsOfPlan(plan.ID); len(tried) != 2+3 {
			t.Errorf("%d operations", len(tried))
		}
	})
}

func TestWhatCannotMoveStaysAndIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		pinned, paused := w.on("n1", "pinned", 1), w.on("n1", "paused", 1)
		huge, small := w.on("n1", "huge", 4), w.on("n2", "small", 4)
		w.on("n3", "other", 4)
		w.record(pinned.ID, func(vm *model.VM) { vm.Migration = model.MigrateNever })
		w.facts.change("n1", func(f *model.NodeFacts) {
			for i := range f.Domains {
				if f.Domains[i].UUID == paused.ID {
					f.Domains[i].State, f.Domains[i].Reason = model.DomainPaused, "user"
				}
			}
		})
		plan := w.ended(w.drain("n1").ID, time.Minute)
		if plan.State != model.PlanDone {
			t.Errorf("plan is %s", plan.State)
		}
		for _, want := range []string{
			"huge stays (", `paused stays (VM "paused" is paused on node1 (user))`,
			"pinned stays (pinned may not be moved at all (migration never))",
		} {
			if !strings.Contains(results(plan), want) {
				t.Errorf("no %q in\n%s", want, results(plan))
			}
		}
		if !strings.HasPrefix(plan.Message, "0 moved; 3 stay: ") {
			t.Errorf("message %q", plan.Message)
		}
		for _, vm := range []model.VM{pinned, paused, huge, small} {
			if after := w.vm(vm.Name); after.Holder != vm.Holder || after.Desired != model.Running {
				t.Errorf("vm %+v", after)
			}
		}
		refused := 0
		for _, decision := range w.Store.Snapshot().Decisions(0) {
			if decision.Request.VM == huge.ID && decision.Winner == "" {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d refused decisions about huge are kept, want the last one", refused)
		}
	})
}

// A start that was on its way when the drain began ends on the node, and is drained, too.
func TestALateVMIsDrainedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.on("n1", "web1", 1)
		slow := true
		w.agents.mu.Lock()
		w.agents.script = func(order operation.Order) *operation.Answer {
			if order.Action == operation.ActStart && slow {
				return nil
			}
			return obedient(order)
		}
		w.agents.mu.Unlock()
		late, err := w.StartVM(t.Context(), lifecycle.StartVM{
			Name: "late", Node: "n1", VM: &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Kernel: "/vmlinuz"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		plan := w.drain("n1")
		time.Sleep(time.Minute)
		if plan, _ := w.Store.Snapshot().Plan(plan.ID); plan.State != model.PlanRunning {
			t.Fatalf("the drain ended before the VM came: %s", plan.Message)
		}
		w.agents.mu.Lock()
		slow = false
		w.agents.mu.Unlock()
		late.VM.Holder, late.VM.Epoch = "n1", 1
		w.show(late.VM)
		plan = w.ended(plan.ID, time.Minute)
		if after := w.vm("late"); plan.Message != "2 moved" || after.Holder == "n1" || after.Holder == "" {
			t.Errorf("%q, late is on %q", plan.Message, after.Holder)
		}
	})
}

func TestACancelledDrainBeginsNothingMore(t *testing.T) {
	for _, c := range []struct {
		name, message string
		cancel        func(*world, model.Plan) error
		moved         int
	}{
		{"cancelled", "cancelled by operator/test: 2 moved; 3 left where they are", func(w *world, plan model.Plan) error {
			_, err := w.CancelPlan(w.Context(), plans.CancelPlan{Plan: plan.ID, RequestID: "c", Caller: "operator/test"})
			return err
		}, 2},
		{"aborted", "cancelled by operator/test: 0 moved; 5 left where they are", func(w *world, plan model.Plan) error {
			_, err := w.CancelPlan(w.Context(), plans.CancelPlan{Plan: plan.ID, Abort: true, Caller: "operator/test"})
			return err
		}, 0},
		{"undrained", "node1 takes VMs again: 2 moved; 3 left where they are", func(w *world, _ model.Plan) error {
			_, err := w.UndrainNode(w.Context(), plans.UndrainNode{Node: "n1", RequestID: "u", Caller: "operator/test"})
			return err
		}, 2},
		{"out of maintenance", "node1 was taken out of maintenance: 2 moved; 3 left where they are", func(w *world, _ model.Plan) error {
			w.node("n1", func(node *model.Node) { node.Maintenance = false })
			return nil
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				for i := range 5 {
					w.on("n1", fmt.Sprintf("web%d", i), 1)
				}
				w.takes(20 * time.Second)
				w.agents.mu.Lock()
				w.agents.script = func(order operation.Order) *operation.Answer {
					if order.Action == operation.ActMigrate && w.agents.cancels > 0 {
						return &operation.Answer{
							Outcome: operation.OutcomeCancelled, Error: "cancelled",
							Seen: operation.Observation{State: model.DomainRunning, Epoch: order.Epoch},
						}
					}
					if order.Action == operation.ActMigrate && c.moved == 0 {
						return nil
					}
					return obedient(order)
				}
				w.agents.mu.Unlock()
				plan := w.drain("n1")
				time.Sleep(5 * time.Second)
				if n := w.moving(); n != 2 {
					t.Fatalf("%d moves at once", n)
				}
				if err := c.cancel(w, plan); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if plan, _ := w.Store.Snapshot().Plan(plan.ID); plan.State != model.PlanCancelled || !plan.EndedAt.IsZero() {
					t.Errorf("while the moves still copy, the plan is %s, ended %s", plan.State, plan.EndedAt)
				}
				plan = w.ended(plan.ID, 2*time.Minute)
				if plan.State != model.PlanCancelled || plan.Message != c.message {
					t.Errorf("plan is %s: %q, want %q", plan.State, plan.Message, c.message)
				}
				if _, err := w.CancelPlan(t.Context(), plans.CancelPlan{Plan: plan.ID}); !isCode(err, lead.Conflict) {
					t.Errorf("cancelling what has ended: %v", err)
				}
			})
		})
	}
}

// The record is all that a new leader needs: what copies is taken up, the rest is decided by it, and nothing moves twice.
func TestANewLeaderGoesOnWithADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		for i := range 5 {
			w.on("n1", fmt.Sprintf("web%d", i), 1)
		}
		w.takes(10 * time.Second)
		plan := w.drain("n1")
		time.Sleep(15 * time.Second) // two have moved, two copy
		w.lose()
		half := moving.Moves(w.Store.Snapshot(), plan)
		w.lead(2)
		defer w.lose()
		plan = w.ended(plan.ID, time.Minute)
		if plan.State != model.PlanDone || plan.Message != "5 moved" {
			t.Errorf("plan is %s: %q", plan.State, plan.Message)
		}
		for _, before := range half {
			now := moving.Moves(w.Store.Snapshot(), plan)
			at := slices.IndexFunc(now, func(m moving.Move) bool { return m.VM == before.VM })
			if before.Operation.ID != "" && now[at].Operation.ID != before.Operation.ID {
				t.Errorf("%s was moved again", before.VMName)
			}
		}
		if ops := w.Store.Snapshot().OperationsOfPlan(plan.ID); len(ops) != 5 {
			t.Errorf("%d operations for 5 VMs", len(ops))
		}
	})
}

func TestRefusalsOfPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.on("n1", "web1", 1)
		w.takes(time.Hour)
		w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness, f.LivenessReason = model.Unreachable, "silent for 40s" })
		running := w.drain("n1")
		drain := func(r plans.DrainNode) error { _, err := w.DrainNode(t.Context(), r); return err }
		undrain := func(r plans.UndrainNode) error { _, err := w.UndrainNode(t.Context(), r); return err }
		apply := func(r plans.ApplyPlan) error { _, err := w.ApplyPlan(t.Context(), r); return err }
		propose := func(r plans.ProposePlan) error { _, err := w.ProposePlan(t.Context(), r); return err }
		_, discarded := w.DiscardPlan(t.Context(), plans.DiscardPlan{Plan: running.ID})
		_, unknown := w.CancelPlan(t.Context(), plans.CancelPlan{Plan: "p9"})
		for _, c := range []struct {
			name string
			err  error
			code lead.Code
			says string
		}{
			{"a node that is not there", drain(plans.DrainNode{Node: "n9"}), lead.NotFound, `no node "n9"`},
			{"twice", drain(plans.DrainNode{Node: "n1"}), lead.Conflict, "being drained already, by plan " + running.ID},
			{"a silent node", drain(plans.DrainNode{Node: "n3"}), lead.Unavailable, "silent for 40s"},
			{"too many at once", drain(plans.DrainNode{Node: "n2", Parallel: 17}), lead.Invalid, "17 moves at once: want 1 to 16"},
			{"less than nothing", drain(plans.DrainNode{Node: "n2", Bandwidth: -1}), lead.Invalid, "bandwidth of -1"},
			{"opening a node that is not there", undrain(plans.UndrainNode{Node: "n9"}), lead.NotFound, `no node "n9"`},
			{"back to where nothing was", undrain(plans.UndrainNode{Node: "n2", Return: true}), lead.Conflict, "node2 was not drained"},
			{"an unknown plan", apply(plans.ApplyPlan{Plan: "p9"}), lead.NotFound, `no plan "p9"`},
			{"a plan that runs already", apply(plans.ApplyPlan{Plan: running.ID}), lead.Conflict, "is running"},
			{"discarding a plan that runs", discarded, lead.Conflict, "is running"},
			{"cancelling an unknown plan", unknown, lead.NotFound, `no plan "p9"`},
			{"an unknown cluster", propose(plans.ProposePlan{Cluster: "mars"}), lead.NotFound, `no cluster "mars"`},
			{"more moves than can be", propose(plans.ProposePlan{Cluster: model.DefaultCluster, Most: 1001}), lead.Invalid, "1001 moves"},
		} {
			refusal, ok := isRefusal(c.err)
			if !ok || refusal.Code != c.code || !strings.Contains(refusal.Message, c.says) || refusal.NextStep == "" {
				t.Errorf("%s: %v; want %s saying %q, and a next step", c.name, c.err, c.code, c.says)
			}
		}
	})
}
