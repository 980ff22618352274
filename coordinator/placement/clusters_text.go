package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/placement/planner"
)

// mostReasons is how many clusters a reason names.
const mostReasons = 5

// noNode begins every reason of a refusal.
const noNode = "no node fits: "

// reasonAlone is a refusal's reason as part of another sentence.
func reasonAlone(reason string) string { return strings.TrimPrefix(reason, noNode) }

// Crossing says which capacity of the cluster the VM would fill beyond the threshold, and how far; empty: none.
func (t *Tried) Crossing() string {
	word, share := "CPU", t.CPU
	if t.RAM > t.CPU {
		word, share = "RAM", t.RAM
	}
	if !(share > t.Threshold) || t.Threshold <= 0 {
		return ""
	}
	return fmt.Sprintf("with the VM, %s of its %s would be used, more than its threshold of %s", percent(share), word, percent(t.Threshold))
}

// percent prints a share with at most one decimal.
func percent(share float64) string { return figure(math.Round(share*1000)/10) + " %" }

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

// text says in one line how clusters were ordered; empty where that says nothing.
func (a *Across) text(tried []Tried) string {
	if a == nil {
		return ""
	}
	var parts []string
	switch {
	case a.Last != "" && a.Refused == "":
		return "no cluster is put in order: the VM ran on " + a.Last + " last"
	case a.Last != "":
		parts = append(parts, fmt.Sprintf("%s, where the VM ran last, does not do: %s", a.Last, a.Refused))
	}
	if a.Bound != "" {
		parts = append(parts, "no cluster is put in order: "+a.Bound)
	}
	if len(tried) > 0 {
		parts = append(parts, fmt.Sprintf("%s by %s", count(len(tried)+a.Omitted, "cluster"), a.terms()))
	}
	return strings.Join(parts, "; ")
}

// terms is what the order was made by.
func (a *Across) terms() string {
	name := cmp.Or(a.Planner, model.DefaultPlanner)
	text := fmt.Sprintf("%s at %s level, %s", name, cmp.Or(a.Level, model.LevelCluster), cmp.Or(a.Capacity, model.CapacityCPU))
	if name == "user-dispersing" {
		text += ", weight " + figure(a.Weight)
	}
	return text
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
		name, ordinal(at+1), d.Across.terms(), first.Cluster, first.standing(d.Across), one.standing(d.Across))
}

// standing is why a cluster has its place in the order.
func (t *Tried) standing(across *Across) string {
	text := fmt.Sprintf("%s used", percent(t.Used))
	if across.Owned {
		text += fmt.Sprintf(" and %s of the customer", count(t.AccountVMs, "VM"))
		if by, _ := planner.ByName(across.Planner); across.Level == model.LevelPod || by.Together {
			text += fmt.Sprintf(", %d in its pod", t.PodVMs)
		}
	}
	if t.Special > 0 {
		text += ", with " + count(t.Special, "label") + " that few VMs need"
	}
	return text
}
