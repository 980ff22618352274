package consensus

import (
	"fmt"

	"golang.org/x/sys/unix"

	"berth/coordinator/consensus/sieve"
	"berth/coordinator/state"
	"berth/shared/units"
)

// defaultMinFree is the free space below which nothing is proposed any more, so that what is committed already can still
// be written.
const defaultMinFree = 512 * units.MiB

// limitsOf are those of what another member sends to one that keeps its snapshots in dir. A request has at most as many entries as Raft
// sends at once, each with some fields.
func limitsOf(dir string) sieve.Limits {
	const entries, fields = 64, 16
	return sieve.Limits{
		Message: entries*state.MaxCommand + 1<<20, Text: state.MaxCommand + 64<<10, Values: entries*(fields+1) + 64,
		Fits: func(size int64) error {
			free, _, err := freeOf(dir)
			if err == nil && units.Bytes(size) > free/2 {
				err = fmt.Errorf("%w: %s has %s free, and it has %s", ErrDiskLow, dir, free, units.Bytes(size))
			}
			return err
		},
	}
}

// freeOf tells how much of the file system of dir is free, and how large that is.
func freeOf(dir string) (free, size units.Bytes, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, 0, fmt.Errorf("look at the free space of %s: %w", dir, err)
	}
	return units.Bytes(int64(fs.Bavail) * fs.Bsize), units.Bytes(int64(fs.Blocks) * fs.Bsize), nil
}

// checkDisk refuses when the file system of dir has less than least free, or a sixteenth of it where that is less: a
// small file system of its own is a choice.
func checkDisk(dir string, least units.Bytes) error {
	free, size, err := freeOf(dir)
	if err != nil {
		return err
	}
	return enough(dir, free, size, least)
}

func enough(dir string, free, size, least units.Bytes) error {
	if least = min(least, size/16); free < least {
		return fmt.Errorf("%w: %s has %s free, at least %s are needed; free some space there", ErrDiskLow, dir, free, least)
	}
	return nil
}
