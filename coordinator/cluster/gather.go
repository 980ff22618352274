package cluster

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Columns are the nodes of one cluster. They are gathered once and then shared by all who ask for them: nobody changes
// them, and who wants to charge them clones them first.
func (v *View) Columns(name string) *Columns {
	if v.clusters[name] == nil {
		return v.columns(name) // nothing is kept of names that mean nothing
	}
	v.gathered.mu.Lock()
	defer v.gathered.mu.Unlock()
	columns := v.gathered.columns[name]
	if columns == nil {
		columns = v.columns(name)
		v.gathered.columns[name] = columns
	}
	return columns
}

// gathered are the columns of a view that somebody asked for, by cluster.
type gathered struct {
	mu      sync.Mutex
	columns map[string]*Columns

	pooling sync.Once
	pools   []PoolView

	modelling sync.Once
	baselines map[string]string // CPU models by cluster
}

func newGathered() *gathered { return &gathered{columns: make(map[string]*Columns)} }

// columns takes those of the view that this one is a what-if of, but for the one node that differs, or gathers them.
func (v *View) columns(name string) *Columns {
	if v.base != nil {
		columns := v.base.Columns(name)
		if at, found := columns.Index(v.reduced.Node.ID); found {
			reduced := columns.reduced(at, v.reduced, v.gone)
			reduced.Groups = v.groupsIn(name)
			return reduced
		}
		return columns
	}
	members := make([]*NodeView, 0, len(v.Nodes))
	for _, node := range v.Nodes {
		if cmp.Or(node.Node.Cluster, DefaultCluster) == name {
			members = append(members, node)
		}
	}
	return v.ColumnsOf(name, members)
}

// reduced is a copy in which a VM is gone from a node: what NodeView.without changes is all that differs.
func (c *Columns) reduced(at int, node *NodeView, gone *Allocation) *Columns {
	shared := *c
	shared.Residents, shared.Groups, shared.Accounts = nil, nil, nil // they are taken from the shared ones
	copied := shared.Clone()
	copied.Residents, copied.Accounts = c.Residents.without(at, gone), c.Accounts.without(at, gone)
	copied.Headroom = c.Headroom.without(at, gone)
	copied.Used[at], copied.Free[at], copied.VCPUs[at] = node.PromisedUsed, node.PhysicalFree, node.VCPUsUsed
	copied.Count[at], copied.Coming[at] = len(node.Allocations), node.coming()
	copied.Load[at], copied.AtWork[at], _ = loadOf(&node.Facts)
	copied.deriveOne(at)
	return copied
}

// ColumnsOf gathers some nodes of one cluster, given in the order of their IDs.
func (v *View) ColumnsOf(name string, nodes []*NodeView) *Columns {
	cluster := v.clusters[name]
	if cluster == nil {
		cluster = newClusterView(Resource{Kind: KindCluster, Name: name})
	}
	declared := cluster.Record.NodeKeys
	c := &Columns{
		Figures: Figures{Cluster: name}, Residents: residentsOf(nodes), Groups: v.groupsIn(name), Accounts: accountsOf(nodes),
		Headroom: headroomOf(cluster.Settings.SpareNodes, nodes),
		around:   &around{view: v, cluster: name, nodes: nodes},
	}
	c.grow(len(nodes))
	c.AtWork = make([]float64, 0, len(nodes))
	for _, key := range declared {
		c.NodeKeys = append(c.NodeKeys, NodeKeyColumn{
			Name: key.Name, Sticky: key.Sticky, Weight: key.Weight, Values: make([]float64, 0, len(nodes)),
		})
	}
	for _, node := range nodes {
		c.append(node)
		for k, key := range declared {
			c.NodeKeys[k].Values = append(c.NodeKeys[k].Values, node.Node.KeyValue(key))
		}
	}
	c.Derive()
	return c
}

// grow makes room for so many nodes.
func (f *Figures) grow(n int) {
	f.IDs, f.Names = slices.Grow(f.IDs, n), slices.Grow(f.Names, n)
	f.Standing, f.Known = slices.Grow(f.Standing, n), slices.Grow(f.Known, n)
	f.InventoryAt, f.TelemetryAt = slices.Grow(f.InventoryAt, n), slices.Grow(f.TelemetryAt, n)
	f.Memory, f.RAMRatio, f.Overhead = slices.Grow(f.Memory, n), slices.Grow(f.RAMRatio, n), slices.Grow(f.Overhead, n)
	f.Promised, f.Used, f.Free = slices.Grow(f.Promised, n), slices.Grow(f.Used, n), slices.Grow(f.Free, n)
	f.VCPULimit, f.VCPUs, f.Load = slices.Grow(f.VCPULimit, n), slices.Grow(f.VCPUs, n), slices.Grow(f.Load, n)
	f.Count, f.Management = slices.Grow(f.Count, n), slices.Grow(f.Management, n)
	f.CPUs, f.Coming = slices.Grow(f.CPUs, n), slices.Grow(f.Coming, n)
}

