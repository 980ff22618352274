package api

import (
	"context"
	"fmt"
	"slices"

	"connectrpc.com/connect"

	"berth/coordinator/admission"
	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/adoption"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/wire"
	"berth/shared/domxml/guard"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// AdoptVMs takes running domains under management. Each has a row of its own: one that cannot be taken does not hold up the
// others.
func (s *vmCalls) AdoptVMs(
	ctx context.Context, request *connect.Request[berthv1.AdoptVMsRequest],
) (*connect.Response[berthv1.AdoptVMsResponse], error) {
	message := request.Msg
	switch named := len(message.GetDomains()); {
	case named == 0 && !message.GetAll():
		return nil, refusal.New(rpc.Invalid, "vm", "name domains, or say that all are meant", "no domain is named")
	case named > 0 && message.GetAll():
		return nil, refusal.New(rpc.Invalid, "vm", "leave out one of them", "domains are named, and all are meant")
	case named > maxBatch:
		return nil, refusal.New(
			rpc.Invalid, "vm", "adopt them in several calls", "%d domains are more than %d, which one call takes", named, maxBatch,
		)
	case slices.Contains(message.GetDomains(), ""):
		return nil, refusal.New(rpc.Invalid, "vm", "leave it out", "the name of a domain is empty")
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	wanted := adoption.AdoptVMs{
		Domains: message.GetDomains(), All: message.GetAll(), DryRun: message.GetDryRun(), RequestID: message.GetRequestId(),
		Caller: gate.CallerOf(ctx).String(), Lacks: admission.Without(guard.Permissions(), p.Held(ctx)),
	}
	if wanted.Node, err = nodeID(p, message.GetNode()); err != nil {
		return nil, err
	}
	if ref := message.GetVdc(); ref != "" {
		vdc, known := p.ResourceByName(model.KindVDC, ref)
		if !known {
			return nil, refusal.NotFound(string(model.KindVDC), ref)
		}
		wanted.VDC = vdc.ID
	}
	rows, err := answer.WhenLeading(ctx, s.Source, func() ([]adoption.AdoptedVM, error) { return s.Control.AdoptVMs(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	response := &berthv1.AdoptVMsResponse{SchemaVersion: wire.SchemaVersion}
	for _, row := range rows {
		adopted := &berthv1.AdoptedVM{
			Vm: row.Name, VmId: row.ID, Node: row.Node, Problem: row.Problem, NextStep: row.NextStep, Note: row.Note,
		}
		if row.Operation.ID != "" {
			adopted.Operation = wire.Operation(row.Operation)
		}
		response.Vms = append(response.Vms, adopted)
	}
	return connect.NewResponse(response), nil
}

// ReleaseVM gives a VM back: its domain runs on, and Berth forgets it.
func (s *vmCalls) ReleaseVM(
	ctx context.Context, request *connect.Request[berthv1.ReleaseVMRequest],
) (*connect.Response[berthv1.ReleaseVMResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	ref, key := request.Msg.GetVm(), request.Msg.GetRequestId()
	vm, known := p.VMByRef(ref)
	if !known {
		// The record is gone when the request is repeated.
		if op, repeated := p.OperationByRequest(key); key != "" && repeated && op.Kind == operation.Release {
			return connect.NewResponse(&berthv1.ReleaseVMResponse{SchemaVersion: wire.SchemaVersion, Operation: wire.Operation(op)}), nil
		}
		return nil, refusal.NotFound("vm", ref)
	}
	wanted := lifecycle.ActOnVM{Kind: operation.Release, VM: vm.ID, RequestID: key, Caller: gate.CallerOf(ctx).String()}
	op, err := answer.WhenLeading(ctx, s.Source, func() (operation.Operation, error) { return s.Control.ActOnVM(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ReleaseVMResponse{SchemaVersion: wire.SchemaVersion, Operation: wire.Operation(op)}), nil
}

// ResolveOperation ends a parked operation by an operator's word.
func (s *vmCalls) ResolveOperation(
	ctx context.Context, request *connect.Request[berthv1.ResolveOperationRequest],
) (*connect.Response[berthv1.ResolveOperationResponse], error) {
	message := request.Msg
	switch message.GetKeep() {
	case operation.KeepSource, operation.KeepTarget, operation.KeepNone:
	default:
		return nil, refusal.Invalid(
			"operation/"+message.GetId(), "give source, target or none", fmt.Errorf("to keep %q is none of the choices", message.GetKeep()),
		)
	}
	if err := s.Consensus.VerifyRead(ctx); err != nil {
		return nil, err
	}
	wanted := lifecycle.ResolveOperation{
		ID: message.GetId(), Keep: message.GetKeep(), RequestID: message.GetRequestId(), Caller: gate.CallerOf(ctx).String(),
	}
	op, err := answer.WhenLeading(ctx, s.Source, func() (operation.Operation, error) { return s.Control.ResolveOperation(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ResolveOperationResponse{SchemaVersion: wire.SchemaVersion, Operation: wire.Operation(op)}), nil
}

// viewsOf are what the nodes show now of the VM that a live operation works on: those that it is about, and every other one
// that shows it.
func viewsOf(p *answer.Moment, op operation.Operation) []*berthv1.CopyView {
	if !op.Live() {
		return nil
	}
	vm, _ := p.VM(op.VM)
	var views []*berthv1.CopyView
	for _, view := range p.View().Nodes.All() {
		id, facts := view.Node.ID, view.Facts
		domain := facts.Domain(op.VM)
		if domain == nil && id != op.Source && id != op.Target {
			continue
		}
		shown := wire.CopyView(view, domain, p.At)
		shown.Holder = vm.Holder == id
		views = append(views, shown)
	}
	slices.SortFunc(views, func(a, b *berthv1.CopyView) int { return sideOf(op, a) - sideOf(op, b) })
	return views
}

// sideOf puts the source first, then the target.
func sideOf(op operation.Operation, view *berthv1.CopyView) int {
	switch view.GetNodeId() {
	case op.Source:
		return 0
	case op.Target:
		return 1
	default:
		return 2
	}
}
