package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"berth/agent/hypervisor"
	"berth/coordinator/model"
	"berth/shared/units"
)

// Pool is the storage pool that every machine has on disks of its own.
const Pool = "fast"

// DiskName is the volume of a VM's disk. The guest sees it, so it is the same everywhere.
func DiskName(vm string) string { return "berth-" + vm[len(vm)-12:] + ".qcow2" }

// VolumesOf are the volumes of a VM with a disk as orders have them.
func VolumesOf(vm *model.VM) []model.VolumeOrder {
	return []model.VolumeOrder{{
		Disk: vm.ID + "-root", DiskName: vm.Name + "-root", Pool: "pool", PoolName: Pool, Name: DiskName(vm.ID), Format: "qcow2",
		Capacity: units.GiB,
	}}
}

// volume is one in a machine's pool. It outlives the machine's power.
type volume struct {
	writes  int // of all that were ever made to the disk, how many it has
	partial bool
	size    units.Bytes
}

// pool is the storage pool of a machine.
type pool struct {
	of      *Machine
	volumes map[string]*volume
	filled  bool // there is no room
}

// disksOf are the volumes that a domain of this document has.
func disksOf(xml string) ([]string, error) {
	disks, err := hypervisor.Disks(xml)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, disk := range disks {
		if disk.Source.Volume != "" {
			names = append(names, disk.Source.Volume)
		}
	}
	return names, nil
}

// lacks is a volume of a domain that is not on the machine; empty: all are.
func (p *pool) lacks(volumes []string) string {
	for _, name := range volumes {
		if p.volumes[name] == nil {
			return name
		}
	}
	return ""
}

// write is a guest's writing to its disks, as it runs. No copy may have more than the one that it writes to.
func (p *pool) write(d *Domain) {
	h := p.of
	for _, name := range d.volumes {
		if h.volumes[name] == nil {
			continue // its machine's disks have died under it
		}
		if newest := h.newest(name); h.volumes[name].writes < newest || h.volumes[name].partial && h.Witness.Keeps(name) {
			h.Broken("disk", d.UUID, "runs on %s with an old copy of %s: %d writes of %d", h.ID, name, h.volumes[name].writes, newest)
		}
		h.writes[name]++
		h.volumes[name].writes = h.writes[name]
	}
}

// newest is how many writes the best whole copy of a disk has.
func (s *Site) newest(name string) (writes int) {
	for _, one := range s.machines {
		if v := one.volumes[name]; v != nil && !v.partial {
			writes = max(writes, v.writes)
		}
	}
	return writes
}

// fill is the end of a copy of a domain's disks: what waits on the target has all that they have.
func (m *move) fill() {
	for _, name := range m.out.volumes {
		if from, to := m.source.volumes[name], m.target.volumes[name]; from != nil && to != nil {
			*to = *from
		}
	}
}

// CreateVolume implements hypervisor.Storage.
func (l *Libvirt) CreateVolume(ctx context.Context, wanted hypervisor.NewVolume) error {
	h := l.At
	return l.change(ctx, "create volume", wanted.Name, func() error {
		if h.volumes[wanted.Name] != nil {
			return fmt.Errorf("%w: %s", hypervisor.ErrExists, wanted.Name)
		}
		if !h.Witness.Keeps(wanted.Name) { // what an earlier try has left is nothing
			h.writes[wanted.Name] = 0
			for _, one := range h.machines {
				delete(one.volumes, wanted.Name)
			}
		}
		h.volumes[wanted.Name] = &volume{partial: h.writes[wanted.Name] > 0, size: units.Bytes(wanted.CapacityBytes)}
		return nil
	})
}

// LookupVolume implements hypervisor.Storage.
func (l *Libvirt) LookupVolume(ctx context.Context, pool, name string) (hypervisor.Volume, error) {
	if err := l.query(ctx); err != nil {
		return hypervisor.Volume{}, err
	}
	if l.At.volumes[name] == nil {
		return hypervisor.Volume{}, fmt.Errorf("%w: %s", hypervisor.ErrNoVolume, name)
	}
	return hypervisor.Volume{Pool: pool, Name: name, Format: hypervisor.FormatQCOW2, Path: "/srv/" + pool + "/" + name}, nil
}

// VolumesInUse implements hypervisor.Storage.
func (l *Libvirt) VolumesInUse(ctx context.Context) (map[string]string, error) {
	return map[string]string{}, l.query(ctx)
}

// VolumesBeside implements hypervisor.Storage. The disks of guests are files in no pool: what is on top of them nobody can tell.
func (l *Libvirt) VolumesBeside(ctx context.Context, file string) ([]hypervisor.Volume, error) {
	if err := l.query(ctx); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %s", hypervisor.ErrNoPool, file)
}

// DeleteVolume implements hypervisor.Storage.
func (l *Libvirt) DeleteVolume(ctx context.Context, _, name string) error {
	h := l.At
	return l.change(ctx, "delete volume", name, func() error {
		if h.volumes[name] == nil {
			return fmt.Errorf("%w: %s", hypervisor.ErrNoVolume, name)
		}
		for _, d := range h.Sorted() {
			if slices.Contains(d.volumes, name) {
				return fmt.Errorf("%w: %s", hypervisor.ErrInUse, name)
			}
		}
		h.removeVolume(name)
		return nil
	})
}

// removeVolume removes a copy of a disk, which must not be the last one that has all that was written.
func (p *pool) removeVolume(name string) {
	h := p.of
	gone, newest := *h.volumes[name], h.newest(name)
	delete(h.volumes, name)
	h.Note("volume removed", h.ID, name, fmt.Sprint(gone.writes))
	if !gone.partial && gone.writes > 0 && gone.writes == newest && h.newest(name) < newest && h.Witness.Keeps(name) &&
		!h.Witness.Spare(name, h) {
		h.Broken("disk", name, "the last copy with all %d writes is deleted, on %s", newest, h.ID)
	}
}

// Copies tells whether a domain moves from here with its disks, and the guest stands still.
func (m *move) copies() bool { return len(m.options.CopyDisks) > 0 }

// LoseDisks is the end of the machine's disks.
func (p *pool) LoseDisks() {
	h := p.of
	h.Note("disks die", h.ID, "", fmt.Sprint(slices.Sorted(maps.Keys(h.volumes))))
	clear(h.volumes)
}

// HasAll tells whether a whole copy of a disk is here that has all that was ever written to it.
func (p *pool) HasAll(name string) bool {
	return p.HasVolume(name) && p.volumes[name].writes == p.of.writes[name]
}

// HasVolume tells whether a whole copy of a disk is here that is no older than any other.
func (p *pool) HasVolume(name string) bool {
	v := p.volumes[name]
	return v != nil && !v.partial && v.writes == p.of.newest(name)
}
