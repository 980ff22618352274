// Package constraint has the hard rules of placement, one in each file. A node that any of them refuses is no candidate. A
// rule that cannot be evaluated refuses the node and says so.
//
// A new constraint is one file, one line in all.go and one golden test.
package constraint

import (
	"strconv"
	"strings"
	"time"

	"berth/coordinator/placement/rule"
	"berth/shared/units"
)

// Constraint is one hard rule. Nodes are given as indexes into the columns.
type Constraint struct {
	Name string // in policies, explanations and metrics
	Doc  string // one sentence for people

	// Mandatory constraints are part of every policy: no policy may place a VM where it was not asked for.
	Mandatory bool
	// Implied constraints are part of every policy too, but policies need not list them, because they are newer than some
	// policies. A decision that is replayed uses the constraints that it was made with.
	Implied bool

	// Check judges one node. It is pure and allocates nothing.
	Check func(in *rule.Input, node int) rule.Verdict
	// Say describes a refusal in words, with its figures.
	Say func(in *rule.Input, node int, refusal rule.Verdict) string
	// Relax finds the smallest change that would lift a refusal of a node that no other constraint refuses. It may be nil.
	Relax func(in *rule.Input, node int, refusal rule.Verdict) (rule.Relaxation, bool)

	// Sweep is a fast form of Check: it marks every node that it refuses. Nil: Check is asked for each node.
	Sweep func(in *rule.Input, out []bool)
	// InRoom constraints need neither in a policy that has all of them, because SweepRoom checks them together.
	InRoom bool
}

// SweepRoom marks every node that one of the InRoom constraints refuses. It reads the one column that is derived from their
// inputs, and the age of the telemetry, which cannot be kept in a column.
func SweepRoom(in *rule.Input, out []bool) {
	since := in.Now - int64(in.Columns.OldestTelemetry())
	for first := 0; first < len(out); {
		room := in.Columns.Room.From(first)
		sampled, piece := in.Columns.TelemetryAt.From(first)[:len(room)], out[first:][:len(room)]
		for i := range room {
			if room[i] <= in.Memory || sampled[i] < since {
				piece[i] = true
			}
		}
		first += len(room)
	}
}

// unknown is the code of every refusal because an input is missing.
const unknown = "unknown"

// exceed judges an amount that must be larger than what is needed ("must exceed", FCO step 1).
func exceed(available, needed units.Bytes) rule.Verdict {
	verdict := rule.Verdict{
		Passed: available > needed, Needed: float64(needed), Available: float64(available), Unit: rule.Bytes,
	}
	if !verdict.Passed {
		verdict.Code = "short"
	}
	return verdict
}

// needed is the memory that a node must exceed: the VM, the VMs that come along, and the node's overhead.
func needed(in *rule.Input, node int) units.Bytes { return in.Memory + in.Columns.Overhead[node] }

// short says how much is missing. Two figures that would look the same are printed with more digits.
func short(refusal rule.Verdict, where string, in *rule.Input, node int) string {
	available, wanted := units.Bytes(refusal.Available), units.Bytes(refusal.Needed)
	who := "VM "
	if in.Along > 0 {
		who = strconv.Itoa(in.Along+1) + " VMs "
	}
	parts := " is needed (" + who + in.Memory.String() + ", overhead " + in.Columns.Overhead[node].String() + ")"
	is, needs := available.String(), wanted.String()
	switch {
	case available == wanted:
		return "exactly " + is + " " + where + ", more" + parts
	case is == needs:
		is, needs = apart(available, wanted)
	}
	return is + " " + where + ", more than " + needs + parts
}

// apart prints two amounts in the largest unit in which they differ.
func apart(a, b units.Bytes) (string, string) {
	unit, name := units.Bytes(1), " B"
	for _, larger := range []units.Bytes{units.MiB, units.KiB} {
		if a/larger != b/larger {
			unit, name = larger, strings.TrimPrefix(larger.String(), "1")
			break
		}
	}
	return strconv.FormatInt(int64(a/unit), 10) + name, strconv.FormatInt(int64(b/unit), 10) + name
}

// seconds prints an age without false precision.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
