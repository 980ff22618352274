package api

import (
	"slices"

	"berth/coordinator/affinity"
	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

// clusterOfGroup is the name of the cluster that a group is in.
func (p *picture) clusterOfGroup(record *cluster.Resource) string {
	if id := record.Links[estate.LinkCluster]; id != "" {
		return p.resourceName(id)
	}
	return cluster.DefaultCluster
}

// groupRecords are the groups of a cluster, by name.
func (p *picture) groupRecords(clusterName string) []cluster.Resource {
	return slices.DeleteFunc(p.Groups(), func(r cluster.Resource) bool { return p.clusterOfGroup(&r) != clusterName })
}

// membership tells which groups take in which VMs. It is made once for many VMs.
type membership struct {
	listed map[string][]string    // names of groups, by the ID of a member
	byWord map[[2]string][]string // likewise, by cluster and label
}

// groupsOf are the names of the groups that a VM of a cluster is a member of.
func (p *picture) groupsOf(vm cluster.VM, clusterName string) []string {
	if p.joined == nil {
		p.joined = &membership{listed: make(map[string][]string), byWord: make(map[[2]string][]string)}
		for _, record := range p.Groups() {
			for _, id := range record.Members[cluster.MembersVMs] {
				p.joined.listed[id] = append(p.joined.listed[id], record.Name)
			}
			for _, label := range record.Lists[cluster.ListVMLabels] {
				word := [2]string{p.clusterOfGroup(&record), label}
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

// where tells on which node each VM is, or is on its way to.
func (p *picture) where() affinity.Where {
	where := make(affinity.Where)
	for _, vm := range p.VMs() {
		if vm.Holder != "" {
			where[vm.ID] = vm.Holder
		}
	}
	for _, op := range p.LiveOperations() {
		if op.Kind != operation.Stop && op.Target != "" {
			where[op.VM] = op.Target
		}
	}
	return where
}

// memberName is what people call a VM or a node; the ID of one that is gone.
func (p *picture) memberName(id string) string {
	if vm, known := p.VM(id); known {
		return vm.Name
	}
	return p.nodeName(id)
}

// groupsIn are the messages of a cluster's groups, by name. What they contradict is left out: GetGroup and CheckGroups tell
// it.
func (s *Server) groupsIn(p *picture, clusterName string) []*berthv1.Group {
	records := p.groupRecords(clusterName)
	if len(records) == 0 {
		return nil
	}
	expanded, where := estate.GroupsOf(p.Snapshot, clusterName), p.where()
	messages := make([]*berthv1.Group, 0, len(records))
	for i := range records {
		report := s.groupReport(p, &records[i], expanded, where)
		messages = append(messages, wire.Group(report))
	}
	return messages
}

// group is the message of one group among what the facts say is declared: that may be more than there is.
func (s *Server) group(p *picture, facts estate.Facts, record cluster.Resource) *berthv1.Group {
	inside := p.clusterOfGroup(&record)
	report := s.groupReport(p, &record, estate.GroupsOf(facts, inside), p.where())
	report.Conflicts = slices.DeleteFunc(estate.Conflicts(facts, inside), func(c affinity.Conflict) bool {
		return !slices.Contains(c.Groups, record.Name) && !slices.Contains(c.Ties, record.Name)
	})
	return wire.Group(report)
}

// groupReport is what is known of a group but for what it contradicts. Expanded are all groups of its cluster.
func (s *Server) groupReport(p *picture, record *cluster.Resource, expanded []cluster.Group, where affinity.Where) wire.GroupReport {
	inside := p.clusterOfGroup(record)
	report := wire.GroupReport{Record: *record, Listed: cluster.GroupOf(record, inside), Name: p.memberName}
	for i := range expanded {
		if expanded[i].ID == record.ID {
			report.Expanded = expanded[i]
			report.Breaches = affinity.Breaches(expanded[i:i+1], where, p.memberName)
		}
	}
	if pass, looked := s.Control.LastPass(inside); looked {
		report.Unrepaired, report.LookedAt = pass.Unrepaired[record.ID], pass.At
	}
	return report
}
