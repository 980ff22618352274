// Package column has lists of which most stays as it is from one moment to the next: of the nodes of a cluster, and of their figures.
package column

import (
	"encoding/json"
	"iter"
	"slices"
	"sort"
)

// Column is one figure of each node of a cluster, in the order of the nodes. Columns share the parts in which they do not differ: what
// a report changes costs its part, however many nodes there are. The zero value is a column that was not given: older decisions have such.
type Column[T comparable] struct {
	parts [][]T // of InPart each, but for the last
}

// InPart is how many values are copied where one of them differs. The parts of 10,000 nodes, and where they are, are about as large.
const InPart = 256

// Of is a column of some values. It keeps the slice; nil is a column that was not given.
func Of[T comparable](values ...T) Column[T] {
	if values == nil {
		return Column[T]{}
	}
	parts := make([][]T, 0, (len(values)+InPart-1)/InPart)
	return Column[T]{parts: slices.AppendSeq(parts, slices.Chunk(values, InPart))}
}

// Given tells whether there is a column. One without values is one.
func (c Column[T]) Given() bool { return c.parts != nil }

// Len is how many values there are.
func (c Column[T]) Len() int {
	if len(c.parts) == 0 {
		return 0
	}
	last := len(c.parts) - 1
	return last*InPart + len(c.parts[last])
}

// At is one value.
func (c Column[T]) At(i int) T { return c.parts[uint(i)/InPart][uint(i)%InPart] }

// From are the values from one on that are in one piece. Columns of equal length have their pieces at the same places, so a loop over
// several of them takes piece by piece.
func (c Column[T]) From(i int) []T { return c.parts[uint(i)/InPart][uint(i)%InPart:] }

// All are the values with their places.
func (c Column[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for part, values := range c.parts {
			for i, value := range values {
				if !yield(part*InPart+i, value) {
					return
				}
			}
		}
	}
}

// Slice is a copy of the values; nil if the column was not given.
func (c Column[T]) Slice() []T {
	if c.parts != nil && len(c.parts) == 0 {
		return []T{}
	}
	return slices.Concat(c.parts...)
}

// CopyTo writes the values into a slice.
func (c Column[T]) CopyTo(values []T) {
	for part := range c.parts {
		copy(values[part*InPart:], c.parts[part])
	}
}

// Set changes a value for all who have the column: it is for columns that were made or cloned by who sets it.
func (c Column[T]) Set(i int, value T) { c.parts[uint(i)/InPart][uint(i)%InPart] = value }

// Clone is a column that shares nothing with this one.
func (c Column[T]) Clone() Column[T] { return Of(c.Slice()...) }

// Choose are the values at some places.
func (c Column[T]) Choose(places []int) Column[T] {
	if c.parts == nil {
		return c
	}
	chosen := make([]T, len(places))
	for to, from := range places {
		chosen[to] = c.At(from)
	}
	return Of(chosen...)
}

// Equal tells whether two columns have the same values.
func (c Column[T]) Equal(other Column[T]) bool {
	return c.Given() == other.Given() && slices.Equal(c.Slice(), other.Slice())
}

// IsZero tells whether a record leaves the column out.
func (c Column[T]) IsZero() bool { return len(c.parts) == 0 }

// MarshalJSON writes the values as a slice has them.
func (c Column[T]) MarshalJSON() ([]byte, error) {
	values := c.Slice()
	if text, plain := textOf(values); plain {
		return text, nil
	}
	return json.Marshal(values)
}

// UnmarshalJSON reads a slice.
func (c *Column[T]) UnmarshalJSON(data []byte) error {
	var values []T
	if readFrom(&values, data) {
		*c = Of(values...)
		return nil
	}
	values = nil
	err := json.Unmarshal(data, &values)
	*c = Of(values...)
	return err
}

// Search finds the place of a value in a column that is in order, or where it would be. After tells whether a value comes after what is
// looked for, and is tells whether it is that.
func (c Column[T]) Search(after, is func(T) bool) (place int, found bool) {
	part := sort.Search(len(c.parts), func(i int) bool { return after(c.parts[i][0]) }) - 1
	if part < 0 {
		return 0, false
	}
	values := c.parts[part]
	at := sort.Search(len(values), func(i int) bool { return after(values[i]) || is(values[i]) })
	return part*InPart + at, at < len(values) && is(values[at])
}

// Ending is the column with other values from a place on. It shares the parts before.
func (c Column[T]) Ending(place int, values ...T) Column[T] {
	parts := slices.Clone(c.parts[:place/InPart])
	if begun := place % InPart; begun > 0 {
		values = slices.Concat(c.parts[place/InPart][:begun], values)
	}
	return Column[T]{parts: slices.AppendSeq(parts, slices.Chunk(values, InPart))}
}

// Shared is a column that others may have: a part is copied for the first value in it that differs.
type Shared[T comparable] struct {
	column *Column[T]
	was    [][]T // the parts as they were; nil: nothing differs yet
}

// Share is for changing a column that others may have. What is set is in the column that it is given, and in no other.
func Share[T comparable](c *Column[T]) Shared[T] { return Shared[T]{column: c} }

// Changed tells whether a value was set that differs.
func (s *Shared[T]) Changed() bool { return s.was != nil }

// Set changes one value.
func (s *Shared[T]) Set(row int, value T) {
	part, at := row/InPart, row%InPart
	if s.column.parts[part][at] == value {
		return
	}
	if s.was == nil {
		s.was, s.column.parts = s.column.parts, slices.Clone(s.column.parts)
	}
	if &s.column.parts[part][0] == &s.was[part][0] {
		s.column.parts[part] = slices.Clone(s.column.parts[part])
	}
	s.column.parts[part][at] = value
}

// Roundtrip is the column as it is read from its text: a copy of it.
func (c Column[T]) Roundtrip() (any, bool) {
	if c.parts == nil {
		return c, true
	}
	return c.Clone(), true
}
