// Package volumes makes and removes the volumes that orders and tasks name. Their names follow from what they are for, so
// a volume that is there before it was made is one that nobody counts: what a try left that did not come to its end.
package volumes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

// ErrLeft tells that volumes may be there that should not be.
var ErrLeft = errors.New("a volume may be left")

// limit is for one call that makes or removes a volume.
const limit = 2 * time.Minute

// Make makes volumes, in their order; seed is what is in that of cloud-init. What an earlier try left in their place goes
// first. When one cannot be made none of them is left, or the error is ErrLeft too.
func Make(ctx context.Context, storage hypervisor.Storage, wanted []*berthv1.Volume, seed []byte) error {
	for i, volume := range wanted {
		if err := removeOne(ctx, storage, volume); err != nil {
			err = fmt.Errorf("remove what an earlier try left of %s: %w", Name(volume), err)
			return Both(err, Remove(ctx, storage, wanted[:i]))
		}
		if err := makeOne(ctx, storage, volume, seed); err != nil {
			err = fmt.Errorf("make %s: %w", Name(volume), err)
			if errors.Is(err, hypervisor.ErrAmbiguous) {
				err = fmt.Errorf("%w: %w", ErrLeft, err) // it may still come
			}
			return Both(err, Remove(ctx, storage, wanted[:i+1]))
		}
	}
	return nil
}

func makeOne(ctx context.Context, storage hypervisor.Storage, volume *berthv1.Volume, seed []byte) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if volume.GetSeed() {
		return storage.UploadVolume(ctx, volume.GetPool(), volume.GetName(), int64(len(seed)), bytes.NewReader(seed))
	}
	return storage.CreateVolume(ctx, hypervisor.NewVolume{
		Pool: volume.GetPool(), Name: volume.GetName(), Format: volume.GetFormat(), CapacityBytes: volume.GetCapacityBytes(),
		BackingPool: volume.GetBackingPool(), BackingName: volume.GetBackingName(), BackingFormat: volume.GetBackingFormat(),
	})
}

// Remove removes volumes. One that is not there is removed. The error is ErrLeft, and tells of each that could not be
// removed; the others are gone.
func Remove(ctx context.Context, storage hypervisor.Storage, volumes []*berthv1.Volume) error {
	var failed error
	for _, volume := range volumes {
		if err := removeOne(ctx, storage, volume); err != nil {
			failed = Both(failed, fmt.Errorf("%w: remove %s: %w", ErrLeft, Name(volume), err))
		}
	}
	return failed
}

// Both is two errors in one line, or the one that there is.
func Both(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return fmt.Errorf("%w; %w", a, b)
	}
}

func removeOne(ctx context.Context, storage hypervisor.Storage, volume *berthv1.Volume) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := storage.DeleteVolume(ctx, volume.GetPool(), volume.GetName())
	if errors.Is(err, hypervisor.ErrNoVolume) {
		return nil
	}
	return err
}

// Name is what people know a volume by.
func Name(volume *berthv1.Volume) string {
	what := "disk " + volume.GetDiskName()
	switch {
	case volume.GetSeed():
		what = "the seed image"
	case volume.GetDiskName() == "":
		what = "volume " + volume.GetName()
	}
	return what + " in pool " + volume.GetPool()
}
