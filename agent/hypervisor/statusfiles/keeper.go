package statusfiles

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// What is kept, in bytes as they are packed: of guests that run, and the last of those that have ended while no agent listened.
const (
	mostLive  = 16 << 20
	mostEnded = 8 << 20
	mostRuns  = 1024 // that have ended

	keepFor    = 7 * 24 * time.Hour // after the end; nobody asks later
	heardAfter = time.Minute        // a reader that has read for so long has passed on what it was told
)

// Names of the files that are kept. What has ended has the time in its name, so that names are in its order.
const (
	livePrefix  = "live-"
	endedPrefix = "ended-"
	partPrefix  = "part-"
)

// keeper keeps what guests ran with last for an agent that was not there when they ended: libvirt's file goes with its guest. What it
// keeps is in a folder of its own, so that it outlives this service too. It is safe for concurrent use.
type keeper struct {
	from   folder
	folder string // empty: nothing is kept
	log    hclog.Logger

	mu         sync.Mutex
	live       map[string]int64 // bytes kept of each guest that runs, by name
	liveBytes  int64            // of all of them
	ended      []ending         // in their order
	endedBytes int64
	packer     *gzip.Writer
	refused    bool // it was said that those that run are too many
}

// ending is a guest that has ended.
type ending struct {
	file  string
	bytes int64
	at    time.Time
}

