package api

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/control"
	"berth/coordinator/estate"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// maxGrace is the longest time that a guest may be given to shut down.
const maxGrace = time.Hour

// running tells, by UUID, the names of the nodes that show a running domain of it. What a node showed before it fell
// silent does not count.
func (p *picture) running() map[string][]string {
	found := make(map[string][]string)
	for _, node := range p.view().Nodes {
		if node.Facts.Liveness == cluster.Unreachable || !node.Facts.DomainsKnown {
			continue
		}
		for i := range node.Facts.Domains {
			if domain := &node.Facts.Domains[i]; domain.State == cluster.DomainRunning {
				found[domain.UUID] = append(found[domain.UUID], node.Node.Name)
			}
		}
	}
	return found
}

// runningOn are the names of the nodes that show a running domain of a VM. For one VM it costs less than running.
func (p *picture) runningOn(uuid string) []string {
	var found []string
	for _, node := range p.Nodes() {
		facts := p.soft.Facts(node.ID, p.at)
		if facts.Liveness == cluster.Unreachable || !facts.DomainsKnown {
			continue
		}
		if domain := facts.Domain(uuid); domain != nil && domain.State == cluster.DomainRunning {
			found = append(found, node.Name)
		}
	}
	return found
}

func (p *picture) vm(vm cluster.VM, running map[string][]string) *berthv1.VM {
	seen := vmObservation{VM: vm}
	report := wire.VMReport{VM: vm, NodeName: p.nodeName, ResourceName: p.resourceName, Cluster: p.clusterOf(&vm), Within: p.within(vm)}
	if vdc, known := p.Resource(vm.VDC); known {
		p.placeIn(&report, vdc)
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
		seen.Holder = p.view().Node(vm.Holder)
		for _, domain := range p.soft.Telemetry(vm.Holder).GetDomains() {
			if domain.GetUuid() == vm.ID {
				report.Telemetry = domain
			}
		}
	}
	for _, node := range running[vm.ID] {
		if seen.Holder == nil || node != seen.Holder.Node.Name {
			seen.Elsewhere = append(seen.Elsewhere, node)
		}
	}
	report.State, report.Condition = vmState(seen)
	report.Groups = p.groupsOf(vm, report.Cluster)
	return wire.VM(report)
}

// clusterOf is the cluster that a VM is in, by name; empty while more than one may take it.
func (p *picture) clusterOf(vm *cluster.VM) string {
	if p.clusters == nil {
		p.clusters = estate.ClusterOf(p)
	}
	return p.clusters(vm)
}

// within is the zone, the pod or the cluster that a VM itself names, as kind/name; empty: none.
func (p *picture) within(vm cluster.VM) string {
	if place, known := p.Resource(vm.Within); known {
		return string(place.Kind) + "/" + place.Name
	}
	if vm.Within == "" {
		return ""
	}
	return string(cluster.KindCluster) + "/" + vm.Within // the default one, which needs no record
}

// placeIn says whose a VM of a VDC is.
func (p *picture) placeIn(report *wire.VMReport, vdc cluster.Resource) {
	if customer, known := p.Resource(vdc.Links[estate.LinkCustomer]); known {
		report.Customer = customer.Name
		if id := customer.Links[estate.LinkBillingEntity]; id != "" {
			report.BillingEntity = p.resourceName(id)
		}
	}
}

