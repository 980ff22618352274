package guests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// attach gives a VM a disk or a network interface.
func attach(ctx context.Context, action *berthv1.AttachAction) asked {
	return func(p *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
		return amended(ctx, p, vm, operation.Attach, func(g *drift.Guest) (model.DeviceEdit, error) {
			if _, network := action.GetDevice().(*berthv1.AttachAction_Network); network {
				if err := networkThere(p, vm, action.GetNetwork()); err != nil {
					return model.DeviceEdit{}, err
				}
				return g.AttachInterface(action.GetNetwork())
			}
			wanted := action.GetDisk()
			disk := model.Disk{
				Path: wanted.GetPath(), Pool: wanted.GetPool(), Volume: wanted.GetVolume(), Format: wanted.GetFormat(),
				Bus: cmp.Or(wanted.GetBus(), "virtio"), ReadOnly: wanted.GetReadOnly(),
			}
			if err := model.ValidateSpec(model.VMSpec{Memory: model.MinVMMemory, VCPUs: 1, Disks: []model.Disk{disk}}); err != nil {
				return model.DeviceEdit{}, err
			}
			return g.AttachDisk(disk)
		})
	}
}

// networkThere refuses a network that the node of a VM does not have, or no node if the VM does not run.
func networkThere(p *answer.Moment, vm *model.VM, network string) error {
	if vm.Holder == "" {
		if nowhere := p.NetworksNowhere(p.ClusterOf(vm), network); len(nowhere) > 0 {
			return refusal.New(rpc.Conflict, "vm/"+vm.Name, answer.NetworkStep(network),
				"VM %q would not start with it: no node of its cluster has %s", vm.Name, answer.NetworkText(network))
		}
		return nil
	}
	if facts := p.Soft.Facts(vm.Holder, p.At); facts.NetworksKnown && !answer.HasNetwork(&facts, network) {
		return refusal.New(rpc.Conflict, "vm/"+vm.Name, answer.NetworkStep(network), "VM %q runs on node %s, which does not have %s",
			vm.Name, p.NodeName(vm.Holder), answer.NetworkText(network))
	}
	return nil
}

// detach takes a device from a VM. A MAC address has colons, and a target has none.
func detach(ctx context.Context, action *berthv1.DetachAction) asked {
	return func(p *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
		return amended(ctx, p, vm, operation.Detach, func(g *drift.Guest) (model.DeviceEdit, error) {
			kind := domxml.DiskDevice
			if strings.Contains(action.GetDevice(), ":") {
				kind = domxml.InterfaceDevice
			}
			return g.Detach(kind, action.GetDevice())
		})
	}
}

// medium changes what is in a drive of a VM.
func medium(ctx context.Context, action *berthv1.MediaAction) asked {
	return func(p *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
		return amended(ctx, p, vm, operation.Media, func(g *drift.Guest) (model.DeviceEdit, error) {
			source := model.DiskSource{Path: action.GetPath(), Pool: action.GetPool(), Volume: action.GetVolume()}
			switch file, volume := source.Path, source.Pool+source.Volume; {
			case file != "" && (volume != "" || !path.IsAbs(file) || len(file) > model.MaxPathLength):
				return model.DeviceEdit{}, errMedium
			case volume != "": // as a disk has it
				disk := model.Disk{Pool: source.Pool, Volume: source.Volume, Format: "raw", Bus: "sata", ReadOnly: true}
				if err := model.ValidateSpec(model.VMSpec{Memory: model.MinVMMemory, VCPUs: 1, Disks: []model.Disk{disk}}); err != nil {
					return model.DeviceEdit{}, err
				}
			}
			return g.Medium(action.GetTarget(), source)
		})
	}
}

var errMedium = fmt.Errorf(
	"a medium is given by its path on the node, which is absolute and has at most %d characters, or as a volume of a pool",
	model.MaxPathLength,
)

// amended makes the request for a change of one device.
func amended(
	ctx context.Context, p *answer.Moment, vm *model.VM, kind operation.Kind, change func(*drift.Guest) (model.DeviceEdit, error),
) (lifecycle.ActOnVM, error) {
	wanted, subject := lifecycle.ActOnVM{Kind: kind}, "vm/"+vm.Name
	guest := drift.Guest{VM: vm}
	var err error
	if guest.Baseline, err = drift.Baseline(p.Snapshot, vm); err != nil {
		return wanted, lifecycle.Unlinked(*vm, err)
	}
	if vm.Holder != "" && vm.Operation == "" {
		node, domain := shown(p, vm)
		if domain == nil || domain.Devices == nil {
			return wanted, refusal.New(rpc.Unavailable, subject, fmt.Sprintf("see 'berth node show %s', and try again", node),
				"node %s does not tell which devices VM %q has", node, vm.Name)
		}
		guest.Live = domain.Devices
	}
	edit, err := change(&guest)
	var none *drift.NotThereError
	var refused *connect.Error
	switch {
	case errors.As(err, &refused):
		return wanted, err
	case errors.As(err, &none) && kind == operation.Media:
		return wanted, refusal.New(rpc.NotFound, subject, "name one of its drives with --target; a VM gets a drive with its XML",
			"VM %q has no such drive for media: %s", vm.Name, none)
	case errors.As(err, &none):
		return wanted, refusal.New(rpc.NotFound, subject, fmt.Sprintf("see 'berth vm show %s'", vm.Name),
			"VM %q has no such device: %s", vm.Name, none)
	case err != nil:
		return wanted, refusal.Invalid(subject, "see 'berth vm "+string(kind)+" --help'", err)
	case edit.Was == edit.Is:
		return wanted, refusal.New(rpc.Conflict, subject, fmt.Sprintf("see 'berth vm show %s'", vm.Name),
			"VM %q has %s in its drive %s already", vm.Name, edit.Is, edit.Key)
	}
	if edit.Is != "" && edit.XML != "" {
		if err := p.AdmitDevice(ctx, vm, edit.XML); err != nil {
			return wanted, err
		}
	}
	wanted.Edits = []model.DeviceEdit{edit}
	return wanted, nil
}

// deviceText names a device that is changed, for people.
func deviceText(edit *model.DeviceEdit) string {
	return fmt.Sprintf("%s %s (%s)", edit.Kind, edit.Key, cmp.Or(edit.Is, edit.Was))
}

// followsOf is what follows of changed devices: that a VM which does not run has them later, and that a disk binds it.
func followsOf(p *answer.Moment, vm *model.VM, edits []model.DeviceEdit) (follows []string) {
	node := cmp.Or(vm.Holder, vm.LastNode)
	if vm.Holder == "" {
		follows = append(follows, "it does not run: its next start has that")
	}
	after := *vm
	after.Amend(edits, node, p.At)
	facts := p.Soft.Facts(node, p.At)
	if vm.Bound != "" || node == "" || !facts.PoolsKnown {
		return follows
	}
	local, err := drift.LocalDisk(p.Snapshot, &after, p.ClusterOf(vm), &facts)
	if err == nil && local != "" {
		why := local + " is in no pool that is declared as shared"
		follows = append(follows, fmt.Sprintf("it stays on node %s from now on: %s", p.NodeName(node), why))
		if vm.HA {
			follows = append(follows, "with high availability it would wait for that node")
		}
	}
	return follows
}
