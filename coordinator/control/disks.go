package control

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// Kinds of the commands that work on volumes.
const (
	deleteDiskKind  = "delete disk"
	deleteImageKind = "delete image"
	deleteVMKind    = "delete vm"
	growKind        = "grow disk"
	importKind      = "import image"
)

// storageCommand begins a command about disks or images. With the caller's idempotency key it is made once.
func (c *Control) storageCommand(kind, requestID, caller string) state.Command {
	return state.Command{Key: cmp.Or(requestID, c.newID()), Kind: kind, Caller: caller, At: c.Now()}
}

// alone keeps others from working on the volumes of a disk or an image at the same time. What a crash left nobody works on.
func (c *Control) alone(subject string) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.storage[subject] {
		return nil, &Error{Code: Busy, Subject: subject, Message: subject + " is being worked on", NextStep: "wait until that has ended"}
	}
	c.storage[subject] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.storage, subject)
	}, nil
}

// once commits a command that was decided on what may have changed since, and tells whether to decide again. The index is the
// new revision of what was put.
func (c *Control) once(ctx context.Context, command state.Command, subject string) (index uint64, again retry, err error) {
	result, err := c.propose(ctx, command)
	switch {
	case err != nil:
		return 0, decided, err
	case result.Refusal == nil:
		return result.Index, decided, nil
	case result.Refusal.Code == state.Stale:
		return 0, moved, nil
	default:
		refused := fromRefusal(result.Refusal, "")
		refused.Subject = subject
		return 0, decided, refused
	}
}

// finish commits the end of what agents have done. When the record has changed meanwhile, doing it again finishes it.
func (c *Control) finish(ctx context.Context, command state.Command, subject, next string) error {
	_, again, err := c.once(ctx, command, subject)
	if again == moved {
		return &Error{Code: StaleView, Subject: subject, Message: "its record changed while agents worked on it", NextStep: next}
	}
	return err
}

// create puts a new resource into a command.
func create(command *state.Command, resource cluster.Resource) {
	resource.Revision = 0
	change(command, resource)
}

// change puts a resource into a command that expects it as it was read.
func change(command *state.Command, resource cluster.Resource) {
	command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: resource.ID, Revision: resource.Revision})
	command.Resources = append(command.Resources, resource)
}

// remove takes a resource away with a command that expects it as it was read.
func remove(command *state.Command, resource cluster.Resource) {
	command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: resource.ID, Revision: resource.Revision})
	command.Delete = append(command.Delete, state.Record{Table: state.Resources, ID: resource.ID})
}

// settleDisks puts into a command what becomes of disks with an operation's step.
func (c *Control) settleDisks(command *state.Command, next operation.Next) {
	snapshot := c.Store.Snapshot()
	for _, id := range slices.Sorted(maps.Keys(next.Volumes)) {
		if disk, there := snapshot.Resource(id); there {
			volume := next.Volumes[id]
			disk.Volume = &volume
			change(command, disk)
		}
	}
	for _, id := range next.DeleteDisks {
		if disk, there := snapshot.Resource(id); there {
			remove(command, disk)
		}
	}
}
