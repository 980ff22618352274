package model

import (
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
	HeldSince   time.Time // zero while it is broken
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
	if record.BrokenSince.IsZero() {
		if g.HeldSince = record.HeldSince; g.HeldSince.IsZero() {
			g.HeldSince = record.CreatedAt
		}
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

// HasVM tells whether a VM of the group's cluster is a member: the list names its ID, or it carries one of the labels.
func (g *Group) HasVM(vm *VM) bool { return g.ListsVM(vm.ID) || g.LabelsVM(vm.Labels) }

// ListsVM tells whether the group's list of VMs names this ID.
func (g *Group) ListsVM(id string) bool { return listed(g.VMs, id) }

// LabelsVM tells whether a VM with these labels carries one of the group's VM labels.
func (g *Group) LabelsVM(labels []string) bool { return shares(g.VMLabels, labels) }

// HasNode tells whether a node of the group's cluster is a member.
func (g *Group) HasNode(node *Node) bool {
	return listed(g.Nodes, node.ID) || shares(g.NodeLabels, node.Labels)
}

func listed(ascending []string, id string) bool {
	_, found := slices.BinarySearch(ascending, id)
	return found
}

func shares(wanted, carried []string) bool {
	return slices.ContainsFunc(wanted, func(label string) bool { return slices.Contains(carried, label) })
}
