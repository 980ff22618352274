package constraint

import (
	"time"

	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// answering keeps starts from a node that answers none: each would cost somebody a VM until the node is proven to be off. Who names the
// node may try it all the same, and a VM that runs already waits for no start.
var answering = Constraint{
	Name:    "answering",
	Doc:     "The node answers the starts that it is ordered; only for a VM that does not run yet, and not where this node was asked for.",
	Implied: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if in.Columns.Unanswered == nil || in.Columns.Unanswered[node] == 0 || in.Current != "" || in.Pinned != "" {
			return rule.Pass()
		}
		return rule.Refuse("unanswered")
	},
	Say: func(in *rule.Input, node int, _ rule.Verdict) string {
		return "the node does not answer starts since " + time.Unix(in.Columns.Unanswered[node], 0).UTC().Format(time.RFC3339)
	},
	Relax: func(in *rule.Input, node int, _ rule.Verdict) (rule.Relaxation, bool) {
		return rule.Relaxation{
			Text:  "after 'berth node maintenance " + in.Name(node) + " off', " + in.Name(node) + " would take it",
			Apply: func(figures *view.Figures, _ *rule.Input) { figures.Unanswered = nil },
		}, true
	},
	Sweep: func(in *rule.Input, out []bool) {
		if in.Current != "" || in.Pinned != "" {
			return
		}
		for node, since := range in.Columns.Unanswered {
			out[node] = out[node] || since != 0
		}
	},
}
