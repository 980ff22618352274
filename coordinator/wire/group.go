package wire

import (
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// RuleFrom reads what a request says of a rule that was like this until now. Nothing, if the message is nil.
func RuleFrom(message *berthv1.AffinityRule, was model.Rule) model.Rule {
	if message == nil {
		return was
	}
	return affinity.RuleOf(was, message.Enabled, message.Positive, message.Enforcing)
}

// VMsRuleFrom reads what a request says of a group's rule about VMs. The deprecated flags count only where there is
// no message (oVirt, "REST API").
func VMsRuleFrom(message *berthv1.AffinityRule, positive, enforcing *bool, was model.Rule) model.Rule {
	if message == nil {
		return affinity.RuleOf(was, nil, positive, enforcing)
	}
	return RuleFrom(message, was)
}

func rule(r model.Rule) *berthv1.AffinityRule {
	message := &berthv1.AffinityRule{Enforcing: new(r.Enforcing), Enabled: new(r.Enabled())}
	if r.Enabled() {
		message.Positive = new(r.Polarity == model.Positive)
	}
	return message
}

// GroupReport is all that one group's message is made of.
type GroupReport struct {
	Record   model.Resource
	Listed   model.Group // as the record has it
	Expanded model.Group // with everything that carries one of its labels
	Name     affinity.Names

	Breaches   []affinity.Breach // of its rules
	Unrepaired string            // why the last pass of enforcement repaired none of them
	LookedAt   time.Time         // when that pass was; zero: there was none yet
	Conflicts  []affinity.Conflict
}

// Group makes the message of one group.
func Group(report GroupReport) *berthv1.Group {
	group := report.Listed
	message := &berthv1.Group{
		Id:          group.ID,
		Name:        group.Name,
		Cluster:     group.Cluster,
		Vms:         sortedNames(report.Name, group.VMs),
		Hosts:       sortedNames(report.Name, group.Nodes),
		VmLabels:    group.VMLabels,
		HostLabels:  group.NodeLabels,
		VmsRule:     rule(group.VMsRule),
		HostsRule:   rule(group.NodesRule),
		Priority:    new(group.Priority),
		Unbalanced:  group.Unbalanced,
		CreatedAt:   timestamp(report.Record.CreatedAt),
		Revision:    group.Revision,
		MemberVms:   sortedNames(report.Name, report.Expanded.VMs),
		MemberHosts: sortedNames(report.Name, report.Expanded.Nodes),
		Status: &berthv1.GroupStatus{
			Holds:     len(report.Breaches) == 0,
			LookedAt:  timestamp(report.LookedAt),
			Conflicts: Conflicts(report.Conflicts, report.Name),
		},
	}
	if group.VMsRule.Enabled() { // for those who know the design's first form
		message.Positive, message.Enforcing = message.VmsRule.Positive, message.VmsRule.Enforcing
	}
	if len(report.Breaches) > 0 {
		message.Status.Unrepaired, message.Status.BrokenSince = report.Unrepaired, timestamp(group.BrokenSince)
	} else {
		message.Status.HeldSince = timestamp(group.HeldSince)
	}
	for i := range report.Breaches {
		message.Status.Breaches = append(message.Status.Breaches, breach(&report.Breaches[i], report.Name))
	}
	return message
}

// scopeWord is how the API calls what a rule is about. Its nodes are hosts, as in the published design.
func scopeWord(scope affinity.Scope) string {
	if scope == affinity.OfNodes {
		return "hosts"
	}
	return string(scope)
}

func breach(b *affinity.Breach, name affinity.Names) *berthv1.Breach {
	return &berthv1.Breach{
		Scope: scopeWord(b.Scope), Hard: b.Rule.Hard(), Text: b.Text, Vms: sortedNames(name, b.VMs), Hosts: sortedNames(name, b.Nodes),
	}
}

// Conflicts makes the messages of contradictions between groups, in their order.
func Conflicts(conflicts []affinity.Conflict, name affinity.Names) []*berthv1.Conflict {
	messages := make([]*berthv1.Conflict, 0, len(conflicts))
	for i := range conflicts {
		c := &conflicts[i]
		messages = append(messages, &berthv1.Conflict{
			Kind: c.Kind, Severity: string(c.Severity), Groups: c.Groups, Ties: c.Ties, Vms: sortedNames(name, c.VMs),
			Hosts: sortedNames(name, c.Nodes),
			Text:  c.Text, NextStep: c.Next,
		})
	}
	return messages
}
