package arch

import (
	"go/ast"
	"slices"
	"testing"
)

// walkers are the files below that may copy the records of all VMs, with the reason.
var walkers = map[string]string{
	"coordinator/control/recovery/quarantine.go": "once after a restore: the word on each VM is looked at",
	"coordinator/api/answer/declared.go":         "once a change of what is declared: its rules look at all that is",
	"coordinator/api/estates/resource.go":        "once a change of a pod's or a cluster's links: it concerns every VM",
}

// readers are the files below that may walk the shared records of all VMs, with the reason.
var readers = map[string]string{
	"coordinator/api/answer/filter.go":        "a filter that names a label, to say that no VM has it",
	"coordinator/api/answer/moment_groups.go": "a look at groups: where each VM is",
	"coordinator/api/estates/ha_locks.go":     "a look at a shared pool whose locks do not reach: the VMs with ha in it",
	"coordinator/api/node.go":                 "once a removal of a node: its disks must not be a VM's only ones",
	"coordinator/control/plans/holding.go":    "once a change of a group: who carries its labels",
	"coordinator/control/drifts/unused.go":    "once an order: a disk that is attached must not be another VM's",
	"coordinator/daemon/figures.go":           "a page for Prometheus has all VMs on it",
	"coordinator/evidence/behind.go":          "a look at restarts where a VM waits for others",
	"coordinator/evidence/follow.go":          "once a leadership, and after a restore: which VMs do not run as they should",
	"coordinator/evidence/stamps.go":          "once a minute: times that have not come yet",
	"coordinator/inventory/view.go":           "hands them to the view, which walks them where labels or disks make it",
}

// nodeWalkers are the files below that may walk the records of all nodes, with the reason.
var nodeWalkers = map[string]string{
	"coordinator/admission/admission.go":         "a look at a document with a file: what its pool's folder is on the nodes",
	"coordinator/agents/hypervisor.go":           "once after a change of nodes: the names that their lists of peers have",
	"coordinator/api/answer/declared.go":         "once a change of what is declared: its rules look at all that is",
	"coordinator/api/answer/network.go":          "a look at a network: whether any node has it",
	"coordinator/api/lastknown/soft.go":          "a look without a leader at what was last known of them",
	"coordinator/api/estates/resource.go":        "once a change of a cluster's keys: it concerns each of its nodes",
	"coordinator/api/node.go":                    "a list by labels: whether a node has one; a new fence device: it must be no other node's",
	"coordinator/authorities/hypervisors.go":     "while an authority is replaced: who has no certificate of the new one",
	"coordinator/authorities/rotation.go":        "while an authority is replaced: who has no certificate of the new one",
	"coordinator/control/answering/answering.go": "every 15 seconds, of a node that does not answer: the first other one that is in order",
	"coordinator/control/answering/watch.go":     "once a leadership, and after a restore: which nodes are marked",
	"coordinator/control/fencing/look.go":        "once a leadership, and after a change of what a cluster or a pod declares, or of the pause",
	"coordinator/control/fencing/veto.go":        "once a fencing: who may have reached the node",
	"coordinator/control/fencing/witness.go":     "once a fencing: who answers while it is made",
	"coordinator/control/lifecycle/snapshot.go":  "once a snapshot of a VM that was never started: where it could be made",
	"coordinator/control/plans/fleet.go":         "once a pass, in the first minute of a leadership: whether all nodes have reported",
	"coordinator/control/plans/holding.go":       "once a change of a group or of a node's labels: which nodes carry them",
	"coordinator/control/plans/passes.go":        "once a pass over a cluster, which looks at all its nodes",
	"coordinator/control/plans/spread.go":        "a plan that spreads VMs: how many each node has",
	"coordinator/daemon/offline.go":              "a look at a store that is stopped",
	"coordinator/drift/look.go":                  "a look at a disk of a silent node: another one tells of its pool",
	"coordinator/estate/group.go":                "a look at a group's members",
	"coordinator/evidence/proof.go":              "where nobody knows which nodes may show a VM: in simulations",
	"coordinator/evidence/stamps.go":             "once a minute: times that have not come yet",
	"coordinator/evidence/survey.go":             "a look at what no node shows, or where nobody knows which ones may show a VM",
	"coordinator/evidence/told.go":               "in a quarantine: who has not told what it runs",
	"coordinator/evidence/trial.go":              "every three seconds, where pools are shared: who looks at whose lock",
	"coordinator/inventory/store.go":             "in the first seconds of a leadership: whether all nodes have reported",
	"coordinator/inventory/turning.go":           "once a leadership, and after a restore: the nodes that may fall silent",
	"coordinator/inventory/view.go":              "a view that is made of no earlier one",
	"coordinator/moving/traffic.go":              "a step of a plan: which nodes are in its cluster",
}

