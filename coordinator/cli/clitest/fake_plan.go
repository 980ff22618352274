package clitest

import (
	"context"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// planFake is what a fake answers about groups, plans and drains.
type planFake struct {
	OnStartVMs    func(*berthv1.StartVMsRequest) (*berthv1.StartVMsResponse, error)
	listGroups    func(*berthv1.ListGroupsRequest) (*berthv1.ListGroupsResponse, error)
	getGroup      func(*berthv1.GetGroupRequest) (*berthv1.GetGroupResponse, error)
	OnCreateGroup func(*berthv1.CreateGroupRequest) (*berthv1.CreateGroupResponse, error)
	changeGroup   func(*berthv1.ChangeGroupRequest) (*berthv1.ChangeGroupResponse, error)
	deleteGroup   func(*berthv1.DeleteGroupRequest) (*berthv1.DeleteGroupResponse, error)
	checkGroups   func(*berthv1.CheckGroupsRequest) (*berthv1.CheckGroupsResponse, error)
	OnDrainNode   func(*berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error)
	undrainNode   func(*berthv1.UndrainNodeRequest) (*berthv1.UndrainNodeResponse, error)
	listPlans     func(*berthv1.ListPlansRequest) (*berthv1.ListPlansResponse, error)
	OnGetPlan     func(*berthv1.GetPlanRequest) (*berthv1.GetPlanResponse, error)
	proposePlan   func(*berthv1.ProposePlanRequest) (*berthv1.ProposePlanResponse, error)
	applyPlan     func(*berthv1.ApplyPlanRequest) (*berthv1.ApplyPlanResponse, error)
	discardPlan   func(*berthv1.DiscardPlanRequest) (*berthv1.DiscardPlanResponse, error)
	OnCancelPlan  func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error)
	OnWatchPlan   func(context.Context, *berthv1.WatchPlanRequest, SendPlan) error
}

// SendPlan sends a plan to who watches it.
type SendPlan = func(*berthv1.Plan) error

// StartVMs records the request and answers as OnStartVMs does.
func (f *Fake) StartVMs(
	_ context.Context, r *connect.Request[berthv1.StartVMsRequest],
) (*connect.Response[berthv1.StartVMsResponse], error) {
	return answer(f, r, f.OnStartVMs)
}

// ListGroups records the request and gives the canned answer.
func (f *Fake) ListGroups(
	_ context.Context, r *connect.Request[berthv1.ListGroupsRequest],
) (*connect.Response[berthv1.ListGroupsResponse], error) {
	return answer(f, r, f.listGroups)
}

// GetGroup records the request and gives the canned answer.
func (f *Fake) GetGroup(
	_ context.Context, r *connect.Request[berthv1.GetGroupRequest],
) (*connect.Response[berthv1.GetGroupResponse], error) {
	return answer(f, r, f.getGroup)
}

// CreateGroup records the request and answers as OnCreateGroup does.
func (f *Fake) CreateGroup(
	_ context.Context, r *connect.Request[berthv1.CreateGroupRequest],
) (*connect.Response[berthv1.CreateGroupResponse], error) {
	return answer(f, r, f.OnCreateGroup)
}

// ChangeGroup records the request and gives the canned answer.
func (f *Fake) ChangeGroup(
	_ context.Context, r *connect.Request[berthv1.ChangeGroupRequest],
) (*connect.Response[berthv1.ChangeGroupResponse], error) {
	return answer(f, r, f.changeGroup)
}

// DeleteGroup records the request and gives the canned answer.
func (f *Fake) DeleteGroup(
	_ context.Context, r *connect.Request[berthv1.DeleteGroupRequest],
) (*connect.Response[berthv1.DeleteGroupResponse], error) {
	return answer(f, r, f.deleteGroup)
}

// CheckGroups records the request and gives the canned answer.
func (f *Fake) CheckGroups(
	_ context.Context, r *connect.Request[berthv1.CheckGroupsRequest],
) (*connect.Response[berthv1.CheckGroupsResponse], error) {
	return answer(f, r, f.checkGroups)
}

// DrainNode records the request and answers as OnDrainNode does.
func (f *Fake) DrainNode(
	_ context.Context, r *connect.Request[berthv1.DrainNodeRequest],
) (*connect.Response[berthv1.DrainNodeResponse], error) {
	return answer(f, r, f.OnDrainNode)
}

// UndrainNode records the request and gives the canned answer.
func (f *Fake) UndrainNode(
	_ context.Context, r *connect.Request[berthv1.UndrainNodeRequest],
) (*connect.Response[berthv1.UndrainNodeResponse], error) {
	return answer(f, r, f.undrainNode)
}

// ListPlans records the request and gives the canned answer.
func (f *Fake) ListPlans(
	_ context.Context, r *connect.Request[berthv1.ListPlansRequest],
) (*connect.Response[berthv1.ListPlansResponse], error) {
	return answer(f, r, f.listPlans)
}

// GetPlan records the request and answers as OnGetPlan does.
func (f *Fake) GetPlan(_ context.Context, r *connect.Request[berthv1.GetPlanRequest]) (*connect.Response[berthv1.GetPlanResponse], error) {
	return answer(f, r, f.OnGetPlan)
}

// ProposePlan records the request and gives the canned answer.
func (f *Fake) ProposePlan(
	_ context.Context, r *connect.Request[berthv1.ProposePlanRequest],
) (*connect.Response[berthv1.ProposePlanResponse], error) {
	return answer(f, r, f.proposePlan)
}

// ApplyPlan records the request and gives the canned answer.
func (f *Fake) ApplyPlan(
	_ context.Context, r *connect.Request[berthv1.ApplyPlanRequest],
) (*connect.Response[berthv1.ApplyPlanResponse], error) {
	return answer(f, r, f.applyPlan)
}

// DiscardPlan records the request and gives the canned answer.
func (f *Fake) DiscardPlan(
	_ context.Context, r *connect.Request[berthv1.DiscardPlanRequest],
) (*connect.Response[berthv1.DiscardPlanResponse], error) {
	return answer(f, r, f.discardPlan)
}

// CancelPlan records the request and answers as OnCancelPlan does.
func (f *Fake) CancelPlan(
	_ context.Context, r *connect.Request[berthv1.CancelPlanRequest],
) (*connect.Response[berthv1.CancelPlanResponse], error) {
	return answer(f, r, f.OnCancelPlan)
}

// WatchPlan records the request and sends the plans that OnWatchPlan sends.
func (f *Fake) WatchPlan(
	ctx context.Context, r *connect.Request[berthv1.WatchPlanRequest], stream *connect.ServerStream[berthv1.WatchPlanResponse],
) error {
	f.record(r.Msg)
	return f.OnWatchPlan(ctx, r.Msg, func(plan *berthv1.Plan) error { return stream.Send(&berthv1.WatchPlanResponse{Plan: plan}) })
}
