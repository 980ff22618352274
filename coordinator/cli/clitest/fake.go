package clitest

import (
	"context"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// Last is the last recorded request of the same kind as like.
func (f *Fake) Last(like proto.Message) proto.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.calls) - 1; i >= 0; i-- {
		if m, ok := f.calls[i].(proto.Message); ok && m.ProtoReflect().Descriptor() == like.ProtoReflect().Descriptor() {
			return m
		}
	}
	return like.ProtoReflect().New().Interface()
}

// Fake is a coordinator that answers what a test tells it to.
type Fake struct {
	berthv1connect.UnimplementedBerthServiceHandler
	berthv1connect.UnimplementedEnrolmentServiceHandler

	recording
	estateFake
	planFake
	storageFake

	OnStatus      func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error)
	OnListNodes   func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error)
	getNode       func(*berthv1.GetNodeRequest) (*berthv1.GetNodeResponse, error)
	fenceNode     func(*berthv1.FenceNodeRequest) (*berthv1.FenceNodeResponse, error)
	setNode       func(*berthv1.SetNodeRequest) (*berthv1.SetNodeResponse, error)
	maintenance   func(*berthv1.SetNodeMaintenanceRequest) (*berthv1.SetNodeMaintenanceResponse, error)
	removeNode    func(*berthv1.RemoveNodeRequest) (*berthv1.RemoveNodeResponse, error)
	OnListVMs     func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error)
	OnGetVM       func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error)
	OnStartVM     func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error)
	stopVM        func(*berthv1.StopVMRequest) (*berthv1.StopVMResponse, error)
	OnMigrateVM   func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error)
	OnDeleteVM    func(*berthv1.DeleteVMRequest) (*berthv1.DeleteVMResponse, error)
	OnListOps     func(*berthv1.ListOperationsRequest) (*berthv1.ListOperationsResponse, error)
	getOp         func(*berthv1.GetOperationRequest) (*berthv1.GetOperationResponse, error)
	resolveOp     func(*berthv1.ResolveOperationRequest) (*berthv1.ResolveOperationResponse, error)
	OnAdoptVMs    func(*berthv1.AdoptVMsRequest) (*berthv1.AdoptVMsResponse, error)
	releaseVM     func(*berthv1.ReleaseVMRequest) (*berthv1.ReleaseVMResponse, error)
	cancelOp      func(*berthv1.CancelOperationRequest) (*berthv1.CancelOperationResponse, error)
	OnWatchOp     func(context.Context, *berthv1.WatchOperationRequest, func(*berthv1.WatchOperationResponse) error) error
	decisions     func(*berthv1.ListDecisionsRequest) (*berthv1.ListDecisionsResponse, error)
	OnGetDecision func(*berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error)
	OnEvents      func(context.Context, *berthv1.WatchEventsRequest, func(*berthv1.WatchEventsResponse) error) error
	members       func(*berthv1.ListMembersRequest) (*berthv1.ListMembersResponse, error)
	OnRemove      func(*berthv1.RemoveMemberRequest) (*berthv1.RemoveMemberResponse, error)
	OnSave        func(send func(*berthv1.SaveSnapshotResponse) error) error
	OnRestore     func(data []byte) (*berthv1.RestoreSnapshotResponse, error)
	token         func(*berthv1.CreateTokenRequest) (*berthv1.CreateTokenResponse, error)
	OnEnrol       func(*berthv1.EnrolRequest) (*berthv1.EnrolResponse, error)
}

// answer records the request and answers it as the test wants.
func answer[Q, A any](f *Fake, request *connect.Request[Q], how func(*Q) (*A, error)) (*connect.Response[A], error) {
	f.record(request.Msg)
	if how == nil {
		return nil, rpc.Errorf(connect.CodeInternal, &berthv1.ErrorDetail{Code: rpc.Internal}, "the test did not expect %T", request.Msg)
	}
	message, err := how(request.Msg)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

// recording keeps what a fake was asked.
type recording struct {
	mu    sync.Mutex
	calls []any // the requests, in order
}

func (r *recording) record(message any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, message)
}

// Asked are the recorded requests of one kind.
func Asked[Q any](f *Fake) []*Q {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []*Q
	for _, call := range f.calls {
		if request, ok := call.(*Q); ok {
			found = append(found, request)
		}
	}
	return found
}

