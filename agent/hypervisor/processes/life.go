package processes

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Life is a guest's process, held by a descriptor that tells of its end, and of no other process that gets its number.
type Life struct{ file *os.File }

// FindLife opens the process of a domain. No privilege is needed for it. The error is ErrNotHere.
func FindLife(runDir, name, uuid string) (*Life, error) {
	pid, err := PIDOf(runDir, name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that its end is awaited without a thread
		_ = unix.Close(fd)
		return nil, fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	l := &Life{file: os.NewFile(uintptr(fd), fmt.Sprintf("process %d", pid))}
	// The number had an owner when the descriptor was opened. If that one lives still, the command line is its own.
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err != nil || !bytes.Contains(line, []byte(uuid)) || hasEnded(fd) {
		l.Close()
		return nil, fmt.Errorf("%w: process %d is not it", ErrNotHere, pid)
	}
	return l, nil
}

// AwaitEnd returns nil once the process has ended, with all its threads: it executes nothing, and has no file open. It is an
// error if Close came first.
func (l *Life) AwaitEnd() error {
	conn, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool { return hasEnded(int(fd)) })
}

// Close ends a wait for its end.
func (l *Life) Close() { _ = l.file.Close() }

// hasEnded tells whether the process of a descriptor has ended.
func hasEnded(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1 && poll[0].Revents&unix.POLLIN != 0
}
