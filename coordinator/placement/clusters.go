package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/placement/planner"
)

// Across is how clusters were ordered, kept with the decision.
type Across = planner.Across

// Tried is what a search found about one cluster.
type Tried = planner.Tried

// MaxTried is how many clusters a decision keeps. Each takes about 200 bytes of a replicated record.
const MaxTried = 128

// Searched completes a decision with what was found about the clusters, in their order.
func (d *Decision) Searched(across Across, tried []Tried) {
	if len(tried) > MaxTried {
		taken := slices.IndexFunc(tried, func(t Tried) bool { return t.Outcome == Placed })
		if taken >= MaxTried { // the chosen one has to be among those that are kept
			tried[MaxTried-1] = tried[taken]
		}
		tried, across.Omitted = slices.Clip(tried[:MaxTried]), len(tried)-MaxTried
	}
	d.Across, d.Tried = &across, tried
	d.Reason = d.acrossReason(d.Reason)
}

// mostReasons is how many clusters a reason names.
const mostReasons = 5

// noNode begins every reason of a refusal.
const noNode = "no node fits: "

// reasonAlone is a refusal's reason as part of another sentence.
func reasonAlone(reason string) string { return strings.TrimPrefix(reason, noNode) }

// acrossReason is a reason together with what has to be said about the clusters.
func (d *Decision) acrossReason(reason string) string {
	switch {
	case len(d.Tried) == 0:
		return reason
	case d.Outcome != Refused:
		at := slices.IndexFunc(d.Tried, func(t Tried) bool { return t.Outcome == Placed })
		all := len(d.Tried) + d.Across.Omitted
		return fmt.Sprintf("%s; cluster %s is %s of %s by %s", reason, d.Request.Cluster, ordinal(at+1), count(all, "cluster"),
			cmp.Or(d.Across.Planner, model.DefaultPlanner))
	}
	var parts []string
	for i := range d.Tried {
		if i == mostReasons {
			parts = append(parts, "and "+count(len(d.Tried)+d.Across.Omitted-mostReasons, "cluster")+" more")
			break
		}
		parts = append(parts, d.Tried[i].Cluster+": "+cmp.Or(d.Tried[i].LeftOut, d.Tried[i].Reason))
	}
	return fmt.Sprintf("%sof %s, %s", noNode, count(len(d.Tried)+d.Across.Omitted, "cluster"), strings.Join(parts, "; "))
}

// ordinal is 1st, 2nd, 3rd, 4th ...
func ordinal(n int) string {
	ending := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			ending = "st"
		case 2:
			ending = "nd"
		case 3:
			ending = "rd"
		}
	}
	return fmt.Sprint(n, ending)
}

// WhyNotCluster says why a decision chose no node of a cluster, given by name: what it found there, or why it did not look.
// Empty: it says nothing about the cluster.
func WhyNotCluster(d Decision, name string) string {
	if d.Across == nil {
		return ""
	}
	at := slices.IndexFunc(d.Tried, func(t Tried) bool { return t.Cluster == name })
	taken := slices.IndexFunc(d.Tried, func(t Tried) bool { return t.Outcome == Placed })
	switch {
	case at < 0 && d.Across.Last != "" && d.Across.Refused == "":
		return fmt.Sprintf("no other cluster than %s was looked at: the VM ran on %s last, and it fits", d.Request.Cluster, d.Across.Last)
	case at < 0 && d.Across.Bound != "":
		return "no other cluster was looked at: " + d.Across.Bound
	case at < 0:
		return ""
	}
	one := &d.Tried[at]
	switch {
	case one.LeftOut != "":
		return fmt.Sprintf("cluster %s was left out: %s", name, one.LeftOut)
	case one.Outcome == Refused:
		return fmt.Sprintf(
			"cluster %s was %s of %s, and has no node that fits: %s", name, ordinal(at+1), count(len(d.Tried)+d.Across.Omitted, "cluster"),
			one.Reason,
		)
	case taken < 0 || taken == at:
		return ""
	}
	first := &d.Tried[taken]
	return fmt.Sprintf("cluster %s comes %s by %s, and %s, which has a node that fits, before it: %s against %s",
		name, ordinal(at+1), d.Across.By(), first.Cluster, first.Standing(d.Across), one.Standing(d.Across))
}
