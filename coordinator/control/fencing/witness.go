package fencing

import (
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
)

// A fence device may switch off another machine than the one it is declared for: addresses are swapped, or a plug is wrong. What it
// says is true then, and of the wrong machine. So those that answered when it was asked have to answer once more before its word
// counts. See FAULTS.md, fault 24a, also for what this cannot see.

// witness is a node that answered when the device of another one was asked.
type witness struct {
	node string // ID
	boot string
}

// witnesses are those that answered when a device was asked and were not heard since it has answered, by the node that it was asked
// about.
type witnesses map[string][]witness

// Witness takes note of who answers when a node's device is about to be called.
func (all witnesses) Witness(p evidence.Moment, asked string) {
	var answering []witness
	for node := range p.SharedNodes() {
		facts := p.Facts(node.ID)
		if !facts.HeardAt.IsZero() && facts.Liveness.Answers() && node.ID != asked {
			answering = append(answering, witness{node: node.ID, boot: facts.Boot})
		}
	}
	all[asked] = answering
}

// Doubt is asked after a node's device has said at a time that the node is off. Struck is one that answered before and has fallen
// silent or booted anew since: perhaps it was switched off in its place. It is written into the node's fencing. With wait, some have
// not been heard since; it is to be asked again soon.
func (all witnesses) Doubt(p evidence.Moment, node *model.Node, said time.Time) (wait bool, struck string) {
	var silent []witness
	for _, w := range append(all[node.ID], all.late(p, node, said)...) {
		record, known := p.Node(w.node)
		facts := p.Facts(w.node)
		switch {
		case !known: // removed meanwhile
		case facts.HeardAt.After(said) && facts.Boot == w.boot:
		case facts.HeardAt.After(said), p.At.Sub(said) > facts.Pace.Suspect()+facts.Pace.Telemetry():
			node.Fencing.Struck, node.Fencing.StruckBoot = w.node, w.boot
			return false, record.Name
		default:
			silent = append(silent, w)
		}
	}
	all[node.ID] = silent
	return len(silent) > 0, ""
}

// late are the nodes that were not heard when a node's device was asked, and were heard before it answered.
func (all witnesses) late(p evidence.Moment, asked *model.Node, said time.Time) (late []witness) {
	known := map[string]bool{}
	for _, w := range all[asked.ID] {
		known[w.node] = true
	}
	for node := range p.SharedNodes() {
		facts := p.Facts(node.ID)
		if !known[node.ID] && node.ID != asked.ID && facts.HeardAt.After(asked.Fencing.AskedAt) && !facts.HeardAt.After(said) {
			late = append(late, witness{node: node.ID, boot: facts.Boot})
		}
	}
	return late
}

// struckBy is the name of the node that the device of another one has perhaps switched off in its place; empty: none is, or it was
// heard by this leader, which leads since then, and has not booted.
func struckBy(p evidence.Moment, node *model.Node, since time.Time) string {
	fencing := &node.Fencing
	if fencing.Struck == "" {
		return ""
	}
	facts := p.Facts(fencing.Struck)
	if facts.Liveness.Answers() && facts.Boot == fencing.StruckBoot && facts.HeardAt.After(fencing.EndedAt) && facts.HeardAt.After(since) {
		return ""
	}
	return p.NodeName(fencing.Struck)
}
