package explanation

import (
	"cmp"
	"fmt"
	"strconv"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Clusters writes the clusters that a decision looked at, in the order in which they were tried. In brief those that it
// did not come to are only counted, and so are refused ones beyond briefNodes.
func Clusters(p *term.Page, clusters []*berthv1.DecisionCluster, show Detail) {
	if len(clusters) == 0 {
		return
	}
	p.Blank()
	p.Line("clusters, in the order of the planner")
	var rows [][]string
	left := 0
	for i, one := range clusters {
		untouched := one.GetOutcome() == berthv1.DecisionOutcome_DECISION_OUTCOME_UNSPECIFIED && one.GetLeftOut() == ""
		if !show.Full && (untouched || i >= term.Brief && one.GetOutcome() != berthv1.DecisionOutcome_DECISION_OUTCOME_PLACED) {
			left++
			continue
		}
		rows = append(rows, []string{
			strconv.Itoa(i + 1), one.GetCluster(), cmp.Or(one.GetPod(), term.None), fmt.Sprintf("%s%%", units.Figure(one.GetUsed()*100)),
			fmt.Sprintf("%d of %d", one.GetAccountVms(), one.GetTotalVms()), units.Figure(one.GetWeight()), clusterOutcome(one),
		})
	}
	p.Indented("  ", []string{"#", "CLUSTER", "POD", "USED", "CUSTOMER'S VMS", "WEIGHT", "OUTCOME"}, rows)
	if left > 0 {
		p.Line("  and %s", term.Count(left, "more cluster"))
	}
}

// clusterOutcome says what became of a cluster.
func clusterOutcome(one *berthv1.DecisionCluster) string {
	switch {
	case one.GetLeftOut() != "":
		return "left out: " + one.GetLeftOut()
	case one.GetOutcome() == berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED:
		return "refused: " + one.GetReason()
	case one.GetOutcome() == berthv1.DecisionOutcome_DECISION_OUTCOME_PLACED:
		return "placed"
	default:
		return "not tried"
	}
}
