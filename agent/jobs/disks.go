package jobs

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"berth/agent/hypervisor"
	"berth/agent/volumes"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// disksOf is the disks of a start, the seed image last. Every volume is looked up, even an old one: only then does libvirt see
// what another node did in a shared pool, and only then can an error name a missing volume.
func disksOf(ctx context.Context, from hypervisor.Hypervisor, order *berthv1.StartCommand) ([]domxml.Disk, error) {
	var disks []domxml.Disk
	for _, disk := range order.GetSpec().GetDisks() {
		if disk.GetVolume() != "" {
			if _, err := from.LookupVolume(ctx, disk.GetPool(), disk.GetVolume()); err != nil {
				return nil, err
			}
		}
		disks = append(disks, domxml.Disk{
			Path: disk.GetPath(), Pool: disk.GetPool(), Volume: disk.GetVolume(), Format: disk.GetFormat(), Bus: disk.GetBus(),
			ReadOnly: disk.GetReadOnly(), Serial: diskOf(disk.GetVolume()),
		})
	}
	for _, volume := range order.GetVolumes() {
		if volume.GetSeed() {
			// On virtio, because kernels of cloud images have no driver for a CD-ROM's controller.
			disks = append(disks, domxml.Disk{Pool: volume.GetPool(), Volume: volume.GetName(), Format: hypervisor.FormatRaw, ReadOnly: true})
		}
	}
	return disks, nil
}

// diskOf is the ID of the disk that a volume was made for; empty for any other file. The coordinator names volumes by it, so
// a guest sees the same serial number at every start and on every node.
func diskOf(volume string) string {
	id, ours := strings.CutPrefix(strings.TrimSuffix(volume, path.Ext(volume)), "berth-")
	if !ours || len(id) > domxml.MaxSerial {
		return ""
	}
	return id
}

// moveDisks completes the options of a migration whose domain has volumes: the document for the target names the target's
// volumes, and the options list the disks to copy.
//
// A volume that is not copied is one that both nodes see, and so is a file in the folder of a pool that is declared as shared; the
// coordinator plans no other migration. The target's libvirt may not have read its pool since the volume was made, so the document names
// the file, which is the same on both.
func moveDisks(
	ctx context.Context, from hypervisor.Hypervisor, order *berthv1.MigrateCommand, options *hypervisor.MigrateOptions,
) error {
	disks, err := domxml.Disks(options.DomainXML)
	if err != nil {
		return err
	}
	sources := map[string]domxml.Source{}
	left, seen := 0, 0 // disks that are not copied, and those of them that both nodes see
	for _, disk := range disks {
		name := disk.Volume
		if name == "" {
			name = path.Base(disk.Path)
		}
		to := counterpart(order, name)
		switch {
		case to != nil && !disk.ReadOnly && disk.Format != to.GetFormat():
			return fmt.Errorf(
				"%w: %s has format %q, and %q is what waits for it", hypervisor.ErrUnsupported, volumes.Name(to), disk.Format, to.GetFormat(),
			)
		case to != nil:
			if sources[disk.Target], err = sourceOf(ctx, from, to.GetPool(), to.GetName(), to.GetShared()); err != nil {
				return err
			}
			if !disk.ReadOnly {
				options.CopyDisks = append(options.CopyDisks, disk.Target)
			}
		case disk.Volume != "":
			if sources[disk.Target], err = sourceOf(ctx, from, disk.Pool, disk.Volume, true); err != nil {
				return err
			}
		}
		if to == nil && !disk.ReadOnly {
			left++
			both := disk.Volume != "" || diskOf(name) != ""
			if !both {
				if both, err = inShared(ctx, from, order.GetSharedPools(), disk.Path); err != nil {
					return err
				}
			}
			if both {
				seen++
			}
		}
	}
	if goAlong := writable(order.GetFrom()); len(options.CopyDisks) != goAlong {
		return fmt.Errorf(
			"%w: %d disks are to be copied, and the domain has %d of them", hypervisor.ErrUnsupported, goAlong, len(options.CopyDisks),
		)
	}
	options.SharedDisks = left > 0 && left == seen
	options.DomainXML, err = domxml.MoveDisks(options.DomainXML, sources)
	return err
}

// inShared tells whether a file is in the folder that one of these pools has here.
func inShared(ctx context.Context, from hypervisor.Hypervisor, pools []string, file string) (bool, error) {
	if len(pools) == 0 {
		return false, nil
	}
	host, err := from.Host(ctx)
	return slices.ContainsFunc(host.Pools, func(pool hypervisor.Pool) bool {
		return slices.Contains(pools, pool.Name) && pool.Active && pool.Path != "" && // a folder that nothing is mounted on is the host's own
			strings.HasPrefix(path.Clean(file), strings.TrimSuffix(path.Clean(pool.Path), "/")+"/")
	}), err
}

// counterpart is the volume on the target that a volume here is copied to; nil if it is not copied.
func counterpart(order *berthv1.MigrateCommand, name string) *berthv1.Volume {
	for i, from := range order.GetFrom() {
		if from.GetName() == name && i < len(order.GetTo()) {
			return order.GetTo()[i]
		}
	}
	return nil
}

// writable counts the volumes that a guest writes.
func writable(all []*berthv1.Volume) int {
	count := 0
	for _, volume := range all {
		if !volume.GetSeed() {
			count++
		}
	}
	return count
}

// sourceOf is how a document names a volume: as a file if the file has the same path on all nodes.
func sourceOf(ctx context.Context, from hypervisor.Hypervisor, pool, name string, shared bool) (domxml.Source, error) {
	if !shared {
		return domxml.Source{Pool: pool, Volume: name}, nil
	}
	found, err := from.LookupVolume(ctx, pool, name)
	return domxml.Source{Path: found.Path}, err
}
