package planner

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
	"berth/shared/units"
)

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
func percent(share float64) string { return units.Figure(math.Round(share*1000)/10) + " %" }

// Text says in one line how clusters were ordered; empty where that says nothing.
func (a *Across) Text(tried []Tried) string {
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
		parts = append(parts, fmt.Sprintf("%s by %s", rule.Count(len(tried)+a.Omitted, "cluster"), a.By()))
	}
	return strings.Join(parts, "; ")
}

// By is what the order was made by.
func (a *Across) By() string {
	name := cmp.Or(a.Planner, model.DefaultPlanner)
	text := fmt.Sprintf("%s at %s level, %s", name, cmp.Or(a.Level, model.LevelCluster), cmp.Or(a.Capacity, model.CapacityCPU))
	if a.Capacity == model.CapacityCombined {
		text += " with CPU at " + units.Figure(a.CPUWeight)
	}
	if name == "user-dispersing" {
		text += ", weight " + units.Figure(a.Weight)
	}
	return text
}

// Standing is why a cluster has its place in the order.
func (t *Tried) Standing(across *Across) string {
	text := fmt.Sprintf("%s used", percent(t.Used))
	if across.Owned {
		text += fmt.Sprintf(" and %s of the customer", rule.Count(t.AccountVMs, "VM"))
		if by, _ := ByName(across.Planner); across.Level == model.LevelPod || by.Together {
			text += fmt.Sprintf(", %d in its pod", t.PodVMs)
		}
	}
	if t.Special > 0 {
		text += ", with " + rule.Count(t.Special, "label") + " that few VMs need"
	}
	return text
}
