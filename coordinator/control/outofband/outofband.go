// Package outofband follows what was done to VMs with virsh or another tool: VMs that were moved, stopped or changed, copies that run
// twice, and copies that an operation had to leave behind.
//
// Package evidence judges what the nodes show. This package carries out what follows, and says it at the VM.
package outofband

import (
	"cmp"
	"context"
	"sync"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Adoption takes VMs over where they run.
type Adoption interface {
	// TakeOver gives a VM that runs on another node than recorded a new epoch there. The error is adoption.ErrMovedOn when its
	// record has changed meanwhile.
	TakeOver(ctx context.Context, vm model.VM, node string) error
}

// Fencing knows which nodes are proven to be off.
type Fencing interface {
	// Survey listens to all nodes now.
	Survey(snapshot *state.Snapshot) *evidence.Survey
}

// Watch looks at VMs that somebody else has touched.
type Watch struct {
	*lead.Leader

	adoption Adoption
	fencing  Fencing
	unpauses unpauses
}

// New makes a Watch that does nothing before its loops run.
func New(leader *lead.Leader, adoption Adoption, fencing Fencing) *Watch {
	return &Watch{Leader: leader, adoption: adoption, fencing: fencing}
}

// note writes a VM's condition, and tells of it. By is the node, by ID, that has caused it; empty: the one that has the VM.
func (w *Watch) note(ctx context.Context, by string, vm model.VM, condition model.Condition, event model.Event) {
	vm.Condition = condition
	w.keep(ctx, by, vm, event)
}

// keep writes a VM down as note does. What one node says of another's VMs is not at that one's expense.
func (w *Watch) keep(ctx context.Context, by string, vm model.VM, event model.Event) {
	if w.Spend(cmp.Or(by, vm.Holder, vm.LastNode)) {
		w.write(ctx, vm, event)
	}
}

func (w *Watch) write(ctx context.Context, vm model.VM, event model.Event) {
	event.At, event.Subject, event.Caller = w.Now(), "vm/"+vm.Name, lead.Berth
	w.Try(ctx, state.Command{
		Key: w.NewID(), Kind: "follow vm", Caller: lead.Berth, At: event.At,
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}},
		VMs:    []model.VM{vm}, Events: []model.Event{event},
	})
}

// errands are what is being done about VMs beside the loop that found it: one thing at a time for each.
type errands struct {
	leader *lead.Leader

	mu   sync.Mutex
	busy map[string]bool
	work sync.WaitGroup
}

// once does something unless something of this name is still being done.
func (e *errands) once(name string, do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy[name] {
		return
	}
	if e.busy == nil {
		e.busy = map[string]bool{}
	}
	e.busy[name] = true
	e.leader.Beside(&e.work, name, func() {
		defer func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.busy, name)
		}()
		if lead.Survive(e.leader.Logger, name, func() error { do(); return nil }) != nil {
			e.leader.Rest()
		}
	})
}
