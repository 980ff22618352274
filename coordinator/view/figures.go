package view

import (
	"math"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/shared/units"
)

// Figures are the columns that nothing else says: what a decision keeps of its nodes.
type Figures struct {
	Cluster string   `json:"cluster"`
	IDs     []string `json:"ids"`
	Names   []string `json:"names"`

	Standing []Standing `json:"standing"`
	Reasons  []string   `json:"reasons,omitempty"` // why a node does not stand well, in words; nil: nothing is said of any

	// Unanswered is since when nodes do not answer starts, seconds since 1970; 0: they do; nil: all do, or nobody looked.
	Unanswered []int64 `json:"unanswered,omitempty"`

	Known       []Known             `json:"known"`
	InventoryAt Column[int64]       `json:"inventory_at"` // nanoseconds since 1970, the coordinator's, in whole seconds
	TelemetryAt Column[int64]       `json:"telemetry_at"` // the same, in whole milliseconds
	Memory      []units.Bytes       `json:"memory"`       // physical
	RAMRatio    []float64           `json:"ram_ratio"`
	Overhead    []units.Bytes       `json:"overhead"`
	Promised    []units.Bytes       `json:"promised"` // limit of the promised ledger
	Used        Column[units.Bytes] `json:"used"`     // of it
	Free        Column[units.Bytes] `json:"free"`     // of the physical ledger; may be negative
	VCPULimit   []float64           `json:"vcpu_limit"`
	VCPUs       Column[int]         `json:"vcpus"` // used
	Load        Column[float64]     `json:"load"`  // 0 to 1
	NodeKeys    []NodeKeyColumn     `json:"node_keys,omitempty"`

	// Count is how many VMs are on the node or on their way to it, foreign ones included; Management tells which nodes carry
	// the site's management; Coming are the vCPUs of the VMs whose use Load cannot show yet, of the node's CPUs. All are nil in
	// decisions of releases that did not look at them.
	Count      Column[int] `json:"count,omitzero"`
	Management []bool      `json:"management,omitempty"`
	CPUs       []int       `json:"cpus,omitempty"`
	Coming     Column[int] `json:"coming,omitzero"`

	// CPUPressure is the percent of time in which a task waited for a CPU; Unknown where that could not be measured. It is nil in
	// decisions of releases that did not look at it.
	CPUPressure Column[float64] `json:"cpu_pressure,omitzero"`

	// MemoryPressure is the same of memory, and VCPUDelay the percent of time in which the vCPUs of its VMs waited for a CPU, on
	// average.
	MemoryPressure Column[float64] `json:"memory_pressure,omitzero"`
	VCPUDelay      Column[float64] `json:"vcpu_delay,omitzero"`

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
	Name   string          `json:"name"`
	Values Column[float64] `json:"values"`
	Sticky bool            `json:"sticky,omitempty"`
	Weight float64         `json:"weight,omitempty"`
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
func (f *Figures) OldestTelemetry() time.Duration { return max(f.Oldest, model.SuspectAfter) }

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
func (f *Figures) PromisedFree(i int) units.Bytes { return add(f.Promised[i], -f.Used.At(i)) }

// Index finds a node by ID; false if it is not in the cluster.
func (f *Figures) Index(id string) (int, bool) { return slices.BinarySearch(f.IDs, id) }

// figure is one list of figures, whatever they are of: gathering, choosing and copying go over all.
type figure struct {
	gather func(into *Figures, nodes []*NodeView)
	revise func(figures *Figures, at []int, nodes []*NodeView)
	choose func(into, from *Figures, nodes []int)
	copy   func(figures *Figures)
}

// columns has the lists of figures that are gathered node by node. A nil list stays nil, because older decisions do not have
// all of them. What needs more than its node is gathered by ColumnsOf.
var columns = []figure{
	seldom(func(f *Figures) *[]string { return &f.IDs }, func(n *NodeView) string { return n.Node.ID }),
	seldom(func(f *Figures) *[]string { return &f.Names }, func(n *NodeView) string { return n.Node.Name }),
	seldom(func(f *Figures) *[]Standing { return &f.Standing }, standingOf),
	rarely(func(f *Figures) *[]string { return &f.Reasons }, reasonOf),
	seldom(func(f *Figures) *[]Known { return &f.Known }, knownOf),
	often(func(f *Figures) *Column[int64] { return &f.InventoryAt }, inventoryAtOf),
	often(func(f *Figures) *Column[int64] { return &f.TelemetryAt }, telemetryAtOf),
	seldom(func(f *Figures) *[]units.Bytes { return &f.Memory }, func(n *NodeView) units.Bytes { return n.Facts.Memory }),
	seldom(func(f *Figures) *[]float64 { return &f.RAMRatio }, func(n *NodeView) float64 { return n.Settings.RAMRatio }),
	seldom(func(f *Figures) *[]units.Bytes { return &f.Overhead }, func(n *NodeView) units.Bytes { return n.Settings.Overhead }),
	seldom(func(f *Figures) *[]units.Bytes { return &f.Promised }, func(n *NodeView) units.Bytes { return n.PromisedLimit }),
	often(func(f *Figures) *Column[units.Bytes] { return &f.Used }, func(n *NodeView) units.Bytes { return n.PromisedUsed }),
	often(func(f *Figures) *Column[units.Bytes] { return &f.Free }, func(n *NodeView) units.Bytes { return n.PhysicalFree }),
	seldom(func(f *Figures) *[]float64 { return &f.VCPULimit }, func(n *NodeView) float64 { return n.VCPULimit }),
	often(func(f *Figures) *Column[int] { return &f.VCPUs }, func(n *NodeView) int { return n.VCPUsUsed }),
	often(func(f *Figures) *Column[float64] { return &f.Load }, shareAtWorkOf),
	often(func(f *Figures) *Column[int] { return &f.Count }, func(n *NodeView) int { return len(n.Allocations) }),
	rarely(func(f *Figures) *[]int64 { return &f.Unanswered }, unansweredOf),
	seldom(func(f *Figures) *[]bool { return &f.Management }, func(n *NodeView) bool { return n.Node.Management }),
	seldom(func(f *Figures) *[]int { return &f.CPUs }, func(n *NodeView) int { return n.Facts.CPUs }),
	often(func(f *Figures) *Column[int] { return &f.Coming }, (*NodeView).coming),
	often(func(f *Figures) *Column[float64] { return &f.CPUPressure }, measured(func(f *model.NodeFacts) *float64 { return f.CPUPressure })),
	often(func(f *Figures) *Column[float64] { return &f.MemoryPressure },
		measured(func(f *model.NodeFacts) *float64 { return f.MemoryPressure })),
	often(func(f *Figures) *Column[float64] { return &f.VCPUDelay }, measured(func(f *model.NodeFacts) *float64 { return f.VCPUDelay })),
	seldom(func(f *Figures) *[]int { return &f.AccountVMs }, nil),
}

// measured is a figure of a node, Unknown where it was not measured or no sample has come.
func measured(figure func(*model.NodeFacts) *float64) func(*NodeView) float64 {
	return func(n *NodeView) float64 {
		if at := figure(&n.Facts); n.Facts.Telemetry && at != nil {
			return *at
		}
		return Unknown
	}
}

// Waiting is the percent of time in which work waits for the CPUs or the memory of a node, whichever is more. What is not known
// does not count.
func (f *Figures) Waiting(node int) float64 {
	most := 0.0
	for _, column := range [...]Column[float64]{f.CPUPressure, f.MemoryPressure, f.VCPUDelay} {
		if column.Given() && column.At(node) != Unknown {
			most = max(most, column.At(node))
		}
	}
	return most
}

// seldom describes figures that seldom change: what they are of a node, or nil where a node alone does not say. A slice is scanned
// with the least effort, and is copied whole for a value that differs.
func seldom[T comparable](at func(*Figures) *[]T, of func(*NodeView) T) figure {
	return figure{
		gather: func(into *Figures, nodes []*NodeView) {
			if of != nil {
				*at(into) = valuesOf(nodes, of)
			}
		},
		revise: func(figures *Figures, rows []int, nodes []*NodeView) {
			if of != nil {
				reviseSlice(at(figures), rows, nodes, of)
			}
		},
		choose: func(into, from *Figures, nodes []int) { *at(into) = pickGiven(*at(from), nodes) },
		copy:   func(figures *Figures) { *at(figures) = slices.Clone(*at(figures)) },
	}
}

// rarely describes figures that few nodes have, seldom that change: there is no list of them while no node has any.
func rarely[T comparable](at func(*Figures) *[]T, of func(*NodeView) T) figure {
	given := func(list []T) bool { return slices.ContainsFunc(list, func(value T) bool { return value != *new(T) }) }
	rare := seldom(at, of)
	rare.gather = func(into *Figures, nodes []*NodeView) {
		if list := valuesOf(nodes, of); given(list) {
			*at(into) = list
		}
	}
	rare.revise = func(figures *Figures, rows []int, nodes []*NodeView) {
		if *at(figures) == nil {
			if !given(valuesOf(nodes, of)) {
				return
			}
			*at(figures) = make([]T, figures.Len())
		}
		if reviseSlice(at(figures), rows, nodes, of); !given(*at(figures)) {
			*at(figures) = nil
		}
	}
	return rare
}

// often describes figures that change with what nodes report, or with each VM.
func often[T comparable](at func(*Figures) *Column[T], of func(*NodeView) T) figure {
	return figure{
		gather: func(into *Figures, nodes []*NodeView) { *at(into) = ColumnOf(valuesOf(nodes, of)...) },
		revise: func(figures *Figures, rows []int, nodes []*NodeView) { revise(at(figures), rows, nodes, of) },
		choose: func(into, from *Figures, nodes []int) { *at(into) = at(from).Choose(nodes) },
		copy:   func(figures *Figures) { *at(figures) = at(figures).Clone() },
	}
}

// valuesOf is one figure of some nodes.
func valuesOf[T any](nodes []*NodeView, of func(*NodeView) T) []T {
	values := make([]T, len(nodes))
	for i, node := range nodes {
		values[i] = of(node)
	}
	return values
}

// Select copies the figures of some nodes, given by index in ascending order.
func (f *Figures) Select(nodes []int) Figures {
	picked := Figures{Oldest: f.Oldest, Cluster: f.Cluster}
	for _, column := range columns {
		column.choose(&picked, f, nodes)
	}
	for _, key := range f.NodeKeys {
		key.Values = key.Values.Choose(nodes)
		picked.NodeKeys = append(picked.NodeKeys, key)
	}
	f.selectAround(&picked, nodes)
	return picked
}

// Clone copies the figures so that they share no memory with the original.
func (f *Figures) Clone() Figures {
	copied := *f
	for _, column := range columns {
		column.copy(&copied)
	}
	copied.NodeKeys = slices.Clone(f.NodeKeys)
	for i := range copied.NodeKeys {
		copied.NodeKeys[i].Values = copied.NodeKeys[i].Values.Clone()
	}
	f.cloneAround(&copied)
	return copied
}

// pickGiven is pick of a list that older decisions do not have.
func pickGiven[T any](list []T, nodes []int) []T {
	if list == nil {
		return nil
	}
	return pick(list, nodes)
}

func pick[T any](list []T, nodes []int) []T {
	picked := make([]T, len(nodes))
	for to, from := range nodes {
		picked[to] = list[from]
	}
	return picked
}
