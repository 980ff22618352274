package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"berth/shared/units"
)

// Limits bound a store. Both are bounds of what is kept: what is younger and fits stays.
type Limits struct {
	Age  time.Duration
	Size units.Bytes
}

// What a store does unless a test says otherwise.
const (
	segmentSize = 8 << 20 // bytes from which a segment is not added to any more
	// segmentsPerAge is how many segments the greatest age has at least, so that old rows of a quiet cluster go with theirs.
	segmentsPerAge = 64
)

const (
	suffix  = ".hist"
	tmp     = ".tmp"
	damaged = ".damaged"
)

// Store is a directory of segments. One goroutine writes at a time; any may read meanwhile.
type Store struct {
	dir     string
	limits  Limits
	segment int64
	writeAt func(file *os.File, data []byte, at int64) error // a seam for full disks

	writing  sync.Mutex   // before mu
	mu       sync.RWMutex // what follows, and which files there are
	segments []*segment   // in the order of the log
	pruned   uint64       // entries up to this one were dropped, or are to be had nowhere
}

// segment is a file of blocks, each of which begins with the entry after the last one of the block before.
type segment struct {
	path           string
	after, through uint64
	size           int64
	rows           int
	first, newest  int64 // as of head
}

func (s *segment) add(h *head) {
	if h.rows > 0 {
		if s.rows == 0 {
			s.first, s.newest = h.first, h.newest
		}
		s.first, s.newest = min(s.first, h.first), max(s.newest, h.newest)
	}
	s.rows += int(h.rows)
	s.through = h.through
	s.size += headSize + int64(h.body)
}

// Open opens the store in a directory, which it makes if need be, and checks every byte. The notes say, for people, what was damaged and
// set aside, or cut off because its writing was never finished.
func Open(dir string, limits Limits) (s *Store, notes []string, err error) {
	s = &Store{dir: dir, limits: limits, segment: segmentSize, writeAt: func(file *os.File, data []byte, at int64) error {
		_, err := file.WriteAt(data, at)
		return err
	}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the directory of the history: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read the directory of the history: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries { // by name, which is the order of the log
		switch {
		case strings.HasSuffix(entry.Name(), tmp):
			_ = os.Remove(filepath.Join(dir, entry.Name())) // it is made anew when it is needed
		case strings.HasSuffix(entry.Name(), suffix):
			names = append(names, entry.Name())
		}
	}
	for i, name := range names {
		note, err := s.take(filepath.Join(dir, name), i == len(names)-1)
		if err != nil {
			return nil, nil, err
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	return s, notes, nil
}

// take checks a file and takes what is whole of it into the store.
func (s *Store) take(path string, last bool) (note string, err error) {
	found, length, err := scan(path)
	if err != nil {
		return "", err
	}
	overlaps := len(s.segments) > 0 && found.size > 0 && found.after < s.segments[len(s.segments)-1].through
	switch {
	case overlaps || found.size == 0:
		found.size = 0
		note = "nothing of it can be used"
	case found.size == length:
		s.segments = append(s.segments, found)
		return "", nil
	default:
		note = fmt.Sprintf("it is whole up to entry %d of the log", found.through)
	}
	if last && !overlaps { // a write that was cut short: the state has the rows still
		if found.size > 0 {
			s.segments = append(s.segments, found)
			return "", os.Truncate(path, found.size)
		}
		return "", os.Remove(path)
	}
	aside := path + damaged
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("set a damaged part of the history aside: %w", err)
	}
	note = fmt.Sprintf("a part of the history is damaged and was set aside as %s: %s; the rest is fetched from other coordinators",
		aside, note)
	if found.size == 0 {
		return note, nil
	}
	whole, err := os.ReadFile(aside)
	if err != nil {
		return "", err
	}
	if err := replaceFile(path, whole[:found.size]); err != nil {
		return "", err
	}
	s.segments = append(s.segments, found)
	return note, nil
}

// scan reads a file as far as it is whole: found.size is shorter than the file if it is damaged after that.
func scan(path string) (found *segment, length int64, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("read a part of the history: %w", err)
	}
	found = &segment{path: path}
	for rest := data; len(rest) >= headSize; rest = data[found.size:] {
		h, err := readHead(rest)
		if err != nil || headSize+int(h.body) > len(rest) {
			break
		}
		if h, err = checked(rest[:headSize+int(h.body)]); err != nil || found.size > 0 && h.after != found.through {
			break
		}
		if found.size == 0 {
			found.after = h.after
		}
		found.add(&h)
	}
	return found, int64(len(data)), nil
}

// replaceFile puts a file there as a whole, or leaves what is there.
func replaceFile(path string, data []byte) error {
	file, err := os.OpenFile(path+tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(path+tmp, path)
	}
	if err != nil {
		_ = os.Remove(path + tmp) // the first error is the one to tell
	}
	return err
}

// Whole is the entry of the log through which the store has come. There may be ranges before it that it lacks: see Missing.
func (s *Store) Whole() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.whole()
}

