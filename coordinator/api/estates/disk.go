package estates

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/volumes"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/qcow2"
	"berth/shared/rpc"
	"berth/shared/units"
)

// GrowDisk makes a disk larger.
func (s *VolumeCalls) GrowDisk(
	ctx context.Context, request *connect.Request[berthv1.GrowDiskRequest],
) (*connect.Response[berthv1.GrowDiskResponse], error) {
	message := request.Msg
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	disk, err := p.NamedResource(model.KindDisk, message.GetDisk())
	if err != nil {
		return nil, err
	}
	if size := message.GetSizeBytes(); size <= 0 || size > qcow2.MaxSize {
		return nil, refusal.New(rpc.Invalid, "disk/"+disk.Name, "give the new size of the disk in bytes, at most 1 PiB",
			"a disk of %d bytes cannot be", size)
	}
	wanted := volumes.GrowDisk{
		Disk: disk.ID, Size: units.Bytes(message.GetSizeBytes()), RequestID: message.GetRequestId(), Caller: gate.CallerOf(ctx).String(),
	}
	grown, err := answer.WhenLeading(ctx, s.Source, func() (model.Resource, error) { return s.Control.GrowDisk(ctx, wanted) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.GrowDiskResponse{
		SchemaVersion: wire.SchemaVersion, Disk: resourceMessage(s.Present(), grown),
	}), nil
}

// deleteWithVolume deletes a disk or an image whose content Berth has made. It reports false for everything else.
func (s *ResourceCalls) deleteWithVolume(ctx context.Context, of model.Kind, ref, key string) (bool, error) {
	if of != model.KindDisk && of != model.KindImage {
		return false, nil
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return true, err
	}
	found, err := p.NamedResource(of, ref)
	if err != nil || found.Volume == nil {
		return false, nil // what is not there is for the others to tell
	}
	if users := estate.InUse(p.Declared(), of, found.ID); len(users) > 0 {
		return true, inUse(of, found.Name, users)
	}
	caller := gate.CallerOf(ctx).String()
	_, err = answer.WhenLeading(ctx, s.Source, func() (struct{}, error) {
		if of == model.KindImage {
			return struct{}{}, s.Control.DeleteImage(ctx, volumes.DeleteImage{Image: found.ID, RequestID: key, Caller: caller})
		}
		return struct{}{}, s.Control.DeleteDisk(ctx, volumes.DeleteDisk{Disk: found.ID, RequestID: key, Caller: caller})
	})
	return true, err
}
