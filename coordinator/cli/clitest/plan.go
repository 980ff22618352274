package clitest

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// planFake answers about plans.
type planFake struct {
	listPlans    func(*berthv1.ListPlansRequest) (*berthv1.ListPlansResponse, error)
	OnGetPlan    func(*berthv1.GetPlanRequest) (*berthv1.GetPlanResponse, error)
	proposePlan  func(*berthv1.ProposePlanRequest) (*berthv1.ProposePlanResponse, error)
	applyPlan    func(*berthv1.ApplyPlanRequest) (*berthv1.ApplyPlanResponse, error)
	discardPlan  func(*berthv1.DiscardPlanRequest) (*berthv1.DiscardPlanResponse, error)
	OnCancelPlan func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error)
	OnWatchPlan  func(context.Context, *berthv1.WatchPlanRequest, SendPlan) error
}

func (f *planFake) listen(l listener) {
	unary(l, berthv1connect.BerthServiceListPlansProcedure, &f.listPlans)
	unary(l, berthv1connect.BerthServiceGetPlanProcedure, &f.OnGetPlan)
	unary(l, berthv1connect.BerthServiceProposePlanProcedure, &f.proposePlan)
	unary(l, berthv1connect.BerthServiceApplyPlanProcedure, &f.applyPlan)
	unary(l, berthv1connect.BerthServiceDiscardPlanProcedure, &f.discardPlan)
	unary(l, berthv1connect.BerthServiceCancelPlanProcedure, &f.OnCancelPlan)
	watch := func(ctx context.Context, r *berthv1.WatchPlanRequest, send func(*berthv1.WatchPlanResponse) error) error {
		return f.OnWatchPlan(ctx, r, func(plan *berthv1.Plan) error { return send(&berthv1.WatchPlanResponse{Plan: plan}) })
	}
	serverStream(l, berthv1connect.BerthServiceWatchPlanProcedure, &watch)
}

// SendPlan sends a plan to who watches it.
type SendPlan = func(*berthv1.Plan) error

func cannedPlanAnswers() planFake {
	return planFake{
		listPlans: func(r *berthv1.ListPlansRequest) (*berthv1.ListPlansResponse, error) {
			answer := &berthv1.ListPlansResponse{
				SchemaVersion: "1", Plans: []*berthv1.Plan{DrainOf("running", "moved", "moving", "waiting"), Evening("proposed")},
			}
			if !r.GetLiveOnly() {
				answer.Plans = append(answer.Plans, endedPlan(DrainOf("done", "moved", "moved", "moved"), "3 moved, 1 stays: pinned"))
			}
			return answer, nil
		},
		OnGetPlan: func(r *berthv1.GetPlanRequest) (*berthv1.GetPlanResponse, error) {
			plan := Evening("done")
			if r.GetId() == "node/node1" {
				plan = DrainOf("running", "moved", "moving", "waiting")
			}
			return &berthv1.GetPlanResponse{SchemaVersion: "1", Plan: plan}, nil
		},
		proposePlan: func(r *berthv1.ProposePlanRequest) (*berthv1.ProposePlanResponse, error) {
			plan := Evening("proposed")
			if r.GetDryRun() {
				plan.Id, plan.CreatedAt, plan.State = "", nil, ""
			}
			if r.GetCluster() == "prod" {
				plan = &berthv1.Plan{Kind: "balance", Cluster: "prod", Reason: "the nodes run 4 to 5 VMs, which is less than the threshold of 5 apart"}
			}
			return &berthv1.ProposePlanResponse{SchemaVersion: "1", Plan: plan}, nil
		},
		applyPlan: func(r *berthv1.ApplyPlanRequest) (*berthv1.ApplyPlanResponse, error) {
			if r.GetId() != Evening("").GetId() {
				return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.Conflict}, "plan %q does not wait", r.GetId())
			}
			return &berthv1.ApplyPlanResponse{SchemaVersion: "1", Plan: Evening("running")}, nil
		},
		discardPlan: func(r *berthv1.DiscardPlanRequest) (*berthv1.DiscardPlanResponse, error) {
			if r.GetId() != Evening("").GetId() {
				return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.Conflict}, "plan %q does not wait", r.GetId())
			}
			return &berthv1.DiscardPlanResponse{SchemaVersion: "1", Plan: Evening("discarded")}, nil
		},
		OnCancelPlan: func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error) {
			return &berthv1.CancelPlanResponse{SchemaVersion: "1", Plan: DrainOf("cancelled", "moved", "moving", "left")}, nil
		},
		OnWatchPlan: func(ctx context.Context, r *berthv1.WatchPlanRequest, send SendPlan) error {
			switch r.GetId() {
			case Evening("").GetId():
				return Runs(Evening("done"))(ctx, r, send)
			case homecoming("").GetId():
				return Runs(homecoming("running", "moving"), homecoming("done", "moved"))(ctx, r, send)
			}
			return Runs(
				DrainOf("running", "moving", "moving", "waiting"), DrainOf("running", "moved", "moving", "moving"),
				DrainOf("done", "moved", "moved", "moved"),
			)(ctx, r, send)
		},
	}
}

