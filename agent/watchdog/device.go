package watchdog

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Device is a watchdog that resets the host when it is not petted for its timeout. It is armed from its opening on.
type Device interface {
	// Timeout is after how long without a Pet the host is reset.
	Timeout() time.Duration
	Pet() error
	// Disarm stops and closes it. After an error it may still be armed.
	Disarm() error
}

// device is one of the kernel's (Documentation/watchdog/watchdog-api.rst).
type device struct {
	file    *os.File
	timeout time.Duration
}

// OpenDevice arms a watchdog of the kernel, for instance /dev/watchdog, and asks it for a timeout. Which one it has taken, in
// whole seconds, Timeout tells.
func OpenDevice(path string, timeout time.Duration) (Device, error) {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the watchdog: %w", err)
	}
	d := &device{file: file}
	fd := int(file.Fd())
	// Drivers with one timeout only refuse this. What they have is read below.
	_ = unix.IoctlSetPointerInt(fd, unix.WDIOC_SETTIMEOUT, int(timeout/time.Second))
	seconds, err := unix.IoctlGetInt(fd, unix.WDIOC_GETTIMEOUT)
	if err != nil || seconds <= 0 {
		_ = d.Disarm()
		return nil, fmt.Errorf("ask %s for its timeout: %d s: %w", path, seconds, err)
	}
	d.timeout = time.Duration(seconds) * time.Second
	return d, nil
}

func (d *device) Timeout() time.Duration { return d.timeout }

func (d *device) Pet() error {
	_, err := d.file.Write([]byte{0})
	return err
}

// Disarm writes the character that lets a watchdog stop when it is closed. A kernel with nowayout goes on all the same.
func (d *device) Disarm() error {
	_, err := d.file.Write([]byte{'V'})
	if closed := d.file.Close(); err == nil {
		err = closed
	}
	return err
}
