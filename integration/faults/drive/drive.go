// Package drive carries operations out step by step, as control does, on a leader of the simulator.
package drive

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// Leader is the coordinator whose operations are driven.
type Leader interface {
	View() *state.Snapshot
	// Clock is its wall clock, which jumps.
	Clock() time.Time
	NewKey() string
	// After does something after a while, when the leader runs then.
	After(pause time.Duration, due func())
	// Has tells whether the runner is still that of the operation, and Ended that there is none any more.
	Has(operation string, r *Runner) bool
	Ended(operation string)

	// Input is what the driver has to know.
	Input(snapshot *state.Snapshot, op operation.Operation, vm model.VM) operation.Input
	// Order tells nodes what to do, and Cancel that they should give it up.
	Order(snapshot *state.Snapshot, op *operation.Operation, orders []operation.Order)
	Cancel(orders []operation.Order)
	// Choose finds a node for a start that has failed elsewhere; nil: none fits. Early tells that nodes may still come.
	Choose(snapshot *state.Snapshot, op *operation.Operation, vm *model.VM) (target operation.Target, node *model.Node, early bool)
	// Wrote binds the VM of a step to the node whose disks its guest writes to, or may have written to.
	Wrote(next *operation.Next)
	// Came is told that a VM has come to its node.
	Came(vm *model.VM)
	// Propose commits a step, and Refused tells that the state machine would not have it.
	Propose(command state.Command, done func(state.Result, error))
	Refused(operation, why string)
}

// Runner drives one operation.
type Runner struct {
	leader  Leader
	id      string
	driver  *operation.Driver
	turn    uint64 // of waiting
	busy    bool   // a step is being committed
	kicked  bool   // meanwhile something has happened
	answers []operation.Answer
}

// New makes the runner of an operation, which does nothing before its first Look.
func New(leader Leader, id string, round uint16) *Runner {
	return &Runner{leader: leader, id: id, driver: operation.NewDriver(round)}
}

func (r *Runner) isVoid() bool { return !r.leader.Has(r.id, r) }

// Wake lets it look again at once.
func (r *Runner) Wake() {
	if r.busy {
		r.kicked = true
		return
	}
	r.Look()
}

// Look does what is to be done now.
func (r *Runner) Look() {
	if r.isVoid() || r.busy {
		return
	}
	r.turn++
	snapshot := r.leader.View()
	op, known := snapshot.Operation(r.id)
	if !known {
		r.leader.Ended(r.id)
		return
	}
	vm, _ := snapshot.VM(op.VM)
	todo := r.driver.Look(r.leader.Input(snapshot, op, vm), r.leader.Clock())
	switch {
	case todo.Over:
		r.leader.Ended(r.id)
	case todo.Place:
		r.place(snapshot, op, vm)
	case todo.Commit != nil:
		r.commit(op, vm, *todo.Commit)
	default:
		r.leader.Order(snapshot, &op, todo.Orders)
		r.leader.Cancel(todo.Cancels)
		r.lookAgain(todo.Pause)
	}
}

func (r *Runner) lookAgain(after time.Duration) {
	turn := r.turn
	r.leader.After(after, func() {
		if r.turn == turn {
			r.Look()
		}
	})
}

// Take feeds an answer to the driver; while a step is being committed it waits.
func (r *Runner) Take(answer operation.Answer) {
	if r.busy {
		if len(r.answers) < 16 {
			r.answers = append(r.answers, answer)
		}
		return
	}
	if next, moved := r.driver.Answer(answer, r.leader.Clock()); moved {
		r.commit(next.Operation, next.VM, next)
	}
}

// commit makes a step durable and goes on. Op and VM are those that it was decided on: their revisions are expected.
func (r *Runner) commit(op operation.Operation, vm model.VM, next operation.Next, read ...state.Expectation) {
	r.busy = true
	r.turn++
	if next.Wrote != "" {
		r.leader.Wrote(&next)
	}
	command := state.Command{
		Key: r.leader.NewKey(), Kind: string(op.Kind) + " vm: " + string(next.Operation.Phase), Caller: op.Caller, At: next.Operation.UpdatedAt,
		Expect: append([]state.Expectation{
			{Table: state.Operations, ID: op.ID, Revision: op.Revision}, {Table: state.VMs, ID: vm.ID, Revision: vm.Revision},
		}, read...),
		Operations: []operation.Operation{next.Operation},
	}
	if next.DeleteVM {
		command.Delete = []state.Record{{Table: state.VMs, ID: vm.ID}}
	} else {
		command.VMs = []model.VM{next.VM}
	}
	r.leader.Propose(command, func(result state.Result, err error) {
		if r.isVoid() {
			return
		}
		r.busy = false
		switch {
		case err != nil:
			r.lookAgain(operation.LookEvery)
			return
		case result.Refusal != nil && result.Refusal.Code != state.Stale:
			r.leader.Refused(op.ID, result.Refusal.Message)
		case result.Refusal == nil && next.Arrived():
			r.leader.Came(&next.VM)
		}
		r.Look()
		waiting := r.answers
		r.answers = nil
		for _, answer := range waiting {
			if !r.isVoid() {
				r.Take(answer)
			}
		}
		if r.kicked && !r.isVoid() {
			r.kicked = false
			r.Wake()
		}
	})
}

// place finds the next node for a start.
func (r *Runner) place(snapshot *state.Snapshot, op operation.Operation, vm model.VM) {
	at := r.leader.Clock()
	if op.Cancel {
		r.commit(op, vm, operation.Abandon(op, vm, op.Message+"; not placed again because it was cancelled", at))
		return
	}
	target, node, early := r.leader.Choose(snapshot, &op, &vm)
	switch {
	case early:
		r.lookAgain(time.Second)
	case node == nil:
		r.commit(op, vm, operation.Abandon(op, vm, op.Message+"; and no node fits", at))
	default:
		r.commit(op, vm, operation.Place(op, vm, target, at), Unmoved(node))
	}
}

// Unmoved expects a node to be as it was when it was chosen.
func Unmoved(node *model.Node) state.Expectation {
	return state.Expectation{Table: state.Nodes, ID: node.ID, Revision: node.Revision}
}