// DrainOf is a drain of node1: three VMs that move and one that cannot. The states are those of the first three.
func DrainOf(state string, moves ...string) *berthv1.Plan {
	plan := &berthv1.Plan{
		Id: "3nqk7d2m0p1ab", Kind: "drain", State: state, Cluster: "default", Node: "node1", Caller: "operator/admin",
		Reason: "new memory", Parallel: 2, BandwidthBps: 100 << 20, CreatedAt: Ago(3*time.Minute + 12*time.Second), Revision: 41,
		Moves: []*berthv1.Move{
			{Vm: "db1", Source: "node1", Target: "node2", MemoryBytes: 8 * Gib},
			{Vm: "web1", Source: "node1", Target: "node3", MemoryBytes: 2 * Gib},
			{Vm: "web2", Source: "node1", Target: "node2", MemoryBytes: 2 * Gib},
			{
				Vm: "pinned", Source: "node1", State: "stays", MemoryBytes: Gib,
				Reason: "its migration is set to never; 'berth vm set pinned --migration manual' allows it",
			},
		},
	}
	for i, state := range moves {
		move := plan.Moves[i]
		move.State = state
		switch state {
		case "moving":
			move.Attempts, move.OperationId, move.CopiedBytes, move.RemainingBytes = 1, "3nqk7d2m0x1a"+string(rune('a'+i)), Gib, move.MemoryBytes-Gib
		case "moved":
			move.Attempts = 1
		case "failed":
			move.Attempts, move.Message = 3, "node2 refused it: no space left on device"
		case "left":
			move.Target = ""
		}
	}
	switch state {
	case "done", "failed", "cancelled":
		plan.EndedAt = timestamppb.New(noon)
	}
	return plan
}

// preflightOf is what a dry run of the same drain says.
func preflightOf() *berthv1.Plan {
	plan := DrainOf("proposed", "waiting", "waiting", "waiting")
	plan.Id, plan.State, plan.Revision, plan.CreatedAt = "", "", 0, nil
	plan.HeadroomBytes, plan.LargestVmBytes = proto.Int64(75*Gib), proto.Int64(31*Gib)
	plan.EstimateSeconds = proto.Float64(83)
	plan.Warnings = []string{"group web keeps its VMs apart, and web1 and web2 would be on node3 together meanwhile"}
	return plan
}

// Evening is a plan that evens a cluster out.
func Evening(state string) *berthv1.Plan {
	plan := &berthv1.Plan{
		Id: "3nqk7d2m0p2ab", Kind: "balance", State: state, Cluster: "default", Policy: "vm-evenly-distributed", Caller: "leader",
		Reason: "node1 runs 9 VMs and node3 runs 2", CreatedAt: Ago(5 * time.Minute), Parallel: 2,
		Unit: "VMs between the fullest and the emptiest node", Before: proto.Float64(7), Predicted: proto.Float64(5),
		Moves: []*berthv1.Move{
			{Vm: "web1", Source: "node1", Target: "node3", MemoryBytes: 2 * Gib, State: "waiting", Reason: "node1 runs 9 VMs, node3 2"},
			{Vm: "web2", Source: "node1", Target: "node3", MemoryBytes: 2 * Gib, State: "waiting", Reason: "node1 runs 8 VMs, node3 3"},
		},
	}
	if state == "done" {
		plan.EndedAt, plan.Observed = Ago(4*time.Minute), proto.Float64(5)
		for _, move := range plan.GetMoves() {
			move.State = "moved"
		}
	}
	return plan
}

// endedPlan is a plan as lists have it.
func endedPlan(plan *berthv1.Plan, message string) *berthv1.Plan {
	plan.Moves, plan.Message = nil, message
	return plan
}

// Runs sends plans one after the other to who watches.
func Runs(plans ...*berthv1.Plan) func(context.Context, *berthv1.WatchPlanRequest, SendPlan) error {
	return func(_ context.Context, _ *berthv1.WatchPlanRequest, send SendPlan) error {
		for _, plan := range plans {
			if err := send(plan); err != nil {
				return err
			}
		}
		return nil
	}
}

// homecoming brings one VM back to node1; another one is better off where it is.
func homecoming(state string, moves ...string) *berthv1.Plan {
	plan := &berthv1.Plan{
		Id: "3nqk7d2m0p3ab", Kind: "return", State: state, Cluster: "default", Node: "node1", Caller: "operator/admin",
		CreatedAt: Ago(time.Minute),
		Moves: []*berthv1.Move{
			{Vm: "db1", Source: "node2", Target: "node1", MemoryBytes: 8 * Gib, Reason: "node1 is the best node for it"},
			{Vm: "web1", Source: "node3", State: "stays", MemoryBytes: 2 * Gib, Reason: "node3 is better for it by 12"},
		},
	}
	for i, state := range moves {
		plan.Moves[i].State = state
	}
	if state == "done" {
		plan.EndedAt = timestamppb.New(noon)
	}
	return plan
}