func (c *Columns) append(node *NodeView) {
	index, facts := len(c.IDs), &node.Facts
	if oldest := facts.Pace.Suspect(); oldest > SuspectAfter {
		c.Oldest = max(c.Oldest, oldest)
	}
	c.IDs, c.Names = append(c.IDs, node.Node.ID), append(c.Names, node.Node.Name)
	standing, reason := standingOf(node)
	c.Standing = append(c.Standing, standing)
	if reason != "" && c.Reasons == nil {
		c.Reasons = make([]string, index)
	}
	if c.Reasons != nil {
		c.Reasons = append(c.Reasons, reason)
	}
	load, atWork, loadKnown := loadOf(facts)
	c.Known = append(c.Known, knownOf(node, loadKnown))
	c.InventoryAt, c.TelemetryAt = append(c.InventoryAt, nanos(facts.InventoryAt)), append(c.TelemetryAt, nanos(facts.TelemetryAt))
	c.Memory, c.RAMRatio = append(c.Memory, facts.Memory), append(c.RAMRatio, node.Settings.RAMRatio)
	c.Overhead = append(c.Overhead, node.Settings.Overhead)
	c.Promised, c.Used = append(c.Promised, node.PromisedLimit), append(c.Used, node.PromisedUsed)
	c.Free = append(c.Free, node.PhysicalFree)
	c.VCPULimit, c.VCPUs = append(c.VCPULimit, node.VCPULimit), append(c.VCPUs, node.VCPUsUsed)
	c.Load, c.AtWork = append(c.Load, load), append(c.AtWork, atWork)
	c.CPUs, c.Coming = append(c.CPUs, facts.CPUs), append(c.Coming, node.coming())
	c.Count, c.Management = append(c.Count, len(node.Allocations)), append(c.Management, node.Node.Management)
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func standingOf(node *NodeView) (Standing, string) {
	switch {
	case node.Node.Fenced() && !node.Node.Maintenance:
		return StandsFenced, node.Node.Fencing.Message
	case node.Node.Maintenance && node.Facts.Liveness == Up:
		return StandsInMaintenance, node.Node.MaintenanceReason
	case node.Node.Maintenance:
		return StandsDownInMaintenance, node.Node.MaintenanceReason
	case node.Facts.Liveness == Up:
		return Stands, ""
	case node.Facts.Liveness == Suspect:
		return StandsSuspect, node.Facts.LivenessReason
	case node.Facts.Liveness == Unreachable:
		return StandsUnreachable, node.Facts.LivenessReason
	case node.Facts.Liveness == Degraded:
		return StandsDegraded, node.Facts.LivenessReason
	default:
		return StandsUnheard, ""
	}
}

func knownOf(node *NodeView, load bool) Known {
	var known Known
	for _, one := range []struct {
		is   bool
		mark Known
	}{
		{node.Facts.Inventory && node.Facts.Memory > 0, KnowsInventory},
		{node.Facts.DomainsKnown, KnowsDomains},
		{node.Facts.Telemetry, KnowsTelemetry},
		{node.PhysicalKnown, KnowsFree},
		{load, KnowsLoad},
	} {
		if one.is {
			known |= one.mark
		}
	}
	return known
}

// loadOf is how busy a node is, 0 to 1: its load average over one minute by its CPUs, or the busy share of its CPUs where
// no load average could be read. It is false when neither is known. atWork is the same in CPUs, and not cut off at 1.
func loadOf(facts *NodeFacts) (load, atWork float64, known bool) {
	load = Unknown
	switch {
	case !facts.Telemetry:
	case facts.Load1 != nil && facts.Inventory && facts.CPUs > 0:
		load, atWork = share(*facts.Load1, float64(facts.CPUs)), *facts.Load1
	case facts.CPUBusy != nil:
		load, atWork = share(*facts.CPUBusy, 1), *facts.CPUBusy*float64(facts.CPUs)
	}
	if load == Unknown {
		return 0, 0, false
	}
	return load, atWork, true
}
