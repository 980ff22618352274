package constraint

import (
	"cmp"
	"fmt"
	"slices"

	"berth/coordinator/placement/rule"
	"berth/shared/units"
)

// among limits a move to the targets of its proposal and the VM's own node.
var among = Constraint{
	Name:      "among",
	Doc:       "The node is one of those that the move may go to, where these are given, or the one that the VM is on.",
	Mandatory: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		id := in.Columns.IDs[node]
		if len(in.Among) == 0 || id == in.Current || slices.Contains(in.Among, id) {
			return rule.Pass()
		}
		return rule.Refuse("no_target")
	},
	Say: func(in *rule.Input, _ int, _ rule.Verdict) string {
		names := make([]string, 0, len(in.Among))
		for _, id := range in.Among {
			name := id
			if node, found := in.Columns.Index(id); found {
				name = in.Name(node)
			}
			names = append(names, name)
		}
		return fmt.Sprintf("%s only to %s: %s", cmp.Or(in.AmongWho, "the VM may go"), units.Some(names, few, ", "),
			cmp.Or(in.AmongWhy, "no other node was proposed"))
	},
	Sweep: func(in *rule.Input, out []bool) {
		if len(in.Among) == 0 {
			return
		}
		if len(in.Among) <= few {
			sweepFew(in, out)
			return
		}
		// A balancer proposes hundreds of nodes: one pass over both lists is enough if they are sorted alike.
		among := in.Among
		if !slices.IsSorted(among) {
			among = slices.Sorted(slices.Values(among))
		}
		for node, id := range in.Columns.IDs {
			for len(among) > 0 && among[0] < id {
				among = among[1:]
			}
			out[node] = out[node] || id != in.Current && (len(among) == 0 || among[0] != id)
		}
	},
}

// few is up to how many targets are looked up one by one, and named.
const few = 8

// sweepFew leaves only the targets and the VM's own node, if they were left before.
func sweepFew(in *rule.Input, out []bool) {
	var left [few + 1]int
	n := 0
	leave := func(id string) {
		if node, found := in.Columns.Index(id); found && !out[node] {
			left[n] = node
			n++
		}
	}
	leave(in.Current)
	for _, id := range in.Among {
		leave(id)
	}
	for node := range out {
		out[node] = true
	}
	for _, node := range left[:n] {
		out[node] = false
	}
}
