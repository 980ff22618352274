package cluster

import (
	"math"
	"slices"
	"time"

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
	AtWork []float64 `json:"-"`

	// Room is how much larger than a VM's memory each ledger has to be: free less overhead, the smaller of the two, and
	// MinInt64 on a node that does not stand well or whose inputs are not known. Freshness is not in it: it ages.
	Room []units.Bytes `json:"-"`
	// RAM, CPU and Busy are #RAM, #CPU and #LOAD, clamped to 0 to 1; Unknown where they could not be measured.
	RAM  []float64 `json:"-"`
	CPU  []float64 `json:"-"`
	Busy []float64 `json:"-"`
	// Spans are the least and the greatest value of each of NodeKeys.
	Spans [][2]float64 `json:"-"`
	// Unmeasured are the nodes that have Unknown in one of these; nothing that is charged changes that.
	Unmeasured []int32 `json:"-"`
	// Lots are the hashes of the IDs, from which ties are drawn.
	Lots []uint64 `json:"-"`
}

// Figures are the columns that nothing else says: what a decision keeps of its nodes.
type Figures struct {
	Cluster string   `json:"cluster"`
	IDs     []string `json:"ids"`
	Names   []string `json:"names"`

	Standing []Standing `json:"standing"`
	Reasons  []string   `json:"reasons,omitempty"` // why a node does not stand well, in words; nil: nothing is said of any

	Known       []Known         `json:"known"`
	InventoryAt []int64         `json:"inventory_at"` // nanoseconds since 1970, the coordinator's
	TelemetryAt []int64         `json:"telemetry_at"`
	Memory      []units.Bytes   `json:"memory"` // physical
	RAMRatio    []float64       `json:"ram_ratio"`
	Overhead    []units.Bytes   `json:"overhead"`
	Promised    []units.Bytes   `json:"promised"` // limit of the promised ledger
	Used        []units.Bytes   `json:"used"`     // of it
	Free        []units.Bytes   `json:"free"`     // of the physical ledger; may be negative
	VCPULimit   []float64       `json:"vcpu_limit"`
	VCPUs       []int           `json:"vcpus"` // used
	Load        []float64       `json:"load"`  // 0 to 1
	NodeKeys    []NodeKeyColumn `json:"node_keys,omitempty"`

	// Count is how many VMs are on the node or on their way to it, foreign ones included; Management tells which nodes carry
	// the site's management; Coming are the vCPUs of the VMs whose use Load cannot show yet, of the node's CPUs. All are nil in
	// decisions of releases that did not look at them.
	Count      []int  `json:"count,omitempty"`
	Management []bool `json:"management,omitempty"`
	CPUs       []int  `json:"cpus,omitempty"`
	Coming     []int  `json:"coming,omitempty"`

	// What only some requests need (see Around); nil where nobody asked for it. AccountVMs are the VMs of the request's
	// customer by node. Pools are those of the cluster, by ID.
	AccountVMs []int           `json:"account_vms,omitempty"`
	Pools      []PoolColumn    `json:"pools,omitempty"`
	Networks   []NetworkColumn `json:"networks,omitempty"`
	Models     *CPUColumn      `json:"models,omitempty"`

	// Oldest is how old telemetry may be, of nodes that report more slowly because the fleet is large; 0: SuspectAfter.
	Oldest time.Duration `json:"oldest,omitempty"`
}

// NodeKeyColumn is one declared node key: the value of each node.
type NodeKeyColumn struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
	Sticky bool      `json:"sticky,omitempty"`
	Weight float64   `json:"weight,omitempty"`
}

// Standing is whether a node can be a candidate at all.
type Standing uint8

// The standings. Only Stands passes.
const (
	StandsUnheard Standing = iota // nothing has been heard of the node
	Stands
	StandsInMaintenance
	StandsSuspect
	StandsUnreachable
	StandsDegraded
	StandsDownInMaintenance // in maintenance, and it would not stand well without
	StandsFenced            // proven to be off
)

// Known says which figures of a node are known.
type Known uint8

// What can be known of a node.
const (
	KnowsInventory Known = 1 << iota
	KnowsDomains
	KnowsTelemetry
	KnowsFree
	KnowsLoad
)

// Unknown stands for a special key that could not be measured. It is far from every value, so it contributes nothing.
const Unknown = math.MaxFloat64 / 4

// OldestTelemetry is how old telemetry may be for a placement to trust it.
func (f *Figures) OldestTelemetry() time.Duration { return max(f.Oldest, SuspectAfter) }

// Reason says in words why a node does not stand well; empty when nothing is said of it.
func (f *Figures) Reason(i int) string {
	if f.Reasons == nil {
		return ""
	}
	return f.Reasons[i]
}

// Len is how many nodes there are.
func (f *Figures) Len() int { return len(f.IDs) }

// PromisedFree is what is left to promise on a node. It is negative on one that is promised beyond its limit.
func (f *Figures) PromisedFree(i int) units.Bytes { return add(f.Promised[i], -f.Used[i]) }

// Index finds a node by ID; false if it is not in the cluster.
func (f *Figures) Index(id string) (int, bool) { return slices.BinarySearch(f.IDs, id) }

