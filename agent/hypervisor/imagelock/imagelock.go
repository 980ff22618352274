// Package imagelock makes the system calls with which QEMU locks the image of a disk.
package imagelock

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// What QEMU locks of an image that it writes to, and that nobody else may write to: one byte of the file for each permission that it
// uses, and one for each that it leaves to nobody (block/file-posix.c). It reads these locks with a test for the opposite one.
var writer = []int64{100 + 1, 200 + 1}

// Hold locks a file as QEMU locks an image that it writes to, until the file is closed. To be able to read it is enough.
func Hold(file *os.File) error {
	for _, at := range writer {
		one := unix.Flock_t{Type: unix.F_RDLCK, Start: at, Len: 1}
		if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &one); err != nil {
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		}
	}
	return nil
}

// Held tells whether somebody else holds such a lock: another program, or this one with another opened file.
func Held(file *os.File) (bool, error) {
	for _, at := range writer {
		one := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
		if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &one); err != nil {
			return false, fmt.Errorf("see the locks of %s: %w", file.Name(), err)
		}
		if one.Type == unix.F_UNLCK {
			return false, nil
		}
	}
	return true, nil
}