// Status records the request and answers as OnStatus does.
func (f *Fake) Status(_ context.Context, r *connect.Request[berthv1.StatusRequest]) (*connect.Response[berthv1.StatusResponse], error) {
	return answer(f, r, f.OnStatus)
}

// ListNodes records the request and answers as OnListNodes does.
func (f *Fake) ListNodes(
	_ context.Context, r *connect.Request[berthv1.ListNodesRequest],
) (*connect.Response[berthv1.ListNodesResponse], error) {
	return answer(f, r, f.OnListNodes)
}

// GetNode records the request and gives the canned answer.
func (f *Fake) GetNode(_ context.Context, r *connect.Request[berthv1.GetNodeRequest]) (*connect.Response[berthv1.GetNodeResponse], error) {
	return answer(f, r, f.getNode)
}

// FenceNode records the request and gives the canned answer.
func (f *Fake) FenceNode(
	_ context.Context, r *connect.Request[berthv1.FenceNodeRequest],
) (*connect.Response[berthv1.FenceNodeResponse], error) {
	return answer(f, r, f.fenceNode)
}

// SetNode records the request and gives the canned answer.
func (f *Fake) SetNode(_ context.Context, r *connect.Request[berthv1.SetNodeRequest]) (*connect.Response[berthv1.SetNodeResponse], error) {
	return answer(f, r, f.setNode)
}

// SetNodeMaintenance records the request and gives the canned answer.
func (f *Fake) SetNodeMaintenance(
	_ context.Context, r *connect.Request[berthv1.SetNodeMaintenanceRequest],
) (*connect.Response[berthv1.SetNodeMaintenanceResponse], error) {
	return answer(f, r, f.maintenance)
}

// RemoveNode records the request and gives the canned answer.
func (f *Fake) RemoveNode(
	_ context.Context, r *connect.Request[berthv1.RemoveNodeRequest],
) (*connect.Response[berthv1.RemoveNodeResponse], error) {
	return answer(f, r, f.removeNode)
}

// ListVMs records the request and answers as OnListVMs does.
func (f *Fake) ListVMs(_ context.Context, r *connect.Request[berthv1.ListVMsRequest]) (*connect.Response[berthv1.ListVMsResponse], error) {
	return answer(f, r, f.OnListVMs)
}

// GetVM records the request and answers as OnGetVM does.
func (f *Fake) GetVM(_ context.Context, r *connect.Request[berthv1.GetVMRequest]) (*connect.Response[berthv1.GetVMResponse], error) {
	return answer(f, r, f.OnGetVM)
}

// StartVM records the request and answers as OnStartVM does.
func (f *Fake) StartVM(_ context.Context, r *connect.Request[berthv1.StartVMRequest]) (*connect.Response[berthv1.StartVMResponse], error) {
	return answer(f, r, f.OnStartVM)
}

// StopVM records the request and gives the canned answer.
func (f *Fake) StopVM(_ context.Context, r *connect.Request[berthv1.StopVMRequest]) (*connect.Response[berthv1.StopVMResponse], error) {
	return answer(f, r, f.stopVM)
}

// MigrateVM records the request and answers as OnMigrateVM does.
func (f *Fake) MigrateVM(
	_ context.Context, r *connect.Request[berthv1.MigrateVMRequest],
) (*connect.Response[berthv1.MigrateVMResponse], error) {
	return answer(f, r, f.OnMigrateVM)
}

// DeleteVM records the request and answers as OnDeleteVM does.
func (f *Fake) DeleteVM(
	_ context.Context, r *connect.Request[berthv1.DeleteVMRequest],
) (*connect.Response[berthv1.DeleteVMResponse], error) {
	return answer(f, r, f.OnDeleteVM)
}

// ListOperations records the request and answers as OnListOps does.
func (f *Fake) ListOperations(
	_ context.Context, r *connect.Request[berthv1.ListOperationsRequest],
) (*connect.Response[berthv1.ListOperationsResponse], error) {
	return answer(f, r, f.OnListOps)
}

// GetOperation records the request and gives the canned answer.
func (f *Fake) GetOperation(
	_ context.Context, r *connect.Request[berthv1.GetOperationRequest],
) (*connect.Response[berthv1.GetOperationResponse], error) {
	return answer(f, r, f.getOp)
}

