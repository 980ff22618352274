package constraint

import (
	"strings"

	"berth/coordinator/placement/rule"
)

// movable keeps a running VM where it is that libvirt would not migrate: such a migration is never tried.
var movable = Constraint{
	Name: "movable",
	Doc: "The VM can leave its node while it runs, or this is its node: no host device, virtiofs, shared memory, local media, " +
		"snapshot or job of somebody else binds it there.",
	Implied: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if len(in.Bindings) == 0 || in.Current == "" || in.Columns.IDs[node] == in.Current {
			return rule.Pass()
		}
		return rule.Refuse("bound")
	},
	Say: func(in *rule.Input, _ int, _ rule.Verdict) string { return SayBound(in) },
	Sweep: func(in *rule.Input, out []bool) {
		if len(in.Bindings) > 0 {
			onlyOne(in, in.Current, out)
		}
	},
}

// SayBound says in words what keeps a VM on its node while it runs.
func SayBound(in *rule.Input) string {
	current := in.Current
	if node, found := in.Columns.Index(in.Current); found {
		current = in.Name(node)
	}
	return "the VM cannot leave " + current + " while it runs: it " + strings.Join(in.Bindings, "; it ")
}
