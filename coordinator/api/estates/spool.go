package estates

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"berth/coordinator/api/refusal"
	"berth/shared/rpc"
	"berth/shared/units"
)

// spool keeps the files of imports on this machine until the nodes have them.
type spool struct {
	dir  string
	look func(dir string) (free, size units.Bytes, err error)

	mu       sync.Mutex
	promised units.Bytes // that imports under way may still write
}

// newSpool makes a spool in a directory of its own, and removes what a crash left there.
func newSpool(dir string) *spool {
	left, _ := filepath.Glob(filepath.Join(dir, spoolName))
	for _, file := range left {
		_ = os.Remove(file) // tried again at the next start; an import finds out whether the directory is good
	}
	return &spool{dir: dir, look: freeSpace}
}

const (
	spoolName = "import-*"
	// spareSpace is what an import leaves free, or an eighth of a small file system: the state is on it too, most often, and
	// stops changing when it is nearly full.
	spareSpace = 2 * units.GiB
)

func freeSpace(dir string) (free, size units.Bytes, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, 0, fmt.Errorf("look at the free space of %s: %w", dir, err)
	}
	return units.Bytes(int64(fs.Bavail) * fs.Bsize), units.Bytes(int64(fs.Blocks) * fs.Bsize), nil
}

// spooled is a file on its way. It has no name, so that it is gone whatever becomes of this process.
type spooled struct {
	of   *spool
	file *os.File
	left units.Bytes // of its size
	size units.Bytes
	sum  hash.Hash
}

// open makes room for a file of a size. It is refused when the machine has too little.
func (s *spool) open(size units.Bytes) (*spooled, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for imports: %w", err)
	}
	if err := s.promise(size); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(s.dir, spoolName)
	if err == nil {
		if err = os.Remove(file.Name()); err != nil {
			_ = file.Close()
		}
	}
	if err != nil {
		s.giveBack(size)
		return nil, fmt.Errorf("make a file for the import: %w", err)
	}
	return &spooled{of: s, file: file, left: size, size: size, sum: sha256.New()}, nil
}

func (s *spool) promise(size units.Bytes) error {
	free, whole, err := s.look(s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	spare := min(spareSpace, whole/8)
	if size > free-s.promised-spare {
		return refusal.New(rpc.Unavailable, "",
			fmt.Sprintf("free some space in %s on the leader's machine, or wait for other imports to end", s.dir),
			"a file of %s does not fit: the leader has %s free in %s, of which %s are for other imports and %s stay free",
			size, free, s.dir, s.promised, spare)
	}
	s.promised += size
	return nil
}

func (s *spool) giveBack(size units.Bytes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.promised -= size
}

var (
	errTooLong  = errors.New("more came than the file was said to have")
	errTooShort = errors.New("less came than the file was said to have")
)

// Write takes in the next part of the file. What goes beyond its size is refused.
func (f *spooled) Write(data []byte) (int, error) {
	if units.Bytes(len(data)) > f.left {
		return 0, errTooLong
	}
	n, err := f.file.Write(data)
	f.sum.Write(data[:n])
	f.left -= units.Bytes(n)
	f.of.giveBack(units.Bytes(n))
	if errors.Is(err, unix.ENOSPC) {
		return n, refusal.New(
			rpc.Unavailable, "", fmt.Sprintf("free some space in %s on the leader's machine", f.of.dir), "the leader's disk is full",
		)
	}
	return n, err
}

// checksum is the SHA-256 of the whole file, in hex.
func (f *spooled) checksum() (string, error) {
	if f.left > 0 {
		return "", errTooShort
	}
	return hex.EncodeToString(f.sum.Sum(nil)), nil
}

// reader reads the file from its beginning, at the same time as other readers. It is good until close.
func (f *spooled) reader() (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(f.file, 0, int64(f.size))), nil
}

func (f *spooled) close() {
	f.of.giveBack(f.left)
	f.left = 0
	_ = f.file.Close() // it is forgotten, whatever this says
}
