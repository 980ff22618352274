package affinity

import "berth/coordinator/cluster"

// Where tells on which node each VM is, by ID; VMs that do not run are left out.
type Where map[string]string

// Names puts IDs of VMs and nodes in words. What it does not know it returns as it is.
type Names func(id string) string

// Scope is which of a group's two rules something is about.
type Scope string

// The scopes.
const (
	OfVMs   Scope = "vms"
	OfNodes Scope = "nodes"
)

// Merged are the sets of VMs that hard positive rules tie together, transitively: groups that share a VM are one. Sets of
// one VM are left out. Each is in the order of IDs, and so are they by their first.
func Merged(groups []cluster.Group) [][]string { return nil }

// Severity of a conflict.
type Severity string

// A group with an error may not be saved; one with a warning may.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Conflict is a contradiction between groups (placement-semantics 4.5), or what the cluster cannot hold.
type Conflict struct {
	Kind     string // a stable word, one of those below
	Severity Severity
	Groups   []string // names, ascending: those whose rules clash
	Ties     []string // names, ascending: groups whose VM rules make the others clash, where these are about nodes
	VMs      []string // IDs, ascending
	Nodes    []string // IDs, ascending
	Text     string   // one sentence with the names
	Next     string   // what to do about it
}

// Kinds of conflict: what Conflicts finds.
const (
	RequiredAndForbidden = "nodes-required-and-forbidden" // hard node rules leave a VM no node
	WantedAndAvoided     = "nodes-wanted-and-avoided"     // node rules disagree about a node, and one is soft or another node is left
	TogetherAgainstNodes = "together-against-nodes"       // VMs tied together, and node rules that part them
	ApartAgainstNodes    = "apart-against-nodes"          // VMs kept apart, and node rules that leave them too few nodes
	DifferentNodes       = "different-nodes"              // positive node rules of one VM name different nodes
	TogetherAndApart     = "together-and-apart"           // VM rules tie VMs together and keep them apart
)

// Kinds of conflict: what Lint finds.
const (
	NoNodeLeft   = "no-node-left"  // no node that takes VMs keeps the hard rules of a VM
	TooFewNodes  = "too-few-nodes" // more VMs apart than nodes that they may be on
	CannotHold   = "cannot-hold"   // hard rules that could hold each by itself, but not all at once
	NoSpareNode  = "no-spare-node" // the rules can hold now, and not after one node fails
	SingleNode   = "single-node"   // a hard rule binds VMs to one node
	NamesNothing = "names-no-node" // a node rule without a node: it does nothing
)

// Conflicts are the contradictions among the groups of one cluster.
func Conflicts(groups []cluster.Group, names Names) []Conflict { return nil }

// Room is what Lint knows of a node.
type Room struct {
	Node string // ID
	// Takes tells whether the node may run VMs at all: not in maintenance.
	Takes bool
}

// Lint compares the rules with what there is: "six VMs apart on five nodes: cannot hold", "holds now, not after one node
// fails". VMs that do not run count: they may be started.
func Lint(groups []cluster.Group, rooms []Room, names Names) []Conflict { return nil }

// Breach is one rule of a group that does not hold.
type Breach struct {
	Group     string // ID
	GroupName string
	Scope     Scope
	Rule      cluster.Rule
	VMs       []string // IDs that break it, ascending
	Nodes     []string // IDs on which they do, ascending
	Text      string   // in words: "web-1 and web-2 are both on hv1"
}

// Breaches are the broken rules of the groups, hard ones first, then by the group's name.
func Breaches(groups []cluster.Group, where Where, names Names) []Breach { return nil }

// Candidate is a VM whose move would repair something, or a part of it.
type Candidate struct {
	VM     string // ID
	Breach Breach
	Hard   bool
}

// Candidates are the VMs to try, in the order in which enforcement tries them: hard node rules, hard VM rules, soft node
// rules, soft VM rules; inside each as placement-semantics 4.4 says. Fixed tells which VMs are immovable. less puts VMs of
// one share in a stable order.
func Candidates(groups []cluster.Group, where Where, fixed func(vm string) bool, less func(a, b string) int, names Names) []Candidate {
	return nil
}

// Improves tells whether the soft rules are better kept once the VM is on the target instead of where it is: placement
// semantics 4.4, "a soft candidate counts only if". First says which rules are asked first, those that weigh more in the
// policy: the others decide only where these make no difference, so that no two repairs undo each other.
func Improves(groups []cluster.Group, vm, target string, where Where, first Scope) bool { return false }

// RuleOf is a rule as the published interface puts it in flags, each of which may be left out. Enabled set to false wins over
// positive and keeps enforcing. What is left out stays as the rule was; one that was disabled and is enabled without a word
// about positive is positive.
func RuleOf(was cluster.Rule, enabled, positive, enforcing *bool) cluster.Rule { return was }
