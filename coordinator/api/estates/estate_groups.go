package estates

import (
	"maps"
	"slices"

	"berth/coordinator/affinity"
	"berth/coordinator/api/answer"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// groupWarnings are what a plan's groups contradict, and what the clusters cannot hold of them, once it is carried out.
func groupWarnings(p *answer.Moment, plan estate.Plan) []*berthv1.Conflict {
	changed := make(map[string]bool)
	for _, change := range plan.Changes {
		if change.Kind == model.KindGroup && change.Resource != nil {
			changed[change.Name] = true
		}
	}
	if len(changed) == 0 {
		return nil
	}
	then := plan.Apply(p.Declared())
	facts := estate.Indexed(&then)
	clusters := map[string]bool{model.DefaultCluster: true}
	for _, record := range facts.Resources(model.KindCluster) {
		clusters[record.Name] = true
	}
	var found []affinity.Conflict
	for _, inside := range slices.Sorted(maps.Keys(clusters)) {
		for _, conflict := range estate.Conflicts(facts, inside) {
			about := slices.ContainsFunc(slices.Concat(conflict.Groups, conflict.Ties), func(name string) bool { return changed[name] })
			if about && conflict.Severity == affinity.Warning {
				found = append(found, conflict)
			}
		}
	}
	return wire.Conflicts(found, estate.MemberNames(facts))
}
