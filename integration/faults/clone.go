package faults

import (
	"time"

	"berth/coordinator/state"
	"berth/integration/faults/drive"
	"berth/integration/faults/script"
)

// clone boots another machine from a copy of a host's disk: the same certificate, the same journal, and no guests. After a while
// somebody switches it off and says which machine the node is.
func clone(w *World, what script.Happening, h *host) {
	node, _ := w.store.Snapshot().Node(h.ID)
	if h.clone != nil || !h.On || h.isClone || node.Hardware == "" { // before a node was heard nobody can tell the two
		return
	}
	w.Draw(script.Clone)
	c := &host{Machine: w.NewClone(h.Machine), world: w, isClone: true}
	c.Begin = c.live
	h.clone, w.clones = c, append(w.clones, h)
	c.live()
	w.Later(what.For, func() { h.endClone() })
}

// endClone is a person who switches the copy off for good, and says which machine the node is.
func (h *host) endClone() {
	if h.clone == nil {
		return
	}
	h.clone.PowerCut()
	h.clone.Lost = true
	h.decide(20)
}

// decide says which machine the node is, as soon as a leader takes it. It is said again for a while: the copy may be noticed late.
func (h *host) decide(tries int) {
	w := h.world
	if m := w.leader; m != nil && !m.frozen && m.alive {
		if node, known := m.view().Node(h.ID); known && node.Held() && node.Decide(h.Hardware) {
			m.propose(state.Command{
				Key: w.newKey(), Kind: "set node", Caller: "sim", At: m.now(),
				Expect: []state.Expectation{drive.Unmoved(&node)}, Nodes: append(w.store.Snapshot().Nodes()[:0:0], node),
			}, func(state.Result, error) {})
		}
	}
	if tries > 0 {
		w.After(3*time.Second, func() { h.decide(tries - 1) })
	}
}
