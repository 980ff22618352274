package view

import (
	"math"

	"berth/shared/units"
)

// Columns are the nodes of one cluster as placement scans them: one slice a figure, each with one entry a node, in the
// order of node IDs. A decision reads nothing else of the nodes, so that what it was made on can be kept and it can be made
// again bit for bit. A scan over columns takes a seventh of the time that one over structs takes.
//
// The figures and Residents are gathered from records and facts; the rest is derived from them by Derive. Who builds
// columns without a view fills the figures in, gives Residents (NewResidents) and calls Derive.
type Columns struct {
	Figures

	// Residents are the customer keys of the VMs on the nodes. Nil: there are none.
	Residents *Residents `json:"-"`
	// Groups are the cluster's affinity groups. Nil: it has none.
	Groups *Groups `json:"-"`
	// Accounts count customers' VMs by node. Nil: nobody has counted.
	Accounts *Accounts `json:"-"`
	// Headroom are the VMs that would have to be restarted elsewhere. Nil: the cluster keeps no node in spare.
	Headroom *Headroom `json:"-"`
	// around is what there is for requests with needs. Nil in columns that are not of a view.
	around *around
	// AtWork is how many CPUs are at work, more than there are if work has to wait: what Load is made of. Nil: what a VM that
	// comes or goes uses changes nothing.
	AtWork Column[float64] `json:"-"`

	// Room is how much larger than a VM's memory each ledger has to be: free less overhead, the smaller of the two, and
	// MinInt64 on a node that does not stand well or whose inputs are not known. Freshness is not in it: it ages.
	Room Column[units.Bytes] `json:"-"`
	// RAM, CPU and Busy are #RAM, #CPU and #LOAD, clamped to 0 to 1; Unknown where they could not be measured.
	RAM  Column[float64] `json:"-"`
	CPU  Column[float64] `json:"-"`
	Busy Column[float64] `json:"-"`
	// Spans are the least and the greatest value of each of NodeKeys.
	Spans [][2]float64 `json:"-"`
	// Unmeasured are the nodes that have Unknown in one of these; nothing that is charged changes that.
	Unmeasured []int32 `json:"-"`
	// Lots are the hashes of the IDs, from which ties are drawn.
	Lots []uint64 `json:"-"`
}

// Derive computes what follows from the figures.
func (c *Columns) Derive() {
	n := c.Len()
	c.Lots, c.Unmeasured, c.Spans = make([]uint64, n), nil, make([][2]float64, len(c.NodeKeys))
	for k := range c.NodeKeys {
		if values := c.NodeKeys[k].Values; values.Len() > 0 {
			c.Spans[k] = spanOf(values)
		}
	}
	room, ram, cpu, busy := make([]units.Bytes, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		c.Lots[i] = lot(c.IDs[i])
		is := c.derived(i)
		room[i], ram[i], cpu[i], busy[i] = is.room, is.ram, is.cpu, is.busy
		if is.unmeasured() {
			c.Unmeasured = append(c.Unmeasured, int32(i))
		}
	}
	c.Room, c.RAM, c.CPU, c.Busy = ColumnOf(room...), ColumnOf(ram...), ColumnOf(cpu...), ColumnOf(busy...)
}

// spanOf is the least and the greatest value of a list that has any.
func spanOf(values Column[float64]) [2]float64 {
	span := [2]float64{values.At(0), values.At(0)}
	for _, value := range values.All() {
		span[0], span[1] = min(span[0], value), max(span[1], value)
	}
	return span
}

// derived is what follows from the figures of one node.
type derived struct {
	room           units.Bytes
	ram, cpu, busy float64
}

func (d *derived) unmeasured() bool { return d.ram == Unknown || d.cpu == Unknown || d.busy == Unknown }

func (c *Columns) derived(i int) derived {
	is := derived{room: math.MinInt64, busy: Unknown}
	const all = KnowsInventory | KnowsDomains | KnowsTelemetry | KnowsFree | KnowsLoad
	if c.Standing[i] == Stands && c.Known[i]&all == all {
		is.room = add(min(c.PromisedFree(i), c.Free.At(i)), -c.Overhead[i])
	}
	is.ram = share(float64(c.Used.At(i)), float64(c.Promised[i]))
	is.cpu = share(float64(c.VCPUs.At(i)), c.VCPULimit[i])
	if c.Known[i]&KnowsLoad != 0 {
		is.busy = share(c.Load.At(i), 1)
	}
	return is
}

func (c *Columns) deriveOne(i int) {
	is := c.derived(i)
	c.Room.Set(i, is.room)
	c.RAM.Set(i, is.ram)
	c.CPU.Set(i, is.cpu)
	c.Busy.Set(i, is.busy)
}

