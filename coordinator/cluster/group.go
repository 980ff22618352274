package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Polarity is what a rule of a group wants.
type Polarity string

// The polarities. Of VMs: positive keeps them on one node, negative on different ones. Of nodes: positive keeps the VMs on
// the group's nodes, negative off them.
const (
	Disabled Polarity = "disabled"
	Positive Polarity = "positive"
	Negative Polarity = "negative"
)

// Rule is one of a group's two rules.
type Rule struct {
	Polarity Polarity `json:"polarity"`
	// Enforcing rules are hard: they leave no choice. The others are soft: they weigh. A disabled rule keeps the flag.
	Enforcing bool `json:"enforcing,omitempty"`
}

// Hard tells whether the rule is enabled and leaves no choice.
func (r Rule) Hard() bool { return r.Enabled() && r.Enforcing }

// Soft tells whether the rule is enabled and only weighs.
func (r Rule) Soft() bool { return r.Enabled() && !r.Enforcing }

// Enabled tells whether the rule says anything.
func (r Rule) Enabled() bool { return r.Polarity == Positive || r.Polarity == Negative }

// LinkCluster is the link by which a group, and whatever else is of one cluster, names it: by ID; without, it is of the
// default cluster.
const LinkCluster = "cluster"

// Names of a group's settings, member lists and lists, as in estates, on the command line and in records.
const (
	SettingVMsRule        = "vms_rule"
	SettingVMsEnforcing   = "vms_enforcing"
	SettingNodesRule      = "nodes_rule"
	SettingNodesEnforcing = "nodes_enforcing"
	SettingPriority       = "priority"
	SettingUnbalanced     = "unbalanced" // balancing leaves the members where they are

	MembersVMs   = "vms"
	MembersNodes = "nodes"

	ListVMLabels   = "vm_labels"
	ListNodeLabels = "node_labels"
)

// Bounds of a group's priority, and what it has by default. It counts in steps of 1e-7, as oVirt's does.
const (
	DefaultPriority = 1.0
	MaxPriority     = 1e6
	PriorityStep    = 1e-7
)

// Group is an affinity group: VMs of one cluster, nodes of it, and what is wanted of them (oVirt, "Soft host to VM affinity
// support").
type Group struct {
	ID      string
	Name    string
	Cluster string // name

	// VMs and Nodes are the members that were listed, by ID, ascending; VMLabels and NodeLabels take in all that carry one.
	VMs, Nodes           []string
	VMLabels, NodeLabels []string

	VMsRule   Rule
	NodesRule Rule
	Priority  float64 // of the soft rules among each other; higher counts more
	// Unbalanced keeps balancing away from the members.
	Unbalanced  bool
	BrokenSince time.Time
	Revision    uint64
}

// GroupOf reads a group's record. What it does not set is as by default. Records are validated where they come in.
func GroupOf(record *Resource, clusterName string) Group {
	g := Group{
		ID: record.ID, Name: record.Name, Cluster: clusterName,
		VMs: record.Members[MembersVMs], Nodes: record.Members[MembersNodes],
		VMLabels: record.Lists[ListVMLabels], NodeLabels: record.Lists[ListNodeLabels],
		VMsRule:   ruleOf(record.Settings[SettingVMsRule], record.Settings[SettingVMsEnforcing]),
		NodesRule: ruleOf(record.Settings[SettingNodesRule], record.Settings[SettingNodesEnforcing]),
		Priority:  DefaultPriority, Unbalanced: record.Settings[SettingUnbalanced] == "true",
		BrokenSince: record.BrokenSince, Revision: record.Revision,
	}
	if priority, err := strconv.ParseFloat(record.Settings[SettingPriority], 64); err == nil {
		g.Priority = priority
	}
	return g
}

func ruleOf(polarity, enforcing string) Rule {
	rule := Rule{Polarity: Disabled, Enforcing: enforcing == "true"}
	if p := Polarity(polarity); p == Positive || p == Negative {
		rule.Polarity = p
	}
	return rule
}

// HasVM tells whether a VM of the group's cluster is a member, by ID on the list or by label.
func (g *Group) HasVM(vm *VM) bool { return listed(g.VMs, vm.ID) || shares(g.VMLabels, vm.Labels) }

// HasNode tells whether a node of the group's cluster is a member.
func (g *Group) HasNode(node *Node) bool {
	return listed(g.Nodes, node.ID) || shares(g.NodeLabels, node.Labels)
}

// Expand is the groups with everything that carries one of their labels among the members, in the order of their names. VMs
// and nodes are those of the groups' cluster; members that are none of them are left out.
func Expand(groups []Group, vms []VM, nodes []Node) []Group {
	var knownVMs, knownNodes carriers
	for i := range vms {
		knownVMs.know(vms[i].ID, vms[i].Labels)
	}
	for i := range nodes {
		knownNodes.know(nodes[i].ID, nodes[i].Labels)
	}
	expanded := expand(groups, &knownVMs, &knownNodes)
	slices.SortFunc(expanded, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return expanded
}

// expand is the groups in their order with their members listed.
func expand(groups []Group, vms, nodes *carriers) []Group {
	expanded := slices.Clone(groups)
	for i := range expanded {
		g := &expanded[i]
		g.VMs, g.Nodes = vms.members(g.VMs, g.VMLabels), nodes.members(g.Nodes, g.NodeLabels)
	}
	return expanded
}

// carriers are VMs or nodes by what makes them members of a group.
type carriers struct {
	there func(id string) bool // nil: those that are known
	known map[string]bool
	by    map[string][]string // IDs by label
}

func (c *carriers) know(id string, labels []string) {
	if c.known == nil {
		c.known = make(map[string]bool)
	}
	c.known[id] = true
	c.carry(id, labels)
}

func (c *carriers) carry(id string, labels []string) {
	if c.by == nil && len(labels) > 0 {
		c.by = make(map[string][]string)
	}
	for _, label := range labels {
		c.by[label] = append(c.by[label], id)
	}
}

// members are those that are listed and there, and those that carry one of the labels, ascending.
func (c *carriers) members(listed, labels []string) []string {
	var members []string
	for _, id := range listed {
		if c.known[id] || c.there != nil && c.there(id) {
			members = append(members, id)
		}
	}
	for _, label := range labels {
		members = append(members, c.by[label]...)
	}
	slices.Sort(members)
	return slices.Compact(members)
}

func listed(ascending []string, id string) bool {
	_, found := slices.BinarySearch(ascending, id)
	return found
}

func shares(wanted, carried []string) bool {
	return slices.ContainsFunc(wanted, func(label string) bool { return slices.Contains(carried, label) })
}
