package api

import (
	"fmt"

	"berth/coordinator/admission"
	"berth/shared/units"
)

// unguarded names the clusters of which nobody has said what may be put onto their hosts, since an earlier release began the site.
func (p problems) unguarded() (lines []string) {
	for _, name := range admission.Unsaid(p.Snapshot) {
		lines = append(lines, fmt.Sprintf("cluster %s permits everything that documents can put onto its hosts, as before 0.7: say what it "+
			"is to permit with 'berth cluster set %s --permit none', or all, or a list", name, name))
	}
	if names := admission.Undecided(p.Identities()); len(names) > 0 {
		lines = append(lines, fmt.Sprintf("nobody has said which permissions %s may use, so it is every one that clusters permit: say it with "+
			"'berth identity set NAME --permit none', or all, or a list", units.Some(names, mostOperators, ", ")))
	}
	return lines
}

// mostOperators is how many operators one line names.
const mostOperators = 8