// Charge puts a VM on a node as placing it there would: its full size is taken off both ledgers, it counts, it shows its
// keys to others and is where its groups look for it, and the CPUs that it uses, if known, are at work there. Columns that
// others read, as those of a view are, are cloned first.
func (c *Columns) Charge(i int, one Allocation) {
	c.promise(i, one.Memory, one.VCPUs)
	c.free(i, -one.Memory)
	if len(one.Resident) > 0 {
		if c.Residents == nil {
			c.Residents = NewResidents()
		}
		c.Residents.Add(i, one.Owner, one.Resident)
	}
	c.Groups.charge(&one, c.IDs[i])
	c.Accounts.charge(i, 1, one.Owner.Customer)
	c.Headroom.charge(i, &one)
	c.count(i, 1)
	c.work(i, 1, &one)
	c.deriveOne(i)
}

// Discharge takes a VM off a node as View.Without does: the promised ledger gets its full size back, the physical one what
// it frees. The allocation is the node's (NodeView.Holds), or what Move made of it.
func (c *Columns) Discharge(i int, one Allocation) {
	c.promise(i, -one.Memory, -one.VCPUs)
	c.free(i, one.Frees)
	if len(one.Resident) > 0 && c.Residents != nil {
		c.Residents.Remove(i, one.Owner, one.Resident)
	}
	c.Groups.discharge(one.VM, c.IDs[i])
	c.Accounts.charge(i, -1, one.Owner.Customer)
	c.Headroom.discharge(i, &one, c.Room.At(i)) // as it was before: the room is derived anew below
	c.count(i, -1)
	c.work(i, -1, &one)
	c.deriveOne(i)
}

// Move discharges a VM from one node and charges another with it. It returns the VM as it is on that one: charged in full.
func (c *Columns) Move(from, to int, one Allocation) Allocation {
	c.Discharge(from, one)
	one.InFlight, one.Frees = true, one.Memory
	c.Charge(to, one)
	return one
}

// promise adds to the promised ledger.
func (c *Columns) promise(i int, memory units.Bytes, vcpus int) {
	c.Used.Set(i, add(c.Used.At(i), memory))
	c.VCPUs.Set(i, c.VCPUs.At(i)+vcpus)
}

// free adds to the physical ledger, if it is known.
func (c *Columns) free(i int, memory units.Bytes) {
	if c.Known[i]&KnowsFree != 0 {
		c.Free.Set(i, add(c.Free.At(i), memory))
	}
}

func (c *Columns) count(i, by int) {
	if c.Count.Given() {
		c.Count.Set(i, c.Count.At(i)+by)
	}
}

// work adds what a VM uses, or takes it away: CPUs that are known to be at work, or else vCPUs that the load does not show.
func (c *Columns) work(i, sign int, one *Allocation) {
	switch {
	case one.CPU == 0 && c.Coming.Given() && (sign > 0 || one.unseen()):
		c.Coming.Set(i, c.Coming.At(i)+sign*one.VCPUs)
	case one.CPU > 0 && c.AtWork.Given() && c.CPUs[i] > 0 && c.Known[i]&KnowsLoad != 0:
		c.AtWork.Set(i, max(0, c.AtWork.At(i)+float64(sign)*one.CPU))
		c.Load.Set(i, share(c.AtWork.At(i), float64(c.CPUs[i])))
	}
}

// Clone copies the columns so that charging the copy changes nothing for others.
func (c *Columns) Clone() *Columns {
	copied := *c
	copied.Used, copied.Free, copied.VCPUs = c.Used.Clone(), c.Free.Clone(), c.VCPUs.Clone()
	copied.Count, copied.Coming = c.Count.Clone(), c.Coming.Clone()
	copied.Load, copied.AtWork = c.Load.Clone(), c.AtWork.Clone()
	copied.Room, copied.RAM, copied.CPU = c.Room.Clone(), c.RAM.Clone(), c.CPU.Clone()
	copied.Busy, copied.Residents, copied.Groups = c.Busy.Clone(), c.Residents.clone(), c.Groups.clone()
	copied.Accounts, copied.Headroom = c.Accounts.clone(), c.Headroom.clone()
	return &copied
}

// share is used by limit, clamped to 0 to 1, or Unknown.
func share(used, limit float64) float64 {
	if math.IsNaN(used) || math.IsNaN(limit) || limit <= 0 {
		return Unknown
	}
	return min(max(used/limit, 0), 1)
}

// lot hashes an ID (FNV-1a).
func lot(id string) uint64 {
	hash := uint64(14695981039346656037)
	for i := range len(id) {
		hash = (hash ^ uint64(id[i])) * 1099511628211
	}
	return hash
}
