package volumes

import (
	"cmp"
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/state"
)

// DeleteDisk forgets a disk of no VM, and removes its volume if it has one. From the first moment on nothing can use the
// disk; doing it again finishes what a crash or a silent node left. Refusals are of type *Error.
func (v *Volumes) DeleteDisk(ctx context.Context, request DeleteDisk) error {
	return v.deleteVolume(ctx, model.KindDisk, request.Disk, request.RequestID, request.Caller, deleteDiskKind)
}

// DeleteImage is DeleteDisk of an image that no disk is a copy of.
func (v *Volumes) DeleteImage(ctx context.Context, request DeleteImage) error {
	return v.deleteVolume(ctx, model.KindImage, request.Image, request.RequestID, request.Caller, deleteImageKind)
}

func (v *Volumes) deleteVolume(ctx context.Context, kind model.Kind, id, requestID, caller, commandKind string) error {
	named, _ := v.Store.Snapshot().Resource(id)
	leave, err := v.alone(string(kind) + "/" + cmp.Or(named.Name, id))
	if err != nil {
		return err
	}
	defer leave()
	record, err := v.doom(ctx, kind, id, requestID, caller, commandKind)
	if err != nil || record.ID == "" {
		return err
	}
	again := fmt.Sprintf("repeat 'berth %s delete %s' when the node answers: until then nothing can use it", kind, record.Name)
	for volume := range record.Volumes() {
		if err := v.clearVolume(ctx, v.Store.Snapshot(), record, volume.Pool, again); err != nil {
			return err
		}
	}
	command := v.Command(commandKind, requestID, caller)
	lead.Remove(&command, record)
	command.Events = []model.Event{{
		At: command.At, Kind: string(kind) + ".deleted", Subject: nameOf(record), Message: "deleted, with its volume", Caller: caller,
	}}
	return v.ProposeEnd(ctx, command, nameOf(record), again)
}

// doom marks a disk or an image as one that goes. The record has no ID if it has gone by this request before.
func (v *Volumes) doom(ctx context.Context, kind model.Kind, id, requestID, caller, commandKind string) (record model.Resource, err error) {
	err = v.InTurn(ctx, string(kind)+"/"+id, func() (lead.Retry, error) {
		snapshot, again, err := v.Ready()
		if again != lead.Decided || err != nil {
			return again, err
		}
		var known bool
		if record, known = snapshot.Resource(id); !known || record.Kind != kind {
			record = model.Resource{}
			if requestID != "" && snapshot.Answered(requestID, commandKind) {
				return lead.Decided, nil
			}
			return lead.Decided, &lead.Error{
				Code: lead.NotFound, Subject: string(kind) + "/" + id, Message: fmt.Sprintf("there is no %s %q", kind, id),
				NextStep: fmt.Sprintf("see 'berth %s list'", kind),
			}
		}
		if err := unused(snapshot, record); err != nil || record.Volume == nil || record.Volume.Doomed {
			return lead.Decided, err
		}
		for volume := range record.Volumes() {
			volume.Doomed = true
		}
		command := v.Command("doom "+string(kind), "", caller)
		lead.Change(&command, record)
		record.Revision, again, err = v.ProposeOnce(ctx, command, nameOf(record))
		return again, err
	})
	return record, err
}

// unused refuses what something else stands on.
func unused(snapshot *state.Snapshot, record model.Resource) error {
	if vms := snapshot.VMsLinkedTo(record.ID); len(vms) > 0 {
		return &lead.Error{
			Code: lead.Conflict, Subject: nameOf(record), Message: fmt.Sprintf("%s %q is in use by VM %q", record.Kind, record.Name, vms[0].Name),
			NextStep: fmt.Sprintf("take it from the VM with 'berth vm set %s', or delete that with 'berth vm delete %s'", vms[0].Name, vms[0].Name),
		}
	}
	if record.Kind != model.KindImage {
		return nil
	}
	for _, disk := range snapshot.Resources(model.KindDisk) {
		if disk.Links[schema.LinkImage] == record.ID {
			return &lead.Error{
				Code: lead.Conflict, Subject: nameOf(record), Message: fmt.Sprintf("image %q is in use: disk %q is a copy of "+
					"it", record.Name, disk.Name),
				NextStep: fmt.Sprintf("delete the disk first with 'berth disk delete %s'", disk.Name),
			}
		}
	}
	return nil
}
