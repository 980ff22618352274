package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/balance"
	"berth/coordinator/control/plans"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// planFacts finds plans in a moment and shows them.
type planFacts struct{ *answer.Moment }

// plan is the message of one plan, with how far its moves have come.
func (p planFacts) plan(plan model.Plan) *berthv1.Plan { return p.planAfter(plan, nil) }

// planAfter is the message of a plan that a pre-flight has made.
func (p planFacts) planAfter(plan model.Plan, preflight *balance.Preflight) *berthv1.Plan {
	return wire.Plan(wire.PlanReport{
		Plan: plan, Group: p.groupOfPlan(plan), Moves: moving.Moves(p.Snapshot, plan), Progress: p.Soft.Progress, Preflight: preflight,
	})
}

// planInShort is the message of a plan in a list: one that has ended is told without its moves.
func (p planFacts) planInShort(plan model.Plan) *berthv1.Plan {
	if plan.State.Live() {
		return p.plan(plan)
	}
	return wire.Plan(wire.PlanReport{Plan: plan, Group: p.groupOfPlan(plan)})
}

func (p planFacts) groupOfPlan(plan model.Plan) string {
	if plan.Group == "" {
		return ""
	}
	return p.ResourceName(plan.Group)
}

// namedPlan finds what a request names: by ID, by the beginning of one that no other plan has, node/NAME for the last drain
// of a node, or last.
func (p planFacts) namedPlan(ref string) (model.Plan, error) {
	if found, known := p.Plan(ref); known {
		return found, nil
	}
	if node, ofNode := strings.CutPrefix(ref, "node/"); ofNode {
		return p.drainOf(node)
	}
	var like []model.Plan
	for _, plan := range p.Plans() {
		if ref == "last" {
			return plan, nil
		}
		if ref != "" && strings.HasPrefix(plan.ID, ref) {
			like = append(like, plan)
		}
	}
	switch len(like) {
	case 0:
		return model.Plan{}, refusal.NotFound("plan", ref)
	case 1:
		return like[0], nil
	default:
		return model.Plan{}, refusal.New(rpc.Invalid, "plan/"+ref, "give more of it: see 'berth plan list'",
			"%d plans have an ID that begins with %q", len(like), ref)
	}
}

// drainOf is the last drain of a node, which may have been removed since.
func (p planFacts) drainOf(ref string) (model.Plan, error) {
	node, known := p.NodeByRef(ref)
	for _, plan := range p.Plans() {
		if plan.Kind == model.PlanDrain && (plan.Node == node.ID || !known && plan.NodeName == ref) {
			return plan, nil
		}
	}
	if !known {
		return model.Plan{}, refusal.NotFound("node", ref)
	}
	return model.Plan{}, refusal.New(rpc.NotFound, "node/"+node.Name, fmt.Sprintf("drain it with 'berth node drain %s'", node.Name),
		"no drain of node %s is kept", node.Name)
}

