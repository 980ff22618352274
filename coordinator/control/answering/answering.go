// Package answering marks nodes that are heard and do not answer the starts that they are ordered, so that they draw no more of them: a
// host that somebody else has taken over could say that it has much memory, get every start of the site and carry none of them out.
//
// No start is spent on finding out whether such a node answers again. What it was ordered before is sent again and again, and the first
// answer to it ends the mark. An order that was given is never given to another node for this reason: the node may have begun it.
package answering

import (
	"context"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// lookEvery is between two looks at what nodes were ordered.
const lookEvery = time.Second

// Answering marks them. It is safe for concurrent use.
type Answering struct {
	*lead.Leader

	wake func(node string) // what waits for a node goes on
}

// New makes an Answering. Wake is called when a node was marked.
func New(leader *lead.Leader, wake func(node string)) *Answering {
	return &Answering{Leader: leader, wake: wake}
}

// Follow marks nodes, and takes their marks away, until the context ends.
func (a *Answering) Follow(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	touched, w := a.Inventory.NodesTouched(), newWatch()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		snapshot, now := a.Store.Snapshot(), a.Now()
		if snapshot.FeatureLevel() < state.MachineLevel { // members would not keep it
			continue
		}
		w.take(snapshot, now)
		w.listen(touched(snapshot, now), func(id string) bool { return a.heard(id, now) }, now)
		a.look(ctx, w, snapshot, now)
	}
}

// heard tells whether a node is heard and in order.
func (a *Answering) heard(id string, now time.Time) bool {
	return a.Inventory.Facts(id, now).Liveness == model.Up
}

// look commits what follows from what nodes have answered, and have not.
func (a *Answering) look(ctx context.Context, w *watch, snapshot *state.Snapshot, now time.Time) {
	for _, id := range w.ending(snapshot, now) {
		a.end(ctx, snapshot, id, now, "has answered a start, and gets starts again")
	}
	silent := w.silent(now)
	for _, id := range w.marks() {
		if !w.tried(id, now) && !a.another(w, snapshot, id, now) {
			a.end(ctx, snapshot, id, now, "gets starts again though it answers none, because no other node of its cluster is in order")
		}
	}
	if len(silent) == 0 || model.MassSilence(len(silent)+len(w.marks()), snapshot.CountNodes()) != "" {
		return // what hangs for so many is what they share, as their storage
	}
	for _, id := range silent {
		if !a.heard(id, now) || w.tried(id, now) || !a.another(w, snapshot, id, now) {
			continue
		}
		a.mark(ctx, w, snapshot, id, now)
	}
}

// another tells whether there is a node that could have the starts which this one does not get. It looks for the first one, and seldom.
func (a *Answering) another(w *watch, snapshot *state.Snapshot, id string, now time.Time) bool {
	cluster := snapshot.SharedNode(id).ClusterName()
	for node := range snapshot.SharedNodes() {
		if node.ID == id || node.ClusterName() != cluster || node.Maintenance || node.Fenced() || node.Held() || node.Unanswered.Holds() ||
			w.isSilent(node.ID, now) {
			continue
		}
		if facts := a.Inventory.Facts(node.ID, now); facts.Liveness == model.Up && facts.Ailing == "" {
			return true
		}
	}
	return false
}

// mark has a node draw no starts.
func (a *Answering) mark(ctx context.Context, w *watch, snapshot *state.Snapshot, id string, now time.Time) {
	node, known := snapshot.Node(id)
	wait, waits := w.oldest(id)
	if !known || !waits {
		return
	}
	node.Unanswered = node.Unanswered.Again(wait.operation, wait.vm, wait.since, now, node.Boot)
	why := node.Unanswered.Why()
	a.Logger.Warn("a node does not answer starts, and gets no more of them", "node", node.Name, "why", why)
	if a.change(ctx, node, "mark node", "node.unanswering", why+": it gets no more of them; "+node.Unanswered.Next(node.Name), now) {
		a.wake(id)
	}
}

// end takes a mark away.
func (a *Answering) end(ctx context.Context, snapshot *state.Snapshot, id string, now time.Time, why string) {
	node, known := snapshot.Node(id)
	if !known || !node.Unanswered.Holds() {
		return
	}
	node.Unanswered = node.Unanswered.Over()
	if a.change(ctx, node, "unmark node", "node.answering", why, now) {
		a.wake(id)
	}
}

func (a *Answering) change(ctx context.Context, node model.Node, what, kind, why string, at time.Time) bool {
	return a.Try(ctx, state.Command{
		Key: a.NewID(), Kind: what, Caller: lead.Berth, At: at,
		Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: node.Revision}}, Nodes: []model.Node{node},
		Events: []model.Event{{At: at, Kind: kind, Subject: "node/" + node.Name, Message: why, Caller: lead.Berth}},
	})
}
