package fencing

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// attention is which nodes a look has to look at, so that a look at a site where all is well costs nothing, however large it is. Nodes are
// named by their IDs.
type attention struct {
	taken     bool            // all nodes were taken in once
	paused    bool            // as it was then
	level     uint32          // that members have, as it was then
	rules     rules           // as they were then
	fleet     evidence.Fleet  // as all nodes counted when they were taken in or looked at last
	ill       map[string]bool // those that do not answer as they should, or whose fencing has not ended
	fresh     map[string]bool // those that were touched since the last look at what is to be noticed
	unsettled map[string]bool // those of which something was to be noticed at the last look
}

func newAttention() attention {
	return attention{ill: map[string]bool{}, fresh: map[string]bool{}, unsettled: map[string]bool{}}
}

// rules are what is declared of clusters for the fencing of their nodes, by the name of the cluster.
type rules struct {
	after, sickAfter map[string]time.Duration
	pods             map[string]string
}

func rulesOf(p evidence.Moment) rules {
	r := rules{after: map[string]time.Duration{}, sickAfter: map[string]time.Duration{}, pods: map[string]string{}}
	for _, record := range p.Clusters() {
		set := model.SettingsOf(&record)
		r.after[record.Name], r.sickAfter[record.Name] = set.FenceAfter, set.FenceSickAfter
		if pod, known := p.Resource(record.Links[string(model.KindPod)]); known {
			r.pods[record.Name] = "pod " + pod.Name
		}
	}
	return r
}

// apply fills in what the rules say of a node.
func (r *rules) apply(one *evidence.Silence) {
	node := &one.Node
	one.After, one.SickAfter = model.DefaultFenceAfter, r.sickAfter[node.ClusterName()]
	if set, known := r.after[node.ClusterName()]; known {
		one.After = set
	}
	one.Domain = cmp.Or(node.Rack(), r.pods[node.ClusterName()])
}

// attended are the nodes of some sets, by ID.
func attended(sets ...map[string]bool) []string {
	all := map[string]bool{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return slices.Sorted(maps.Keys(all))
}

// levelOf is the feature level of the records; the highest where they have none.
func levelOf(p evidence.Moment) uint32 {
	if records, leveled := p.Records.(interface{ FeatureLevel() uint32 }); leveled {
		return records.FeatureLevel()
	}
	return state.FeatureLevel
}
