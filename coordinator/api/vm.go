package api

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/guests"
	"berth/coordinator/api/refusal"
	"berth/coordinator/binding"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/estate"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/prediction"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pause"
	"berth/shared/rpc"
	"berth/shared/units"
)

func vmMessage(p *answer.Moment, vm model.VM) *berthv1.VM {
	seen := vmObservation{VM: vm}
	report := wire.VMReport{VM: vm, NodeName: p.NodeName, ResourceName: p.ResourceName, Cluster: p.ClusterOf(&vm), Within: withinOf(p, vm)}
	if vdc, known := p.Resource(vm.VDC); known {
		placeIn(p, &report, vdc)
	}
	for _, id := range vm.Disks {
		if disk, known := p.Resource(id); known && estate.IsVolume(&disk) {
			report.Volumes = append(report.Volumes, wire.VMVolume{Disk: disk, Size: estate.SizeOf(p, &disk)})
		}
	}
	if op, live := p.LiveOperationOf(vm.ID); live {
		seen.Operation = &op
	}
	if vm.Holder != "" {
		seen.Holder = p.View().Node(vm.Holder)
		if seen.Holder != nil {
			report.Domain = seen.Holder.Facts.Domain(vm.ID)
			report.Immovable = binding.Texts(vm.Name, binding.Of(p, &vm, report.Cluster, &seen.Holder.Facts))
		}
		for _, domain := range p.Soft.Telemetry(vm.Holder).GetDomains() {
			if domain.GetUuid() == vm.ID {
				report.Telemetry = domain
			}
		}
	}
	for _, node := range p.Living(vm.ID) {
		if seen.Holder == nil || node != seen.Holder.Node.Name {
			seen.Elsewhere = append(seen.Elsewhere, node)
		}
	}
	report.State, report.Condition = vmState(seen)
	if report.Condition.Is(model.NoCondition) && vm.Copies != nil && vm.Operation == "" {
		report.Condition = evidence.CopiesLeft(vm.Copies, p.NodeName(vm.Copies.Node))
	}
	report.Groups = p.GroupsOf(vm, report.Cluster)
	return wire.VM(report)
}

// withinOf is the zone, the pod or the cluster that a VM itself names, as kind/name; empty: none.
func withinOf(p *answer.Moment, vm model.VM) string {
	if place, known := p.Resource(vm.Within); known {
		return string(place.Kind) + "/" + place.Name
	}
	if vm.Within == "" {
		return ""
	}
	return string(model.KindCluster) + "/" + vm.Within // the default one, which needs no record
}

// placeIn says whose a VM of a VDC is.
func placeIn(p *answer.Moment, report *wire.VMReport, vdc model.Resource) {
	if customer, known := p.Resource(vdc.Links[schema.LinkCustomer]); known {
		report.Customer = customer.Name
		if id := customer.Links[schema.LinkBillingEntity]; id != "" {
			report.BillingEntity = p.ResourceName(id)
		}
	}
}

// vmStates begins the names of the states of VMs in the protocol.
const vmStates = "VM_STATE_"

