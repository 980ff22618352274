package arch

import (
	"go/ast"
	"testing"
)

// walkers are the files below that may copy the records of all VMs, with the reason.
var walkers = map[string]string{
	"coordinator/control/recovery/quarantine.go": "once after a restore: the word on each VM is looked at",
	"coordinator/control/drifts/unused.go":       "once an order: a disk that is attached must not be another VM's",
	"coordinator/api/answer/declared.go":         "once a change of what is declared: its rules look at all that is",
	"coordinator/api/estates/resource.go":        "once a change of a pod's or a cluster's links: it concerns every VM",
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