// CancelOperation records the request and gives the canned answer.
func (f *Fake) CancelOperation(
	_ context.Context, r *connect.Request[berthv1.CancelOperationRequest],
) (*connect.Response[berthv1.CancelOperationResponse], error) {
	return answer(f, r, f.cancelOp)
}

// ResolveOperation records the request and gives the canned answer.
func (f *Fake) ResolveOperation(
	_ context.Context, r *connect.Request[berthv1.ResolveOperationRequest],
) (*connect.Response[berthv1.ResolveOperationResponse], error) {
	return answer(f, r, f.resolveOp)
}

// AdoptVMs records the request and answers as OnAdoptVMs does.
func (f *Fake) AdoptVMs(
	_ context.Context, r *connect.Request[berthv1.AdoptVMsRequest],
) (*connect.Response[berthv1.AdoptVMsResponse], error) {
	return answer(f, r, f.OnAdoptVMs)
}

// ReleaseVM records the request and gives the canned answer.
func (f *Fake) ReleaseVM(
	_ context.Context, r *connect.Request[berthv1.ReleaseVMRequest],
) (*connect.Response[berthv1.ReleaseVMResponse], error) {
	return answer(f, r, f.releaseVM)
}

// WatchOperation records the request and sends what OnWatchOp sends.
func (f *Fake) WatchOperation(
	ctx context.Context, r *connect.Request[berthv1.WatchOperationRequest],
	stream *connect.ServerStream[berthv1.WatchOperationResponse],
) error {
	f.record(r.Msg)
	return f.OnWatchOp(ctx, r.Msg, stream.Send)
}

// ListDecisions records the request and gives the canned answer.
func (f *Fake) ListDecisions(
	_ context.Context, r *connect.Request[berthv1.ListDecisionsRequest],
) (*connect.Response[berthv1.ListDecisionsResponse], error) {
	return answer(f, r, f.decisions)
}

// GetDecision records the request and answers as OnGetDecision does.
func (f *Fake) GetDecision(
	_ context.Context, r *connect.Request[berthv1.GetDecisionRequest],
) (*connect.Response[berthv1.GetDecisionResponse], error) {
	return answer(f, r, f.OnGetDecision)
}

// WatchEvents records the request and sends what OnEvents sends.
func (f *Fake) WatchEvents(
	ctx context.Context, r *connect.Request[berthv1.WatchEventsRequest], stream *connect.ServerStream[berthv1.WatchEventsResponse],
) error {
	f.record(r.Msg)
	return f.OnEvents(ctx, r.Msg, stream.Send)
}

// ListMembers records the request and gives the canned answer.
func (f *Fake) ListMembers(
	_ context.Context, r *connect.Request[berthv1.ListMembersRequest],
) (*connect.Response[berthv1.ListMembersResponse], error) {
	return answer(f, r, f.members)
}

// RemoveMember records the request and answers as OnRemove does.
func (f *Fake) RemoveMember(
	_ context.Context, r *connect.Request[berthv1.RemoveMemberRequest],
) (*connect.Response[berthv1.RemoveMemberResponse], error) {
	return answer(f, r, f.OnRemove)
}

// SaveSnapshot sends what OnSave sends. It records nothing, for the request is empty.
func (f *Fake) SaveSnapshot(
	_ context.Context, _ *connect.Request[berthv1.SaveSnapshotRequest], stream *connect.ServerStream[berthv1.SaveSnapshotResponse],
) error {
	return f.OnSave(stream.Send)
}

// RestoreSnapshot gives the whole upload to OnRestore. It records nothing.
func (f *Fake) RestoreSnapshot(
	_ context.Context, stream *connect.ClientStream[berthv1.RestoreSnapshotRequest],
) (*connect.Response[berthv1.RestoreSnapshotResponse], error) {
	var data []byte
	for stream.Receive() {
		data = append(data, stream.Msg().GetChunk()...)
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	message, err := f.OnRestore(data)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

// CreateToken records the request and gives the canned answer.
func (f *Fake) CreateToken(
	_ context.Context, r *connect.Request[berthv1.CreateTokenRequest],
) (*connect.Response[berthv1.CreateTokenResponse], error) {
	return answer(f, r, f.token)
}

// Enrol records the request and answers as OnEnrol does.
func (f *Fake) Enrol(_ context.Context, r *connect.Request[berthv1.EnrolRequest]) (*connect.Response[berthv1.EnrolResponse], error) {
	return answer(f, r, f.OnEnrol)
}
