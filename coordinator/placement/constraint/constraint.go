// Package constraint has the hard rules of placement, one a file. A node that one of them refuses is no candidate, and a
// rule that cannot be evaluated refuses the node and says so.
//
// A new constraint is one file, one line in all.go and one golden test.
package constraint

import (
	"fmt"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
	"berth/shared/units"
)

// Constraint is one hard rule.
type Constraint struct {
	Name string // in policies, explanations and metrics
	Doc  string // one sentence for people

	// Mandatory constraints are part of every policy: no policy may place a VM where it was not asked for.
	Mandatory bool

	// Check judges one node. It is pure and allocates nothing.
	Check func(in *rule.Input, node *cluster.NodeView) rule.Verdict
	// Say puts a refusal in words, with its figures.
	Say func(in *rule.Input, node *cluster.NodeView, refusal rule.Verdict) string
	// Relax tells the smallest change that would lift a refusal of a node that no other constraint refuses. It may be nil.
	Relax func(in *rule.Input, node *cluster.NodeView, refusal rule.Verdict) (rule.Relaxation, bool)
}

// unknown is the code of every refusal for want of input.
const unknown = "unknown"

// exceed judges an amount that has to exceed what is needed ("must exceed", FCO step 1).
func exceed(available, needed units.Bytes) rule.Verdict {
	verdict := rule.Verdict{
		Passed: available > needed, Needed: float64(needed), Available: float64(available), Unit: rule.Bytes,
	}
	if !verdict.Passed {
		verdict.Code = "short"
	}
	return verdict
}

// needed is what a node must have more of than: the VM and the node's overhead.
func needed(in *rule.Input, node *cluster.NodeView) units.Bytes {
	return in.Memory + node.Settings.Overhead
}

// short says how an amount falls short. Different figures that would look the same are printed to the byte.
func short(refusal rule.Verdict, where string, in *rule.Input, node *cluster.NodeView) string {
	available, wanted := units.Bytes(refusal.Available), units.Bytes(refusal.Needed)
	parts := fmt.Sprintf("(VM %v, overhead %v)", in.Memory, node.Settings.Overhead)
	switch {
	case available == wanted:
		return fmt.Sprintf("exactly %v %s, more is needed %s", available, where, parts)
	case available.String() == wanted.String():
		return fmt.Sprintf("%d B %s, more than %d B is needed %s", available, where, wanted, parts)
	default:
		return fmt.Sprintf("%v %s, more than %v is needed %s", available, where, wanted, parts)
	}
}

// seconds prints an age without false precision.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func nameOf(node *cluster.NodeView) string { return node.Node.Name }
