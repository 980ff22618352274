package metrics

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/view"
	"berth/shared/exposition"
)

// Site is what the leader knows of nodes and VMs, at the moment of the view.
type Site struct {
	View       *view.View
	VMs        iter.Seq[*model.VM]
	State      func(vm *model.VM) string // of a VM, in one word
	States     []string                  // all words that there are
	Operations iter.Seq[*operation.Operation]
	Groups     []model.Resource
}

var (
	nodesFamily = gauge("berth_nodes", "Nodes, by cluster and by how they are heard", "cluster", "liveness")
	operations  = gauge("berth_operations", "Operations that have not ended, by kind and by how far they are; parked: a person has to decide",
		"kind", "phase")
	oldest = gauge("berth_operation_oldest_seconds", "Age of the oldest operation that has not ended, by kind", "kind")
	groups = gauge("berth_groups", "Groups, by whether their rules hold or are broken", "holds")
	broken = gauge("berth_groups_broken_longest_seconds",
		"Time for which a rule of a group has been broken, of the one that is broken longest")

	siteFamilies = []*exposition.Family{&nodesFamily, &operations, &oldest, &groups, &broken}
)

var livenesses = []model.Liveness{model.Up, model.Suspect, model.Unreachable, model.Degraded}

func writeSite(page *exposition.Page, s *Site) {
	heard := map[string]map[model.Liveness]int{}
	for _, n := range s.View.Nodes.All() {
		cluster := clusterOf(n)
		if heard[cluster] == nil {
			heard[cluster] = make(map[model.Liveness]int)
		}
		heard[cluster][n.Facts.Liveness]++
	}
	for _, cluster := range slices.Sorted(maps.Keys(heard)) {
		for _, liveness := range livenesses {
			page.Sample(&nodesFamily, float64(heard[cluster][liveness]), cluster, string(liveness))
		}
	}
	writeOperations(page, s)
	longest, breaches := time.Duration(0), 0
	for i := range s.Groups {
		if since := s.Groups[i].BrokenSince; !since.IsZero() {
			breaches++
			longest = max(longest, s.View.At.Sub(since))
		}
	}
	page.Sample(&groups, float64(len(s.Groups)-breaches), "true")
	page.Sample(&groups, float64(breaches), "false")
	page.Sample(&broken, longest.Seconds())
}

func writeOperations(page *exposition.Page, s *Site) {
	type place struct {
		kind  operation.Kind
		phase string
	}
	live, ages := map[place]int{}, map[operation.Kind]time.Duration{}
	for op := range s.Operations {
		at := place{op.Kind, string(op.Phase)}
		if op.Result == operation.Parked {
			at.phase = string(operation.Parked)
		}
		live[at]++
		ages[op.Kind] = max(ages[op.Kind], s.View.At.Sub(op.CreatedAt))
	}
	order := slices.SortedFunc(maps.Keys(live), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.phase, b.phase))
	})
	for _, at := range order {
		page.Sample(&operations, float64(live[at]), string(at.kind), at.phase)
	}
	for _, kind := range slices.Sorted(maps.Keys(ages)) {
		page.Sample(&oldest, ages[kind].Seconds(), string(kind))
	}
}
