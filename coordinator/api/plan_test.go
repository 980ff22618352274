package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/balance"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
	"berth/shared/units"
)

// keepPlan puts a plan into the state, or what has become of it.
func (m *coordinator) keepPlan(plan model.Plan) {
	m.cloud.t.Helper()
	last, _ := m.store.Snapshot().Plan(plan.ID)
	m.propose(state.Command{
		Kind: "test", Expect: []state.Expectation{{Table: state.Plans, ID: plan.ID, Revision: last.Revision}}, Plans: []model.Plan{plan},
	})
}

// aDrain is a drain of hv1 with one VM that moves and one that stays.
func aDrain(id string, at time.Time) model.Plan {
	return model.Plan{
		ID: id, Kind: model.PlanDrain, State: model.PlanRunning, Cluster: model.DefaultCluster, Node: "n1", NodeName: "hv1",
		Caller: "operator/alice", Reason: "new fans", Parallel: 2, CreatedAt: at, UpdatedAt: at,
		Moves: []model.Move{
			{VM: "v1", VMName: "web", Source: "n1", SourceName: "hv1", Target: "n2", TargetName: "hv2", Memory: 2 * units.GiB},
			{VM: "v2", VMName: "db", Source: "n1", SourceName: "hv1", Memory: units.GiB, Stays: true, Reason: "nobody may move it"},
		},
	}
}

func TestDrains(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	m.addNode("n1", "hv1")
	at := m.now()
	var asked []string
	m.control.drain = func(request plans.DrainNode) (plans.Drained, error) {
		asked = append(asked, fmt.Sprintf("%+v", request))
		plan := aDrain("", at)
		if request.RequestID == "again" {
			return plans.Drained{Plan: plan}, nil
		}
		return plans.Drained{Plan: plan, Preflight: balance.Preflight{
			Plan: plan, Headroom: 20 * units.GiB, Largest: 8 * units.GiB, Estimate: 90 * time.Second, Warnings: []string{
				"apart does not hold meanwhile",
			},
		}}, nil
	}
	drain := func(request *berthv1.DrainNodeRequest) (*berthv1.Plan, error) {
		answer, err := client.DrainNode(ctx, connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg.GetPlan(), nil
	}

	t.Run("reach control, and tell the pre-flight", func(t *testing.T) {
		plan, err := drain(&berthv1.DrainNodeRequest{
			Node: "hv1", DryRun: true, Parallel: 3, BandwidthBps: 1 << 20, Reason: "new fans", RequestId: "r1",
		})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%+v", plans.DrainNode{
			Node: "n1", DryRun: true, Parallel: 3, Bandwidth: units.MiB, Reason: "new fans", RequestID: "r1", Caller: "operator/alice",
		})
		if diff := cmp.Diff([]string{want}, asked); diff != "" {
			t.Error(diff)
		}
		if plan.GetNode() != "hv1" || plan.GetHeadroomBytes() != 20<<30 || plan.GetLargestVmBytes() != 8<<30 || plan.GetEstimateSeconds() != 90 ||
			len(plan.GetWarnings()) != 1 {
			t.Errorf("answered %v", plan)
		}
	})

	t.Run("that were begun before tell no pre-flight", func(t *testing.T) {
		plan, err := drain(&berthv1.DrainNodeRequest{Node: "hv1", RequestId: "again"})
		if err != nil || plan.HeadroomBytes != nil || plan.EstimateSeconds != nil {
			t.Errorf("answered %v, %v", plan, err)
		}
	})

	for name, request := range map[string]*berthv1.DrainNodeRequest{
		"too many moves":       {Node: "hv1", Parallel: model.MaxParallelMoves + 1},
		"fewer than no moves":  {Node: "hv1", Parallel: -1},
		"a negative bandwidth": {Node: "hv1", BandwidthBps: -1},
		"a long reason":        {Node: "hv1", Reason: strings.Repeat("x", maxReason+1)},
	} {
		t.Run("refuse "+name, func(t *testing.T) {
			before := len(asked)
			_, err := drain(request)
			wantRefusal(t, err, rpc.Invalid, "node/hv1")
			if len(asked) != before {
				t.Error("control was asked all the same")
			}
		})
	}

	t.Run("refuse a node that does not exist", func(t *testing.T) {
		_, err := drain(&berthv1.DrainNodeRequest{Node: "hv9"})
		wantRefusal(t, err, rpc.NotFound, "node/hv9")
		_, err = client.UndrainNode(ctx, connect.NewRequest(&berthv1.UndrainNodeRequest{Node: "hv9"}))
		wantRefusal(t, err, rpc.NotFound, "node/hv9")
	})

	t.Run("pass on why control refuses", func(t *testing.T) {
		m.control.drain = func(plans.DrainNode) (plans.Drained, error) {
			return plans.Drained{}, &lead.Error{
				Code: lead.Conflict, Subject: "node/hv1", Message: "hv1 is the only node of its cluster", NextStep: "add a node",
			}
		}
		_, err := drain(&berthv1.DrainNodeRequest{Node: "hv1"})
		wantRefusal(t, err, rpc.Conflict, "node/hv1")
	})

	t.Run("are undone, with or without a return", func(t *testing.T) {
		var wanted plans.UndrainNode
		m.control.undrain = func(request plans.UndrainNode) (model.Plan, error) {
			wanted = request
			if !request.Return {
				return model.Plan{}, nil
			}
			plan := aDrain("p2", at)
			plan.Kind = model.PlanReturn
			return plan, nil
		}
		answer, err := client.UndrainNode(ctx, connect.NewRequest(&berthv1.UndrainNodeRequest{Node: "hv1", RequestId: "r2"}))
		if err != nil || answer.Msg.GetNode().GetName() != "hv1" || answer.Msg.Plan != nil {
			t.Errorf("answered %v, %v", answer, err)
		}
		if want := (plans.UndrainNode{Node: "n1", RequestID: "r2", Caller: "operator/alice"}); wanted != want {
			t.Errorf("control was asked %+v", wanted)
		}
		answer, err = client.UndrainNode(ctx, connect.NewRequest(&berthv1.UndrainNodeRequest{Node: "n1", ReturnVms: true, DryRun: true}))
		if err != nil || answer.Msg.GetPlan().GetKind() != "return" || !wanted.Return || !wanted.DryRun {
			t.Errorf("answered %v, %v; control was asked %+v", answer, err, wanted)
		}
		_, err = client.UndrainNode(ctx, connect.NewRequest(&berthv1.UndrainNodeRequest{Node: "hv1", DryRun: true}))
		wantRefusal(t, err, rpc.Invalid, "node/hv1")
	})
}

