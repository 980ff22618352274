package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/shared/units"
)

// localDisks are those disks of a VM that are on one node only.
func localDisks(request *placement.Request) []placement.Disk {
	return slices.DeleteFunc(slices.Clone(request.Disks), func(disk placement.Disk) bool { return disk.Node == "" })
}

// portable refuses to move a VM that has disks on its node, unless they are to be taken along and can be.
func portable(snapshot *state.Snapshot, vm model.VM, search *searched, copyStorage bool) error {
	refuse := func(next, format string, args ...any) error {
		return &lead.Error{Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf(format, args...), NextStep: next}
	}
	source, in := lead.NodeName(snapshot, vm.Holder), search.Options[0].Cluster
	local := localDisks(&search.Options[0].Request)
	file, has := fileOf(snapshot, vm)
	switch {
	case !copyStorage && len(local) > 0:
		pool, _ := snapshot.Resource(local[0].Pool)
		return refuse("give --copy-storage to take it along",
			"VM %q cannot move: its disk %s is in the local pool %s of %s", vm.Name, local[0].Name, pool.Name, source)
	case !copyStorage && search.localOnly():
		return refuse("let it run where it is; VMs move between the nodes of clusters with shared storage",
			"VM %q is in cluster %q, which has local storage: its disk is on %s, and a live migration moves no disk", vm.Name, in, source)
	case copyStorage && search.localOnly() && has:
		return refuse("let it run where it is; VMs move between the nodes of clusters with shared storage",
			"VM %q is in cluster %q, which has local storage: its disk %s is a file on %s, and only volumes of storage pools are copied",
			vm.Name, in, file, source)
	default:
		return nil
	}
}

// fileOf is a disk of a VM that is a file on its node and that it may write.
func fileOf(facts estate.Facts, vm model.VM) (path string, has bool) {
	if vm.Spec.XML != "" {
		return "in its XML", true
	}
	for i := range vm.Spec.Disks {
		if disk := &vm.Spec.Disks[i]; !disk.ReadOnly {
			return disk.Path, true
		}
	}
	for _, id := range vm.Disks {
		if disk, _ := facts.Resource(id); !estate.IsVolume(&disk) {
			return disk.Settings[schema.SettingPath], true
		}
	}
	return "", false
}

// How long a copy may take, as Nova and KubeVirt have it, of memory and disks alike.
const (
	copySecondsPerGiB = 150
	leastCopy         = 60 * time.Second
)

// copyDeadline is how long the copy of a memory may take.
func copyDeadline(memory units.Bytes) time.Duration {
	return max(leastCopy, time.Duration(float64(memory)/float64(units.GiB)*copySecondsPerGiB*float64(time.Second)))
}

// takeAlong makes a migration one that copies the VM's local volumes into the pools that were chosen on the target. The
// copies are whole: what a disk was a thin copy of does not have to be there.
func takeAlong(op *operation.Operation, snapshot *state.Snapshot, vm model.VM, decision placement.Decision) error {
	seed, there, err := estate.VolumesOf(snapshot, vm, nil)
	if err != nil {
		return err
	}
	var size units.Bytes
	for _, from := range append(there, seed...) {
		if from.Shared {
			continue
		}
		of := from.Disk
		if of == "" {
			of = there[0].Disk // the seed image goes where the first disk goes
		}
		at := slices.IndexFunc(decision.Pools, func(choice placement.PoolChoice) bool { return choice.Disk == of })
		if at < 0 {
			return fmt.Errorf("no pool of %s was chosen for disk %s", op.TargetName, from.DiskName)
		}
		pool, known := snapshot.Resource(decision.Pools[at].Pool)
		if !known {
			return fmt.Errorf("pool %s, which was chosen for disk %s, %w", decision.Pools[at].PoolName, from.DiskName, estate.ErrDangling)
		}
		settings := model.PoolSettingsOf(&pool)
		to := from
		to.Pool, to.PoolName, to.Shared = pool.ID, settings.Source, settings.Scope == model.PoolShared
		op.Volumes, op.Replaced = append(op.Volumes, to), append(op.Replaced, from)
		size += from.Capacity
	}
	op.CopyStorage = true
	op.Deadline += time.Duration(float64(size) / float64(units.GiB) * copySecondsPerGiB * float64(time.Second))
	return nil
}
