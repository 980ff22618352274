package cli

import (
	"context"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// planFake is what a fake answers about groups, plans and drains.
type planFake struct {
	startVMs    func(*berthv1.StartVMsRequest) (*berthv1.StartVMsResponse, error)
	listGroups  func(*berthv1.ListGroupsRequest) (*berthv1.ListGroupsResponse, error)
	getGroup    func(*berthv1.GetGroupRequest) (*berthv1.GetGroupResponse, error)
	createGroup func(*berthv1.CreateGroupRequest) (*berthv1.CreateGroupResponse, error)
	changeGroup func(*berthv1.ChangeGroupRequest) (*berthv1.ChangeGroupResponse, error)
	deleteGroup func(*berthv1.DeleteGroupRequest) (*berthv1.DeleteGroupResponse, error)
	checkGroups func(*berthv1.CheckGroupsRequest) (*berthv1.CheckGroupsResponse, error)
	drainNode   func(*berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error)
	undrainNode func(*berthv1.UndrainNodeRequest) (*berthv1.UndrainNodeResponse, error)
	listPlans   func(*berthv1.ListPlansRequest) (*berthv1.ListPlansResponse, error)
	getPlan     func(*berthv1.GetPlanRequest) (*berthv1.GetPlanResponse, error)
	proposePlan func(*berthv1.ProposePlanRequest) (*berthv1.ProposePlanResponse, error)
	applyPlan   func(*berthv1.ApplyPlanRequest) (*berthv1.ApplyPlanResponse, error)
	discardPlan func(*berthv1.DiscardPlanRequest) (*berthv1.DiscardPlanResponse, error)
	cancelPlan  func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error)
	watchPlan   func(context.Context, *berthv1.WatchPlanRequest, sendPlan) error
}

// sendPlan sends a plan to who watches it.
type sendPlan = func(*berthv1.Plan) error

func (f *fake) StartVMs(_ context.Context, r *connect.Request[berthv1.StartVMsRequest]) (*connect.Response[berthv1.StartVMsResponse], error) {
	return answer(f, r, f.startVMs)
}

func (f *fake) ListGroups(_ context.Context, r *connect.Request[berthv1.ListGroupsRequest]) (*connect.Response[berthv1.ListGroupsResponse], error) {
	return answer(f, r, f.listGroups)
}

func (f *fake) GetGroup(_ context.Context, r *connect.Request[berthv1.GetGroupRequest]) (*connect.Response[berthv1.GetGroupResponse], error) {
	return answer(f, r, f.getGroup)
}

func (f *fake) CreateGroup(_ context.Context, r *connect.Request[berthv1.CreateGroupRequest]) (*connect.Response[berthv1.CreateGroupResponse], error) {
	return answer(f, r, f.createGroup)
}

func (f *fake) ChangeGroup(_ context.Context, r *connect.Request[berthv1.ChangeGroupRequest]) (*connect.Response[berthv1.ChangeGroupResponse], error) {
	return answer(f, r, f.changeGroup)
}

func (f *fake) DeleteGroup(_ context.Context, r *connect.Request[berthv1.DeleteGroupRequest]) (*connect.Response[berthv1.DeleteGroupResponse], error) {
	return answer(f, r, f.deleteGroup)
}

func (f *fake) CheckGroups(_ context.Context, r *connect.Request[berthv1.CheckGroupsRequest]) (*connect.Response[berthv1.CheckGroupsResponse], error) {
	return answer(f, r, f.checkGroups)
}

func (f *fake) DrainNode(_ context.Context, r *connect.Request[berthv1.DrainNodeRequest]) (*connect.Response[berthv1.DrainNodeResponse], error) {
	return answer(f, r, f.drainNode)
}

func (f *fake) UndrainNode(_ context.Context, r *connect.Request[berthv1.UndrainNodeRequest]) (*connect.Response[berthv1.UndrainNodeResponse], error) {
	return answer(f, r, f.undrainNode)
}

func (f *fake) ListPlans(_ context.Context, r *connect.Request[berthv1.ListPlansRequest]) (*connect.Response[berthv1.ListPlansResponse], error) {
	return answer(f, r, f.listPlans)
}

func (f *fake) GetPlan(_ context.Context, r *connect.Request[berthv1.GetPlanRequest]) (*connect.Response[berthv1.GetPlanResponse], error) {
	return answer(f, r, f.getPlan)
}

func (f *fake) ProposePlan(_ context.Context, r *connect.Request[berthv1.ProposePlanRequest]) (*connect.Response[berthv1.ProposePlanResponse], error) {
	return answer(f, r, f.proposePlan)
}

func (f *fake) ApplyPlan(_ context.Context, r *connect.Request[berthv1.ApplyPlanRequest]) (*connect.Response[berthv1.ApplyPlanResponse], error) {
	return answer(f, r, f.applyPlan)
}

func (f *fake) DiscardPlan(_ context.Context, r *connect.Request[berthv1.DiscardPlanRequest]) (*connect.Response[berthv1.DiscardPlanResponse], error) {
	return answer(f, r, f.discardPlan)
}

func (f *fake) CancelPlan(_ context.Context, r *connect.Request[berthv1.CancelPlanRequest]) (*connect.Response[berthv1.CancelPlanResponse], error) {
	return answer(f, r, f.cancelPlan)
}

func (f *fake) WatchPlan(ctx context.Context, r *connect.Request[berthv1.WatchPlanRequest], stream *connect.ServerStream[berthv1.WatchPlanResponse]) error {
	f.record(r.Msg)
	return f.watchPlan(ctx, r.Msg, func(plan *berthv1.Plan) error { return stream.Send(&berthv1.WatchPlanResponse{Plan: plan}) })
}
