package arch

import (
	"go/ast"
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
	"coordinator/control/drifts/unused.go":    "once an order: a disk that is attached must not be another VM's",
	"coordinator/daemon/figures.go":           "a page for Prometheus has all VMs on it",
	"coordinator/evidence/behind.go":          "a look at restarts where a VM waits for others",
	"coordinator/evidence/follow.go":          "every five seconds: where each VM is, beside Berth; a look at one that is as it should be",
	"coordinator/evidence/stamps.go":          "once a minute: times that have not come yet",
	"coordinator/inventory/view.go":           "hands them to the view, which walks them where labels or disks make it",
}

// A loop of the leader runs several times a second, and a site has 100,000 VMs. It asks for those that it looks for by their mark (see
// model.Mark), or reads the shared records where it has to see all of them. A call that somebody makes has the same reasons.
func TestNoLoopAndNoCallCopiesAllVMs(t *testing.T) {
	met := map[string]bool{}
	for _, p := range all(t) {
		if !withinAny(p.Path, []string{
			"coordinator/control/...", "coordinator/agents", "coordinator/evidence", "coordinator/inventory", "coordinator/api/...",
		}) {
			continue
		}
		for _, f := range p.Files {
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				call, is := n.(*ast.CallExpr)
				if !is || len(call.Args) != 0 {
					return true
				}
				if selector, is := call.Fun.(*ast.SelectorExpr); is && selector.Sel.Name == "VMs" {
					if met[f.Path] = true; walkers[f.Path] == "" {
						t.Errorf("%s copies the records of all VMs: use VMsMarked or SharedVMs", positions.Position(n.Pos()))
					}
				}
				return true
			})
		}
	}
	for file := range walkers {
		if !met[file] {
			t.Errorf("%s copies no records of all VMs: its line goes", file)
		}
	}
}

// Outside of snapshots, restores and audits nothing walks all VMs, not even without copying them, but what is listed with its reason. A
// start, a page and a look of a loop ask for what they are about: by ID, name, node, mark or link, or from a name on.
func TestNobodyElseWalksAllVMs(t *testing.T) {
	met := map[string]bool{}
	for _, p := range all(t) {
		if !withinAny(p.Path, []string{"coordinator/..."}) || withinAny(p.Path, []string{"coordinator/state"}) {
			continue
		}
		for _, f := range p.Files {
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				call, is := n.(*ast.CallExpr)
				if !is {
					return true
				}
				if selector, is := call.Fun.(*ast.SelectorExpr); is && selector.Sel.Name == "SharedVMs" {
					if met[f.Path] = true; readers[f.Path] == "" {
						t.Errorf("%s walks all VMs: ask for those that it is about, or say in readers why it has to", positions.Position(n.Pos()))
					}
				}
				return true
			})
		}
	}
	for file := range readers {
		if !met[file] {
			t.Errorf("%s does not walk all VMs: its line goes", file)
		}
	}
}