// ListVMs answers with the VMs that are asked for, by name.
func (s *vmCalls) ListVMs(
	ctx context.Context, request *connect.Request[berthv1.ListVMsRequest],
) (*connect.Response[berthv1.ListVMsResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	return vmList(p, nil, request.Msg, page)
}

// LastKnownVMs answers as ListVMs, with what this member last knew.
func (s *vmCalls) LastKnownVMs(
	_ context.Context, request *connect.Request[berthv1.ListVMsRequest],
) (*connect.Response[berthv1.ListVMsResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, known := s.lastKnown()
	return vmList(p, known, request.Msg, page)
}

func vmList(
	p *answer.Moment, known *berthv1.LastKnown, asked *berthv1.ListVMsRequest, page answer.Page,
) (*connect.Response[berthv1.ListVMsResponse], error) {
	vms := p.SharedVMsFrom(page.After)
	if ref := asked.GetNode(); ref != "" {
		node, err := p.NamedNode(ref)
		if err != nil {
			return nil, err
		}
		vms = p.SharedVMsOn(node.ID)
	}
	filter, err := p.FilterOf(asked.GetFilter(), p.OfVMs("VM", VMStates()))
	if err != nil {
		return nil, err
	}
	response := &berthv1.ListVMsResponse{SchemaVersion: wire.SchemaVersion, Filtered: filter.Asked(), LastKnown: known}
	response.Vms, response.NextPageToken = answer.PickFrom(vms, page, func(vm *model.VM) string { return vm.Name },
		func(shared *model.VM) (*berthv1.VM, bool) {
			if !filter.In(shared.Holder) || !filter.Whose(shared) {
				return nil, false
			}
			vm, _ := p.VM(shared.ID)
			message := vmMessage(p, vm)
			message.Spec.Xml = "" // long; GetVM has it
			return message, filter.Is(vmStateWords[message.GetState()])
		})
	return connect.NewResponse(response), nil
}

// GetVM answers with one VM and the operation that works on it, or the last one that did.
func (s *vmCalls) GetVM(
	ctx context.Context, request *connect.Request[berthv1.GetVMRequest],
) (*connect.Response[berthv1.GetVMResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, err := p.NamedVM(request.Msg.GetVm())
	if err != nil {
		return nil, err
	}
	response := &berthv1.GetVMResponse{
		SchemaVersion: wire.SchemaVersion, Vm: vmMessage(p, vm), HaGaps: guests.HAGaps(p, &vm, s.Control),
	}
	for _, op := range p.Operations() {
		if op.VM == vm.ID {
			response.Operation = wire.Operation(op)
			break
		}
	}
	if len(response.GetVm().GetNextStart()) > 0 {
		response.NextStartRefused = s.nextStartRefused(vm)
	}
	return connect.NewResponse(response), nil
}

// StopVM shuts a VM down.
func (s *vmCalls) StopVM(
	ctx context.Context, request *connect.Request[berthv1.StopVMRequest],
) (*connect.Response[berthv1.StopVMResponse], error) {
	message := request.Msg
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, err := p.NamedVM(message.GetVm())
	if err != nil {
		return nil, err
	}
	wanted, err := guests.Stop(p, &vm, &berthv1.StopAction{
		Force: message.GetForce(), GraceSeconds: message.GetGraceSeconds(), InterruptBackup: message.GetInterruptBackup(),
	})
	if err != nil {
		return nil, err
	}
	wanted.VM, wanted.WhenBack = vm.ID, message.GetWhenBack()
	wanted.RequestID, wanted.Caller = message.GetRequestId(), gate.CallerOf(ctx).String()
	response := &berthv1.StopVMResponse{SchemaVersion: wire.SchemaVersion, Interrupted: guests.Interrupted(p, &vm)}
	op, err := answer.WhenLeading(ctx, s.Source, func() (operation.Operation, error) { return s.Control.ActOnVM(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	response.Operation = wire.Operation(op)
	return connect.NewResponse(response), nil
}

// RebootVM restarts the guest of a running VM where it is.
func (s *vmCalls) RebootVM(
	ctx context.Context, request *connect.Request[berthv1.RebootVMRequest],
) (*connect.Response[berthv1.RebootVMResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, err := p.NamedVM(request.Msg.GetVm())
	if err != nil {
		return nil, err
	}
	if err := guests.Restartable(p, &vm); err != nil {
		return nil, err
	}
	wanted := lifecycle.ActOnVM{
		Kind: operation.Reboot, VM: vm.ID, Force: request.Msg.GetForce(), RequestID: request.Msg.GetRequestId(),
		WhenBack: request.Msg.GetWhenBack(), Caller: gate.CallerOf(ctx).String(),
	}
	op, err := answer.WhenLeading(ctx, s.Source, func() (operation.Operation, error) { return s.Control.ActOnVM(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RebootVMResponse{SchemaVersion: wire.SchemaVersion, Operation: wire.Operation(op)}), nil
}

// MigrateVM moves a running VM to the best node, or to the one that the request names.
func (s *vmCalls) MigrateVM(
	ctx context.Context, request *connect.Request[berthv1.MigrateVMRequest],
) (*connect.Response[berthv1.MigrateVMResponse], error) {
	message := request.Msg
	if gain := message.GetIfBetter(); !(gain >= 0 && gain <= model.MaxKeyFigure) { // true for a NaN
		return nil, refusal.Invalid("vm/"+message.GetVm(), "give the least gain of score for which it is to move, or nothing for any",
			fmt.Errorf("a gain of %g is not between 0 and %g", gain, model.MaxKeyFigure))
	}
	if message.GetNode() != "" && message.GetIfBetter() != 0 {
		return nil, refusal.New(
			rpc.Invalid, "vm/"+message.GetVm(), "leave out one of them", "a VM that is to go to a named node goes whatever it gains",
		)
	}
	bandwidth, err := bandwidthOf("vm/"+message.GetVm(), message.GetBandwidthBps())
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, err := p.NamedVM(message.GetVm())
	if err != nil {
		return nil, err
	}
	node, err := nodeID(p, message.GetNode())
	if err != nil {
		return nil, err
	}
	wanted := lifecycle.MigrateVM{
		VM: vm.ID, Node: node, Bandwidth: bandwidth, DryRun: message.GetDryRun(),
		IfBetter: message.GetIfBetter(), CopyStorage: message.GetCopyStorage(), RequestID: message.GetRequestId(),
		Caller: gate.CallerOf(ctx).String(),
	}
	migration, err := answer.WhenLeading(ctx, s.Source, func() (lifecycle.Migration, error) { return s.Control.MigrateVM(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	response := &berthv1.MigrateVMResponse{SchemaVersion: wire.SchemaVersion, Decision: wire.Decision(migration.Decision)}
	if migration.Operation.ID != "" {
		response.Operation = wire.Operation(migration.Operation)
	}
	if wanted.DryRun {
		response.Predicted = predicted(p, &vm, &wanted, &migration.Decision)
	}
	return connect.NewResponse(response), nil
}

// predicted is what a migration that was decided on trial would take; nil: the VM stays, or nothing tells.
func predicted(p *answer.Moment, vm *model.VM, wanted *lifecycle.MigrateVM, decided *placement.Decision) *berthv1.MigrationPrediction {
	if decided.Outcome != placement.Placed || decided.Winner == vm.Holder {
		return nil
	}
	var known prediction.Hints
	if node := p.View().Node(vm.Holder); node != nil {
		if domain := node.Facts.Domain(vm.ID); domain != nil && domain.Resident != nil {
			known.Used = *domain.Resident
		}
	}
	if decided.Request.CopyStorage {
		if _, there, err := estate.VolumesOf(p.Snapshot, *vm, nil); err == nil {
			for i := range there {
				if !there[i].Shared {
					known.Disks += there[i].Capacity
				}
			}
		}
	}
	return wire.PredictedBy(&operation.Operation{
		Kind: operation.Migrate, VM: vm.ID, Source: vm.Holder, Target: decided.Winner, Memory: decided.Request.Memory,
		Bandwidth: wanted.Bandwidth, CopyStorage: decided.Request.CopyStorage, CreatedAt: p.At,
	}, p, known)
}

// bandwidthOf reads the bandwidth that a request asks for, in bytes a second; 0: libvirt's default.
func bandwidthOf(subject string, asked int64) (units.Bytes, error) {
	if asked < 0 {
		return 0, refusal.Invalid(subject, "give bytes a second, or nothing for the default", fmt.Errorf("a bandwidth of %d is negative", asked))
	}
	return units.Bytes(asked), nil
}

// nodeID resolves a name or ID. Empty stays empty.
func nodeID(p *answer.Moment, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	node, err := p.NamedNode(ref)
	if err != nil {
		return "", err
	}
	return node.ID, nil
}

// DeleteVM forgets a stopped VM. Disks that are files stay; those that Berth has made go with it, or are let go.
func (s *vmCalls) DeleteVM(
	ctx context.Context, request *connect.Request[berthv1.DeleteVMRequest],
) (*connect.Response[berthv1.DeleteVMResponse], error) {
	const kind = "delete vm"
	ref, key := request.Msg.GetVm(), request.Msg.GetRequestId()
	now, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, known := now.VMByRef(ref)
	if known && vm.Holder == "" && vm.Operation == "" {
		awaitGone(ctx, now, vm.ID)
	}
	if known && hasVolumes(now, vm) {
		return s.deleteWithDisks(ctx, now, vm, request.Msg)
	}
	if op, repeated := now.OperationByRequest(key); !known && key != "" && repeated && op.Kind == operation.Delete {
		return connect.NewResponse(&berthv1.DeleteVMResponse{SchemaVersion: wire.SchemaVersion, Operation: wire.Operation(op)}), nil
	}
	_, err = s.Propose(ctx, key, func(p *answer.Moment) (state.Command, error) {
		vm, known := p.VMByRef(ref)
		switch {
		case !known && p.Answered(key, kind):
			return state.Command{}, answer.ErrUnchanged
		case !known:
			return state.Command{}, refusal.NotFound("vm", ref)
		}
		if err := answer.Deletable(p, vm); err != nil {
			return state.Command{}, err
		}
		return state.Command{
			Kind: kind, Expect: []state.Expectation{answer.ExpectVM(vm)},
			Delete: []state.Record{{Table: state.VMs, ID: vm.ID}},
			Events: []model.Event{p.Event(ctx, "vm.deleted", "vm/"+vm.Name, "forgotten; its disks stay where they are")},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DeleteVMResponse{SchemaVersion: wire.SchemaVersion}), nil
}

// newsWithin is how much later than the end of a stop the news may come that its domain is gone.
const newsWithin = 3 * time.Second

// awaitGone waits, not for long, until no node shows a VM any more.
func awaitGone(ctx context.Context, p *answer.Moment, id string) {
	ctx, cancel := context.WithTimeout(ctx, newsWithin)
	defer cancel()
	for len(p.LivingOn(id)) > 0 && pause.For(ctx, gate.LeaderPoll) {
	}
}
