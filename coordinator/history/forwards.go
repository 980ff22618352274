package history

import (
	"fmt"
	"math"
	"os"
)

// EndOf is the place after the last row of an entry.
func EndOf(index uint64) Place { return Place{Index: index, Sequence: math.MaxUint32} }

// Previous is a place that is before this one, with no row between the two.
func (p Place) Previous() Place {
	switch {
	case p.Sequence > 0:
		return Place{Index: p.Index, Sequence: p.Sequence - 1}
	case p.Index > 0:
		return EndOf(p.Index - 1)
	}
	return p
}

// done is the entry of the log through which nothing is after the place.
func (p Place) done() uint64 {
	if p.Sequence < math.MaxUint32 && p.Index > 0 {
		return p.Index - 1
	}
	return p.Index
}

// Part is what a store has after a place, in the order of the log.
type Part struct {
	Rows []Row
	Next Place // all rows from the place up to this one are in Rows: read on from here
	// Lacks is the entry of the log through which the store has nothing after Next, though it has later ones; 0: it lacks nothing. Gone
	// tells that it will not get them: they were dropped for their age.
	Lacks uint64
	Gone  bool
}

// After reads on from a place: at most so many rows, and of one block at most. A caller who got no rows has read all there is if Next has
// not moved and nothing is lacking.
func (s *Store) After(after Place, limit int) (Part, error) {
	one, file, part, err := s.following(after)
	if one == nil || err != nil {
		return part, err
	}
	defer file.Close()
	all, err := heads(file, one)
	if err != nil {
		return part, err
	}
	for i := range all {
		block := &all[i]
		if block.through <= after.done() {
			continue
		}
		part.Next = EndOf(block.through)
		if block.rows == 0 {
			continue
		}
		rows, err := block.read(file, nil)
		if err != nil {
			return Part{Next: after}, err
		}
		for i := range rows {
			if rows[i].Compare(after) <= 0 {
				continue
			}
			if len(part.Rows) == limit {
				part.Next = part.Rows[limit-1].Place
				break
			}
			part.Rows = append(part.Rows, rows[i])
		}
		if len(part.Rows) > 0 {
			break
		}
	}
	if part.Next.Compare(after) < 0 {
		part.Next = after
	}
	return part, nil
}

// following opens the segment that has the next entry after a place; nil: there is none, and part says why. What is given is a copy.
func (s *Store) following(after Place) (*segment, *os.File, Part, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	part := Part{Next: after}
	for i := range s.segments {
		one := *s.segments[i]
		if one.through <= after.done() {
			continue
		}
		if one.after > after.done() {
			part.Lacks, part.Gone = one.after, s.pruned >= one.after
			return nil, nil, part, nil
		}
		file, err := os.Open(one.path)
		if err != nil {
			return nil, nil, part, fmt.Errorf("read the history: %w", err)
		}
		return &one, file, part, nil
	}
	return nil, nil, part, nil
}
