package answering

import (
	"maps"
	"slices"
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

const (
	// Patience is how long a node that is heard may answer none of its starts. An agent answers one within seconds.
	Patience = time.Minute
	// LongPatience is the same where all that it was ordered makes volumes, which may be copied for minutes. It is also for how long at most a
	// node gains time by falling silent again and again.
	LongPatience = 5 * time.Minute
	// seldom is between two looks at all nodes for another one that is in order.
	seldom = 15 * time.Second
)

// wait is a start that a node was ordered and has not answered.
type wait struct {
	operation, vm string
	epoch         uint64 // of the copy that it is to start: another one is another order
	since         time.Time
	patience      time.Duration
}

// line is what a node was ordered and has not answered.
type line struct {
	waits  map[string]wait // by operation ID
	spoken time.Time       // when it has answered last, was let off, or got the first of them
	away   bool            // it is not heard
	turned time.Time       // when that has changed last
	heard  time.Duration   // for how long it was heard from when it has spoken until then
}

// speaks begins anew with a node.
func (l *line) speaks(now time.Time) { l.spoken, l.turned, l.heard = now, now, 0 }

// turn takes in whether a node is heard.
func (l *line) turn(heard bool, now time.Time) {
	if l.away != heard {
		return
	}
	if !heard {
		l.heard += now.Sub(l.turned)
	}
	l.away, l.turned = !heard, now
}

// silentFor tells whether a start was not answered for so long, while the node was heard all the time, or for long enough in all.
func (l *line) silentFor(one wait, now time.Time) bool {
	from, heard := later(one.since, l.spoken), now.Sub(l.turned)
	if l.away {
		return false
	}
	return now.Sub(later(from, l.turned)) >= one.patience || now.Sub(from) >= LongPatience && l.heard+heard >= LongPatience
}

// watch is what is known of all nodes that were ordered something, and of those that are marked. It knows no clock.
type watch struct {
	last     *state.Snapshot
	lines    map[string]*line     // by node ID
	where    map[string]string    // node ID by operation ID
	marked   map[string]bool      // by node ID
	answered map[string]bool      // those of them that have answered since
	again    map[string]time.Time // when all nodes may be looked at again for the sake of one, by its ID
}

func newWatch() *watch {
	return &watch{
		lines: map[string]*line{}, where: map[string]string{}, marked: map[string]bool{}, answered: map[string]bool{},
		again: map[string]time.Time{},
	}
}

// take takes in what was ordered and answered. Under a new leader, and where it is not known what has changed, all begins anew.
func (w *watch) take(snapshot *state.Snapshot, now time.Time) {
	last := w.last
	var changed []state.Change
	known := last != nil
	if known {
		changed, known = snapshot.Since(last)
	}
	if !known {
		*w = *newWatch()
		for node := range snapshot.SharedNodes() {
			w.node(node.ID, node, now)
		}
		for _, op := range snapshot.LiveOperations() {
			w.operation(op.ID, &op, now)
		}
	}
	w.last = snapshot
	for _, one := range changed {
		switch one.Table {
		case state.Nodes:
			w.node(one.ID, snapshot.SharedNode(one.ID), now)
		case state.Operations:
			op, there := snapshot.Operation(one.ID)
			if !there {
				op = operation.Operation{Phase: operation.Ended}
			}
			w.operation(one.ID, &op, now)
		}
	}
}

// node takes in a node's record; nil: it is gone.
func (w *watch) node(id string, node *model.Node, now time.Time) {
	was := w.marked[id]
	switch {
	case node != nil && node.Unanswered.Holds():
		w.marked[id] = true
		if node.Boot != node.Unanswered.Boot {
			w.answered[id] = true
		}
	case was:
		delete(w.marked, id)
		delete(w.answered, id)
		if line := w.lines[id]; line != nil {
			line.speaks(now)
		}
	}
	delete(w.again, id)
}

// operation takes in an operation.
func (w *watch) operation(id string, op *operation.Operation, now time.Time) {
	node, waited := w.where[id]
	waits := ordered(op)
	if waited && (!waits || node != op.Target || w.lines[node].waits[id].epoch != op.Epoch) {
		line := w.lines[node]
		delete(line.waits, id)
		delete(w.where, id)
		line.speaks(now)
		if w.marked[node] {
			w.answered[node] = true
		}
		if len(line.waits) == 0 {
			delete(w.lines, node)
		}
		waited = false
	}
	if !waits || waited {
		return
	}
	if w.lines[op.Target] == nil {
		w.lines[op.Target] = &line{waits: map[string]wait{}}
		w.lines[op.Target].speaks(now)
	}
	patience := Patience
	if len(op.Volumes) > 0 {
		patience = LongPatience
	}
	w.where[id] = op.Target
	w.lines[op.Target].waits[id] = wait{operation: id, vm: op.VMName, epoch: op.Epoch, since: now, patience: patience}
}

// ordered tells whether the node of a start has an order that it has not answered for good: that it cannot tell how the order ended, or has
// nothing to remove volumes with, is no answer.
func ordered(op *operation.Operation) bool {
	if op.Kind != operation.Start || op.Result == operation.Parked || op.Target == "" {
		return false
	}
	return op.Phase == operation.Dispatched || op.Phase == operation.Judging || op.Phase == operation.Clearing
}

// listen takes in which nodes are heard.
func (w *watch) listen(touched evidence.Touched, heard func(id string) bool, now time.Time) {
	ids := touched.IDs
	if touched.All {
		ids = slices.Collect(maps.Keys(w.lines))
	}
	for _, id := range ids {
		if line := w.lines[id]; line != nil {
			line.turn(heard(id), now)
		}
	}
}

// isSilent tells whether a node has answered nothing for too long, while it was heard.
func (w *watch) isSilent(id string, now time.Time) bool {
	line := w.lines[id]
	if line == nil {
		return false
	}
	for _, one := range line.waits {
		if line.silentFor(one, now) {
			return true
		}
	}
	return false
}

// silent are the nodes that have answered nothing for too long and are not marked, by ID.
func (w *watch) silent(now time.Time) (ids []string) {
	for id := range w.lines {
		if !w.marked[id] && w.isSilent(id, now) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// marks are the nodes that are marked, by ID.
func (w *watch) marks() []string { return slices.Sorted(maps.Keys(w.marked)) }

// ending are the nodes whose mark is to end: they have answered, were booted anew, or nothing is asked of them any more.
func (w *watch) ending(snapshot *state.Snapshot, now time.Time) (ids []string) {
	for _, id := range w.marks() {
		node := snapshot.SharedNode(id)
		if node == nil {
			delete(w.marked, id)
			continue
		}
		if (w.answered[id] || w.lines[id] == nil) && !now.Before(node.Unanswered.Until) {
			ids = append(ids, id)
		}
	}
	return ids
}

// oldest is what a node has not answered for longest.
func (w *watch) oldest(id string) (oldest wait, waits bool) {
	if w.lines[id] == nil {
		return wait{}, false
	}
	for _, one := range w.lines[id].waits {
		if !waits || one.since.Before(oldest.since) || one.since.Equal(oldest.since) && one.operation < oldest.operation {
			oldest, waits = one, true
		}
	}
	return oldest, waits
}

// tried tells whether all nodes were looked at a moment ago for the sake of this one. If not, they may be now.
func (w *watch) tried(id string, now time.Time) bool {
	if now.Before(w.again[id]) {
		return true
	}
	w.again[id] = now.Add(seldom)
	return false
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
