package answer

import (
	"slices"

	"berth/coordinator/affinity"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// ClusterOfGroup is the name of the cluster that a group is in.
func (p *Moment) ClusterOfGroup(record *model.Resource) string {
	if id := record.Links[schema.LinkCluster]; id != "" {
		return p.ResourceName(id)
	}
	return model.DefaultCluster
}

// GroupRecords are the groups of a cluster, by name.
func (p *Moment) GroupRecords(clusterName string) []model.Resource {
	return slices.DeleteFunc(p.Groups(), func(r model.Resource) bool { return p.ClusterOfGroup(&r) != clusterName })
}

// membership tells which groups take in which VMs. It is made once for many VMs.
type membership struct {
	listed map[string][]string    // names of groups, by the ID of a member
	byWord map[[2]string][]string // names of groups, by cluster and label
}

// GroupsOf are the names of the groups that a VM of a cluster is a member of.
func (p *Moment) GroupsOf(vm model.VM, clusterName string) []string {
	if p.joined == nil {
		p.joined = &membership{listed: make(map[string][]string), byWord: make(map[[2]string][]string)}
		for _, record := range p.Groups() {
			for _, id := range record.Members[model.MembersVMs] {
				p.joined.listed[id] = append(p.joined.listed[id], record.Name)
			}
			for _, label := range record.Lists[model.ListVMLabels] {
				word := [2]string{p.ClusterOfGroup(&record), label}
				p.joined.byWord[word] = append(p.joined.byWord[word], record.Name)
			}
		}
	}
	names := slices.Clone(p.joined.listed[vm.ID])
	for _, label := range vm.Labels {
		names = append(names, p.joined.byWord[[2]string{clusterName, label}]...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Where tells on which node each VM is, or is on its way to.
func (p *Moment) Where() affinity.Where {
	where := make(affinity.Where)
	for vm := range p.SharedVMs() {
		if vm.Holder != "" {
			where[vm.ID] = vm.Holder
		}
	}
	for _, op := range p.LiveOperations() {
		if op.Kind.Brings() && op.Target != "" {
			where[op.VM] = op.Target
		}
	}
	return where
}

// MemberName is what people call a VM or a node; the ID of one that is gone.
func (p *Moment) MemberName(id string) string {
	if vm, known := p.VM(id); known {
		return vm.Name
	}
	return p.NodeName(id)
}
