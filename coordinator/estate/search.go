package estate

import (
	"cmp"
	"strconv"

	"berth/coordinator/binding"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/across"
	"berth/coordinator/schema"
	"berth/coordinator/view"
)

// SearchOf is in which clusters a VM may be placed and what is asked of each, with what the VM resolves to in each of them,
// by cluster name. A VM that runs is looked at in its own cluster only. Pins, exclusions and the least gain are the caller's
// to add to each request. The error wraps ErrDangling or ErrNoCluster, or says what of a policy this release cannot do.
func SearchOf(
	facts Facts, view *view.View, vm model.VM, purpose placement.Purpose,
) (across.Search, map[string]Resolved, error) {
	s := scopesOf(facts)
	where, err := s.of(&vm)
	if err != nil {
		return across.Search{}, nil, err
	}
	bound, why, err := s.settled(&vm)
	if err != nil {
		return across.Search{}, nil, err
	}
	names := []string{bound}
	if bound == "" {
		names = names[:0]
		for i := range where.clusters {
			names = append(names, where.clusters[i].Name)
		}
	}
	if where.unsaid {
		why = "" // there is nothing to tell of a VM that uses no topology
	}
	search := across.Search{Bound: why}
	resolved := make(map[string]Resolved, len(names))
	for _, name := range names {
		one, err := ResolveIn(facts, vm, name)
		if err != nil {
			return across.Search{}, nil, err
		}
		option, err := s.option(view, one, &vm, purpose)
		if err != nil {
			return across.Search{}, nil, err
		}
		option.Request.Apart = binding.Apart(facts, view.Apart(), &vm, name)
		if holder := view.Node(vm.Holder); holder != nil && purpose.Moves() {
			option.Request.Bindings = binding.Texts(vm.Name, binding.Of(facts, &vm, name, &holder.Facts))
		}
		search.Options, resolved[name] = append(search.Options, option), one
	}
	zone := s.zoneOf(resolved[names[0]].Record) // of all of them
	settings := model.ZoneSettingsOf(&zone)
	search.Planner = cmp.Or(search.Options[0].Request.Planner, model.DefaultPlanner)
	search.Level, search.Weight, search.Capacity, search.Special = settings.Level, settings.Weight, settings.Capacity, settings.Special
	search.CPUWeight = settings.CPUWeight
	planned := len(where.clusters) > 1
	if offer, known := facts.Resource(vm.Offer); known && offer.Settings[model.SettingPlanner] != "" {
		planned = true
	}
	if last, there := facts.Node(vm.LastNode); planned && purpose == placement.ForStart && there && vm.LastNode != "" {
		if _, among := resolved[cmp.Or(last.Cluster, model.DefaultCluster)]; among {
			search.LastNode = vm.LastNode
		}
	}
	return search, resolved, nil
}

// option is what is asked of one cluster.
func (s *scopes) option(view *view.View, one Resolved, vm *model.VM, purpose placement.Purpose) (across.Option, error) {
	policy, _, err := PolicyOf(s.source, one.Record)
	if err != nil {
		return across.Option{}, err
	}
	pod := s.link(one.Record, schema.LinkPod, model.KindPod)
	zone := s.link(pod, schema.LinkZone, model.KindZone)
	if s.err != nil {
		return across.Option{}, s.err
	}
	option := across.Option{Cluster: one.Cluster, Pod: pod.Name, Request: Request(one, *vm, purpose), Policy: policy}
	if !purpose.Moves() && vm.Spec.CPU == "" && vm.Spec.XML == "" {
		option.Request.CPU = view.CPUBaseline(one.Cluster)
	}
	if zone.ID != "" {
		option.Threshold = model.ZoneSettingsOf(&zone).CapacityThreshold
	}
	if f, err := strconv.ParseFloat(one.Record.Settings[model.SettingCapacityLimit], 64); err == nil {
		option.Threshold = f
	}
	return option, nil
}

// zoneOf is the zone of a cluster; a record without ID if it is in none.
func (w *walk) zoneOf(record model.Resource) model.Resource {
	return w.link(w.link(record, schema.LinkPod, model.KindPod), schema.LinkZone, model.KindZone)
}

// plannerOf is the planner that an offer names, or else the zone of a cluster. Empty: neither does.
func (w *walk) plannerOf(offer, record model.Resource) string {
	if planner := offer.Settings[model.SettingPlanner]; planner != "" {
		return planner
	}
	return w.zoneOf(record).Settings[model.SettingPlanner]
}

// PlannerIn is the planner of VMs in a cluster whose offer names none, and where it comes from: the cluster's zone, or its
// policy. Both are empty where a link leads nowhere.
func PlannerIn(source Source, record model.Resource) (planner, from string) {
	w := &walk{source: source}
	zone := w.zoneOf(record)
	linked, err := policyRecord(source, record)
	if w.err != nil || err != nil {
		return "", ""
	}
	if own := zone.Settings[model.SettingPlanner]; own != "" {
		return own, schema.Ref(zone.Kind, zone.Name)
	}
	return Effective(&linked, schema.PolicyForm.Setting(schema.SettingPlanner)), schema.Ref(linked.Kind, linked.Name)
}
