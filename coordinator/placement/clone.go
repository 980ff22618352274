package placement

import (
	"slices"

	"berth/coordinator/placement/rule"
)

// Clone copies the decision so that it shares no memory with the original.
func (d *Decision) Clone() Decision {
	out := *d
	out.Request = d.Request.clone()
	out.Changes, out.Ranks = slices.Clone(d.Changes), slices.Clone(d.Ranks)
	for i := range out.Ranks {
		out.Ranks[i].Cells = slices.Clone(out.Ranks[i].Cells)
	}
	if d.Rules != nil {
		rules := *d.Rules
		rules.Constraints, rules.Weighers = slices.Clone(rules.Constraints), slices.Clone(rules.Weighers)
		out.Rules = &rules
	}
	out.Inputs = d.Inputs.clone()
	out.Tried, out.Pools, out.Warnings = slices.Clone(d.Tried), slices.Clone(d.Pools), slices.Clone(d.Warnings)
	if d.Across != nil {
		across := *d.Across
		out.Across = &across
	}
	out.Nodes = slices.Clone(d.Nodes)
	for i := range out.Nodes {
		out.Nodes[i].detach()
	}
	return out
}

func (r *Request) clone() Request {
	out := *r
	out.Excluded, out.Among, out.Preferred = slices.Clone(r.Excluded), slices.Clone(r.Among), slices.Clone(r.Preferred)
	out.SystemKeys, out.CustomerKeys = slices.Clone(r.SystemKeys), slices.Clone(r.CustomerKeys)
	out.Labels, out.Networks, out.Bindings = slices.Clone(r.Labels), slices.Clone(r.Networks), slices.Clone(r.Bindings)
	out.Disks, out.Apart = slices.Clone(r.Disks), slices.Clone(r.Apart)
	for i := range out.Disks {
		disk := &out.Disks[i]
		disk.ImageNodes, disk.ImagePlaces = slices.Clone(disk.ImageNodes), slices.Clone(disk.ImagePlaces)
		for p := range disk.ImagePlaces {
			disk.ImagePlaces[p].Nodes = slices.Clone(disk.ImagePlaces[p].Nodes)
		}
	}
	if r.Unit != nil {
		unit := *r.Unit
		unit.VMs, unit.Names = slices.Clone(unit.VMs), slices.Clone(unit.Names)
		out.Unit = &unit
	}
	return out
}

func (in *Inputs) clone() *Inputs {
	if in == nil {
		return nil
	}
	out := *in
	out.Figures = in.Figures.Clone()
	out.Groups = cloneGroups(in.Groups)
	out.Uncovered = slices.Clone(in.Uncovered)
	for i := range out.Uncovered {
		one := &out.Uncovered[i]
		one.Nodes, one.VMs = slices.Clone(one.Nodes), slices.Clone(one.VMs)
	}
	out.Shares = slices.Clone(in.Shares)
	for i := range out.Shares {
		out.Shares[i].Shares = slices.Clone(out.Shares[i].Shares)
	}
	out.Met = slices.Clone(in.Met)
	for i := range out.Met {
		out.Met[i] = cloneMet(out.Met[i])
	}
	return &out
}

func cloneGroups(groups []rule.Membership) []rule.Membership {
	groups = slices.Clone(groups)
	for i := range groups {
		one := &groups[i]
		one.On, one.Shares, one.Others = slices.Clone(one.On), slices.Clone(one.Shares), slices.Clone(one.Others)
		for p := range one.Others {
			one.Others[p].VMs = slices.Clone(one.Others[p].VMs)
		}
	}
	return groups
}

func cloneMet(met rule.Met) rule.Met {
	met.Nodes, met.Counts = slices.Clone(met.Nodes), slices.Clone(met.Counts)
	return met
}

// detach gives the result memory of its own.
func (n *NodeResult) detach() {
	n.Constraints, n.Terms = slices.Clone(n.Constraints), slices.Clone(n.Terms)
	for i := range n.Constraints {
		one := &n.Constraints[i]
		one.Needed, one.Available, one.AgeSeconds = detached(one.Needed), detached(one.Available), detached(one.AgeSeconds)
	}
	for i := range n.Terms {
		n.Terms[i].Proximity = detached(n.Terms[i].Proximity)
	}
}

func detached(figure *float64) *float64 {
	if figure == nil {
		return nil
	}
	own := *figure
	return &own
}