func TestPlans(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	m.addNode("n1", "hv1")
	m.addNode("n2", "hv2")
	at := m.now()
	first := aDrain("p1-one", at.Add(-time.Hour))
	first.State, first.EndedAt, first.Message = model.PlanDone, at, "1 moved, 1 stays"
	m.keepPlan(first)
	second := aDrain("p1-two", at.Add(-time.Minute))
	m.keepPlan(second)
	m.keepPlan(model.Plan{
		ID: "p3", Kind: model.PlanBalance, State: model.PlanProposed, Cluster: "west", Policy: "vm-evenly-distributed",
		Reason: "hv1 has 14 VMs, hv2 3",
		Unit:   "VMs", Before: 14, Predicted: 9, CreatedAt: at, UpdatedAt: at,
		Moves: []model.Move{{VM: "v3", VMName: "mail", Source: "n1", SourceName: "hv1", Target: "n2", TargetName: "hv2"}},
	})
	get := func(id string) (*berthv1.Plan, error) {
		answer, err := client.GetPlan(ctx, connect.NewRequest(&berthv1.GetPlanRequest{Id: id}))
		if err != nil {
			return nil, err
		}
		return answer.Msg.GetPlan(), nil
	}

	for ref, want := range map[string]string{
		"p1-one": "p1-one", "p3": "p3", "p1-t": "p1-two", "last": "p3", "node/hv1": "p1-two", "node/n1": "p1-two",
	} {
		t.Run("are found as "+ref, func(t *testing.T) {
			if plan, err := get(ref); err != nil || plan.GetId() != want {
				t.Errorf("got %v, %v, want %s", plan, err, want)
			}
		})
	}
	for ref, want := range map[string][2]string{
		"p9": {rpc.NotFound, "plan/p9"}, "": {rpc.NotFound, "plan/"}, "p1": {rpc.Invalid, "plan/p1"},
		"node/hv9": {rpc.NotFound, "node/hv9"}, "node/hv2": {rpc.NotFound, "node/hv2"},
	} {
		t.Run("are not found as "+ref, func(t *testing.T) {
			_, err := get(ref)
			wantRefusal(t, err, want[0], want[1])
		})
	}

	t.Run("tell what is predicted, and what is not known yet", func(t *testing.T) {
		plan, err := get("p3")
		if err != nil {
			t.Fatal(err)
		}
		if plan.GetBefore() != 14 || plan.GetPredicted() != 9 || plan.Observed != nil || plan.GetUnit() != "VMs" ||
			plan.GetState() != "proposed" {
			t.Errorf("got %v", plan)
		}
		drained, err := get("p1-one")
		if err != nil || drained.Before != nil || drained.HeadroomBytes != nil || drained.GetMessage() != "1 moved, 1 stays" {
			t.Errorf("got %v, %v", drained, err)
		}
	})

	t.Run("are listed, newest first", func(t *testing.T) {
		list := func(request *berthv1.ListPlansRequest) string {
			t.Helper()
			answer, err := client.ListPlans(ctx, connect.NewRequest(request))
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, plan := range answer.Msg.GetPlans() {
				ids = append(ids, plan.GetId())
			}
			return strings.Join(ids, " ")
		}
		for want, request := range map[string]*berthv1.ListPlansRequest{
			"p3 p1-two p1-one": {}, "p3 p1-two": {LiveOnly: true}, "p3": {Limit: 1}, "p1-two p1-one": {Cluster: "default"},
		} {
			if got := list(request); got != want {
				t.Errorf("%v: %s, want %s", request, got, want)
			}
		}
		_, err := client.ListPlans(ctx, connect.NewRequest(&berthv1.ListPlansRequest{Cluster: "nowhere"}))
		wantRefusal(t, err, rpc.NotFound, "cluster/nowhere")
		_, err = client.ListPlans(ctx, connect.NewRequest(&berthv1.ListPlansRequest{Limit: -1}))
		wantRefusal(t, err, rpc.Invalid, "")
	})

	t.Run("are proposed by control", func(t *testing.T) {
		var wanted plans.ProposePlan
		m.control.propose = func(request plans.ProposePlan) (model.Plan, error) {
			wanted = request
			return model.Plan{Kind: model.PlanBalance, Cluster: request.Cluster, Reason: "the cluster is even"}, nil
		}
		answer, err := client.ProposePlan(ctx, connect.NewRequest(&berthv1.ProposePlanRequest{Most: 7, DryRun: true, RequestId: "r"}))
		want := plans.ProposePlan{Cluster: "default", Most: 7, DryRun: true, RequestID: "r", Caller: "operator/alice"}
		if err != nil || wanted != want || answer.Msg.GetPlan().GetReason() != "the cluster is even" {
			t.Errorf("answered %v, %v; control was asked %+v", answer, err, wanted)
		}
		for _, most := range []int32{-1, plans.MaxMost + 1} {
			_, err = client.ProposePlan(ctx, connect.NewRequest(&berthv1.ProposePlanRequest{Most: most}))
			wantRefusal(t, err, rpc.Invalid, "")
		}
		_, err = client.ProposePlan(ctx, connect.NewRequest(&berthv1.ProposePlanRequest{Cluster: "nowhere"}))
		wantRefusal(t, err, rpc.NotFound, "cluster/nowhere")
	})

	t.Run("are applied, discarded and cancelled by control", func(t *testing.T) {
		var asked []string
		m.control.ended = func(verb string, request any) (model.Plan, error) {
			asked = append(asked, fmt.Sprintf("%s %+v", verb, request))
			return second, nil
		}
		if _, err := client.ApplyPlan(ctx, connect.NewRequest(&berthv1.ApplyPlanRequest{Id: "last", Parallel: 4, RequestId: "a"})); err != nil {
			t.Error(err)
		}
		if _, err := client.DiscardPlan(ctx, connect.NewRequest(&berthv1.DiscardPlanRequest{Id: "p3", RequestId: "b"})); err != nil {
			t.Error(err)
		}
		if _, err := client.CancelPlan(
			ctx, connect.NewRequest(&berthv1.CancelPlanRequest{Id: "node/hv1", Abort: true, RequestId: "c"}),
		); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{
			"apply {Plan:p3 Parallel:4 RequestID:a Caller:operator/alice}",
			"discard {Plan:p3 RequestID:b Caller:operator/alice}",
			"cancel {Plan:p1-two Abort:true RequestID:c Caller:operator/alice}",
		}, asked); diff != "" {
			t.Error(diff)
		}
		_, err := client.ApplyPlan(ctx, connect.NewRequest(&berthv1.ApplyPlanRequest{Id: "p3", Parallel: 99}))
		wantRefusal(t, err, rpc.Invalid, "plan/p3")
		_, err = client.CancelPlan(ctx, connect.NewRequest(&berthv1.CancelPlanRequest{Id: "p9"}))
		wantRefusal(t, err, rpc.NotFound, "plan/p9")
	})
}

