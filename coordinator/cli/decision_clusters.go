package cli

import (
	"fmt"
	"strconv"

	berthv1 "berth/shared/gen/berth/v1"
)

// clustersText writes the clusters that a decision looked at, in the order in which they were tried. In brief those that it
// did not come to are only counted, and so are refused ones beyond briefNodes.
func clustersText(p *page, clusters []*berthv1.DecisionCluster, show detail) {
	if len(clusters) == 0 {
		return
	}
	p.blank()
	p.line("clusters, in the order of the planner")
	var rows [][]string
	left := 0
	for i, one := range clusters {
		untouched := one.GetOutcome() == berthv1.DecisionOutcome_DECISION_OUTCOME_UNSPECIFIED && one.GetLeftOut() == ""
		if !show.full && (untouched || i >= briefNodes && one.GetOutcome() != berthv1.DecisionOutcome_DECISION_OUTCOME_PLACED) {
			left++
			continue
		}
		rows = append(rows, []string{
			strconv.Itoa(i + 1), one.GetCluster(), or(one.GetPod(), none), fmt.Sprintf("%s%%", number(one.GetUsed()*100)),
			fmt.Sprintf("%d of %d", one.GetAccountVms(), one.GetTotalVms()), number(one.GetWeight()), clusterOutcome(one),
		})
	}
	p.indented("  ", []string{"#", "CLUSTER", "POD", "USED", "CUSTOMER'S VMS", "WEIGHT", "OUTCOME"}, rows)
	if left > 0 {
		p.line("  and %s", count(left, "more cluster"))
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
