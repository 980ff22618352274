package view

import (
	"cmp"
	"sync"
	"time"

	"berth/coordinator/model"
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
		if old := v.gathered.stale[name]; old != nil {
			columns = v.revised(name, old)
			delete(v.gathered.stale, name)
		} else {
			columns = v.columns(name)
		}
		v.gathered.columns[name] = columns
	}
	return columns
}

// gathered are the columns of a view that somebody asked for, by cluster.
type gathered struct {
	mu      sync.Mutex
	columns map[string]*Columns
	stale   map[string]*stale // of an earlier view

	pooling sync.Once
	pools   []PoolView

	baselines *baselines // a later view shares them if no node differs in what they are made of
}

func newGathered() *gathered {
	return &gathered{columns: make(map[string]*Columns), baselines: new(baselines)}
}

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
	members := make([]*NodeView, 0, v.Nodes.Len())
	for _, node := range v.Nodes.All() {
		if cmp.Or(node.Node.Cluster, model.DefaultCluster) == name {
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
	copied.Headroom = c.Headroom.without(at, gone, c.Room.At(at))
	copied.Used.Set(at, node.PromisedUsed)
	copied.Free.Set(at, node.PhysicalFree)
	copied.VCPUs.Set(at, node.VCPUsUsed)
	copied.Count.Set(at, len(node.Allocations))
	copied.Coming.Set(at, node.coming())
	copied.Load.Set(at, shareAtWorkOf(node))
	copied.AtWork.Set(at, atWorkOf(node))
	copied.deriveOne(at)
	return copied
}

// ColumnsOf gathers some nodes of one cluster, given in the order of their IDs.
func (v *View) ColumnsOf(name string, nodes []*NodeView) *Columns {
	cluster := v.clusters[name]
	if cluster == nil {
		cluster = newClusterView(model.Resource{Kind: model.KindCluster, Name: name})
	}
	declared := cluster.Record.NodeKeys
	list := NodesOf(nodes)
	c := &Columns{
		Figures: Figures{Cluster: name}, Residents: residentsOf(v, list), Groups: v.groupsIn(name), Accounts: accountsOf(v, list),
		Headroom: headroomOf(cluster.Settings.SpareNodes, nodes),
		around:   &around{view: v, cluster: name, nodes: list},
	}
	for _, column := range columns {
		column.gather(&c.Figures, nodes)
	}
	c.AtWork = ColumnOf(valuesOf(nodes, atWorkOf)...)
	for _, node := range nodes {
		c.Oldest = max(c.Oldest, oldestOf(node))
	}
	for _, key := range declared {
		values := ColumnOf(valuesOf(nodes, func(n *NodeView) float64 { return n.Node.KeyValue(key) })...)
		c.NodeKeys = append(c.NodeKeys, NodeKeyColumn{Name: key.Name, Sticky: key.Sticky, Weight: key.Weight, Values: values})
	}
	c.Derive()
	return c
}

// oldestOf is how old a node's telemetry may be, if its agent reports more slowly than others; else 0.
func oldestOf(node *NodeView) time.Duration {
	if oldest := node.Facts.Pace.Suspect(); oldest > model.SuspectAfter {
		return oldest
	}
	return 0
}

func shareAtWorkOf(node *NodeView) float64 {
	load, _, _ := loadOf(&node.Facts)
	return load
}

func atWorkOf(node *NodeView) float64 {
	_, atWork, _ := loadOf(&node.Facts)
	return atWork
}

// A decision's record has two times of every node. Digits that are finer than anybody compares or tells an age would take more
// room in the log than most figures. What is cut off makes a node older, never younger.
const (
	inventoryGrain = time.Second // only told
	telemetryGrain = time.Millisecond
)

func inventoryAtOf(n *NodeView) int64 { return nanos(n.Facts.InventoryAt, inventoryGrain) }

func telemetryAtOf(n *NodeView) int64 { return nanos(n.Facts.TelemetryAt, telemetryGrain) }

func nanos(t time.Time, grain time.Duration) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Truncate(grain).UnixNano()
}

func standingOf(node *NodeView) Standing {
	switch {
	case node.Node.Fenced() && !node.Node.Maintenance:
		return StandsFenced
	case node.Node.Maintenance && node.Facts.Liveness == model.Up:
		return StandsInMaintenance
	case node.Node.Maintenance:
		return StandsDownInMaintenance
	case node.Facts.Liveness == model.Up && node.Facts.Ailing != "":
		return StandsDegraded
	case node.Facts.Liveness == model.Up:
		return Stands
	case node.Facts.Liveness == model.Suspect:
		return StandsSuspect
	case node.Facts.Liveness == model.Unreachable:
		return StandsUnreachable
	case node.Facts.Liveness == model.Degraded:
		return StandsDegraded
	default:
		return StandsUnheard
	}
}

// unansweredOf is since when a node does not answer starts, seconds since 1970; 0: it does.
func unansweredOf(node *NodeView) int64 {
	if !node.Node.Unanswered.Holds() {
		return 0
	}
	return node.Node.Unanswered.Since.Unix()
}

// reasonOf says in words why a node does not stand well; empty where there is nothing more to say than its standing.
func reasonOf(node *NodeView) string {
	switch standingOf(node) {
	case StandsFenced:
		return node.Node.Fencing.Message
	case StandsInMaintenance, StandsDownInMaintenance:
		return node.Node.MaintenanceReason
	case StandsSuspect, StandsUnreachable, StandsDegraded:
		return cmp.Or(node.Facts.LivenessReason, node.Facts.Ailing)
	default:
		return ""
	}
}

func knownOf(node *NodeView) Known {
	_, _, load := loadOf(&node.Facts)
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
func loadOf(facts *model.NodeFacts) (load, atWork float64, known bool) {
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
