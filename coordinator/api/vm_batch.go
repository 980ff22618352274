package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Bounds of one call that starts several VMs: how many, and of how many the decision is told node by node. GetDecision tells
// the others.
const (
	maxBatch  = 1000
	maxDetail = 16
)

// StartVMs starts several VMs that exist. What is refused of one is told of that one: the others start.
func (s *vmCalls) StartVMs(
	ctx context.Context, request *connect.Request[berthv1.StartVMsRequest],
) (*connect.Response[berthv1.StartVMsResponse], error) {
	message := request.Msg
	switch n := len(message.GetVms()); {
	case n == 0:
		return nil, refusal.Invalid("vm", "name the VMs to start", errors.New("no VM is named"))
	case n > maxBatch:
		return nil, refusal.Invalid(
			"vm", "start them in several calls", fmt.Errorf("%d VMs are more than %d, which one call starts", n, maxBatch),
		)
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	wanted := lifecycle.StartVMs{
		DryRun: message.GetDryRun(), RequestID: message.GetRequestId(), Caller: gate.CallerOf(ctx).String(),
	}
	if wanted.Node, err = nodeID(p, message.GetNode()); err != nil {
		return nil, err
	}
	named := make(map[string]bool, len(message.GetVms()))
	for _, ref := range message.GetVms() {
		vm, err := p.NamedVM(ref)
		if err != nil {
			return nil, err
		}
		if named[vm.ID] {
			return nil, refusal.New(rpc.Invalid, "vm/"+vm.Name, "name it once", "VM %q is named twice", vm.Name)
		}
		named[vm.ID] = true
		wanted.VMs = append(wanted.VMs, vm.ID)
	}
	started, err := answer.WhenLeading(ctx, s.Source, func() ([]lifecycle.StartedVM, error) { return s.Control.StartVMs(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	response := &berthv1.StartVMsResponse{SchemaVersion: wire.SchemaVersion}
	for i, one := range started {
		response.Started = append(response.Started, startedMessage(one, i < maxDetail))
	}
	return connect.NewResponse(response), nil
}

func startedMessage(one lifecycle.StartedVM, detailed bool) *berthv1.StartedVM {
	message := &berthv1.StartedVM{Vm: one.VMName, Unit: one.Unit}
	if one.Operation.ID != "" {
		message.Operation = wire.Operation(one.Operation)
	}
	if one.Err != nil {
		refused := refusal.Of(one.Err)
		message.Error, message.Message = rpc.Detail(refused), refused.Message()
		if !detailed {
			message.Error.Decision = nil // its ID stays
		}
		return message
	}
	if message.Decision = wire.DecisionSummary(one.Decision); detailed {
		message.Decision = wire.Decision(one.Decision)
	}
	return message
}
