package guests

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/drift"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// attachNew gives a VM a disk that is made for it. One name is of one disk, so several VMs get names of their own.
func attachNew(ctx context.Context, wanted *berthv1.NewDisk, vms int) asked {
	return func(p *answer.Moment, vm *model.VM) (request lifecycle.ActOnVM, err error) {
		request.Kind = operation.Attach
		subject := "vm/" + vm.Name
		if wanted.GetName() != "" && vms > 1 {
			return request, refusal.New(rpc.Invalid, subject, "leave the name out: they are called after their VMs",
				"%d VMs are named, each gets a disk of its own, and there is one name for all", vms)
		}
		pool, err := p.NamedResource(model.KindPool, wanted.GetPool())
		if err != nil {
			return request, err
		}
		name := cmp.Or(wanted.GetName(), freeDiskName(p, vm))
		if _, taken := p.ResourceByName(model.KindDisk, name); taken {
			return request, refusal.New(rpc.Exists, "disk/"+name, "choose another name with --name, or leave that out",
				"disk %q exists already", name)
		}
		disk, err := newDisk(p, vm, name, &pool, wanted)
		if err != nil {
			return request, refusal.Unsound("disk/"+name, "see 'berth vm attach disk --help'", err)
		}
		if vm.Holder != "" {
			device := model.Disk{
				Pool: model.PoolSettingsOf(&pool).Source, Volume: model.VolumeName(disk.ID, model.DiskFormat), Format: model.DiskFormat,
				Bus: cmp.Or(wanted.GetBus(), schema.DefaultBus),
			}
			request, err = amended(ctx, p, vm, operation.Attach, func(g *drift.Guest) (model.DeviceEdit, error) { return g.AttachDisk(device) })
		}
		request.NewDisk = disk
		return request, err
	}
}

// newDisk is the record of a disk that is made for a VM, which may link to it.
func newDisk(p *answer.Moment, vm *model.VM, name string, pool *model.Resource, message *berthv1.NewDisk) (*model.Resource, error) {
	wanted := estate.Wanted{
		Links:    map[string]string{schema.LinkPool: pool.Name},
		Settings: map[string]string{schema.SettingSize: strconv.FormatInt(message.GetSizeBytes(), 10)},
	}
	if message.GetBus() != "" {
		wanted.Settings[schema.SettingBus] = message.GetBus()
	}
	if message.GetKeep() {
		wanted.Settings[schema.SettingKeep] = "true"
	}
	links := model.VM{}
	for _, id := range vm.Disks {
		disk, _ := p.Resource(id)
		links.Disks = append(links.Disks, disk.Name)
	}
	now := p.Around(*vm, links, string(model.KindPool)+"/"+pool.Name, string(model.KindDisk)+"/"+name)
	made, err := estate.NewResource(now, model.KindDisk, name, wanted, answer.NewID(p.At), p.At)
	if err != nil {
		return nil, err
	}
	now.Resources = append(slices.Clone(now.Resources), made)
	links.Disks = append(links.Disks, name)
	if _, err := estate.EditVM(now, *vm, estate.WantedVM{Fields: []string{"disks"}, VM: links}); err != nil {
		return nil, err
	}
	return &made, nil
}

// freeDiskName is the first name of a further disk of a VM that no disk has.
func freeDiskName(p *answer.Moment, vm *model.VM) string {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s-disk%d", vm.Name, n)
		if _, taken := p.ResourceByName(model.KindDisk, name); !taken {
			return name
		}
	}
}

// newDiskText names a disk that is made, for people, and says what follows of that.
func newDiskText(p *answer.Moment, vm *model.VM, wanted *lifecycle.ActOnVM, op *operation.Operation) (text string, follows []string) {
	disk := wanted.NewDisk
	for _, id := range op.Disks {
		if made, there := p.Resource(id); there { // the same was asked for before
			disk = &made
		}
	}
	pool, _ := p.Resource(disk.Links[schema.LinkPool])
	text = fmt.Sprintf("disk %s (%s in pool %s)", disk.Name, estate.SizeWanted(disk), pool.Name)
	if len(wanted.Edits) == 0 {
		return text, []string{"it does not run: its next start makes the disk"}
	}
	text = fmt.Sprintf("disk %s (%s, %s in pool %s)", wanted.Edits[0].Key, disk.Name, estate.SizeWanted(disk), pool.Name)
	if model.PoolSettingsOf(&pool).Scope != model.PoolShared {
		how := "it leaves node %s with its disks only: 'berth vm migrate %s --copy-storage'"
		if vm.Spec.XML != "" {
			how = "it stays on node %s from now on: no disk of a VM with a document (%s) goes along"
		}
		follows = append(follows, fmt.Sprintf(how, p.NodeName(vm.Holder), vm.Name))
	}
	return text, follows
}
