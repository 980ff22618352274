package estates

import (
	"cmp"
	"slices"
	"strings"

	"berth/coordinator/api/answer"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// plannerOf is the planner that takes effect for the VMs of an offer, and where it comes from: the offer, or else the zone or the
// policy of each cluster. Where clusters differ it lists both, in the same order. Empty: the resource is no offer for VMs.
func plannerOf(p *answer.Moment, r *model.Resource) (planner, from string) {
	if r.Kind != model.KindOffer || r.Settings[schema.SettingFor] != string(model.KindVM) {
		return "", ""
	}
	if own := r.Settings[model.SettingPlanner]; own != "" {
		return own, schema.Ref(r.Kind, r.Name)
	}
	var planners, sources []string
	for _, name := range estate.ClusterNames(p.Snapshot) {
		record, _ := estate.ClusterNamed(p.Snapshot, name)
		one, source := estate.PlannerIn(p.Snapshot, record)
		if source != "" && !slices.Contains(sources, source) {
			planners, sources = append(planners, one), append(sources, source)
		}
	}
	if len(slices.Compact(slices.Clone(planners))) == 1 {
		planners = planners[:1]
	}
	return cmp.Or(strings.Join(planners, ", "), model.DefaultPlanner), strings.Join(sources, ", ")
}
