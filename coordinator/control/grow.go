package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/state"
	"berth/shared/units"
)

// GrowDisk makes a disk larger, also one that a running VM has, and returns its record. What is asked for is written down
// first: until it is done the VM is neither started nor moved, and doing it again finishes it. Refusals are of type *Error.
func (c *Control) GrowDisk(ctx context.Context, request GrowDisk) (cluster.Resource, error) {
	record, _ := c.Store.Snapshot().Resource(request.Disk)
	leave, err := c.alone("disk/" + cmp.Or(record.Name, request.Disk))
	if err != nil {
		return cluster.Resource{}, err
	}
	defer leave()
	wanted, err := c.wantSize(ctx, request)
	disk := wanted.disk
	if err != nil || disk.Volume == nil || disk.Volume.Capacity == request.Size {
		return disk, err
	}
	again := fmt.Sprintf("repeat 'berth disk grow %s %d' when the node answers: until then its VM is neither started nor moved", disk.Name, request.Size)
	if err := c.grow(ctx, wanted, request.Size, again); err != nil {
		var refused *TaskError
		if errors.As(err, &refused) { // it is as it was
			c.unwant(ctx, wanted, request.Caller)
		}
		return disk, err
	}
	before, volume := disk.Volume.Capacity, *disk.Volume
	volume.Capacity = request.Size
	disk.Volume = &volume
	command := c.storageCommand(growKind, request.RequestID, request.Caller)
	change(&command, disk)
	command.Events = []cluster.Event{{
		At: command.At, Kind: "disk.grown", Subject: nameOf(disk), Message: fmt.Sprintf("from %s to %s", before, request.Size), Caller: request.Caller,
	}}
	if err := c.finish(ctx, command, nameOf(disk), again); err != nil {
		return disk, err
	}
	disk, _ = c.Store.Snapshot().Resource(disk.ID)
	return disk, nil
}

// grow has the node that runs with the disk make it larger, or one that sees it when none does.
func (c *Control) grow(ctx context.Context, wanted wantedSize, size units.Bytes, again string) error {
	snapshot := c.Store.Snapshot()
	order, err := estate.DiskOrder(snapshot, wanted.disk, wanted.disk.Volume.Pool)
	if err != nil {
		return &Error{Code: Invalid, Subject: nameOf(wanted.disk), Message: err.Error(), NextStep: "see 'berth disk show " + wanted.disk.Name + "'"}
	}
	order.Capacity = size
	task, node := GrowVolume{Volume: order, VM: wanted.vm.ID}, wanted.vm.Holder
	if node == "" {
		nodes, err := c.workers(snapshot, c.Inventory.View(snapshot, c.Now()), wanted.disk.Volume)
		if err != nil {
			return err
		}
		node, task.VM = nodes[0], ""
	}
	return c.perform(ctx, snapshot, node, nameOf(wanted.disk), again, Task{Grow: &task})
}

// wantedSize is a disk whose record asks for a new size.
type wantedSize struct {
	disk   cluster.Resource
	vm     cluster.VM // that has it; no ID: none has
	before string     // what the record asked for
}

// wantSize writes down how large a disk is to be, once that is found to be possible.
func (c *Control) wantSize(ctx context.Context, request GrowDisk) (wanted wantedSize, err error) {
	err = c.plan(ctx, "disk/"+request.Disk, func() (retry, error) {
		snapshot, again, err := c.ready()
		if again != decided || err != nil {
			return again, err
		}
		disk, known := snapshot.Resource(request.Disk)
		if !known || disk.Kind != cluster.KindDisk {
			return decided, &Error{
				Code: NotFound, Subject: "disk/" + request.Disk, Message: fmt.Sprintf("there is no disk %q", request.Disk), NextStep: "see 'berth disk list'",
			}
		}
		wanted = wantedSize{disk: disk, before: disk.Settings[estate.SettingSize]}
		if vms := snapshot.VMsLinkedTo(disk.ID); len(vms) > 0 {
			wanted.vm = vms[0]
		}
		if err := growable(snapshot, disk, wanted.vm, request.Size); err != nil {
			return decided, err
		}
		if disk.Volume != nil && disk.Volume.Capacity == request.Size {
			return decided, nil
		}
		if err := c.roomToGrow(snapshot, disk, request.Size); err != nil {
			return decided, err
		}
		if estate.SizeWanted(&disk) == request.Size { // somebody has begun before
			if disk.Volume != nil {
				wanted.before = sizeText(disk.Volume.Capacity)
			}
			return decided, nil
		}
		command := c.storageCommand("want size of disk", "", request.Caller)
		wanted.disk = sized(disk, sizeText(request.Size))
		change(&command, wanted.disk)
		if wanted.vm.ID != "" { // nobody starts or moves it at this moment
			command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: wanted.vm.ID, Revision: wanted.vm.Revision})
		}
		wanted.disk.Revision, again, err = c.once(ctx, command, nameOf(disk))
		return again, err
	})
	return wanted, err
}

