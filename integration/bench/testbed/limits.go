package testbed

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// RaiseFileLimit lets this program and those it starts have so many files open. It is an error if the system does not let it.
func RaiseFileLimit(files uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Cur >= files {
		return nil
	}
	limit.Cur, limit.Max = files, max(limit.Max, files)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("have %d files open: %w", files, err)
	}
	return nil
}