// viewWalkers are the files below that may walk all nodes or VMs of a view, with the reason.
var viewWalkers = map[string]string{
	"coordinator/api/adopt.go":                 "a look at a live operation: which nodes show its VM",
	"coordinator/api/fence.go":                 "a look at status: silent nodes that VMs wait for",
	"coordinator/api/ha.go":                    "a look at high availability: what each node does for it",
	"coordinator/api/problem.go":               "a look at status: what is wrong with nodes",
	"coordinator/api/problem_agent.go":         "a look at status: agents that are not as they should be",
	"coordinator/api/status.go":                "a look at status: how many nodes are up",
	"coordinator/api/capacities/capacities.go": "a look at capacity: what is free on the nodes",
	"coordinator/api/lastknown/heard.go":       "what the leader hears of the nodes has a line for each that is not as usual",
	"coordinator/estate/fleet.go":              "once a pass over a cluster, which looks at all its VMs",
	"coordinator/metrics/node.go":              "a page for Prometheus has all nodes on it",
	"coordinator/metrics/site.go":              "a page for Prometheus counts all nodes",
	"coordinator/placement/across/across.go":   "a start where the site has special labels: how many of them each cluster has",
	"coordinator/scenario/format/export.go":    "an export of a whole site",
	"coordinator/targets/handler.go":           "a list for Prometheus of what to scrape has all nodes on it",
	"coordinator/view/accounting.go":           "a view that is made of no earlier one",
	"coordinator/view/around.go":               "the first request for a network or a CPU model: later columns take the list over",
	"coordinator/view/cpu.go":                  "once after a change of what nodes tell of CPU models",
	"coordinator/view/gather.go":               "columns that are made of no earlier ones",
	"coordinator/view/groups.go":               "once after a change of groups, of labels, or of where VMs are: who carries a label",
	"coordinator/view/grown.go":                "a look at what more nodes would hold",
	"coordinator/view/invariants.go":           "a check of a whole view",
	"coordinator/view/later.go":                "once the agent that reports most slowly reports faster",
	"coordinator/view/pools.go":                "a decision where there are pools, and once after a change of disks: whose they are",
	"coordinator/view/shown.go":                "a look at status: which VMs run, and which do not",
	"coordinator/view/silence.go":              "once a pass of a plan: whether many nodes are silent at once",
	"coordinator/view/usage.go":                "a start with several clusters to choose from: how full each is",
	"coordinator/view/whatif.go":               "a look for a node by its name",
}

// expanders are the files below that may have the members of groups worked out from the records of all VMs, with the reason.
var expanders = map[string]string{
	"coordinator/api/problem.go":               "a look at status: hard rules that do not hold, of clusters with groups",
	"coordinator/api/estates/estate_groups.go": "once a change of what is declared: its groups must not contradict each other",
	"coordinator/api/estates/group.go":         "a look at conflicts of groups, and once a change of one",
	"coordinator/api/estates/group_status.go":  "a look at groups and their members",
	"coordinator/control/lifecycle/batch.go":   "once a start of several VMs: which of them are placed together",
}

// What package estate offers of groups goes through all VMs, so who calls it says why, as if it walked them itself.
func TestNobodyElseWorksOutAllGroups(t *testing.T) {
	walks{
		from: "estate",
		of: func(called string, _ int) bool {
			return called == "GroupsOf" || called == "Conflicts" || called == "MemberNames"
		},
		may:  expanders,
		told: "works out the members of groups from all VMs: ask the view for them, or say in expanders why it has to",
		idle: "does not work out groups from all VMs",
	}.check(t, func(pkg string) bool {
		return outsideOfTheState(pkg) && !withinAny(pkg, []string{"coordinator/estate", "coordinator/scenario/..."})
	})
}

