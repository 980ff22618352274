package history

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"slices"
	"time"
)

// Query narrows what is read. It may let rows through that are not asked for: it is there to pass over what surely is not.
type Query struct {
	Since, Until time.Time // zero: any; a row is asked for from Since on and before Until
	Words        []string  // IDs and names, one of which a row has; none: any
	Before       *Place    // only what is before this place; nil: all
}

// skips tells that no row of a block is asked for.
func (q *Query) skips(h *head) bool {
	return h.rows == 0 || !q.Since.IsZero() && h.newest < q.Since.UnixNano() || !q.Until.IsZero() && h.first >= q.Until.UnixNano() ||
		q.Before != nil && h.after >= q.Before.Index
}

// Backwards walks rows, the newest first. It ends with the first error. What is dropped meanwhile may be missing.
func (s *Store) Backwards(q Query) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for at := uint64(math.MaxUint64); ; {
			one, file, err := s.before(at)
			if one == nil || err != nil {
				if err != nil {
					yield(Row{}, err)
				}
				return
			}
			more := backwards(file, one, &q, yield)
			_ = file.Close() // it was only read
			if !more {
				return
			}
			at = one.after
		}
	}
}

// before opens the last segment that begins before an entry of the log. What is given is a copy; nil: there is none.
func (s *Store) before(index uint64) (*segment, *os.File, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := len(s.segments) - 1; i >= 0; i-- {
		if one := *s.segments[i]; one.after < index {
			file, err := os.Open(one.path)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("a part of the history is gone: %w", err)
			}
			return &one, file, err
		}
	}
	return nil, nil, nil
}

// placed is a block in a file.
type placed struct {
	head
	at int64
}

// heads are the heads of a segment's blocks.
func heads(file *os.File, of *segment) ([]placed, error) {
	var all []placed
	data := make([]byte, headSize)
	for at := int64(0); at < of.size; {
		if _, err := file.ReadAt(data, at); err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
		h, err := readHead(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.path, err)
		}
		all = append(all, placed{h, at})
		at += headSize + int64(h.body)
	}
	return all, nil
}

func backwards(file *os.File, one *segment, q *Query, yield func(Row, error) bool) (more bool) {
	all, err := heads(file, one)
	if err != nil {
		return yield(Row{}, err) && false
	}
	for _, block := range slices.Backward(all) {
		if q.skips(&block.head) {
			continue
		}
		rows, err := block.read(file, q.Words)
		if err != nil {
			return yield(Row{}, err) && false
		}
		for _, row := range slices.Backward(rows) {
			if q.Before != nil && row.Compare(*q.Before) >= 0 {
				continue
			}
			if !yield(row, nil) {
				return false
			}
		}
	}
	return true
}

// read reads the rows of a block, or none if none of them has any of the words.
func (p *placed) read(file *os.File, words []string) ([]Row, error) {
	if len(words) > 0 {
		sieve := make([]byte, p.sieve)
		if _, err := file.ReadAt(sieve, p.at+headSize); err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
		if !mayHave(sieve, words) {
			return nil, nil
		}
	}
	data := make([]byte, headSize+int(p.body))
	if _, err := file.ReadAt(data, p.at); err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	_, rows, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return rows, nil
}

// Page is a part of a store for another member, as one block.
type Page struct {
	Block []byte // empty: the store has none of it
	// Begins is the entry of the log after which the store has something, if it lacks what was asked for; 0: it has nothing of that range.
	Begins uint64
}

// Page gives what the store has after an entry of the log, through another one at most: one block.
func (s *Store) Page(after, through uint64) (Page, error) {
	s.mu.RLock()
	var one *segment
	for _, candidate := range s.segments {
		if candidate.through > after {
			copied := *candidate
			one = &copied
			break
		}
	}
	if one == nil || one.after >= through {
		s.mu.RUnlock()
		return Page{}, nil
	}
	file, err := os.Open(one.path)
	s.mu.RUnlock()
	if err != nil {
		return Page{}, fmt.Errorf("read the history: %w", err)
	}
	defer file.Close()
	if one.after > after {
		return Page{Begins: one.after}, nil
	}
	all, err := heads(file, one)
	if err != nil {
		return Page{}, err
	}
	for _, block := range all {
		if block.through <= after {
			continue
		}
		rows, err := block.read(file, nil)
		if err != nil {
			return Page{}, err
		}
		rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Index <= after || r.Index > through })
		data, _, err := encode(after, min(block.through, through), rows)
		return Page{Block: data}, err
	}
	return Page{}, nil
}

// Fill takes in a page that another member has given of a range that is missing, and tells through which entry of the log it goes.
func (s *Store) Fill(page Page) (through uint64, err error) {
	h, rows, err := decode(page.Block)
	if err != nil {
		return 0, err
	}
	return h.through, s.Add(h.after, h.through, rows)
}
