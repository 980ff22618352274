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

	"berth/coordinator/api/wire"
	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/control"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// plan is the message of one plan, with how far its moves have come.
func (p *picture) plan(plan cluster.Plan) *berthv1.Plan { return p.planAfter(plan, nil) }

// planAfter is the message of a plan that a pre-flight has made.
func (p *picture) planAfter(plan cluster.Plan, preflight *balance.Preflight) *berthv1.Plan {
	return wire.Plan(wire.PlanReport{
		Plan: plan, Group: p.groupOfPlan(plan), Moves: control.Moves(p.Snapshot, plan), Progress: p.soft.Progress, Preflight: preflight,
	})
}

// planInShort is the message of a plan in a list: one that has ended is told without its moves.
func (p *picture) planInShort(plan cluster.Plan) *berthv1.Plan {
	if plan.State.Live() {
		return p.plan(plan)
	}
	return wire.Plan(wire.PlanReport{Plan: plan, Group: p.groupOfPlan(plan)})
}

func (p *picture) groupOfPlan(plan cluster.Plan) string {
	if plan.Group == "" {
		return ""
	}
	return p.resourceName(plan.Group)
}

// namedPlan finds what a request names: by ID, by the beginning of one that no other plan has, node/NAME for the last drain
// of a node, or last.
func (p *picture) namedPlan(ref string) (cluster.Plan, error) {
	if found, known := p.Plan(ref); known {
		return found, nil
	}
	if node, ofNode := strings.CutPrefix(ref, "node/"); ofNode {
		return p.drainOf(node)
	}
	var like []cluster.Plan
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
		return cluster.Plan{}, notFound("plan", ref)
	case 1:
		return like[0], nil
	default:
		return cluster.Plan{}, refusal(rpc.Invalid, "plan/"+ref, "give more of it: see 'berth plan list'",
			"%d plans have an ID that begins with %q", len(like), ref)
	}
}

// drainOf is the last drain of a node, which may have been removed since.
func (p *picture) drainOf(ref string) (cluster.Plan, error) {
	node, known := p.NodeByRef(ref)
	for _, plan := range p.Plans() {
		if plan.Kind == cluster.PlanDrain && (plan.Node == node.ID || !known && plan.NodeName == ref) {
			return plan, nil
		}
	}
	if !known {
		return cluster.Plan{}, notFound("node", ref)
	}
	return cluster.Plan{}, refusal(rpc.NotFound, "node/"+node.Name, fmt.Sprintf("drain it with 'berth node drain %s'", node.Name),
		"no drain of node %s is kept", node.Name)
}

// ListPlans answers with the newest plans.
func (s *Server) ListPlans(
	ctx context.Context, request *connect.Request[berthv1.ListPlansRequest],
) (*connect.Response[berthv1.ListPlansResponse], error) {
	page, err := extentOf(request.Msg, defaultList)
	if err != nil {
		return nil, err
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	inside, err := p.clusterName(request.Msg.GetCluster())
	if err != nil {
		return nil, err
	}
	plans := slices.DeleteFunc(p.Plans(), func(plan cluster.Plan) bool {
		return inside != "" && plan.Cluster != inside || request.Msg.GetLiveOnly() && !plan.State.Live()
	})
	plans, next := cut(plans, page, descending, planKey)
	response := &berthv1.ListPlansResponse{SchemaVersion: wire.SchemaVersion, NextPageToken: next}
	for _, plan := range plans {
		response.Plans = append(response.Plans, p.planInShort(plan))
	}
	return connect.NewResponse(response), nil
}

// clusterName resolves the name or ID of a cluster. Empty stays empty.
func (p *picture) clusterName(ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	record, err := p.resource(cluster.KindCluster, ref)
	return record.Name, err
}

// GetPlan answers with one plan and how far its moves have come.
func (s *Server) GetPlan(
	ctx context.Context, request *connect.Request[berthv1.GetPlanRequest],
) (*connect.Response[berthv1.GetPlanResponse], error) {
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := p.namedPlan(request.Msg.GetId())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.GetPlanResponse{SchemaVersion: wire.SchemaVersion, Plan: p.plan(plan)}), nil
}

