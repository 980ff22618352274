package api

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/control"
	"berth/coordinator/estate"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/qcow2"
	"berth/shared/rpc"
	"berth/shared/units"
)

// GrowDisk makes a disk larger.
func (s *Server) GrowDisk(
	ctx context.Context, request *connect.Request[berthv1.GrowDiskRequest],
) (*connect.Response[berthv1.GrowDiskResponse], error) {
	message := request.Msg
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	disk, err := p.resource(cluster.KindDisk, message.GetDisk())
	if err != nil {
		return nil, err
	}
	if size := message.GetSizeBytes(); size <= 0 || size > qcow2.MaxSize {
		return nil, refusal(rpc.Invalid, "disk/"+disk.Name, "give the new size of the disk in bytes, at most 1 PiB",
			"a disk of %d bytes cannot be", size)
	}
	wanted := control.GrowDisk{
		Disk: disk.ID, Size: units.Bytes(message.GetSizeBytes()), RequestID: message.GetRequestId(), Caller: callerOf(ctx).String(),
	}
	grown, err := whenLeading(ctx, s, func() (cluster.Resource, error) { return s.Control.GrowDisk(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.GrowDiskResponse{
		SchemaVersion: wire.SchemaVersion, Disk: s.present().resourceMessage(grown),
	}), nil
}

// deleteWithVolume deletes a disk or an image whose content Berth has made. It reports false for everything else.
func (s *Server) deleteWithVolume(ctx context.Context, of cluster.Kind, ref, key string) (bool, error) {
	if of != cluster.KindDisk && of != cluster.KindImage {
		return false, nil
	}
	p, err := s.verified(ctx)
	if err != nil {
		return true, err
	}
	found, err := p.resource(of, ref)
	if err != nil || found.Volume == nil {
		return false, nil // what is not there is for the others to tell
	}
	if users := estate.InUse(p.declared(), of, found.ID); len(users) > 0 {
		return true, inUse(of, found.Name, users)
	}
	caller := callerOf(ctx).String()
	_, err = whenLeading(ctx, s, func() (struct{}, error) {
		if of == cluster.KindImage {
			return struct{}{}, s.Control.DeleteImage(ctx, control.DeleteImage{Image: found.ID, RequestID: key, Caller: caller})
		}
		return struct{}{}, s.Control.DeleteDisk(ctx, control.DeleteDisk{Disk: found.ID, RequestID: key, Caller: caller})
	})
	return true, err
}

// hasVolumes tells whether a VM has disks that Berth has made or would make: they go with it, or are let go.
func (p *picture) hasVolumes(vm cluster.VM) bool {
	for _, id := range vm.Disks {
		if disk, known := p.Resource(id); known && estate.IsVolume(&disk) {
			return true
		}
	}
	return false
}

// deleteWithDisks deletes a VM with volumes, which takes as long as its nodes take to remove them.
func (s *Server) deleteWithDisks(
	ctx context.Context, p *picture, vm cluster.VM, message *berthv1.DeleteVMRequest,
) (*connect.Response[berthv1.DeleteVMResponse], error) {
	if op, live := p.LiveOperationOf(vm.ID); !live || op.Kind != operation.Delete { // of one under way, control tells how far it is
		if err := deletable(p, vm); err != nil {
			return nil, err
		}
	}
	wanted := control.DeleteVM{
		VM: vm.ID, KeepDisks: message.GetKeepDisks(), RequestID: message.GetRequestId(), Caller: callerOf(ctx).String(),
	}
	op, err := whenLeading(ctx, s, func() (operation.Operation, error) { return s.Control.DeleteVM(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	response := &berthv1.DeleteVMResponse{SchemaVersion: wire.SchemaVersion}
	if op.ID != "" {
		response.Operation = wire.Operation(op)
	}
	return connect.NewResponse(response), nil
}