// nextPlan is what a watched plan is next.
func nextPlan(t *testing.T, stream *connect.ServerStreamForClient[berthv1.WatchPlanResponse]) *berthv1.Plan {
	t.Helper()
	if !stream.Receive() {
		t.Fatalf("the stream ended: %v", stream.Err())
	}
	return stream.Msg().GetPlan()
}

func watchPlan(
	ctx context.Context, t *testing.T, client berthv1connect.BerthServiceClient, id string,
) *connect.ServerStreamForClient[berthv1.WatchPlanResponse] {
	t.Helper()
	stream, err := client.WatchPlan(ctx, connect.NewRequest(&berthv1.WatchPlanRequest{Id: id}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	return stream
}

func TestPlansAreWatchedToTheirEnd(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	m.addNode("n1", "hv1")
	m.addNode("n2", "hv2")
	for _, vm := range []model.VM{{ID: "v1", Name: "web", Operation: "o1"}, {ID: "v2", Name: "db"}} {
		vm.Holder, vm.Desired = "n1", model.Running
		m.addVM(vm)
	}
	plan := aDrain("p1", m.now())
	m.keepPlan(plan)
	move := operation.Operation{
		ID: "o1", Kind: operation.Migrate, VM: "v1", VMName: "web", Source: "n1", SourceName: "hv1", Target: "n2", TargetName: "hv2", Plan: "p1",
		Phase: operation.Copying, CreatedAt: m.now(),
	}
	stream := watchPlan(ctx, t, client, "last")
	told := func(plan *berthv1.Plan) string {
		text := plan.GetState()
		for _, move := range plan.GetMoves() {
			text += fmt.Sprintf(
				"; %s %s to %q, %s, %d copied", move.GetVm(), move.GetState(), move.GetTarget(), move.GetOperationId(), move.GetCopiedBytes(),
			)
		}
		return text
	}
	next := func(want string) {
		t.Helper()
		if got := told(nextPlan(t, stream)); got != want {
			t.Errorf("told %s\nwant %s", got, want)
		}
	}
	const stays = `; db stays to "", , 0 copied`
	next(`running; web waiting to "hv2", , 0 copied` + stays)
	m.update(move)
	next(`running; web moving to "hv2", o1, 0 copied` + stays)
	m.report("n1", "o1", &berthv1.MigrationStats{DataProcessedBytes: 42})
	next(`running; web moving to "hv2", o1, 42 copied` + stays)
	plan.State = model.PlanCancelled // what copies is let end
	m.keepPlan(plan)
	next(`cancelled; web moving to "hv2", o1, 42 copied` + stays)
	plan.Message, plan.EndedAt = "1 moved, 1 stays", m.now()
	plan.Moves[0].Result, plan.Moves[1].Result = model.MoveMoved, model.MoveStays
	m.keepPlan(plan)
	last := nextPlan(t, stream)
	if got := told(last); got != `cancelled; web moved to "hv2", o1, 0 copied`+stays || last.GetMessage() != "1 moved, 1 stays" ||
		last.GetEndedAt() == nil {
		t.Errorf("at last %v", last)
	}
	if stream.Receive() || stream.Err() != nil {
		t.Errorf("after the end: %v, %v", stream.Msg(), stream.Err())
	}
	stream = watchPlan(ctx, t, client, "p9")
	stream.Receive()
	wantRefusal(t, stream.Err(), rpc.NotFound, "plan/p9")
}

func TestAWatchedPlanOfAnOldLeaderIsWatchedAgain(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.keepPlan(aDrain("p1", m.now()))
	stream := watchPlan(t.Context(), t, m.operator(), "p1")
	nextPlan(t, stream)
	m.api.Stop()
	for stream.Receive() {
		t.Errorf("told %v", stream.Msg())
	}
	wantRefusal(t, stream.Err(), rpc.Unavailable, "")
}

func TestSeveralVMsStart(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	m.addNode("n1", "hv1")
	for _, name := range []string{"a", "b", "c"} {
		m.addVM(model.VM{ID: "id-" + name, Name: name, Desired: model.Stopped})
	}
	var wanted lifecycle.StartVMs
	m.control.batch = func(request lifecycle.StartVMs) ([]lifecycle.StartedVM, error) {
		wanted = request
		placed := func(id string) lifecycle.Started {
			return lifecycle.Started{
				Operation: operation.Operation{ID: "o-" + id, Kind: operation.Start},
				Decision:  placement.Decision{ID: "d-" + id, Outcome: placement.Placed, WinnerName: "hv1"},
			}
		}
		return []lifecycle.StartedVM{
			{VMName: "b", Started: placed("b"), Unit: []string{"a"}},
			{VMName: "a", Started: placed("a"), Unit: []string{"b"}},
			{VMName: "c", Err: &lead.Error{Code: lead.Busy, Subject: "vm/c", Message: "VM c is busy", NextStep: "wait"}},
		}, nil
	}
	start := func(request *berthv1.StartVMsRequest) ([]*berthv1.StartedVM, error) {
		wanted = lifecycle.StartVMs{}
		answer, err := client.StartVMs(ctx, connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg.GetStarted(), nil
	}

	t.Run("each with what came of it", func(t *testing.T) {
		started, err := start(&berthv1.StartVMsRequest{Vms: []string{"b", "id-a", "c"}, Node: "hv1", RequestId: "r"})
		if err != nil {
			t.Fatal(err)
		}
		want := lifecycle.StartVMs{VMs: []string{"id-b", "id-a", "id-c"}, Node: "n1", RequestID: "r", Caller: "operator/alice"}
		if diff := cmp.Diff(want, wanted); diff != "" {
			t.Error(diff)
		}
		if b := started[0]; b.GetVm() != "b" || b.GetOperation().GetId() != "o-b" || b.GetDecision().GetWinner() != "hv1" ||
			b.GetUnit()[0] != "a" || b.Error != nil {
			t.Errorf("b: %v", b)
		}
		c := started[2]
		if c.Operation != nil || c.Decision != nil || c.GetError().GetCode() != rpc.Busy || c.GetError().GetNextStep() != "wait" ||
			c.GetMessage() != "VM c is busy" {
			t.Errorf("c: %v", c)
		}
	})

	t.Run("the first ones with every node", func(t *testing.T) {
		m.control.batch = func(lifecycle.StartVMs) ([]lifecycle.StartedVM, error) {
			decision := decisions("d1", "a")[0]
			placed := lifecycle.StartedVM{VMName: "a", Started: lifecycle.Started{Decision: decision}}
			refused := lifecycle.StartedVM{
				VMName: "b", Err: &lead.Error{Code: lead.NoNodeFits, Message: "no node fits", NextStep: "wait", Decision: &decision},
			}
			return slices.Repeat([]lifecycle.StartedVM{placed, refused}, maxDetail), nil
		}
		started, err := start(&berthv1.StartVMsRequest{Vms: []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		first, last := started[:2], started[len(started)-2:]
		if len(first[0].GetDecision().GetNodes()) != 1 || len(first[1].GetError().GetDecision().GetNodes()) != 1 {
			t.Errorf("at first %v", first)
		}
		if last[0].GetDecision().GetId() != "d1" || len(
			last[0].GetDecision().GetNodes(),
		) > 0 || last[1].GetError().Decision != nil || last[1].GetError().GetDecisionId() != "d1" {
			t.Errorf("at last %v", last)
		}
	})

	for name, refused := range map[string]struct {
		request       *berthv1.StartVMsRequest
		code, subject string
	}{
		"nothing":               {&berthv1.StartVMsRequest{}, rpc.Invalid, "vm"},
		"too many":              {&berthv1.StartVMsRequest{Vms: make([]string, maxBatch+1)}, rpc.Invalid, "vm"},
		"one twice":             {&berthv1.StartVMsRequest{Vms: []string{"a", "id-a"}}, rpc.Invalid, "vm/a"},
		"one that is not there": {&berthv1.StartVMsRequest{Vms: []string{"a", "x"}}, rpc.NotFound, "vm/x"},
		"a node that is not":    {&berthv1.StartVMsRequest{Vms: []string{"a"}, Node: "hv9"}, rpc.NotFound, "node/hv9"},
	} {
		t.Run("but not "+name, func(t *testing.T) {
			_, err := start(refused.request)
			wantRefusal(t, err, refused.code, refused.subject)
			if wanted.VMs != nil {
				t.Error("control was asked all the same")
			}
		})
	}
}