// unwant takes back what was written down. Not being able to changes nothing about the answer: doing it again does.
func (c *Control) unwant(ctx context.Context, wanted wantedSize, caller string) {
	command := c.storageCommand("want size of disk", "", caller)
	change(&command, sized(wanted.disk, wanted.before))
	if err := c.finish(ctx, command, nameOf(wanted.disk), ""); err != nil {
		c.Logger.Warn("a size that could not be had is still asked for", "disk", wanted.disk.Name, "error", err)
	}
}

func sizeText(size units.Bytes) string { return strconv.FormatInt(int64(size), 10) }

// sized is a disk's record that asks for a size; empty: for none.
func sized(disk cluster.Resource, size string) cluster.Resource {
	disk.Settings = maps.Clone(disk.Settings)
	if disk.Settings == nil {
		disk.Settings = map[string]string{}
	}
	if disk.Settings[estate.SettingSize] = size; size == "" {
		delete(disk.Settings, estate.SettingSize)
	}
	return disk
}

// growable refuses sizes that a disk cannot have.
func growable(snapshot *state.Snapshot, disk cluster.Resource, vm cluster.VM, to units.Bytes) error {
	refuse := func(code Code, next, format string, args ...any) error {
		return &Error{Code: code, Subject: nameOf(disk), Message: fmt.Sprintf(format, args...), NextStep: next}
	}
	wanted := estate.SizeWanted(&disk)
	size := wanted
	if disk.Volume != nil {
		size = disk.Volume.Capacity
	}
	switch {
	case !estate.IsVolume(&disk):
		return refuse(Invalid, "make the file larger yourself", "disk %q is a file (%s), which is not Berth's", disk.Name, disk.Settings[estate.SettingPath])
	case disk.Volume != nil && disk.Volume.Doomed:
		return refuse(Conflict, fmt.Sprintf("finish that with 'berth disk delete %s'", disk.Name), "disk %q is being removed", disk.Name)
	case to > cluster.MaxVolume:
		return refuse(Invalid, "ask for less", "a size of %s is more than a disk can have (%s)", to, cluster.MaxVolume)
	case to < size:
		return refuse(Invalid, "make a smaller disk and copy the content", "disk %q has %s already: it grows, and never shrinks to %s", disk.Name, size, to)
	case vm.Operation != "":
		return busy(snapshot, vm)
	case wanted > size && wanted != to:
		return refuse(Busy, fmt.Sprintf("finish that first with 'berth disk grow %s %d'", disk.Name, wanted),
			"disk %q is being made larger, to %s", disk.Name, wanted)
	}
	return nil
}

// roomToGrow refuses more than the pool of a disk may promise. A disk that is not made yet takes none.
func (c *Control) roomToGrow(snapshot *state.Snapshot, disk cluster.Resource, to units.Bytes) error {
	if disk.Volume == nil {
		return nil
	}
	pool, err := poolOf(c.Inventory.View(snapshot, c.Now()), disk.Volume.Pool)
	if err != nil {
		return err
	}
	node, where := "", ""
	if len(disk.Volume.Nodes) > 0 {
		node = disk.Volume.Nodes[0]
		where = " of " + nodeName(snapshot, node)
	}
	share, known := pool.Share(node)
	if !known || len(share.Nodes) == 0 {
		return vanished(snapshot, &pool)
	}
	return room(&pool, share, to-disk.Volume.Capacity, where)
}
