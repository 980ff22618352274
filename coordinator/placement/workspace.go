package placement

import "sync"

// workspace is the memory of a decision that has an entry for each node.
type workspace struct {
	out        []bool    // refused by a constraint
	candidates []int32   // the other nodes, in order
	system     []float64 // what the gate looks at
	customer   []float64 // the score inside its round
	band       []int32   // room for the nodes of a round
}

// workspaces are those that no decision uses now. What is in them means nothing.
var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// size makes it one for so many nodes.
func (w *workspace) size(n int) {
	if cap(w.out) < n {
		w.out, w.system, w.customer = make([]bool, n), make([]float64, n), make([]float64, n)
		w.candidates, w.band = make([]int32, n), make([]int32, n)
		return
	}
	w.out, w.system, w.customer = w.out[:n], w.system[:n], w.customer[:n]
}

// borrow gives an engine that makes few decisions the workspace of one that has made its own, until what it returns is called. The engine
// decides nothing afterwards, and nothing that it has handed out is in there.
func (e *Engine) borrow() (giveBack func()) {
	e.workspace = *workspaces.Get().(*workspace)
	return func() {
		left := e.workspace
		e.workspace = workspace{}
		workspaces.Put(&left)
	}
}
