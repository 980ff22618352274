package view

import (
	"encoding/json"
	"iter"
	"slices"
)

// Column is one figure of each node of a cluster, in the order of the nodes. Columns share the parts in which they do not differ: what
// a report changes costs its part, however many nodes there are. The zero value is a column that was not given: older decisions have such.
type Column[T comparable] struct {
	parts [][]T // of inPart each, but for the last
}

// inPart is how many values are copied where one of them differs. The parts of 10,000 nodes, and where they are, are about as large.
const inPart = 256

// ColumnOf is a column of some values. It keeps the slice; nil is a column that was not given.
func ColumnOf[T comparable](values ...T) Column[T] {
	if values == nil {
		return Column[T]{}
	}
	parts := make([][]T, 0, (len(values)+inPart-1)/inPart)
	return Column[T]{parts: slices.AppendSeq(parts, slices.Chunk(values, inPart))}
}

// Given tells whether there is a column. One without values is one.
func (c Column[T]) Given() bool { return c.parts != nil }

// Len is how many values there are.
func (c Column[T]) Len() int {
	if len(c.parts) == 0 {
		return 0
	}
	last := len(c.parts) - 1
	return last*inPart + len(c.parts[last])
}

// At is one value.
func (c Column[T]) At(i int) T { return c.parts[uint(i)/inPart][uint(i)%inPart] }

// From are the values from one on that are in one piece. Columns of equal length have their pieces at the same places, so a loop over
// several of them takes piece by piece.
func (c Column[T]) From(i int) []T { return c.parts[uint(i)/inPart][uint(i)%inPart:] }

// All are the values with their places.
func (c Column[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		for part, values := range c.parts {
			for i, value := range values {
				if !yield(part*inPart+i, value) {
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
		copy(values[part*inPart:], c.parts[part])
	}
}

// Set changes a value for all who have the column: it is for columns that were made or cloned by who sets it.
func (c Column[T]) Set(i int, value T) { c.parts[uint(i)/inPart][uint(i)%inPart] = value }

// Clone is a column that shares nothing with this one.
func (c Column[T]) Clone() Column[T] { return ColumnOf(c.Slice()...) }

// choose are the values at some places.
func (c Column[T]) choose(places []int) Column[T] {
	if c.parts == nil {
		return c
	}
	chosen := make([]T, len(places))
	for to, from := range places {
		chosen[to] = c.At(from)
	}
	return ColumnOf(chosen...)
}

// Equal tells whether two columns have the same values.
func (c Column[T]) Equal(other Column[T]) bool {
	return c.Given() == other.Given() && slices.Equal(c.Slice(), other.Slice())
}

// IsZero tells whether a record leaves the column out.
func (c Column[T]) IsZero() bool { return len(c.parts) == 0 }

// MarshalJSON writes the values as a slice has them.
func (c Column[T]) MarshalJSON() ([]byte, error) { return json.Marshal(c.Slice()) }

// UnmarshalJSON reads a slice.
func (c *Column[T]) UnmarshalJSON(data []byte) error {
	var values []T
	err := json.Unmarshal(data, &values)
	*c = ColumnOf(values...)
	return err
}

// own is a column that others may have: a part is copied for the first value in it that differs.
type own[T comparable] struct {
	column *Column[T]
	shared [][]T // the parts as they were; nil: nothing differs yet
}

func (o *own[T]) set(row int, value T) {
	part, at := row/inPart, row%inPart
	if o.column.parts[part][at] == value {
		return
	}
	if o.shared == nil {
		o.shared, o.column.parts = o.column.parts, slices.Clone(o.column.parts)
	}
	if &o.column.parts[part][0] == &o.shared[part][0] {
		o.column.parts[part] = slices.Clone(o.column.parts[part])
	}
	o.column.parts[part][at] = value
}

// revise sets some rows of a column that others may have.
func revise[T comparable](column *Column[T], rows []int, nodes []*NodeView, of func(*NodeView) T) {
	owned := own[T]{column: column}
	for i, row := range rows {
		owned.set(row, of(nodes[i]))
	}
}