// begin takes up what an earlier life has kept.
func (k *keeper) begin() error {
	if k.folder == "" {
		return nil
	}
	k.live = map[string]int64{}
	if err := os.MkdirAll(k.folder, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(k.folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(k.folder, entry.Name())
		is, unread := unpacked(path)
		info, unknown := entry.Info()
		switch {
		case unread != nil, unknown != nil, strings.HasPrefix(entry.Name(), partPrefix):
			err = errors.Join(err, os.Remove(path))
		case strings.HasPrefix(entry.Name(), livePrefix):
			k.live[is.Name] = info.Size()
			k.liveBytes += info.Size()
		case strings.HasPrefix(entry.Name(), endedPrefix):
			k.ended = append(k.ended, ending{entry.Name(), info.Size(), endedAt(entry.Name())})
			k.endedBytes += info.Size()
		}
	}
	return err
}

// run keeps what is written until the context ends.
func (k *keeper) run(ctx context.Context) {
	if k.folder == "" {
		return
	}
	for ctx.Err() == nil {
		err := k.from.follow(ctx, k.take)
		if ctx.Err() == nil && !errors.Is(err, os.ErrNotExist) { // the folder comes with libvirt
			k.log.Warn("what guests run with is not kept for a moment", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(missing):
		}
	}
}

func (k *keeper) take(one item) {
	if one.is == there {
		one = k.from.found(one.Name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	switch one.is {
	case read:
		err = k.write(one.File)
	case gone:
		err = k.end(one.Name, time.Now())
	case unreadable: // what is kept of it is not true any more
		err = k.drop(one.Name)
	}
	if err != nil {
		k.log.Warn("what a guest runs with cannot be kept", "guest", one.Name, "error", err)
	}
}

// write keeps the newest of a guest. The caller holds the lock.
func (k *keeper) write(is File) error {
	if _, known := k.live[is.Name]; !known && k.liveBytes >= mostLive {
		if !k.refused {
			k.refused = true
			k.log.Warn("what guests run with is kept of some only: they are too many", "first_of_others", is.Name)
		}
		return nil
	}
	part := filepath.Join(k.folder, partPrefix+digest(is.Name))
	size, err := k.pack(part, is)
	if err == nil {
		err = os.Rename(part, k.pathOf(is.Name))
	}
	if err != nil {
		return errors.Join(err, k.drop(is.Name), os.RemoveAll(part)) // an older one would be told as the last
	}
	k.liveBytes += size - k.live[is.Name]
	k.live[is.Name] = size
	return nil
}

// end notes that a guest has ended. The caller holds the lock.
func (k *keeper) end(name string, at time.Time) error {
	size, known := k.live[name]
	if !known {
		return nil
	}
	k.forget(name)
	file := fmt.Sprintf("%s%020d-%s", endedPrefix, at.UnixNano(), digest(name))
	if err := os.Rename(k.pathOf(name), filepath.Join(k.folder, file)); err != nil {
		return err
	}
	k.ended, k.endedBytes = append(k.ended, ending{file, size, at}), k.endedBytes+size
	return k.dropFirst(func(first ending) bool {
		return k.endedBytes > mostEnded || len(k.ended) > mostRuns || at.Sub(first.at) > keepFor
	})
}

// dropFirst forgets the first of those that have ended, while they are too old or too many. The caller holds the lock.
func (k *keeper) dropFirst(tooMuch func(first ending) bool) (err error) {
	for len(k.ended) > 0 && tooMuch(k.ended[0]) {
		err = errors.Join(err, os.RemoveAll(filepath.Join(k.folder, k.ended[0].file)))
		k.endedBytes -= k.ended[0].bytes
		k.ended = k.ended[1:]
	}
	return err
}

// drop forgets a guest that runs. The caller holds the lock.
func (k *keeper) drop(name string) error {
	if _, known := k.live[name]; !known {
		return nil
	}
	k.forget(name)
	return os.RemoveAll(k.pathOf(name))
}

func (k *keeper) forget(name string) {
	k.liveBytes -= k.live[name]
	delete(k.live, name)
}

func (k *keeper) pathOf(name string) string { return filepath.Join(k.folder, livePrefix+digest(name)) }

// heard takes away what has ended before that time: a reader has been told all of it.
func (k *keeper) heard(before time.Time) {
	if k.folder == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.dropFirst(func(first ending) bool { return first.at.Before(before) })
	if err != nil {
		k.log.Warn("what guests ran with that was told already cannot be taken away", "folder", k.folder, "error", err)
	}
}

// last are the files of what guests ran with last that have ended, in that order. One that ends right now is among them, although the
// watch may be behind.
func (k *keeper) last() ([]string, error) {
	if k.folder == "" {
		return nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := os.Stat(string(k.from)); err == nil {
		for name := range k.live {
			if _, err := os.Lstat(filepath.Join(string(k.from), name+".xml")); errors.Is(err, os.ErrNotExist) {
				if err := k.end(name, time.Now()); err != nil {
					return nil, err
				}
			}
		}
	}
	var paths []string
	for _, one := range k.ended {
		paths = append(paths, filepath.Join(k.folder, one.file))
	}
	return paths, nil
}

// endedAt is when the guest has ended that this file is of.
func endedAt(file string) time.Time {
	stamp, _, _ := strings.Cut(strings.TrimPrefix(file, endedPrefix), "-")
	nanos, _ := strconv.ParseInt(stamp, 10, 64) // of a file that is not ours: long ago
	return time.Unix(0, nanos)
}

// digest names a guest in a file's name: its own name may be as long as one.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// pack writes what a guest runs with to a file, and says how large that is. The caller holds the lock.
func (k *keeper) pack(path string, is File) (size int64, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	if k.packer == nil {
		k.packer, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // it only refuses other levels
	}
	k.packer.Reset(file)
	k.packer.Extra = []byte(is.Name)
	_, err = io.WriteString(k.packer, is.Text)
	err = errors.Join(err, k.packer.Close())
	if info, unknown := file.Stat(); unknown == nil {
		size = info.Size()
	}
	return size, errors.Join(err, file.Close())
}

func unpacked(path string) (is File, err error) {
	file, err := os.Open(path)
	if err != nil {
		return is, err
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		return is, err
	}
	text, err := io.ReadAll(io.LimitReader(packed, largest))
	return File{Name: string(packed.Extra), Text: string(text), Ended: true}, err
}
