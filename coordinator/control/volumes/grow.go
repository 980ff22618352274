package volumes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/shared/units"
)

// GrowDisk makes a disk larger, also one that a running VM has, and returns its record. What is asked for is written down
// first: until it is done the VM is neither started nor moved, and doing it again finishes it. Refusals are of type *Error.
func (v *Volumes) GrowDisk(ctx context.Context, request GrowDisk) (model.Resource, error) {
	record, _ := v.Store.Snapshot().Resource(request.Disk)
	leave, err := v.alone("disk/" + cmp.Or(record.Name, request.Disk))
	if err != nil {
		return model.Resource{}, err
	}
	defer leave()
	small := v.shrunk(ctx, record.ID)
	wanted, err := v.wantSize(ctx, request, small)
	disk := wanted.disk
	if err != nil || disk.Volume == nil || disk.Volume.Capacity == request.Size && small == 0 {
		return disk, err
	}
	again := fmt.Sprintf(
		"repeat 'berth disk grow %s %d' when the node answers: until then its VM is neither started nor moved", disk.Name, request.Size,
	)
	has, err := v.grow(ctx, wanted, request.Size, again)
	if err != nil {
		var refused *lead.TaskError
		if errors.As(err, &refused) { // it is as it was
			v.unwant(ctx, wanted, request.Caller)
		}
		return disk, err
	}
	text := fmt.Sprintf("from %s to %s", cmp.Or(small, disk.Volume.Capacity), request.Size)
	volume := *disk.Volume
	if volume.Capacity = request.Size; has > request.Size+units.KiB { // not what was rounded up
		volume.Capacity, disk = has, sized(disk, sizeText(has))
		text = fmt.Sprintf("from %s to %s: somebody had made it that large beside Berth", wanted.disk.Volume.Capacity, has)
	}
	disk.Volume = &volume
	command := v.Command(growKind, request.RequestID, request.Caller)
	lead.Change(&command, disk)
	command.Events = []model.Event{{
		At: command.At, Kind: "disk.grown", Subject: nameOf(disk), Message: text, Caller: request.Caller,
	}}
	if err := v.ProposeEnd(ctx, command, nameOf(disk), again); err != nil {
		return disk, err
	}
	disk, _ = v.Store.Snapshot().Resource(disk.ID)
	return disk, nil
}

// shrunk is the size of a disk that somebody has made smaller beside Berth, as the guest that runs with it has it; 0: nobody has. Of one
// that was made larger the record has its size when it returns.
func (v *Volumes) shrunk(ctx context.Context, disk string) units.Bytes {
	for _, vm := range v.Store.Snapshot().VMsLinkedTo(disk) {
		for _, one := range v.guests.Shrunk(ctx, vm.ID) {
			if one.Disk.ID == disk {
				return one.Is
			}
		}
	}
	return 0
}

// grow has the node that runs with the disk make it larger, or one that sees it when none does. Has is what it has then.
func (v *Volumes) grow(ctx context.Context, wanted wantedSize, size units.Bytes, again string) (has units.Bytes, err error) {
	snapshot := v.Store.Snapshot()
	order, err := estate.DiskOrder(snapshot, wanted.disk, wanted.disk.Volume.Pool)
	if err != nil {
		return 0, &lead.Error{
			Code: lead.Invalid, Subject: nameOf(wanted.disk), Message: err.Error(), NextStep: "see 'berth disk show " + wanted.disk.Name + "'",
		}
	}
	order.Capacity = size
	task, node := lead.GrowVolume{Volume: order, VM: wanted.vm.ID}, wanted.vm.Holder
	if node == "" {
		nodes, err := v.workers(snapshot, v.Inventory.View(snapshot, v.Now()), wanted.disk.Volume)
		if err != nil {
			return 0, err
		}
		node, task.VM = nodes[0], ""
	}
	done, err := v.Ask(ctx, snapshot, node, nameOf(wanted.disk), again, lead.Task{Grow: &task})
	return done.Capacity, err
}

// wantedSize is a disk whose record asks for a new size.
type wantedSize struct {
	disk   model.Resource
	vm     model.VM // that has it; no ID: none has
	before string   // what the record asked for
}

// wantSize writes down how large a disk is to be, once that is found to be possible. Small is the size of one that somebody has made
// smaller beside Berth.
func (v *Volumes) wantSize(ctx context.Context, request GrowDisk, small units.Bytes) (wanted wantedSize, err error) {
	err = v.InTurn(ctx, "disk/"+request.Disk, func() (lead.Retry, error) {
		snapshot, again, err := v.Ready()
		if again != lead.Decided || err != nil {
			return again, err
		}
		disk, known := snapshot.Resource(request.Disk)
		if !known || disk.Kind != model.KindDisk {
			return lead.Decided, &lead.Error{
				Code: lead.NotFound, Subject: "disk/" + request.Disk, Message: fmt.Sprintf(
					"there is no disk %q", request.Disk,
				), NextStep: "see 'berth disk list'",
			}
		}
		wanted = wantedSize{disk: disk, before: disk.Settings[schema.SettingSize]}
		if vms := snapshot.VMsLinkedTo(disk.ID); len(vms) > 0 {
			wanted.vm = vms[0]
		}
		if err := growable(snapshot, disk, wanted.vm, request.Size, small); err != nil {
			return lead.Decided, err
		}
		if disk.Volume != nil && disk.Volume.Capacity == request.Size {
			return lead.Decided, nil
		}
		if err := v.roomToGrow(snapshot, disk, request.Size); err != nil {
			return lead.Decided, err
		}
		if estate.SizeWanted(&disk) == request.Size { // somebody has begun before
			if disk.Volume != nil {
				wanted.before = sizeText(disk.Volume.Capacity)
			}
			return lead.Decided, nil
		}
		command := v.Command("want size of disk", "", request.Caller)
		wanted.disk = sized(disk, sizeText(request.Size))
		lead.Change(&command, wanted.disk)
		if wanted.vm.ID != "" { // nobody starts or moves it at this moment
			command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: wanted.vm.ID, Revision: wanted.vm.Revision})
		}
		wanted.disk.Revision, again, err = v.ProposeOnce(ctx, command, nameOf(disk))
		return again, err
	})
	return wanted, err
}

