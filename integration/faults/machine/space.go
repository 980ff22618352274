package machine

import (
	"slices"
	"time"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

// How large a machine's pool is, and how much of it is left when it is full.
const (
	poolSize = 100 << 30
	poolRest = 1 << 20
)

// Inventory is what the machine has, as its agent tells it.
func Inventory(h *Machine) *berthv1.NodeInventory {
	inventory := &berthv1.NodeInventory{
		MemoryBytes: h.Memory, Cpus: 64, MigrationUri: h.URI(),
		StoragePools: []*berthv1.StoragePool{{Name: Pool, Active: true, CapacityBytes: poolSize, AvailableBytes: h.room()}},
	}
	if h.Wide {
		inventory.StoragePools = append(inventory.StoragePools, &berthv1.StoragePool{
			Name: WidePool, Active: true, Path: WideFolder, CapacityBytes: poolSize, AvailableBytes: poolSize / 2,
		})
	}
	return inventory
}

// room is what is left of the machine's pool.
func (p *pool) room() int64 {
	if p != nil && p.filled { // a copy of a machine has none
		return poolRest
	}
	return poolSize / 2
}

// FillPool takes the room of the machine's pool. Its guests are paused as they write.
func FillPool(h *Machine) {
	h.Note("pool is full", h.ID, "", "")
	h.filled = true
	for _, d := range h.Sorted() {
		starve(d)
	}
}

// EmptyPool makes room. Guests stay as they are.
func EmptyPool(h *Machine) {
	if h.filled {
		h.Note("pool has room", h.ID, "", "")
		h.filled = false
	}
}

// starve pauses a guest at its next write, as its hypervisor does when there is no room for it.
func starve(d *Domain) {
	h := d.At
	const most = 3 * time.Second
	h.After(h.Between(0, most), func() {
		switch {
		case !h.filled || h.Domains[d.UUID] != d || d.State != hypervisor.Running:
		case d.move != nil || h.Frozen:
			h.After(most, func() { starve(d) })
		default:
			h.Set(d, hypervisor.Paused, hypervisor.ReasonIOError)
		}
	})
}

// Starves tells whether a guest stands still because there was no room for what it wrote.
func (d *Domain) Starves() bool {
	return d.State == hypervisor.Paused && d.Reason == hypervisor.ReasonIOError
}

// StandsBeside tells whether such a guest stands still while another copy of it runs, which somebody has started without Berth.
func (d *Domain) StandsBeside(other *Domain) bool {
	return d.Starves() && other != nil && other.State == hypervisor.Running && other.Is(ByHand)
}

// PauseStarved is somebody who lets such a guest run with virsh, and pauses it then for a while.
func PauseStarved(d *Domain, lasts time.Duration) bool {
	h := d.At
	if h.Domains[d.UUID] != d || !d.Starves() || d.move != nil || !h.Up || h.Hung || h.Frozen {
		return false
	}
	h.Set(d, hypervisor.Running, "unpaused")
	d.ByOwner = true
	h.Set(d, hypervisor.Paused, "user")
	h.After(lasts, func() {
		if h.Domains[d.UUID] == d && d.ByOwner && d.State == hypervisor.Paused {
			d.ByOwner = false
			h.Set(d, hypervisor.Running, "unpaused")
		}
	})
	return true
}

// Shares tells whether two guests write to one disk that all machines see.
func (d *Domain) Shares(other *Domain) bool {
	return d.UUID != other.UUID && slices.ContainsFunc(d.Sources, func(source hypervisor.Source) bool { return other.uses(source.Path) })
}

// uses tells whether a guest has the disk that is this file.
func (d *Domain) uses(path string) bool {
	return path != "" && slices.ContainsFunc(d.Sources, func(source hypervisor.Source) bool { return source.Path == path })
}

// IsUsedBeside tells whether a guest of another VM runs with the disk that is this file.
func (s *Site) IsUsedBeside(vm, path string) bool {
	return slices.ContainsFunc(s.machines, func(h *Machine) bool {
		for _, d := range h.Domains {
			if d.UUID != vm && d.State == hypervisor.Running && d.uses(path) {
				return true
			}
		}
		return false
	})
}
