package consensus

import (
	"fmt"

	"golang.org/x/sys/unix"

	"berth/shared/units"
)

// defaultMinFree is the free space below which nothing is proposed any more, so that what is committed already can still
// be written.
const defaultMinFree = 512 * units.MiB

// checkDisk refuses when the file system of dir has less than least free, or a sixteenth of it where that is less: a
// small file system of its own is a choice.
func checkDisk(dir string, least units.Bytes) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("look at the free space of %s: %w", dir, err)
	}
	size := units.Bytes(int64(fs.Blocks) * fs.Bsize)
	free := units.Bytes(int64(fs.Bavail) * fs.Bsize)
	return enough(dir, free, size, least)
}

func enough(dir string, free, size, least units.Bytes) error {
	if least = min(least, size/16); free < least {
		return fmt.Errorf("%w: %s has %s free, at least %s are needed; free some space there", ErrDiskLow, dir, free, least)
	}
	return nil
}