// unwant takes back what was written down. Not being able to changes nothing about the answer: doing it again does.
func (v *Volumes) unwant(ctx context.Context, wanted wantedSize, caller string) {
	command := v.Command("want size of disk", "", caller)
	lead.Change(&command, sized(wanted.disk, wanted.before))
	if err := v.ProposeEnd(ctx, command, nameOf(wanted.disk), ""); err != nil {
		v.Logger.Warn("a size that could not be had is still asked for", "disk", wanted.disk.Name, "error", err)
	}
}

func sizeText(size units.Bytes) string { return strconv.FormatInt(int64(size), 10) }

// sized is a disk's record that asks for a size; empty: for none.
func sized(disk model.Resource, size string) model.Resource {
	disk.Settings = maps.Clone(disk.Settings)
	if disk.Settings == nil {
		disk.Settings = map[string]string{}
	}
	if disk.Settings[schema.SettingSize] = size; size == "" {
		delete(disk.Settings, schema.SettingSize)
	}
	return disk
}

// inSnapshot tells whether a snapshot of a VM has a volume.
func inSnapshot(vm *model.VM, volume string) bool {
	return slices.ContainsFunc(vm.Snapshots, func(s model.Snapshot) bool {
		return slices.ContainsFunc(s.Disks, func(d model.SnapshotDisk) bool { return d.Source.Volume == volume })
	})
}

// growable refuses sizes that a disk cannot have.
func growable(snapshot *state.Snapshot, disk model.Resource, vm model.VM, to, small units.Bytes) error {
	refuse := func(code lead.Code, next, format string, args ...any) error {
		return &lead.Error{Code: code, Subject: nameOf(disk), Message: fmt.Sprintf(format, args...), NextStep: next}
	}
	wanted := estate.SizeWanted(&disk)
	size := wanted
	if disk.Volume != nil {
		size = disk.Volume.Capacity
	}
	switch {
	case !estate.IsVolume(&disk):
		return refuse(
			lead.Invalid, "make the file larger yourself", "disk %q is a file (%s), which is not Berth's", disk.Name,
			disk.Settings[schema.SettingPath],
		)
	case disk.Volume != nil && disk.Volume.Doomed:
		return refuse(lead.Conflict, fmt.Sprintf("finish that with 'berth disk delete %s'", disk.Name), "disk %q is being removed", disk.Name)
	case to > model.MaxVolume:
		return refuse(lead.Invalid, "ask for less", "a size of %s is more than a disk can have (%s)", to, model.MaxVolume)
	case to < size && small > 0:
		return refuse(
			lead.Conflict, fmt.Sprintf("'berth disk grow %s %d' makes it as large again; 'berth vm accept %s' keeps it as small, and then it grows "+
				"to what you want", disk.Name, size, model.Argument(vm.Name)),
			"disk %q has %s by its record, and %s as its guest runs, because somebody has made it smaller beside Berth", disk.Name, size, small,
		)
	case to < size:
		return refuse(
			lead.Invalid, "make a smaller disk and copy the content", "disk %q has %s already: it grows, and never shrinks to %s", disk.Name,
			size, to,
		)
	case disk.Volume != nil && inSnapshot(&vm, disk.Volume.Name):
		return refuse(lead.Conflict,
			fmt.Sprintf("delete the snapshots first: %s; 'berth vm snapshot list %s' shows them", vm.SnapshotNames(), vm.Name),
			"disk %q has snapshots, and reverting to one would make it small again", disk.Name)
	case vm.Operation != "":
		return lead.VMBusy(snapshot, vm)
	case wanted > size && wanted != to:
		return refuse(lead.Busy, fmt.Sprintf("finish that first with 'berth disk grow %s %d'", disk.Name, wanted),
			"disk %q is being made larger, to %s", disk.Name, wanted)
	}
	return nil
}

// roomToGrow refuses more than the pool of a disk may promise. A disk that is not made yet takes none.
func (v *Volumes) roomToGrow(snapshot *state.Snapshot, disk model.Resource, to units.Bytes) error {
	if disk.Volume == nil {
		return nil
	}
	pool, err := poolOf(v.Inventory.View(snapshot, v.Now()), disk.Volume.Pool)
	if err != nil {
		return err
	}
	node, where := "", ""
	if len(disk.Volume.Nodes) > 0 {
		node = disk.Volume.Nodes[0]
		where = " of " + lead.NodeName(snapshot, node)
	}
	share, known := pool.Share(node)
	if !known || len(share.Nodes) == 0 {
		return vanished(snapshot, &pool)
	}
	return room(&pool, share, to-disk.Volume.Capacity, where)
}
