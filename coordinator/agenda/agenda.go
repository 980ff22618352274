// Package agenda orders things by the time at which somebody has to look at them, so that a look at those which are due costs what is
// due, and not what there is.
package agenda

import (
	"container/heap"
	"time"
)

// Agenda has the times of things, by their IDs. The zero value is empty and ready. It is not safe for concurrent use.
type Agenda struct {
	ordered order
	byID    map[string]*entry
}

type entry struct {
	id string
	at time.Time
	in int // place in the order
}

// Set gives a thing its time, in place of the one that it had.
func (a *Agenda) Set(id string, at time.Time) {
	if one, known := a.byID[id]; known {
		one.at = at
		heap.Fix(&a.ordered, one.in)
		return
	}
	if a.byID == nil {
		a.byID = make(map[string]*entry)
	}
	one := &entry{id: id, at: at}
	a.byID[id] = one
	heap.Push(&a.ordered, one)
}

// At is the time of a thing; false if it has none.
func (a *Agenda) At(id string) (time.Time, bool) {
	if one, known := a.byID[id]; known {
		return one.at, true
	}
	return time.Time{}, false
}

// Remove takes a thing off, if it is there.
func (a *Agenda) Remove(id string) {
	if one, known := a.byID[id]; known {
		heap.Remove(&a.ordered, one.in)
		delete(a.byID, id)
	}
}

// Len is how many there are.
func (a *Agenda) Len() int { return len(a.ordered) }

// First is the thing whose time comes first, of those of one time the one with the least ID; false if there is none.
func (a *Agenda) First() (id string, at time.Time, there bool) {
	if len(a.ordered) == 0 {
		return "", time.Time{}, false
	}
	return a.ordered[0].id, a.ordered[0].at, true
}

// Due takes off all things whose time has come, the first to come first.
func (a *Agenda) Due(now time.Time) (ids []string) {
	for {
		id, at, there := a.First()
		if !there || at.After(now) {
			return ids
		}
		a.Remove(id)
		ids = append(ids, id)
	}
}

// order is a heap.
type order []*entry

// Len implements heap.Interface.
func (o order) Len() int { return len(o) }

// Less implements heap.Interface.
func (o order) Less(i, j int) bool {
	if o[i].at.Equal(o[j].at) {
		return o[i].id < o[j].id
	}
	return o[i].at.Before(o[j].at)
}

// Swap implements heap.Interface.
func (o order) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].in, o[j].in = i, j
}

// Push implements heap.Interface.
func (o *order) Push(x any) {
	one := x.(*entry)
	one.in = len(*o)
	*o = append(*o, one)
}

// Pop implements heap.Interface.
func (o *order) Pop() any {
	last := len(*o) - 1
	one := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return one
}
