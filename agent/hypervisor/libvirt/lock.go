package libvirt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"berth/agent/hypervisor"
)

// What QEMU locks of an image that it writes to, and that nobody else may write to: one byte of the file for each permission that it
// uses, and one for each that it leaves to nobody (block/file-posix.c). It reads these locks with a test for the opposite one.
var writerLocks = []int64{100 + 1, 200 + 1}

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
		err = lock(file)
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
	return locked(file)
}

func (h *volumes) removeLock(ctx context.Context, pool, name string) error {
	err := h.DeleteVolume(ctx, pool, name)
	if errors.Is(err, hypervisor.ErrNoVolume) {
		return nil
	}
	return err
}

// openVolume opens the file of a volume for reading. A file system that hangs is left behind.
func (h *volumes) openVolume(ctx context.Context, pool, name string) (*os.File, error) {
	found, err := h.LookupVolume(ctx, pool, name)
	if err != nil {
		return nil, err
	}
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.Open(filepath.Join(h.rootDir, found.Path))
		done <- opened{file, err}
	}()
	select {
	case one := <-done:
		if errors.Is(one.err, os.ErrPermission) {
			return nil, fmt.Errorf("%w: the agent may not read %s: let everybody pass its folders with chmod o+x", hypervisor.ErrUnsupported, found.Path)
		}
		return one.file, one.err
	case <-ctx.Done():
		go func() {
			if late := <-done; late.file != nil {
				_ = late.file.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

func lock(file *os.File) error {
	for _, at := range writerLocks {
		one := unix.Flock_t{Type: unix.F_RDLCK, Start: at, Len: 1}
		if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &one); err != nil {
			return fmt.Errorf("%w: lock %s: %w", hypervisor.ErrUnsupported, file.Name(), err)
		}
	}
	return nil
}

func locked(file *os.File) (bool, error) {
	for _, at := range writerLocks {
		one := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
		if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &one); err != nil {
			return false, fmt.Errorf("%w: see the locks of %s: %w", hypervisor.ErrUnsupported, file.Name(), err)
		}
		if one.Type == unix.F_UNLCK {
			return false, nil
		}
	}
	return true, nil
}
