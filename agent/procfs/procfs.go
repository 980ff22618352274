// Package procfs reads small files that the kernel makes up when they are read, as those of /proc are. An agent reads some for each vCPU of
// its node: opened as an ordinary file, one takes ten system calls and an object for the collector of garbage, and here it takes three.
package procfs

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Longest is what a file may have, in bytes: a buffer of this size holds each that is read so.
const Longest = 1024

// Read reads a whole file into the buffer, and returns what it has. The error of the system tells why it could not.
func Read(path string, buffer []byte) ([]byte, error) {
	file, err := again(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(file) }()
	n, err := again(func() (int, error) { return unix.Read(file, buffer) })
	switch {
	case err != nil:
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	case n == len(buffer): // nobody can tell whether there is more
		return nil, fmt.Errorf("%s has %d bytes or more, and less was expected", path, n)
	}
	return buffer[:n], nil
}

// again makes a call once more that was interrupted by a signal.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
