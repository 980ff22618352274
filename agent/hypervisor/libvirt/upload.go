package libvirt

import (
	"context"
	"fmt"
	"io"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// uploadPiece is what is sent at a time: as much as libvirt puts into one message.
const uploadPiece = 256 << 10

// UploadVolume implements hypervisor.Storage. A call that is left behind at the end of its context takes the volume away
// as soon as its content says that no more comes.
func (h *volumes) UploadVolume(ctx context.Context, pool, name string, size int64, content io.Reader) error {
	xml, err := hypervisor.NewVolume{Name: name, Format: hypervisor.FormatRaw, CapacityBytes: size}.XML(nil)
	if err == nil {
		err = act(ctx, h.connection, &h.storage, func(conn *libvirtgo.Connect) error {
			return h.upload(ctx, conn, pool, name, xml, size, content)
		})
	}
	if err != nil {
		return fmt.Errorf("upload volume %s of pool %s: %w", name, pool, err)
	}
	return nil
}

func (h *volumes) upload(ctx context.Context, conn *libvirtgo.Connect, pool, name, xml string, size int64, content io.Reader) error {
	var volume *libvirtgo.StorageVol
	err := h.within(ctx, conn, pool, func(p *libvirtgo.StoragePool) (err error) {
		if err = makeVolume(ctx, p, name, xml); err != nil {
			return err
		}
		volume, err = p.LookupStorageVolByName(name)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = volume.Free() }()
	err = send(ctx, conn, volume, size, content)
	if err == nil {
		// Only now does libvirt see what format it is, and how large for a guest.
		err = h.within(ctx, conn, pool, func(p *libvirtgo.StoragePool) error { return refresh(ctx, p) })
	}
	if err == nil {
		return nil
	}
	if removeErr := volume.Delete(libvirtgo.STORAGE_VOL_DELETE_NORMAL); removeErr != nil {
		return fmt.Errorf("%w: what has arrived cannot be removed: %w: %w", hypervisor.ErrAmbiguous, explain(removeErr), explain(err))
	}
	return err
}

// send writes the content into a volume.
func send(ctx context.Context, conn *libvirtgo.Connect, volume *libvirtgo.StorageVol, size int64, content io.Reader) error {
	stream, err := conn.NewStream(0)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Free() }()
	if err := volume.Upload(stream, 0, uint64(size), 0); err != nil {
		return err
	}
	if err := pump(ctx, stream, size, content); err != nil {
		_ = stream.Abort() // the volume goes, whatever becomes of the stream
		return err
	}
	return stream.Finish()
}

func pump(ctx context.Context, stream *libvirtgo.Stream, size int64, content io.Reader) error {
	piece := make([]byte, uploadPiece)
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(content, piece[:min(left, uploadPiece)])
		if err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", size-left+int64(n), size, err)
		}
		left -= int64(n)
		for rest := piece[:n]; len(rest) > 0; {
			sent, err := stream.Send(rest)
			if err != nil {
				return err
			}
			rest = rest[sent:]
		}
	}
	return nil
}
