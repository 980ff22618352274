package state

import (
	"maps"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
)

// Rows of the database are never changed in place, and readers get copies that share no memory with them. A test walks
// the copies by reflection, so a field added to a record cannot be forgotten here.

func pointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	value := *p
	return &value
}

func cloneNode(n *model.Node) model.Node {
	out := *n
	out.Settings.RAMRatio = pointer(n.Settings.RAMRatio)
	out.Settings.CPURatio = pointer(n.Settings.CPURatio)
	out.Settings.Overhead = pointer(n.Settings.Overhead)
	out.Keys = maps.Clone(n.Keys)
	out.Labels = slices.Clone(n.Labels)
	out.Fence = cloneDevice(n.Fence)
	return out
}

func cloneDevice(d model.FenceDevice) model.FenceDevice {
	d.Arguments, d.Also = maps.Clone(d.Arguments), slices.Clone(d.Also)
	for i, one := range d.Also {
		d.Also[i] = cloneDevice(one)
	}
	return d
}

func cloneToken(t *model.Token) model.Token {
	out := *t
	out.Used = slices.Clone(t.Used)
	return out
}

func cloneResource(r *model.Resource) model.Resource {
	out := *r
	out.Links, out.Settings, out.Spelled = maps.Clone(r.Links), maps.Clone(r.Settings), maps.Clone(r.Spelled)
	out.NodeKeys, out.Keys = slices.Clone(r.NodeKeys), slices.Clone(r.Keys)
	out.Members, out.Lists = cloneLists(r.Members), cloneLists(r.Lists)
	out.Volume, out.Copies = pointer(r.Volume), slices.Clone(r.Copies)
	out.Trials = slices.Clone(r.Trials)
	for volume := range out.Volumes() {
		volume.Nodes = slices.Clone(volume.Nodes)
	}
	return out
}

func cloneLists(lists map[string][]string) map[string][]string {
	out := maps.Clone(lists)
	for name, list := range out {
		out[name] = slices.Clone(list)
	}
	return out
}

func cloneSpec(s model.VMSpec) model.VMSpec {
	s.Disks, s.Networks = slices.Clone(s.Disks), slices.Clone(s.Networks)
	return s
}

func cloneVM(v *model.VM) model.VM {
	out := *v
	out.Spec = cloneSpec(v.Spec)
	out.Disks, out.NICs = slices.Clone(v.Disks), slices.Clone(v.NICs)
	out.Keys, out.Sticky, out.Resident = slices.Clone(v.Keys), slices.Clone(v.Sticky), slices.Clone(v.Resident)
	out.Labels, out.Preferred, out.RestartAfter = slices.Clone(v.Labels), slices.Clone(v.Preferred), slices.Clone(v.RestartAfter)
	out.Discards, out.Losses = slices.Clone(v.Discards), slices.Clone(v.Losses)
	out.Ran, out.Pending = slices.Clone(v.Ran), slices.Clone(v.Pending)
	out.Snapshots = slices.Clone(v.Snapshots)
	for i := range out.Snapshots {
		out.Snapshots[i].Disks = slices.Clone(out.Snapshots[i].Disks)
	}
	if out.Drift = pointer(v.Drift); out.Drift != nil {
		out.Drift.Edits = slices.Clone(out.Drift.Edits)
	}
	if out.Copies = pointer(v.Copies); out.Copies != nil {
		out.Copies.Volumes = slices.Clone(out.Copies.Volumes)
	}
	return out
}

func cloneOperation(o *operation.Operation) operation.Operation {
	out := *o
	out.Excluded = slices.Clone(o.Excluded)
	out.Evidence = slices.Clone(o.Evidence)
	out.Sticky, out.Edits = slices.Clone(o.Sticky), slices.Clone(o.Edits)
	out.Volumes, out.Replaced, out.Disks = slices.Clone(o.Volumes), slices.Clone(o.Replaced), slices.Clone(o.Disks)
	if out.Spec = pointer(o.Spec); out.Spec != nil {
		*out.Spec = cloneSpec(*o.Spec)
	}
	if out.Snapshot = pointer(o.Snapshot); out.Snapshot != nil {
		out.Snapshot.Disks = slices.Clone(out.Snapshot.Disks)
	}
	if out.Migration = pointer(o.Migration); out.Migration != nil {
		out.Migration.Downtime = pointer(o.Migration.Downtime)
		out.Migration.Handover = pointer(o.Migration.Handover)
	}
	return out
}

func clonePlan(p *model.Plan) model.Plan {
	out := *p
	out.Moves = slices.Clone(p.Moves)
	return out
}

func cloneIdentity(i *model.Identity) model.Identity {
	out := *i
	out.Keys = slices.Clone(i.Keys)
	return out
}

func cloneDecision(row *decisionRow) placement.Decision { return row.Decision.Clone() }

func copied[T any](row *T) T { return *row }
