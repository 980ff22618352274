package lead

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// Berth is the caller of what the leader's loops do by themselves.
const Berth = moving.Berth

// Command begins a command. With the caller's idempotency key it is made once.
func (l *Leader) Command(kind, requestID, caller string) state.Command {
	return state.Command{Key: cmp.Or(requestID, l.NewID()), Kind: kind, Caller: caller, At: l.Now()}
}

// ProposeOnce commits a command that was decided on records which may have changed since, and tells whether to decide again. The index
// is the new revision of what was put.
func (l *Leader) ProposeOnce(ctx context.Context, command state.Command, subject string) (index uint64, again Retry, err error) {
	result, err := l.Propose(ctx, command)
	switch {
	case err != nil:
		return 0, Decided, err
	case result.Refusal == nil:
		return result.Index, Decided, nil
	case result.Refusal.Code == state.Stale:
		return 0, Stale, nil
	default:
		refused := RefusalOf(result.Refusal, "")
		refused.Subject = subject
		return 0, Decided, refused
	}
}

// ProposeEnd commits the end of what agents have done. When the record has changed meanwhile, doing it again finishes it.
func (l *Leader) ProposeEnd(ctx context.Context, command state.Command, subject, next string) error {
	_, again, err := l.ProposeOnce(ctx, command, subject)
	if again == Stale {
		return &Error{Code: StaleView, Subject: subject, Message: "its record changed while agents worked on it", NextStep: next}
	}
	return err
}

// Create puts a new resource into a command.
func Create(command *state.Command, resource model.Resource) {
	resource.Revision = 0
	Change(command, resource)
}

// Change puts a resource into a command that expects it as it was read.
func Change(command *state.Command, resource model.Resource) {
	command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: resource.ID, Revision: resource.Revision})
	command.Resources = append(command.Resources, resource)
}

// Remove takes a resource away with a command that expects it as it was read.
func Remove(command *state.Command, resource model.Resource) {
	command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: resource.ID, Revision: resource.Revision})
	command.Delete = append(command.Delete, state.Record{Table: state.Resources, ID: resource.ID})
}

// Perform has a node do a task, and tells in words what became of it if it was not done.
func (l *Leader) Perform(ctx context.Context, snapshot *state.Snapshot, node, subject, again string, task Task) error {
	_, err := l.Ask(ctx, snapshot, node, subject, again, task)
	return err
}

// Ask is Perform of a task that gives something.
func (l *Leader) Ask(ctx context.Context, snapshot *state.Snapshot, node, subject, again string, task Task) (TaskDone, error) {
	done, err := l.Agents.Perform(ctx, node, task)
	var refused *TaskError
	switch {
	case err == nil:
		return done, nil
	case errors.As(err, &refused):
		return done, &Error{
			Code: codeOf(refused.Code), Subject: subject, Message: fmt.Sprintf(
				"node %s: %s", NodeName(snapshot, node), refused.Message,
			), NextStep: again,
			cause: refused,
		}
	case ctx.Err() != nil:
		return done, ctx.Err()
	default:
		return done, &Error{Code: Unavailable, Subject: subject, Message: err.Error(), NextStep: again}
	}
}

// AskLimit bounds one question to an agent, or one small task.
const AskLimit = 10 * time.Second

// Refuse has a node refuse a VM for good, if it is not there. Only then is its absence evidence: no order that is still on its way can
// bring it back. The error says why it is none; a node that has not answered within the limit proves nothing.
func (l *Leader) Refuse(ctx context.Context, node string, vm *model.VM, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := l.Agents.Perform(limited, node, Task{Refuse: &CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	return err
}

// codeOf is the code of a caller's error for an agent's. What is busy, or in use by a domain, may be free when it is tried again.
func codeOf(code operation.ErrorCode) Code {
	switch code {
	case operation.Busy, operation.InUse:
		return Busy
	case operation.Invalid:
		return Invalid
	case operation.Unsupported, operation.Unavailable:
		return Unavailable
	default:
		return Conflict
	}
}
