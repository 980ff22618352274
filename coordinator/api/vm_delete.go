package api

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// hasVolumes tells whether a VM has disks that Berth has made or would make: they go with it, or are let go.
func hasVolumes(p *answer.Moment, vm model.VM) bool {
	for _, id := range vm.Disks {
		if disk, known := p.Resource(id); known && estate.IsVolume(&disk) {
			return true
		}
	}
	return false
}

// deleteWithDisks deletes a VM with volumes, which takes as long as its nodes take to remove them.
func (s *vmCalls) deleteWithDisks(
	ctx context.Context, p *answer.Moment, vm model.VM, message *berthv1.DeleteVMRequest,
) (*connect.Response[berthv1.DeleteVMResponse], error) {
	if op, live := p.LiveOperationOf(vm.ID); !live || op.Kind != operation.Delete { // of one under way, control tells how far it is
		if err := answer.Deletable(p, vm); err != nil {
			return nil, err
		}
	}
	wanted := lifecycle.DeleteVM{
		VM: vm.ID, KeepDisks: message.GetKeepDisks(), RequestID: message.GetRequestId(), Caller: gate.CallerOf(ctx).String(),
	}
	op, err := answer.WhenLeading(ctx, s.Source, func() (operation.Operation, error) { return s.Control.DeleteVM(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	response := &berthv1.DeleteVMResponse{SchemaVersion: wire.SchemaVersion}
	if op.ID != "" {
		response.Operation = wire.Operation(op)
	}
	return connect.NewResponse(response), nil
}
