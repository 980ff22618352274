package arch

import (
	"go/ast"
	"testing"
)

// survivors are what ends a panic, or whatever it is given to does.
var survivors = []string{"Survive", "Keep", "Beside"}

// What nodes, devices and callers say is looked at in these packages. A goroutine that panics over it ends its coordinator, and the next
// leader hears the same. So each goroutine there survives: it goes through coordinator/control/lead's keep.go.
func TestNoGoroutineOfTheLeaderEndsItsCoordinator(t *testing.T) {
	found := 0
	for _, p := range all(t) {
		if !withinAny(p.Path, []string{"coordinator/control/...", "coordinator/api/...", "coordinator/agents"}) {
			continue
		}
		for _, f := range p.Files {
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				begun := begins(n)
				if begun == nil {
					return true
				}
				found++
				if !survives(begun) {
					t.Errorf("%s begins a goroutine that a panic does not survive: see Beside and Survive of coordinator/control/lead",
						positions.Position(n.Pos()))
				}
				return true
			})
		}
	}
	if found < 5 {
		t.Errorf("%d goroutines: this test looks at the wrong place", found)
	}
}

// begins is what a statement or a call does in another goroutine.
func begins(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.GoStmt:
		return n.Call
	case *ast.CallExpr:
		if selector, is := n.Fun.(*ast.SelectorExpr); is && selector.Sel.Name == "Go" && len(n.Args) == 1 {
			return n.Args[0]
		}
	}
	return nil
}

// survives tells that something calls a survivor, or that it only waits: it has no call but those that end, interrupt or receive.
func survives(begun ast.Node) (well bool) {
	waits := true
	ast.Inspect(begun, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		switch fun := call.Fun.(type) {
		case *ast.SelectorExpr:
			for _, name := range survivors {
				well = well || fun.Sel.Name == name
			}
			waits = waits && fun.Sel.Name == "Done"
		case *ast.Ident:
			for _, name := range survivors {
				well = well || fun.Name == name
			}
			waits = waits && (fun.Name == "cancel" || fun.Name == "interrupt" || fun.Name == "stopping" || fun.Name == "close")
		}
		return true
	})
	return well || waits
}
