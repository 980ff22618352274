package weigher

import (
	"slices"

	"berth/coordinator/placement/rule"
)

// Wishes is what Prefer asks of the candidates of one decision. Its memory is used again for the next one.
type Wishes struct {
	By     []int       // weighers, by index, that have something to say: the higher factor first
	Scores [][]float64 // of each of them, by node
	Left   []int32     // candidates that are not kept yet
	Kept   []int32
	shy    []bool // by node: it is contended; empty: none is
}

// Has tells whether a weigher is one of those that Prefer asks.
func (w *Wishes) Has(weigher int) bool { return slices.Contains(w.By, weigher) }

// Ask asks each soft rule about all nodes. Work that waits longer than above, in percent, makes a node contended; 0: none is.
func (w *Wishes) Ask(all []Weigher, in *rule.Input, nodes int, above float64) {
	for len(w.Scores) < len(w.By) {
		w.Scores = append(w.Scores, nil)
	}
	for i, wish := range w.By {
		w.Scores[i] = slices.Grow(w.Scores[i][:0], nodes)[:nodes]
		all[wish].Scores(in, w.Scores[i])
	}
	w.shy = w.shy[:0]
	for node := 0; above > 0 && node < nodes; node++ {
		w.shy = append(w.shy, in.Columns.Waiting(node) > above)
	}
}

// Contended tells whether work waits too long on a node for a soft rule to send a VM there.
func (w *Wishes) Contended(node int) bool { return len(w.shy) > 0 && w.shy[node] }

// Compare is negative where the first node breaks less than the second, and 0 where they are equal to all soft rules. Contended
// nodes come after all others.
func (w *Wishes) Compare(a, b int32) int {
	if of, too := w.Contended(int(a)), w.Contended(int(b)); of != too {
		if of {
			return 1
		}
		return -1
	}
	for i := range w.By {
		switch of, too := w.Scores[i][a], w.Scores[i][b]; {
		case of > too:
			return -1
		case of < too:
			return 1
		}
	}
	return 0
}

// Keep takes those that break the least out of the candidates that are left. Both stay in the order of the nodes.
func (w *Wishes) Keep() {
	least := w.Left[0]
	for _, node := range w.Left[1:] {
		if w.Compare(node, least) < 0 {
			least = node
		}
	}
	rest := w.Left[:0]
	w.Kept = w.Kept[:0]
	for _, node := range w.Left {
		if w.Compare(node, least) == 0 {
			w.Kept = append(w.Kept, node)
		} else {
			rest = append(rest, node)
		}
	}
	w.Left = rest
}