// What the leader does at each report, start, call and look has to cost the same on a small and on a large site. So who walks all nodes
// says why, and a new loop takes what has changed (see inventory.Store) in their place.
func TestNobodyElseWalksAllNodes(t *testing.T) {
	walks{
		of: func(called string, arguments int) bool {
			return arguments == 0 && (called == "Nodes" || called == "SharedNodes")
		},
		may:  nodeWalkers,
		told: "walks all nodes: ask for those that it is about, or say in nodeWalkers why it has to",
		idle: "does not walk all nodes",
	}.check(t, outsideOfTheState)
}

// A loop of the leader runs several times a second, and a site has 100,000 VMs. It asks for those that it looks for by their mark (see
// model.Mark), or reads the shared records where it has to see all of them. A call that somebody makes has the same reasons.
func TestNoLoopAndNoCallCopiesAllVMs(t *testing.T) {
	walks{
		of:   func(called string, arguments int) bool { return arguments == 0 && called == "VMs" },
		may:  walkers,
		told: "copies the records of all VMs: use VMsMarked or SharedVMs",
		idle: "copies no records of all VMs",
	}.check(t, func(pkg string) bool {
		return withinAny(pkg, []string{
			"coordinator/control/...", "coordinator/agents", "coordinator/evidence", "coordinator/inventory", "coordinator/api/...",
		})
	})
}

// Outside of snapshots, restores and audits nothing walks all VMs, not even without copying them, but what is listed with its reason. A
// start, a page and a look of a loop ask for what they are about: by ID, name, node, mark or link, or from a name on.
func TestNobodyElseWalksAllVMs(t *testing.T) {
	walks{
		of:   func(called string, _ int) bool { return called == "SharedVMs" },
		may:  readers,
		told: "walks all VMs: ask for those that it is about, or say in readers why it has to",
		idle: "does not walk all VMs",
	}.check(t, outsideOfTheState)
}

// The nodes of a view, and its VMs, are walked by a method of their list. So the name of the list tells what is walked.
func TestNobodyElseWalksAView(t *testing.T) {
	walks{
		on: []string{"Nodes", "nodes", "members", "VMs", "vms"},
		of: func(called string, arguments int) bool {
			return arguments == 0 && (called == "All" || called == "Slice")
		},
		may:  viewWalkers,
		told: "walks all nodes or VMs of a view: ask for those that it is about, or say in viewWalkers why it has to",
		idle: "does not walk all nodes or VMs of a view",
	}.check(t, outsideOfTheState)
}

func outsideOfTheState(pkg string) bool {
	return withinAny(pkg, []string{"coordinator/..."}) && !withinAny(pkg, []string{"coordinator/state"})
}

// walks are calls that only the files with a reason make.
type walks struct {
	from       string                                  // the package whose function it is; empty: any function or method
	on         []string                                // the names that what it is a method of may have; empty: any
	of         func(called string, arguments int) bool // tells by the name of what is called whether it is one
	may        map[string]string                       // reasons, by file
	told, idle string                                  // what is said of a file without a reason, and of a reason without a call
}

// by tells whether what is called is of the package that is meant.
func (w walks) by(called *ast.SelectorExpr) bool {
	name, is := called.X.(*ast.Ident)
	return (w.from == "" || is && name.Name == w.from) && (len(w.on) == 0 || slices.Contains(w.on, lastName(called.X)))
}

// lastName is what an expression is known by: its own name, that of its field, or that of the method which gives it.
func lastName(of ast.Expr) string {
	switch x := of.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.CallExpr:
		return lastName(x.Fun)
	}
	return ""
}

// check looks for them in the packages that a function picks.
func (w walks) check(t *testing.T, in func(pkg string) bool) {
	t.Helper()
	met := map[string]bool{}
	for _, p := range all(t) {
		if !in(p.Path) {
			continue
		}
		for _, f := range p.Files {
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				call, is := n.(*ast.CallExpr)
				if !is {
					return true
				}
				if selector, is := call.Fun.(*ast.SelectorExpr); is && w.by(selector) && w.of(selector.Sel.Name, len(call.Args)) {
					if met[f.Path] = true; w.may[f.Path] == "" {
						t.Errorf("%s %s", positions.Position(n.Pos()), w.told)
					}
				}
				return true
			})
		}
	}
	for file := range w.may {
		if !met[file] {
			t.Errorf("%s %s: its line goes", file, w.idle)
		}
	}
}