// ListPlans answers with the newest plans.
func (s *planCalls) ListPlans(
	ctx context.Context, request *connect.Request[berthv1.ListPlansRequest],
) (*connect.Response[berthv1.ListPlansResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.DefaultList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	inside, err := p.ClusterName(request.Msg.GetCluster())
	if err != nil {
		return nil, err
	}
	listed := slices.DeleteFunc(p.Plans(), func(plan model.Plan) bool {
		return inside != "" && plan.Cluster != inside || request.Msg.GetLiveOnly() && !plan.State.Live()
	})
	listed, next := answer.Cut(listed, page, answer.Descending, answer.PlanKey)
	response := &berthv1.ListPlansResponse{SchemaVersion: wire.SchemaVersion, NextPageToken: next}
	for _, plan := range listed {
		response.Plans = append(response.Plans, planFacts{p}.planInShort(plan))
	}
	return connect.NewResponse(response), nil
}

// GetPlan answers with one plan and how far its moves have come.
func (s *planCalls) GetPlan(
	ctx context.Context, request *connect.Request[berthv1.GetPlanRequest],
) (*connect.Response[berthv1.GetPlanResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := planFacts{p}.namedPlan(request.Msg.GetId())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.GetPlanResponse{SchemaVersion: wire.SchemaVersion, Plan: planFacts{p}.plan(plan)}), nil
}

// ProposePlan plans what would even a cluster out.
func (s *planCalls) ProposePlan(
	ctx context.Context, request *connect.Request[berthv1.ProposePlanRequest],
) (*connect.Response[berthv1.ProposePlanResponse], error) {
	message := request.Msg
	if most := message.GetMost(); most < 0 || most > plans.MaxMost {
		return nil, refusal.Invalid("cluster/"+message.GetCluster(), "leave it out for the default",
			fmt.Errorf("%d moves at most are not between 1 and %d", most, plans.MaxMost))
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	inside, err := p.ClusterName(cmp.Or(message.GetCluster(), model.DefaultCluster))
	if err != nil {
		return nil, err
	}
	wanted := plans.ProposePlan{
		Cluster: inside, Most: int(message.GetMost()), DryRun: message.GetDryRun(),
		RequestID: message.GetRequestId(), Caller: gate.CallerOf(ctx).String(),
	}
	plan, err := answer.WhenLeading(ctx, s.Source, func() (model.Plan, error) { return s.Control.ProposePlan(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ProposePlanResponse{SchemaVersion: wire.SchemaVersion, Plan: planFacts{s.Present()}.plan(plan)}), nil
}

// ApplyPlan sets a proposed plan going.
func (s *planCalls) ApplyPlan(
	ctx context.Context, request *connect.Request[berthv1.ApplyPlanRequest],
) (*connect.Response[berthv1.ApplyPlanResponse], error) {
	message := request.Msg
	parallel, err := parallelMoves("plan/"+message.GetId(), message.GetParallel())
	if err != nil {
		return nil, err
	}
	plan, err := s.withPlan(ctx, message.GetId(), func(id string) (model.Plan, error) {
		return s.Control.ApplyPlan(ctx, plans.ApplyPlan{
			Plan: id, Parallel: parallel, RequestID: message.GetRequestId(), Caller: gate.CallerOf(ctx).String(),
		})
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ApplyPlanResponse{SchemaVersion: wire.SchemaVersion, Plan: plan}), nil
}

// DiscardPlan ends a proposed plan without any move.
func (s *planCalls) DiscardPlan(
	ctx context.Context, request *connect.Request[berthv1.DiscardPlanRequest],
) (*connect.Response[berthv1.DiscardPlanResponse], error) {
	plan, err := s.withPlan(ctx, request.Msg.GetId(), func(id string) (model.Plan, error) {
		return s.Control.DiscardPlan(ctx, plans.DiscardPlan{
			Plan: id, RequestID: request.Msg.GetRequestId(), Caller: gate.CallerOf(ctx).String(),
		})
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DiscardPlanResponse{SchemaVersion: wire.SchemaVersion, Plan: plan}), nil
}

// CancelPlan lets no further move of a plan begin.
func (s *planCalls) CancelPlan(
	ctx context.Context, request *connect.Request[berthv1.CancelPlanRequest],
) (*connect.Response[berthv1.CancelPlanResponse], error) {
	plan, err := s.withPlan(ctx, request.Msg.GetId(), func(id string) (model.Plan, error) {
		return s.Control.CancelPlan(ctx, plans.CancelPlan{
			Plan: id, Abort: request.Msg.GetAbort(), RequestID: request.Msg.GetRequestId(), Caller: gate.CallerOf(ctx).String(),
		})
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.CancelPlanResponse{SchemaVersion: wire.SchemaVersion, Plan: plan}), nil
}

// withPlan has control do something to the plan that a request names, and answers with what it is then.
func (s *planCalls) withPlan(ctx context.Context, ref string, do func(id string) (model.Plan, error)) (*berthv1.Plan, error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	found, err := planFacts{p}.namedPlan(ref)
	if err != nil {
		return nil, err
	}
	plan, err := answer.WhenLeading(ctx, s.Source, func() (model.Plan, error) { return do(found.ID) })
	if err != nil {
		return nil, err
	}
	return planFacts{s.Present()}.plan(plan), nil
}

// parallelMoves reads how many moves at once a request asks for; 0: as the cluster says.
func parallelMoves(subject string, asked int32) (int, error) {
	if asked < 0 || asked > model.MaxParallelMoves {
		return 0, refusal.Invalid(subject, "leave it out for what the cluster says",
			fmt.Errorf("%d moves at once are not between 1 and %d", asked, model.MaxParallelMoves))
	}
	return int(asked), nil
}

// WatchPlan sends the plan at once, at every change of it or of its moves and at every progress report, and ends with it. When
// this member loses the leadership the stream breaks with code unavailable; the caller opens it again and misses nothing.
func (s *planCalls) WatchPlan(
	ctx context.Context, request *connect.Request[berthv1.WatchPlanRequest],
	stream *connect.ServerStream[berthv1.WatchPlanResponse],
) error {
	p, err := s.Verified(ctx)
	if err != nil {
		return err
	}
	plan, err := planFacts{p}.namedPlan(request.Msg.GetId())
	if err != nil {
		return err
	}
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	var sent *berthv1.WatchPlanResponse
	for {
		next := &berthv1.WatchPlanResponse{Plan: planFacts{p}.plan(plan)}
		if !proto.Equal(sent, next) {
			if err := stream.Send(next); err != nil {
				return err
			}
			sent = next
		}
		if planOver(plan) {
			return nil
		}
		select {
		case <-p.Changed():
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Stopping:
			return stopping()
		}
		if err := s.Leads(); err != nil {
			return err
		}
		id := plan.ID
		p = s.Present()
		if plan, err = (planFacts{p}).namedPlan(id); err != nil {
			return err
		}
	}
}

// planOver tells whether nothing more comes of a plan. One that was cancelled waits for the moves that copy.
func planOver(plan model.Plan) bool {
	return !plan.State.Live() && (plan.State != model.PlanCancelled || !plan.EndedAt.IsZero())
}

// DrainNode closes a node to VMs and has its VMs moved away.
func (s *planCalls) DrainNode(
	ctx context.Context, request *connect.Request[berthv1.DrainNodeRequest],
) (*connect.Response[berthv1.DrainNodeResponse], error) {
	message := request.Msg
	subject := "node/" + message.GetNode()
	parallel, err := parallelMoves(subject, message.GetParallel())
	if err != nil {
		return nil, err
	}
	bandwidth, err := bandwidthOf(subject, message.GetBandwidthBps())
	if err != nil {
		return nil, err
	}
	if err := checkReason(subject, message.GetReason()); err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	node, err := p.NamedNode(message.GetNode())
	if err != nil {
		return nil, err
	}
	wanted := plans.DrainNode{
		Node: node.ID, DryRun: message.GetDryRun(), Parallel: parallel, Bandwidth: bandwidth, Reason: message.GetReason(),
		RequestID: message.GetRequestId(), Caller: gate.CallerOf(ctx).String(),
	}
	drained, err := answer.WhenLeading(ctx, s.Source, func() (plans.Drained, error) { return s.Control.DrainNode(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DrainNodeResponse{
		SchemaVersion: wire.SchemaVersion, Plan: planFacts{s.Present()}.planAfter(drained.Plan, &drained.Preflight),
	}), nil
}

// UndrainNode opens a node to VMs again, and brings back those that a drain moved away if the request asks for it.
func (s *planCalls) UndrainNode(
	ctx context.Context, request *connect.Request[berthv1.UndrainNodeRequest],
) (*connect.Response[berthv1.UndrainNodeResponse], error) {
	message := request.Msg
	if message.GetDryRun() && !message.GetReturnVms() {
		return nil, refusal.Invalid("node/"+message.GetNode(), "ask for the return of its VMs too, which is what is tried out",
			errors.New("there is nothing to try out"))
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	node, err := p.NamedNode(message.GetNode())
	if err != nil {
		return nil, err
	}
	wanted := plans.UndrainNode{
		Node: node.ID, Return: message.GetReturnVms(), DryRun: message.GetDryRun(),
		RequestID: message.GetRequestId(), Caller: gate.CallerOf(ctx).String(),
	}
	plan, err := answer.WhenLeading(ctx, s.Source, func() (model.Plan, error) { return s.Control.UndrainNode(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	now := s.Present()
	response := &berthv1.UndrainNodeResponse{SchemaVersion: wire.SchemaVersion, Node: nodeMessage(now, node.ID)}
	if plan.Kind != "" {
		response.Plan = planFacts{now}.plan(plan)
	}
	return connect.NewResponse(response), nil
}