func (s *Store) whole() uint64 {
	if len(s.segments) == 0 {
		return s.pruned
	}
	return s.segments[len(s.segments)-1].through
}

// Range are entries of the log: those after one, through another one.
type Range struct{ After, Through uint64 }

// Missing are the ranges that the store lacks, the newest first. Leading tells that the last of them is from the beginning of the log:
// nobody has that if it was dropped for its age everywhere.
func (s *Store) Missing() (ranges []Range, leading bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := len(s.segments) - 1; i > 0; i-- {
		if before := max(s.segments[i-1].through, s.pruned); before < s.segments[i].after {
			ranges = append(ranges, Range{before, s.segments[i].after})
		}
	}
	if len(s.segments) > 0 && s.pruned < s.segments[0].after {
		return append(ranges, Range{s.pruned, s.segments[0].after}), true
	}
	return ranges, false
}

// GiveUp says that entries of the log up to this one are to be had nowhere any more, if the store has nothing before them.
func (s *Store) GiveUp(through uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segments) > 0 {
		s.pruned = max(s.pruned, min(through, s.segments[0].after))
	}
}

// Add takes in all rows of the entries after one, through another one. It may be where the store ends, later, which leaves a range that
// is missing, or in a range that is missing. After an error nothing has been taken in, and the store can be used as before.
func (s *Store) Add(after, through uint64, rows []Row) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.RLock()
	at, known := slices.BinarySearchFunc(s.segments, after, func(one *segment, after uint64) int {
		if one.through <= after {
			return -1
		}
		return 1
	})
	known = known || at < len(s.segments) && through > s.segments[at].after
	var into *segment
	if at > 0 && s.segments[at-1].through == after && !s.full(s.segments[at-1]) {
		into = s.segments[at-1]
	}
	s.mu.RUnlock()
	if after > through || known {
		return fmt.Errorf("entries %d to %d of the log are in the history already", after+1, through)
	}
	data, heads, err := blocks(after, through, rows)
	if err != nil {
		return err
	}
	begins := into == nil
	if begins {
		into = &segment{path: filepath.Join(s.dir, fmt.Sprintf("%020d%s", after, suffix)), after: after, through: after}
	}
	if err := s.write(into, data); err != nil {
		if begins {
			_ = os.Remove(into.path) // the first error is the one to tell
		}
		return fmt.Errorf("write the history: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range heads {
		into.add(&heads[i])
	}
	if begins {
		s.segments = slices.Insert(s.segments, at, into)
	}
	return nil
}

// full tells that nothing more is to be added to a segment.
func (s *Store) full(one *segment) bool {
	spans := time.Duration(one.newest - one.first)
	return one.size >= s.segment || s.limits.Age > 0 && spans > s.limits.Age/segmentsPerAge
}

// write puts data at the end of a segment. What an error leaves behind that end is overwritten by the next try.
func (s *Store) write(into *segment, data []byte) error {
	file, err := os.OpenFile(into.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = s.writeAt(file, data, into.size); err == nil {
		err = file.Sync()
	}
	if err != nil {
		_ = file.Truncate(into.size) // only to give the space back
	}
	return errors.Join(err, file.Close())
}

// Prune drops the oldest segment if all of it is too old, or if the store is too large. It tells whether there was anything to drop: it
// takes one small step, so that nobody waits for it. What is too old is measured from the newest row, or from now if that is earlier: a
// clock that was set far ahead drops nothing.
func (s *Store) Prune(now time.Time) (dropped bool, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segments) < 2 {
		return false, nil
	}
	var size, newest int64
	for _, one := range s.segments {
		size += one.size
		newest = max(newest, one.newest)
	}
	oldest := s.segments[0]
	limit := min(now.UnixNano(), newest) - int64(s.limits.Age)
	if (s.limits.Age <= 0 || oldest.newest >= limit) && (s.limits.Size <= 0 || size <= int64(s.limits.Size)) {
		return false, nil
	}
	if err := os.Remove(oldest.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("drop an old part of the history: %w", err)
	}
	s.pruned = max(s.pruned, oldest.through)
	s.segments = s.segments[1:]
	return true, nil
}

// Figures are what a store comes to.
type Figures struct {
	Size   units.Bytes
	Rows   int
	Oldest time.Time // the least time of a row; zero: there is none
	Whole  uint64
	Lacks  uint64 // entries of the log that are missing before that, what was dropped or is leading apart
}

// Figures sums the store up.
func (s *Store) Figures() Figures {
	missing, leading := s.Missing()
	s.mu.RLock()
	defer s.mu.RUnlock()
	f := Figures{Whole: s.whole()}
	for _, one := range s.segments {
		f.Size += units.Bytes(one.size)
		f.Rows += one.rows
		if at := time.Unix(0, one.first).UTC(); one.rows > 0 && (f.Oldest.IsZero() || at.Before(f.Oldest)) {
			f.Oldest = at
		}
	}
	for i, hole := range missing {
		if !leading || i < len(missing)-1 {
			f.Lacks += hole.Through - hole.After
		}
	}
	return f
}
