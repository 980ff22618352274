package clitest

import (
	"context"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// estateFake is what a fake answers about the estate, keys and explanations.
type estateFake struct {
	listResources    func(*berthv1.ListResourcesRequest) (*berthv1.ListResourcesResponse, error)
	getResource      func(*berthv1.GetResourceRequest) (*berthv1.GetResourceResponse, error)
	addResource      func(*berthv1.AddResourceRequest) (*berthv1.AddResourceResponse, error)
	OnChangeResource func(*berthv1.ChangeResourceRequest) (*berthv1.ChangeResourceResponse, error)
	deleteResource   func(*berthv1.DeleteResourceRequest) (*berthv1.DeleteResourceResponse, error)
	setKey           func(*berthv1.SetKeyRequest) (*berthv1.SetKeyResponse, error)
	unsetKey         func(*berthv1.UnsetKeyRequest) (*berthv1.UnsetKeyResponse, error)
	listKeys         func(*berthv1.ListKeysRequest) (*berthv1.ListKeysResponse, error)
	compiledKeys     func(*berthv1.CompiledKeysRequest) (*berthv1.CompiledKeysResponse, error)
	declareNodeKey   func(*berthv1.DeclareNodeKeyRequest) (*berthv1.DeclareNodeKeyResponse, error)
	dropNodeKey      func(*berthv1.DropNodeKeyRequest) (*berthv1.DropNodeKeyResponse, error)
	OnApplyEstate    func(*berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error)
	OnExportEstate   func(*berthv1.ExportEstateRequest) (*berthv1.ExportEstateResponse, error)
	OnAddVM          func(*berthv1.AddVMRequest) (*berthv1.AddVMResponse, error)
	changeVM         func(*berthv1.ChangeVMRequest) (*berthv1.ChangeVMResponse, error)
	OnReplay         func(*berthv1.ReplayDecisionRequest) (*berthv1.ReplayDecisionResponse, error)
	vmHistory        func(*berthv1.VMHistoryRequest) (*berthv1.VMHistoryResponse, error)
	whyVM            func(*berthv1.WhyVMRequest) (*berthv1.WhyVMResponse, error)
	whyNot           func(*berthv1.WhyNotRequest) (*berthv1.WhyNotResponse, error)
	OnRoomFor        func(*berthv1.CapacityRequest) (*berthv1.CapacityResponse, error)
}

// ListResources records the request and gives the canned answer.
func (f *Fake) ListResources(
	_ context.Context, r *connect.Request[berthv1.ListResourcesRequest],
) (*connect.Response[berthv1.ListResourcesResponse], error) {
	return answer(f, r, f.listResources)
}

// GetResource records the request and gives the canned answer.
func (f *Fake) GetResource(
	_ context.Context, r *connect.Request[berthv1.GetResourceRequest],
) (*connect.Response[berthv1.GetResourceResponse], error) {
	return answer(f, r, f.getResource)
}

// AddResource records the request and gives the canned answer.
func (f *Fake) AddResource(
	_ context.Context, r *connect.Request[berthv1.AddResourceRequest],
) (*connect.Response[berthv1.AddResourceResponse], error) {
	return answer(f, r, f.addResource)
}

// ChangeResource records the request and answers as OnChangeResource does.
func (f *Fake) ChangeResource(
	_ context.Context, r *connect.Request[berthv1.ChangeResourceRequest],
) (*connect.Response[berthv1.ChangeResourceResponse], error) {
	return answer(f, r, f.OnChangeResource)
}

// DeleteResource records the request and gives the canned answer.
func (f *Fake) DeleteResource(
	_ context.Context, r *connect.Request[berthv1.DeleteResourceRequest],
) (*connect.Response[berthv1.DeleteResourceResponse], error) {
	return answer(f, r, f.deleteResource)
}

// SetKey records the request and gives the canned answer.
func (f *Fake) SetKey(_ context.Context, r *connect.Request[berthv1.SetKeyRequest]) (*connect.Response[berthv1.SetKeyResponse], error) {
	return answer(f, r, f.setKey)
}

// UnsetKey records the request and gives the canned answer.
func (f *Fake) UnsetKey(
	_ context.Context, r *connect.Request[berthv1.UnsetKeyRequest],
) (*connect.Response[berthv1.UnsetKeyResponse], error) {
	return answer(f, r, f.unsetKey)
}

// ListKeys records the request and gives the canned answer.
func (f *Fake) ListKeys(
	_ context.Context, r *connect.Request[berthv1.ListKeysRequest],
) (*connect.Response[berthv1.ListKeysResponse], error) {
	return answer(f, r, f.listKeys)
}

// CompiledKeys records the request and gives the canned answer.
func (f *Fake) CompiledKeys(
	_ context.Context, r *connect.Request[berthv1.CompiledKeysRequest],
) (*connect.Response[berthv1.CompiledKeysResponse], error) {
	return answer(f, r, f.compiledKeys)
}

// DeclareNodeKey records the request and gives the canned answer.
func (f *Fake) DeclareNodeKey(
	_ context.Context, r *connect.Request[berthv1.DeclareNodeKeyRequest],
) (*connect.Response[berthv1.DeclareNodeKeyResponse], error) {
	return answer(f, r, f.declareNodeKey)
}

// DropNodeKey records the request and gives the canned answer.
func (f *Fake) DropNodeKey(
	_ context.Context, r *connect.Request[berthv1.DropNodeKeyRequest],
) (*connect.Response[berthv1.DropNodeKeyResponse], error) {
	return answer(f, r, f.dropNodeKey)
}

// ApplyEstate records the request and answers as OnApplyEstate does.
func (f *Fake) ApplyEstate(
	_ context.Context, r *connect.Request[berthv1.ApplyEstateRequest],
) (*connect.Response[berthv1.ApplyEstateResponse], error) {
	return answer(f, r, f.OnApplyEstate)
}

// ExportEstate records the request and answers as OnExportEstate does.
func (f *Fake) ExportEstate(
	_ context.Context, r *connect.Request[berthv1.ExportEstateRequest],
) (*connect.Response[berthv1.ExportEstateResponse], error) {
	return answer(f, r, f.OnExportEstate)
}

// AddVM records the request and answers as OnAddVM does.
func (f *Fake) AddVM(_ context.Context, r *connect.Request[berthv1.AddVMRequest]) (*connect.Response[berthv1.AddVMResponse], error) {
	return answer(f, r, f.OnAddVM)
}

// ChangeVM records the request and gives the canned answer.
func (f *Fake) ChangeVM(
	_ context.Context, r *connect.Request[berthv1.ChangeVMRequest],
) (*connect.Response[berthv1.ChangeVMResponse], error) {
	return answer(f, r, f.changeVM)
}

// ReplayDecision records the request and answers as OnReplay does.
func (f *Fake) ReplayDecision(
	_ context.Context, r *connect.Request[berthv1.ReplayDecisionRequest],
) (*connect.Response[berthv1.ReplayDecisionResponse], error) {
	return answer(f, r, f.OnReplay)
}

// WhyVM records the request and gives the canned answer.
func (f *Fake) WhyVM(_ context.Context, r *connect.Request[berthv1.WhyVMRequest]) (*connect.Response[berthv1.WhyVMResponse], error) {
	return answer(f, r, f.whyVM)
}

// VMHistory records the request and gives the canned answer.
func (f *Fake) VMHistory(
	_ context.Context, r *connect.Request[berthv1.VMHistoryRequest],
) (*connect.Response[berthv1.VMHistoryResponse], error) {
	return answer(f, r, f.vmHistory)
}

// WhyNot records the request and gives the canned answer.
func (f *Fake) WhyNot(_ context.Context, r *connect.Request[berthv1.WhyNotRequest]) (*connect.Response[berthv1.WhyNotResponse], error) {
	return answer(f, r, f.whyNot)
}

// Capacity records the request and answers as OnRoomFor does.
func (f *Fake) Capacity(
	_ context.Context, r *connect.Request[berthv1.CapacityRequest],
) (*connect.Response[berthv1.CapacityResponse], error) {
	return answer(f, r, f.OnRoomFor)
}