// ProposePlan plans what would even a cluster out.
func (s *Server) ProposePlan(
	ctx context.Context, request *connect.Request[berthv1.ProposePlanRequest],
) (*connect.Response[berthv1.ProposePlanResponse], error) {
	message := request.Msg
	if most := message.GetMost(); most < 0 || most > control.MaxMost {
		return nil, invalid("cluster/"+message.GetCluster(), "leave it out for the default",
			fmt.Errorf("%d moves at most are not between 1 and %d", most, control.MaxMost))
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	inside, err := p.clusterName(cmp.Or(message.GetCluster(), cluster.DefaultCluster))
	if err != nil {
		return nil, err
	}
	wanted := control.ProposePlan{
		Cluster: inside, Most: int(message.GetMost()), DryRun: message.GetDryRun(),
		RequestID: message.GetRequestId(), Caller: callerOf(ctx).String(),
	}
	plan, err := whenLeading(ctx, s, func() (cluster.Plan, error) { return s.Control.ProposePlan(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ProposePlanResponse{SchemaVersion: wire.SchemaVersion, Plan: s.present().plan(plan)}), nil
}

// ApplyPlan sets a proposed plan going.
func (s *Server) ApplyPlan(
	ctx context.Context, request *connect.Request[berthv1.ApplyPlanRequest],
) (*connect.Response[berthv1.ApplyPlanResponse], error) {
	message := request.Msg
	parallel, err := parallelMoves("plan/"+message.GetId(), message.GetParallel())
	if err != nil {
		return nil, err
	}
	plan, err := s.withPlan(ctx, message.GetId(), func(id string) (cluster.Plan, error) {
		return s.Control.ApplyPlan(ctx, control.ApplyPlan{
			Plan: id, Parallel: parallel, RequestID: message.GetRequestId(), Caller: callerOf(ctx).String(),
		})
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ApplyPlanResponse{SchemaVersion: wire.SchemaVersion, Plan: plan}), nil
}

// DiscardPlan ends a proposed plan without any move.
func (s *Server) DiscardPlan(
	ctx context.Context, request *connect.Request[berthv1.DiscardPlanRequest],
) (*connect.Response[berthv1.DiscardPlanResponse], error) {
	plan, err := s.withPlan(ctx, request.Msg.GetId(), func(id string) (cluster.Plan, error) {
		return s.Control.DiscardPlan(ctx, control.DiscardPlan{
			Plan: id, RequestID: request.Msg.GetRequestId(), Caller: callerOf(ctx).String(),
		})
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DiscardPlanResponse{SchemaVersion: wire.SchemaVersion, Plan: plan}), nil
}

// CancelPlan lets no further move of a plan begin.
func (s *Server) CancelPlan(
	ctx context.Context, request *connect.Request[berthv1.CancelPlanRequest],
) (*connect.Response[berthv1.CancelPlanResponse], error) {
	plan, err := s.withPlan(ctx, request.Msg.GetId(), func(id string) (cluster.Plan, error) {
		return s.Control.CancelPlan(ctx, control.CancelPlan{
			Plan: id, Abort: request.Msg.GetAbort(), RequestID: request.Msg.GetRequestId(), Caller: callerOf(ctx).String(),
		})
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.CancelPlanResponse{SchemaVersion: wire.SchemaVersion, Plan: plan}), nil
}

// withPlan has control do something to the plan that a request names, and answers with what it is then.
func (s *Server) withPlan(ctx context.Context, ref string, do func(id string) (cluster.Plan, error)) (*berthv1.Plan, error) {
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	found, err := p.namedPlan(ref)
	if err != nil {
		return nil, err
	}
	plan, err := whenLeading(ctx, s, func() (cluster.Plan, error) { return do(found.ID) })
	if err != nil {
		return nil, err
	}
	return s.present().plan(plan), nil
}

// parallelMoves reads how many moves at once a request asks for; 0: as the cluster says.
func parallelMoves(subject string, asked int32) (int, error) {
	if asked < 0 || asked > cluster.MaxParallelMoves {
		return 0, invalid(subject, "leave it out for what the cluster says",
			fmt.Errorf("%d moves at once are not between 1 and %d", asked, cluster.MaxParallelMoves))
	}
	return int(asked), nil
}

// WatchPlan sends the plan at once, at every change of it or of its moves and at every progress report, and ends with it. When
// this member loses the leadership the stream breaks with code unavailable; the caller opens it again and misses nothing.
func (s *Server) WatchPlan(
	ctx context.Context, request *connect.Request[berthv1.WatchPlanRequest],
	stream *connect.ServerStream[berthv1.WatchPlanResponse],
) error {
	p, err := s.verified(ctx)
	if err != nil {
		return err
	}
	plan, err := p.namedPlan(request.Msg.GetId())
	if err != nil {
		return err
	}
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	var sent *berthv1.WatchPlanResponse
	for {
		next := &berthv1.WatchPlanResponse{Plan: p.plan(plan)}
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
		case <-s.stopping:
			return stopping()
		}
		if err := s.leads(); err != nil {
			return err
		}
		id := plan.ID
		p = s.present()
		if plan, err = p.namedPlan(id); err != nil {
			return err
		}
	}
}

// planOver tells whether nothing more comes of a plan. One that was cancelled waits for the moves that copy.
func planOver(plan cluster.Plan) bool {
	return !plan.State.Live() && (plan.State != cluster.PlanCancelled || !plan.EndedAt.IsZero())
}

// DrainNode closes a node to VMs and has its VMs moved away.
func (s *Server) DrainNode(
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
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	node, err := p.namedNode(message.GetNode())
	if err != nil {
		return nil, err
	}
	wanted := control.DrainNode{
		Node: node.ID, DryRun: message.GetDryRun(), Parallel: parallel, Bandwidth: bandwidth, Reason: message.GetReason(),
		RequestID: message.GetRequestId(), Caller: callerOf(ctx).String(),
	}
	drained, err := whenLeading(ctx, s, func() (control.Drained, error) { return s.Control.DrainNode(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DrainNodeResponse{
		SchemaVersion: wire.SchemaVersion, Plan: s.present().planAfter(drained.Plan, &drained.Preflight),
	}), nil
}

// UndrainNode opens a node to VMs again, and brings back those that a drain moved away if the request asks for it.
func (s *Server) UndrainNode(
	ctx context.Context, request *connect.Request[berthv1.UndrainNodeRequest],
) (*connect.Response[berthv1.UndrainNodeResponse], error) {
	message := request.Msg
	if message.GetDryRun() && !message.GetReturnVms() {
		return nil, invalid("node/"+message.GetNode(), "ask for the return of its VMs too, which is what is tried out",
			errors.New("there is nothing to try out"))
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	node, err := p.namedNode(message.GetNode())
	if err != nil {
		return nil, err
	}
	wanted := control.UndrainNode{
		Node: node.ID, Return: message.GetReturnVms(), DryRun: message.GetDryRun(),
		RequestID: message.GetRequestId(), Caller: callerOf(ctx).String(),
	}
	plan, err := whenLeading(ctx, s, func() (cluster.Plan, error) { return s.Control.UndrainNode(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	now := s.present()
	response := &berthv1.UndrainNodeResponse{SchemaVersion: wire.SchemaVersion, Node: now.node(node.ID)}
	if plan.Kind != "" {
		response.Plan = now.plan(plan)
	}
	return connect.NewResponse(response), nil
}
