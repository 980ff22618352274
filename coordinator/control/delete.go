package control

import (
	"cmp"
	"context"
	"fmt"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/state"
)

// DeleteDisk forgets a disk of no VM, and removes its volume if it has one. From the first moment on nothing can use the
// disk; doing it again finishes what a crash or a silent node left. Refusals are of type *Error.
func (c *Control) DeleteDisk(ctx context.Context, request DeleteDisk) error {
	return c.deleteVolume(ctx, cluster.KindDisk, request.Disk, request.RequestID, request.Caller, deleteDiskKind)
}

// DeleteImage is DeleteDisk of an image that no disk is a copy of.
func (c *Control) DeleteImage(ctx context.Context, request DeleteImage) error {
	return c.deleteVolume(ctx, cluster.KindImage, request.Image, request.RequestID, request.Caller, deleteImageKind)
}

func (c *Control) deleteVolume(ctx context.Context, kind cluster.Kind, id, requestID, caller, commandKind string) error {
	named, _ := c.Store.Snapshot().Resource(id)
	leave, err := c.alone(string(kind) + "/" + cmp.Or(named.Name, id))
	if err != nil {
		return err
	}
	defer leave()
	record, err := c.doom(ctx, kind, id, requestID, caller, commandKind)
	if err != nil || record.ID == "" {
		return err
	}
	again := fmt.Sprintf("repeat 'berth %s delete %s' when the node answers: until then nothing can use it", kind, record.Name)
	for volume := range record.Volumes() {
		if err := c.clearVolume(ctx, c.Store.Snapshot(), record, volume.Pool, again); err != nil {
			return err
		}
	}
	command := c.storageCommand(commandKind, requestID, caller)
	remove(&command, record)
	command.Events = []cluster.Event{{
		At: command.At, Kind: string(kind) + ".deleted", Subject: nameOf(record), Message: "deleted, with its volume", Caller: caller,
	}}
	return c.finish(ctx, command, nameOf(record), again)
}

// doom marks a disk or an image as one that goes. The record has no ID if it has gone by this request before.
func (c *Control) doom(ctx context.Context, kind cluster.Kind, id, requestID, caller, commandKind string) (record cluster.Resource, err error) {
	err = c.plan(ctx, string(kind)+"/"+id, func() (retry, error) {
		snapshot, again, err := c.ready()
		if again != decided || err != nil {
			return again, err
		}
		var known bool
		if record, known = snapshot.Resource(id); !known || record.Kind != kind {
			record = cluster.Resource{}
			if requestID != "" && snapshot.Answered(requestID, commandKind) {
				return decided, nil
			}
			return decided, &Error{
				Code: NotFound, Subject: string(kind) + "/" + id, Message: fmt.Sprintf("there is no %s %q", kind, id),
				NextStep: fmt.Sprintf("see 'berth %s list'", kind),
			}
		}
		if err := unused(snapshot, record); err != nil || record.Volume == nil || record.Volume.Doomed {
			return decided, err
		}
		for volume := range record.Volumes() {
			volume.Doomed = true
		}
		command := c.storageCommand("doom "+string(kind), "", caller)
		change(&command, record)
		record.Revision, again, err = c.once(ctx, command, nameOf(record))
		return again, err
	})
	return record, err
}

// unused refuses what something else stands on.
func unused(snapshot *state.Snapshot, record cluster.Resource) error {
	if vms := snapshot.VMsLinkedTo(record.ID); len(vms) > 0 {
		return &Error{
			Code: Conflict, Subject: nameOf(record), Message: fmt.Sprintf("%s %q is in use by VM %q", record.Kind, record.Name, vms[0].Name),
			NextStep: fmt.Sprintf("take it from the VM with 'berth vm set %s', or delete that with 'berth vm delete %s'", vms[0].Name, vms[0].Name),
		}
	}
	if record.Kind != cluster.KindImage {
		return nil
	}
	for _, disk := range snapshot.Resources(cluster.KindDisk) {
		if disk.Links[estate.LinkImage] == record.ID {
			return &Error{
				Code: Conflict, Subject: nameOf(record), Message: fmt.Sprintf("image %q is in use: disk %q is a copy of it", record.Name, disk.Name),
				NextStep: fmt.Sprintf("delete the disk first with 'berth disk delete %s'", disk.Name),
			}
		}
	}
	return nil
}
