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
	out.Tried, out.Pools = slices.Clone(d.Tried), slices.Clone(d.Pools)
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
	out.Labels, out.Networks = slices.Clone(r.Labels), slices.Clone(r.Networks)
	out.Disks = slices.Clone(r.Disks)
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
	out.IDs, out.Names = slices.Clone(in.IDs), slices.Clone(in.Names)
	out.Standing, out.Reasons, out.Known = slices.Clone(in.Standing), slices.Clone(in.Reasons), slices.Clone(in.Known)
	out.InventoryAt, out.TelemetryAt = slices.Clone(in.InventoryAt), slices.Clone(in.TelemetryAt)
	out.Memory, out.RAMRatio, out.Overhead = slices.Clone(in.Memory), slices.Clone(in.RAMRatio), slices.Clone(in.Overhead)
	out.Promised, out.Used, out.Free = slices.Clone(in.Promised), slices.Clone(in.Used), slices.Clone(in.Free)
	out.VCPULimit, out.VCPUs, out.Load = slices.Clone(in.VCPULimit), slices.Clone(in.VCPUs), slices.Clone(in.Load)
	out.Count, out.Management = slices.Clone(in.Count), slices.Clone(in.Management)
	out.CPUs, out.Coming = slices.Clone(in.CPUs), slices.Clone(in.Coming)
	in.cloneAround(&out)
	out.NodeKeys = slices.Clone(in.NodeKeys)
	for i := range out.NodeKeys {
		out.NodeKeys[i].Values = slices.Clone(out.NodeKeys[i].Values)
	}
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

// cloneAround copies the columns that only some requests need.
func (in *Inputs) cloneAround(out *Inputs) {
	out.AccountVMs = slices.Clone(in.AccountVMs)
	out.Pools, out.Networks = slices.Clone(in.Pools), slices.Clone(in.Networks)
	for i := range out.Pools {
		out.Pools[i].Has, out.Pools[i].Shares = slices.Clone(out.Pools[i].Has), slices.Clone(out.Pools[i].Shares)
	}
	for i := range out.Networks {
		out.Networks[i].Has = slices.Clone(out.Networks[i].Has)
	}
	if in.Models != nil {
		models := *in.Models
		models.Has, models.Hosts = slices.Clone(models.Has), slices.Clone(models.Hosts)
		out.Models = &models
	}
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
