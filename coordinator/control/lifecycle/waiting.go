package lifecycle

import (
	"context"
	"errors"
	"slices"
	"sync"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	"berth/coordinator/view"
)

// First is the first record of an operation.
type First struct {
	operation.Next
	snapshot *state.Snapshot    // that it was decided on
	decision placement.Decision // ID is empty if none was made
	Revision uint64             // that the operation was decided on
	Read     []state.Expectation
	made     *model.Resource  // a disk that is made with the VM's record
	changed  []model.Resource // resources that the operation changes at once
}

// startRequest is a start with what only one of several asks for.
type startRequest struct {
	StartVM
	unit  *placement.Unit // what comes along
	among []string        // node IDs: the only ones that will do
	last  lastWord
	// restart tells that nobody asks for it: the VM is to be highly available and runs nowhere.
	restart bool
}

// errNotYet says that a decision waits until the nodes have reported to this leader.
var errNotYet = errors.New("not all nodes have reported yet")

// scene is what a decision looks at.
type scene struct {
	snapshot *state.Snapshot
	view     *view.View     // of the snapshot, and of what was decided on it before
	settled  bool           // nobody is missing only because this leader is new
	starting map[string]int // starts that were decided on it before, by node ID
	survey   func() *evidence.Survey
}

// decidedStart is what the decision about a start came to: an answer, or something to commit.
type decidedStart struct {
	Started
	again   lead.Retry
	err     error
	refused bool   // by placement, which is to be recorded; err says nothing
	first   *First // to be committed; nil: there is nothing to commit
}

// waitingStart is a start that somebody waits for.
type waitingStart struct {
	ctx     context.Context // of who waits
	request startRequest
	outcome chan decidedStart // gets one, in which nothing is left to commit
}

// waitingStarts are those that nobody has taken up, in their order.
type waitingStarts struct {
	mu  sync.Mutex
	all []*waitingStart
}

func (w *waitingStarts) add(one *waitingStart) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, one)
}

// take takes the first ones, at most n.
func (w *waitingStarts) take(n int) []*waitingStart {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := slices.Clone(w.all[:min(n, len(w.all))])
	w.all = slices.Delete(w.all, 0, len(taken))
	return taken
}

// giveBack puts those that were taken and have to wait before all others.
func (w *waitingStarts) giveBack(left []*waitingStart) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = slices.Insert(w.all, 0, left...)
}

// withdraw is false when somebody has taken the start up.
func (w *waitingStarts) withdraw(one *waitingStart) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.Index(w.all, one)
	if at >= 0 {
		w.all = slices.Delete(w.all, at, at+1)
	}
	return at >= 0
}

// lastWord is what the node that had a VM last has said when it was asked to refuse the VM.
type lastWord struct {
	node    string // ID; empty: no node had to be asked
	epoch   uint64 // of the VM then
	refuses bool   // the node does not have it, and has journalled that it takes no order for it up to the epoch
}

// refusedBy is the ID of the node that refuses a VM as it is now; empty: none was asked, or it does not.
func (l *lastWord) refusedBy(vm *model.VM) string {
	if !l.refuses || l.epoch != vm.Epoch {
		return ""
	}
	return l.node
}
