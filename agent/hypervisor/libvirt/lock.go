package libvirt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/imagelock"
)

// lockVolume is the size of a volume for trying locks. The locked bytes need not exist.
const lockVolume = 4096

// HoldLock implements hypervisor.Storage. It makes the system call that QEMU makes, so what it shows holds for guests.
func (h *volumes) HoldLock(ctx context.Context, pool, name string) (func(context.Context) error, error) {
	if err := h.removeLock(ctx, pool, name); err != nil {
		return nil, err
	}
	// Everybody may read it, because the agent is not who libvirt makes it for; a lock for reading needs no more.
	err := h.CreateVolume(ctx, hypervisor.NewVolume{
		Pool: pool, Name: name, Format: hypervisor.FormatRaw, CapacityBytes: lockVolume, Readable: true,
	})
	if err != nil {
		return nil, err
	}
	file, err := h.openVolume(ctx, pool, name)
	if err == nil {
		err = imagelock.Hold(file)
	}
	if err != nil {
		if file != nil {
			_ = file.Close()
		}
		return nil, errors.Join(err, h.removeLock(ctx, pool, name))
	}
	return func(ctx context.Context) error {
		return errors.Join(file.Close(), h.removeLock(ctx, pool, name)) // the locks end with the descriptor
	}, nil
}

// LockHeld implements hypervisor.Storage.
func (h *volumes) LockHeld(ctx context.Context, pool, name string) (bool, error) {
	file, err := h.openVolume(ctx, pool, name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	return imagelock.Held(file)
}

func (h *volumes) removeLock(ctx context.Context, pool, name string) error {
	err := h.DeleteVolume(ctx, pool, name)
	if errors.Is(err, hypervisor.ErrNoVolume) {
		return nil
	}
	return err
}

// openVolume opens the file of a volume for reading. It does not ask libvirt for the volume, because a node that has NFS lists a folder as
// it was up to a minute ago, and finds a file by its name as it is now. A file system that hangs is left behind.
func (h *volumes) openVolume(ctx context.Context, pool, name string) (*os.File, error) {
	folder, err := browse(ctx, h.connection, func(ctx context.Context, conn *libvirtgo.Connect) (folder string, err error) {
		err = h.within(ctx, conn, pool, func(p *libvirtgo.StoragePool) error {
			kind, err := poolModel(p)
			if err == nil && (!slices.Contains(filePools, kind.Type) || kind.Target == nil) {
				err = fmt.Errorf("%w: pool %s is of type %s, which has no files", hypervisor.ErrUnsupported, pool, kind.Type)
			}
			if err == nil {
				folder = kind.Target.Path
			}
			return err
		})
		return folder, err
	})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, name)
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.Open(filepath.Join(h.rootDir, path))
		done <- opened{file, err}
	}()
	select {
	case one := <-done:
		switch {
		case errors.Is(one.err, os.ErrNotExist):
			return nil, fmt.Errorf("%w: %s", hypervisor.ErrNoVolume, path)
		case errors.Is(one.err, os.ErrPermission):
			return nil, fmt.Errorf("%w: the agent may not read %s: let everybody pass its folders with chmod o+x", hypervisor.ErrUnsupported, path)
		default:
			return one.file, one.err
		}
	case <-ctx.Done():
		go func() {
			if late := <-done; late.file != nil {
				_ = late.file.Close()
			}
		}()
		return nil, ctx.Err()
	}
}
