package constraint

import (
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

var pin = Constraint{
	Name:      "pin",
	Doc:       "The caller asked for this node, or for none.",
	Mandatory: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if in.Pinned == "" || in.Pinned == in.Columns.IDs[node] {
			return rule.Pass()
		}
		return rule.Refuse("not_asked_for")
	},
	Say: func(in *rule.Input, _ int, _ rule.Verdict) string { return in.PinnedName + " was asked for" },
	Relax: func(in *rule.Input, node int, _ rule.Verdict) (rule.Relaxation, bool) {
		return rule.Relaxation{
			Text:  "without asking for " + in.PinnedName + ", " + in.Name(node) + " would take it",
			Apply: func(_ *view.Figures, in *rule.Input) { in.Pinned = "" },
		}, true
	},
	Sweep: func(in *rule.Input, out []bool) { onlyOne(in, in.Pinned, out) },
}

// onlyOne marks every node but one. Nothing is asked for when the ID is empty.
func onlyOne(in *rule.Input, id string, out []bool) {
	if id == "" {
		return
	}
	node, found := in.Columns.Index(id)
	was := found && out[node]
	for i := range out {
		out[i] = true
	}
	if found {
		out[node] = was
	}
}