// Select copies the figures of some nodes, given by index in ascending order.
func (f *Figures) Select(nodes []int) Figures {
	picked := Figures{
		Oldest: f.Oldest, Cluster: f.Cluster, IDs: pick(f.IDs, nodes), Names: pick(f.Names, nodes), Standing: pick(f.Standing, nodes),
		Known: pick(f.Known, nodes), InventoryAt: pick(f.InventoryAt, nodes), TelemetryAt: pick(f.TelemetryAt, nodes),
		Memory: pick(f.Memory, nodes), RAMRatio: pick(f.RAMRatio, nodes), Overhead: pick(f.Overhead, nodes),
		Promised: pick(f.Promised, nodes), Used: pick(f.Used, nodes), Free: pick(f.Free, nodes),
		VCPULimit: pick(f.VCPULimit, nodes), VCPUs: pick(f.VCPUs, nodes), Load: pick(f.Load, nodes),
	}
	if f.Reasons != nil {
		picked.Reasons = pick(f.Reasons, nodes)
	}
	picked.Count, picked.Management = pickGiven(f.Count, nodes), pickGiven(f.Management, nodes)
	picked.CPUs, picked.Coming = pickGiven(f.CPUs, nodes), pickGiven(f.Coming, nodes)
	for _, column := range f.NodeKeys {
		column.Values = pick(column.Values, nodes)
		picked.NodeKeys = append(picked.NodeKeys, column)
	}
	f.selectAround(&picked, nodes)
	return picked
}

// pickGiven is pick of a column that older decisions have not.
func pickGiven[T any](column []T, nodes []int) []T {
	if column == nil {
		return nil
	}
	return pick(column, nodes)
}

func pick[T any](column []T, nodes []int) []T {
	picked := make([]T, len(nodes))
	for to, from := range nodes {
		picked[to] = column[from]
	}
	return picked
}

// Derive computes what follows from the figures.
func (c *Columns) Derive() {
	n := c.Len()
	c.Room, c.Lots = make([]units.Bytes, n), make([]uint64, n)
	c.RAM, c.CPU, c.Busy = make([]float64, n), make([]float64, n), make([]float64, n)
	c.Spans = make([][2]float64, len(c.NodeKeys))
	for k := range c.NodeKeys {
		if values := c.NodeKeys[k].Values; len(values) > 0 {
			c.Spans[k] = [2]float64{slices.Min(values), slices.Max(values)}
		}
	}
	c.Unmeasured = nil
	for i := range n {
		c.Lots[i] = lot(c.IDs[i])
		c.deriveOne(i)
		if c.RAM[i] == Unknown || c.CPU[i] == Unknown || c.Busy[i] == Unknown {
			c.Unmeasured = append(c.Unmeasured, int32(i))
		}
	}
}

func (c *Columns) deriveOne(i int) {
	c.Room[i] = math.MinInt64
	const all = KnowsInventory | KnowsDomains | KnowsTelemetry | KnowsFree | KnowsLoad
	if c.Standing[i] == Stands && c.Known[i]&all == all {
		c.Room[i] = add(min(c.PromisedFree(i), c.Free[i]), -c.Overhead[i])
	}
	c.RAM[i] = share(float64(c.Used[i]), float64(c.Promised[i]))
	c.CPU[i] = share(float64(c.VCPUs[i]), c.VCPULimit[i])
	c.Busy[i] = Unknown
	if c.Known[i]&KnowsLoad != 0 {
		c.Busy[i] = share(c.Load[i], 1)
	}
}

// Charge puts a VM on a node as placing it there would: its full size is taken off both ledgers, it counts, it shows its
// keys to others and is where its groups look for it, and the CPUs that it uses, if known, are at work there. Columns that
// others read, as those of a view are, are cloned first.
func (c *Columns) Charge(i int, one Allocation) {
	c.Used[i], c.VCPUs[i] = add(c.Used[i], one.Memory), c.VCPUs[i]+one.VCPUs
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
	c.Used[i], c.VCPUs[i] = add(c.Used[i], -one.Memory), c.VCPUs[i]-one.VCPUs
	c.free(i, one.Frees)
	if len(one.Resident) > 0 && c.Residents != nil {
		c.Residents.Remove(i, one.Owner, one.Resident)
	}
	c.Groups.discharge(one.VM, c.IDs[i])
	c.Accounts.charge(i, -1, one.Owner.Customer)
	c.Headroom.discharge(i, &one)
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

// free adds to the physical ledger, if it is known.
func (c *Columns) free(i int, memory units.Bytes) {
	if c.Known[i]&KnowsFree != 0 {
		c.Free[i] = add(c.Free[i], memory)
	}
}

func (c *Columns) count(i, by int) {
	if c.Count != nil {
		c.Count[i] += by
	}
}

// work adds what a VM uses, or takes it away: CPUs that are known to be at work, or else vCPUs that the load does not show.
func (c *Columns) work(i, sign int, one *Allocation) {
	switch {
	case one.CPU == 0 && c.Coming != nil && (sign > 0 || one.unseen()):
		c.Coming[i] += sign * one.VCPUs
	case one.CPU > 0 && c.AtWork != nil && c.CPUs[i] > 0 && c.Known[i]&KnowsLoad != 0:
		c.AtWork[i] = max(0, c.AtWork[i]+float64(sign)*one.CPU)
		c.Load[i] = share(c.AtWork[i], float64(c.CPUs[i]))
	}
}

// Clone copies the columns so that charging the copy changes nothing for others.
func (c *Columns) Clone() *Columns {
	copied := *c
	copied.Used, copied.Free, copied.VCPUs = slices.Clone(c.Used), slices.Clone(c.Free), slices.Clone(c.VCPUs)
	copied.Count, copied.Coming = slices.Clone(c.Count), slices.Clone(c.Coming)
	copied.Load, copied.AtWork = slices.Clone(c.Load), slices.Clone(c.AtWork)
	copied.Room, copied.RAM, copied.CPU = slices.Clone(c.Room), slices.Clone(c.RAM), slices.Clone(c.CPU)
	copied.Busy, copied.Residents, copied.Groups = slices.Clone(c.Busy), c.Residents.clone(), c.Groups.clone()
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
