// Package unanswered has the mark of a node that answers none of its starts: what is kept of it in the node's record, and for how long it
// draws no start. It is apart from the records because they have no room for rules, and below them because a record has the mark.
package unanswered

import (
	"fmt"
	"time"
)

// A node that is marked again and again within Memory stays out for longer, up to Longest: one that answers only when it is about to be
// left alone would draw the next starts otherwise.
const (
	Memory  = time.Hour
	Longest = 15 * time.Minute
)

// Mark is what a node's record has of the starts that it does not answer. The zero value: it has answered all.
type Mark struct {
	Operation string    `json:"operation,omitempty"` // ID of the start that has waited longest; empty: the mark is over
	VM        string    `json:"vm,omitempty"`        // name of the VM of that start
	Since     time.Time `json:"since,omitzero"`      // when that start was ordered
	At        time.Time `json:"at,omitzero"`         // when the node was marked last
	Until     time.Time `json:"until,omitzero"`      // until when it draws no start, whatever it answers
	Boot      string    `json:"boot,omitempty"`      // of its host then
	Times     int       `json:"times,omitempty"`     // how often it was marked, each time within Memory of the last one
}

// Holds tells whether the node draws no starts.
func (m *Mark) Holds() bool { return m.Operation != "" }

// Again is the mark of a node that does not answer a start, from what its record has.
func (m *Mark) Again(operation, vm string, since, at time.Time, boot string) Mark {
	times := 1
	if !m.At.IsZero() && at.Sub(m.At) < Memory {
		times = m.Times + 1
	}
	return Mark{Operation: operation, VM: vm, Since: since, At: at, Until: at.Add(stay(times)), Boot: boot, Times: times}
}

// Over is what is kept of a mark that holds no more, for the next one.
func (m *Mark) Over() Mark {
	if !m.Holds() {
		return *m
	}
	return Mark{At: m.At, Times: m.Times}
}

// stay is for how long a node draws no start at least: 0, 1, 3, 7 and at most 15 minutes.
func stay(times int) time.Duration {
	minutes := 1<<min(times-1, 4) - 1
	return min(time.Duration(minutes)*time.Minute, Longest)
}

// Why says why the node draws no starts, in words.
func (m *Mark) Why() string {
	return fmt.Sprintf("it does not answer starts since %s (VM %s, operation %s)", m.Since.UTC().Format(time.RFC3339), m.VM, m.Operation)
}

// Next says what ends that, and what a person may do about it.
func (m *Mark) Next(node string) string {
	return fmt.Sprintf("it gets starts again once it has answered one: look at its agent and libvirt, and at 'berth operation show %s'; "+
		"'berth node maintenance %s off' gives it starts at once, and 'berth node fence %s' frees the VMs that wait for it",
		m.Operation, node, node)
}
