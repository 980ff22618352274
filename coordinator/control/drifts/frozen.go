package drifts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// frozenLimit is how long the agent in a guest has to tell whether its file systems are frozen. Where none answers the order goes on.
const frozenLimit = 2 * time.Second

// Unfrozen refuses an order of a kind to a VM whose guest's file systems somebody has frozen, as backups do: the guest could not follow the
// order, or the order would end that. No listing tells of it, so the guest's node is asked.
func (d *Drifts) Unfrozen(ctx context.Context, snapshot *state.Snapshot, vm *model.VM, kind operation.Kind) error {
	name := model.Argument(vm.Name)
	why, otherwise := "a guest that cannot write does not shut down", ""
	switch kind {
	case operation.Stop:
		otherwise = fmt.Sprintf("; 'berth vm stop %s --force' ends it all the same", name)
	case operation.Reboot:
		otherwise = fmt.Sprintf("; 'berth vm reboot %s --force' resets it all the same", name)
	case operation.Snapshot:
		why, otherwise = "a snapshot would end that", "; or take it with --no-freeze"
	case operation.Migrate:
		why = "moved, it would not be thawed by who looks for it here"
	default:
		return nil
	}
	if vm.Holder == "" || vm.Operation != "" || !d.Heard(vm.Holder) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, frozenLimit)
	defer cancel()
	done, err := d.Agents.Perform(ctx, vm.Holder, lead.Task{Frozen: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	if err != nil || !done.Frozen {
		return nil
	}
	return &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name,
		Message: fmt.Sprintf("somebody has frozen the file systems of VM %q, as backups do: %s", vm.Name, why),
		NextStep: fmt.Sprintf("wait until that has ended, or have the guest write again with 'virsh domfsthaw %s' on %s%s",
			name, lead.NodeName(snapshot, vm.Holder), otherwise),
	}
}

// askedAtOnce is how many guests of a drain are asked at a time.
const askedAtOnce = 16

// FrozenAmong is the names of those of some VMs whose guests' file systems somebody has frozen, in the order of the VMs.
func (d *Drifts) FrozenAmong(ctx context.Context, snapshot *state.Snapshot, vms []string) []string {
	names := make([]string, len(vms)) // empty: it is not frozen
	var all errgroup.Group
	all.SetLimit(askedAtOnce)
	for i, id := range vms {
		all.Go(func() error {
			return lead.Survive(d.Logger, "asking whether a guest is frozen", func() error {
				if vm, known := snapshot.VM(id); known && d.Unfrozen(ctx, snapshot, &vm, operation.Migrate) != nil {
					names[i] = vm.Name
				}
				return nil
			})
		})
	}
	_ = all.Wait() // one that could not be asked is not known to be frozen
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
