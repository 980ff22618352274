package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"berth/agent/errorcode"
	"berth/agent/hypervisor"
	"berth/agent/volumes"
	berthv1 "berth/shared/gen/berth/v1"
)

// cleanUp is how long removing the leftovers of a fetch may take, even when nobody waits for the task any more.
const cleanUp = time.Minute

// fetch makes a volume from a file that comes through a tunnel, and checks that both are as announced. It removes what an
// earlier try left. If it fails, nothing is left.
func (t *Tasks) fetch(ctx context.Context, order *berthv1.FetchTask, dig Dig) (allocated int64, err error) {
	volume := order.GetVolume()
	release, err := t.turn(ctx, volume)
	if err != nil {
		return 0, err
	}
	defer release()
	tunnel, err := dig(ctx, order.GetTicket())
	if err != nil {
		return 0, err
	}
	defer tunnel.Close()
	if err := volumes.Remove(ctx, t.Hypervisor, []*berthv1.Volume{volume}); err != nil {
		return 0, fmt.Errorf("what an earlier try left is in the way: %w", err)
	}
	allocated, err = t.upload(ctx, order, tunnel)
	if err == nil {
		return allocated, nil
	}
	// The caller may have gone, but a leftover has to be removed all the same.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	return 0, volumes.Both(fmt.Errorf("make %s: %w", volumes.Name(volume), err), volumes.Remove(last, t.Hypervisor, []*berthv1.Volume{volume}))
}

// upload makes the volume and checks it.
func (t *Tasks) upload(ctx context.Context, order *berthv1.FetchTask, from io.Reader) (allocated int64, err error) {
	volume, sum := order.GetVolume(), sha256.New()
	err = t.Hypervisor.UploadVolume(ctx, volume.GetPool(), volume.GetName(), order.GetSizeBytes(), io.TeeReader(from, sum))
	if err != nil {
		return 0, err
	}
	if n, err := io.ReadFull(from, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%w: the file is longer than %d bytes", errorcode.ErrInvalid, order.GetSizeBytes())
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != order.GetSha256() {
		return 0, fmt.Errorf("%w: the file's SHA-256 is %s, not %s: it changed on its way", errorcode.ErrInvalid, got, order.GetSha256())
	}
	made, err := t.Hypervisor.LookupVolume(ctx, volume.GetPool(), volume.GetName())
	switch {
	case err != nil:
		return 0, err
	case made.Format != volume.GetFormat():
		return 0, fmt.Errorf("%w: libvirt takes the file for %s, not %s", errorcode.ErrInvalid, made.Format, volume.GetFormat())
	case made.BackingPath != "":
		return 0, fmt.Errorf("%w: the file is a copy on top of %s: flatten it with 'qemu-img convert'", errorcode.ErrInvalid, made.BackingPath)
	case made.CapacityBytes != volume.GetCapacityBytes():
		return 0, fmt.Errorf("%w: a guest would see %d bytes, not %d", errorcode.ErrInvalid, made.CapacityBytes, volume.GetCapacityBytes())
	}
	return made.AllocationBytes, nil
}

// turn waits until no other fetch works on the volume: a fetch whose caller has gone may still be removing what it made.
func (t *Tasks) turn(ctx context.Context, volume *berthv1.Volume) (release func(), err error) {
	key := volume.GetPool() + "/" + volume.GetName()
	for {
		t.mu.Lock()
		before, busy := t.fetching[key]
		if !busy {
			break
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: another fetch of it is under way", hypervisor.ErrBusy)
		}
	}
	defer t.mu.Unlock()
	if t.fetching == nil {
		t.fetching = map[string]chan struct{}{}
	}
	ended := make(chan struct{})
	t.fetching[key] = ended
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.fetching, key)
		close(ended)
	}, nil
}
