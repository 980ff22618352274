package estates

import (
	"slices"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/api/answer"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// groupFacts finds groups in a moment, and what they are about.
type groupFacts struct{ *answer.Moment }

// groupsIn are the messages of a cluster's groups, by name. What they contradict is left out: GetGroup and CheckGroups tell
// it.
func (s *GroupCalls) groupsIn(p *answer.Moment, clusterName string) []*berthv1.Group {
	records := p.GroupRecords(clusterName)
	if len(records) == 0 {
		return nil
	}
	expanded, where := estate.GroupsOf(p.Snapshot, clusterName), p.Where()
	messages := make([]*berthv1.Group, 0, len(records))
	for i := range records {
		report := s.groupReport(p, &records[i], expanded, where)
		messages = append(messages, wire.Group(report))
	}
	return messages
}

// group is the message of one group among what the facts say is declared: that may be more than there is.
func (s *GroupCalls) group(p *answer.Moment, facts estate.Facts, record model.Resource) *berthv1.Group {
	inside := p.ClusterOfGroup(&record)
	report := s.groupReport(p, &record, estate.GroupsOf(facts, inside), p.Where())
	report.Conflicts = slices.DeleteFunc(estate.Conflicts(facts, inside), func(c affinity.Conflict) bool {
		return !slices.Contains(c.Groups, record.Name) && !slices.Contains(c.Ties, record.Name)
	})
	return wire.Group(report)
}

// groupReport is what is known of a group but for what it contradicts. Expanded are all groups of its cluster.
func (s *GroupCalls) groupReport(p *answer.Moment, record *model.Resource, expanded []model.Group, where affinity.Where) wire.GroupReport {
	inside := p.ClusterOfGroup(record)
	report := wire.GroupReport{Record: *record, Listed: model.GroupOf(record, inside), Name: p.MemberName}
	for i := range expanded {
		if expanded[i].ID == record.ID {
			report.Expanded = expanded[i]
			report.Breaches = affinity.Breaches(expanded[i:i+1], where, p.MemberName)
		}
	}
	moment := sinceMove(p, &report.Expanded)
	switch broken := len(report.Breaches) > 0; {
	case broken && report.Listed.BrokenSince.IsZero():
		report.Listed.BrokenSince = moment
	case !broken && report.Listed.HeldSince.IsZero():
		report.Listed.HeldSince = moment
	}
	if pass, looked := s.Control.LastPass(inside); looked {
		report.Unrepaired, report.LookedAt = pass.Unrepaired[record.ID], pass.At
	}
	return report
}

// sinceMove is when the last of those members set out that are on their way: what that changes of a group is marked once they have come.
// Zero: none is.
func sinceMove(p *answer.Moment, group *model.Group) (last time.Time) {
	for _, id := range group.VMs {
		vm := p.SharedVM(id)
		if vm == nil || vm.Operation == "" {
			continue
		}
		if op, works := p.Operation(vm.Operation); works && op.Kind.Brings() && op.CreatedAt.After(last) {
			last = op.CreatedAt
		}
	}
	return last
}
