package cli

import (
	"context"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// estateFake is what a fake answers about the estate, keys and explanations.
type estateFake struct {
	listResources  func(*berthv1.ListResourcesRequest) (*berthv1.ListResourcesResponse, error)
	getResource    func(*berthv1.GetResourceRequest) (*berthv1.GetResourceResponse, error)
	addResource    func(*berthv1.AddResourceRequest) (*berthv1.AddResourceResponse, error)
	changeResource func(*berthv1.ChangeResourceRequest) (*berthv1.ChangeResourceResponse, error)
	deleteResource func(*berthv1.DeleteResourceRequest) (*berthv1.DeleteResourceResponse, error)
	setKey         func(*berthv1.SetKeyRequest) (*berthv1.SetKeyResponse, error)
	unsetKey       func(*berthv1.UnsetKeyRequest) (*berthv1.UnsetKeyResponse, error)
	listKeys       func(*berthv1.ListKeysRequest) (*berthv1.ListKeysResponse, error)
	compiledKeys   func(*berthv1.CompiledKeysRequest) (*berthv1.CompiledKeysResponse, error)
	declareNodeKey func(*berthv1.DeclareNodeKeyRequest) (*berthv1.DeclareNodeKeyResponse, error)
	dropNodeKey    func(*berthv1.DropNodeKeyRequest) (*berthv1.DropNodeKeyResponse, error)
	applyEstate    func(*berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error)
	exportEstate   func(*berthv1.ExportEstateRequest) (*berthv1.ExportEstateResponse, error)
	addVM          func(*berthv1.AddVMRequest) (*berthv1.AddVMResponse, error)
	changeVM       func(*berthv1.ChangeVMRequest) (*berthv1.ChangeVMResponse, error)
	replay         func(*berthv1.ReplayDecisionRequest) (*berthv1.ReplayDecisionResponse, error)
	whyVM          func(*berthv1.WhyVMRequest) (*berthv1.WhyVMResponse, error)
	whyNot         func(*berthv1.WhyNotRequest) (*berthv1.WhyNotResponse, error)
	roomFor        func(*berthv1.CapacityRequest) (*berthv1.CapacityResponse, error)
}

func (f *fake) ListResources(_ context.Context, r *connect.Request[berthv1.ListResourcesRequest]) (*connect.Response[berthv1.ListResourcesResponse], error) {
	return answer(f, r, f.listResources)
}

func (f *fake) GetResource(_ context.Context, r *connect.Request[berthv1.GetResourceRequest]) (*connect.Response[berthv1.GetResourceResponse], error) {
	return answer(f, r, f.getResource)
}

func (f *fake) AddResource(_ context.Context, r *connect.Request[berthv1.AddResourceRequest]) (*connect.Response[berthv1.AddResourceResponse], error) {
	return answer(f, r, f.addResource)
}

func (f *fake) ChangeResource(_ context.Context, r *connect.Request[berthv1.ChangeResourceRequest]) (*connect.Response[berthv1.ChangeResourceResponse], error) {
	return answer(f, r, f.changeResource)
}

func (f *fake) DeleteResource(_ context.Context, r *connect.Request[berthv1.DeleteResourceRequest]) (*connect.Response[berthv1.DeleteResourceResponse], error) {
	return answer(f, r, f.deleteResource)
}

func (f *fake) SetKey(_ context.Context, r *connect.Request[berthv1.SetKeyRequest]) (*connect.Response[berthv1.SetKeyResponse], error) {
	return answer(f, r, f.setKey)
}

func (f *fake) UnsetKey(_ context.Context, r *connect.Request[berthv1.UnsetKeyRequest]) (*connect.Response[berthv1.UnsetKeyResponse], error) {
	return answer(f, r, f.unsetKey)
}

func (f *fake) ListKeys(_ context.Context, r *connect.Request[berthv1.ListKeysRequest]) (*connect.Response[berthv1.ListKeysResponse], error) {
	return answer(f, r, f.listKeys)
}

func (f *fake) CompiledKeys(_ context.Context, r *connect.Request[berthv1.CompiledKeysRequest]) (*connect.Response[berthv1.CompiledKeysResponse], error) {
	return answer(f, r, f.compiledKeys)
}

func (f *fake) DeclareNodeKey(_ context.Context, r *connect.Request[berthv1.DeclareNodeKeyRequest]) (*connect.Response[berthv1.DeclareNodeKeyResponse], error) {
	return answer(f, r, f.declareNodeKey)
}

func (f *fake) DropNodeKey(_ context.Context, r *connect.Request[berthv1.DropNodeKeyRequest]) (*connect.Response[berthv1.DropNodeKeyResponse], error) {
	return answer(f, r, f.dropNodeKey)
}

func (f *fake) ApplyEstate(_ context.Context, r *connect.Request[berthv1.ApplyEstateRequest]) (*connect.Response[berthv1.ApplyEstateResponse], error) {
	return answer(f, r, f.applyEstate)
}

func (f *fake) ExportEstate(_ context.Context, r *connect.Request[berthv1.ExportEstateRequest]) (*connect.Response[berthv1.ExportEstateResponse], error) {
	return answer(f, r, f.exportEstate)
}

func (f *fake) AddVM(_ context.Context, r *connect.Request[berthv1.AddVMRequest]) (*connect.Response[berthv1.AddVMResponse], error) {
	return answer(f, r, f.addVM)
}

func (f *fake) ChangeVM(_ context.Context, r *connect.Request[berthv1.ChangeVMRequest]) (*connect.Response[berthv1.ChangeVMResponse], error) {
	return answer(f, r, f.changeVM)
}

func (f *fake) ReplayDecision(_ context.Context, r *connect.Request[berthv1.ReplayDecisionRequest]) (*connect.Response[berthv1.ReplayDecisionResponse], error) {
	return answer(f, r, f.replay)
}

func (f *fake) WhyVM(_ context.Context, r *connect.Request[berthv1.WhyVMRequest]) (*connect.Response[berthv1.WhyVMResponse], error) {
	return answer(f, r, f.whyVM)
}

func (f *fake) WhyNot(_ context.Context, r *connect.Request[berthv1.WhyNotRequest]) (*connect.Response[berthv1.WhyNotResponse], error) {
	return answer(f, r, f.whyNot)
}

func (f *fake) Capacity(_ context.Context, r *connect.Request[berthv1.CapacityRequest]) (*connect.Response[berthv1.CapacityResponse], error) {
	return answer(f, r, f.roomFor)
}