// ListVMs answers with all VMs, or those that one node holds, by name.
func (s *Server) ListVMs(
	ctx context.Context, request *connect.Request[berthv1.ListVMsRequest],
) (*connect.Response[berthv1.ListVMsResponse], error) {
	page, err := extentOf(request.Msg, maxList)
	if err != nil {
		return nil, err
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	vms := p.VMs()
	if ref := request.Msg.GetNode(); ref != "" {
		node, err := p.namedNode(ref)
		if err != nil {
			return nil, err
		}
		vms = p.VMsOn(node.ID)
	}
	vms, next := cut(vms, page, ascending, func(vm cluster.VM) string { return vm.Name })
	response := &berthv1.ListVMsResponse{SchemaVersion: wire.SchemaVersion, NextPageToken: next}
	running := p.running()
	for _, vm := range vms {
		message := p.vm(vm, running)
		message.Spec.Xml = "" // long; GetVM has it
		response.Vms = append(response.Vms, message)
	}
	return connect.NewResponse(response), nil
}

// GetVM answers with one VM and the operation that works on it, or the last one that did.
func (s *Server) GetVM(
	ctx context.Context, request *connect.Request[berthv1.GetVMRequest],
) (*connect.Response[berthv1.GetVMResponse], error) {
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, err := p.namedVM(request.Msg.GetVm())
	if err != nil {
		return nil, err
	}
	response := &berthv1.GetVMResponse{SchemaVersion: wire.SchemaVersion, Vm: p.vm(vm, p.running())}
	for _, op := range p.Operations() {
		if op.VM == vm.ID {
			response.Operation = wire.Operation(op)
			break
		}
	}
	return connect.NewResponse(response), nil
}

// StopVM shuts a VM down.
func (s *Server) StopVM(
	ctx context.Context, request *connect.Request[berthv1.StopVMRequest],
) (*connect.Response[berthv1.StopVMResponse], error) {
	message := request.Msg
	seconds := message.GetGraceSeconds()
	if math.IsNaN(seconds) || seconds < 0 || seconds > maxGrace.Seconds() {
		return nil, invalid("vm/"+message.GetVm(), "give a shorter time, or --force to power it off at once",
			fmt.Errorf("a grace time of %g s is not between 0 and %g", seconds, maxGrace.Seconds()))
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, err := p.namedVM(message.GetVm())
	if err != nil {
		return nil, err
	}
	wanted := control.StopVM{
		VM: vm.ID, Force: message.GetForce(), Grace: time.Duration(seconds * float64(time.Second)),
		RequestID: message.GetRequestId(), Caller: callerOf(ctx).String(),
	}
	op, err := whenLeading(ctx, s, func() (operation.Operation, error) { return s.Control.StopVM(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.StopVMResponse{
		SchemaVersion: wire.SchemaVersion, Operation: wire.Operation(op),
	}), nil
}

// MigrateVM moves a running VM to the best node, or to the one that the request names.
func (s *Server) MigrateVM(
	ctx context.Context, request *connect.Request[berthv1.MigrateVMRequest],
) (*connect.Response[berthv1.MigrateVMResponse], error) {
	message := request.Msg
	if gain := message.GetIfBetter(); !(gain >= 0 && gain <= cluster.MaxKeyFigure) { // true for a NaN
		return nil, invalid("vm/"+message.GetVm(), "give the least gain of score for which it is to move, or nothing for any",
			fmt.Errorf("a gain of %g is not between 0 and %g", gain, cluster.MaxKeyFigure))
	}
	if message.GetNode() != "" && message.GetIfBetter() != 0 {
		return nil, refusal(rpc.Invalid, "vm/"+message.GetVm(), "leave out one of them", "a VM that is to go to a named node goes whatever it gains")
	}
	bandwidth, err := bandwidthOf("vm/"+message.GetVm(), message.GetBandwidthBps())
	if err != nil {
		return nil, err
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, err := p.namedVM(message.GetVm())
	if err != nil {
		return nil, err
	}
	node, err := p.nodeID(message.GetNode())
	if err != nil {
		return nil, err
	}
	wanted := control.MigrateVM{
		VM: vm.ID, Node: node, Bandwidth: bandwidth, DryRun: message.GetDryRun(),
		IfBetter: message.GetIfBetter(), CopyStorage: message.GetCopyStorage(), RequestID: message.GetRequestId(), Caller: callerOf(ctx).String(),
	}
	migration, err := whenLeading(ctx, s, func() (control.Migration, error) { return s.Control.MigrateVM(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	response := &berthv1.MigrateVMResponse{SchemaVersion: wire.SchemaVersion, Decision: wire.Decision(migration.Decision)}
	if migration.Operation.ID != "" {
		response.Operation = wire.Operation(migration.Operation)
	}
	return connect.NewResponse(response), nil
}

// bandwidthOf reads the bandwidth that a request asks for, in bytes a second; 0: libvirt's default.
func bandwidthOf(subject string, asked int64) (units.Bytes, error) {
	if asked < 0 {
		return 0, invalid(subject, "give bytes a second, or nothing for the default", fmt.Errorf("a bandwidth of %d is negative", asked))
	}
	return units.Bytes(asked), nil
}

// nodeID resolves a name or ID. Empty stays empty.
func (p *picture) nodeID(ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	node, err := p.namedNode(ref)
	if err != nil {
		return "", err
	}
	return node.ID, nil
}

// DeleteVM forgets a stopped VM. Disks that are files stay; those that Berth has made go with it, or are let go.
func (s *Server) DeleteVM(
	ctx context.Context, request *connect.Request[berthv1.DeleteVMRequest],
) (*connect.Response[berthv1.DeleteVMResponse], error) {
	const kind = "delete vm"
	ref, key := request.Msg.GetVm(), request.Msg.GetRequestId()
	now, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, known := now.VMByRef(ref)
	if known && vm.Holder == "" && vm.Operation == "" {
		now.awaitGone(ctx, vm.ID)
	}
	if known && now.hasVolumes(vm) {
		return s.deleteWithDisks(ctx, now, vm, request.Msg)
	}
	if op, repeated := now.OperationByRequest(key); !known && key != "" && repeated && op.Kind == operation.Delete {
		return connect.NewResponse(&berthv1.DeleteVMResponse{SchemaVersion: wire.SchemaVersion, Operation: wire.Operation(op)}), nil
	}
	_, err = s.propose(ctx, key, func(p *picture) (state.Command, error) {
		vm, known := p.VMByRef(ref)
		switch {
		case !known && p.Answered(key, kind):
			return state.Command{}, errUnchanged
		case !known:
			return state.Command{}, notFound("vm", ref)
		}
		if err := deletable(p, vm); err != nil {
			return state.Command{}, err
		}
		return state.Command{
			Kind: kind, Expect: []state.Expectation{expectVM(vm)},
			Delete: []state.Record{{Table: state.VMs, ID: vm.ID}},
			Events: []cluster.Event{p.event(ctx, "vm.deleted", "vm/"+vm.Name, "forgotten; its disks stay where they are")},
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
func (p *picture) awaitGone(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, newsWithin)
	defer cancel()
	for len(p.runningOn(id)) > 0 && pause(ctx, leaderPoll) {
	}
}

// deletable refuses to forget a VM that runs or may run.
func deletable(p *picture, vm cluster.VM) error {
	subject := "vm/" + vm.Name
	if op, live := p.LiveOperationOf(vm.ID); live {
		return refusal(rpc.Busy, subject, fmt.Sprintf("wait for it with 'berth operation watch %s'", op.ID),
			"operation %s (%s, %s) works on VM %q", op.ID, op.Kind, op.Phase, vm.Name)
	}
	if vm.Holder != "" {
		return refusal(rpc.Conflict, subject, fmt.Sprintf("stop it first: 'berth vm stop %s'", vm.Name),
			"VM %q is not stopped: node %s holds it", vm.Name, p.nodeName(vm.Holder))
	}
	if nodes := p.runningOn(vm.ID); len(nodes) > 0 {
		return refusal(rpc.Conflict, subject, fmt.Sprintf("shut it down there with 'virsh shutdown %s'", vm.Name),
			"a domain with the UUID of VM %q runs on %s", vm.Name, strings.Join(nodes, ", "))
	}
	return nil
}
