package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/affinity"
	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
)

func (a *app) groupTable(p *page, groups []*berthv1.Group, wide bool) {
	headings := []string{"NAME", "CLUSTER", "VMS-RULE", "NODES-RULE", "VMS", "NODES", "STATE", "SINCE"}
	if wide {
		headings = append(headings, "PRIORITY", "UNBALANCED", "VM-LABELS", "NODE-LABELS", "CREATED", "ID")
	}
	rows := make([][]string, 0, len(groups))
	for _, group := range groups {
		row := []string{
			group.GetName(), or(group.GetCluster(), none), dense(ruleWords(group.GetVmsRule())), dense(ruleWords(group.GetHostsRule())),
			strconv.Itoa(len(group.GetMemberVms())), strconv.Itoa(len(group.GetMemberHosts())),
			groupState(group.GetStatus()), a.since(group.GetStatus().GetBrokenSince()),
		}
		if wide {
			row = append(row, exact(group.GetPriority()), strconv.FormatBool(group.GetUnbalanced()),
				or(strings.Join(group.GetVmLabels(), ","), none), or(strings.Join(group.GetHostLabels(), ","), none),
				a.at(group.GetCreatedAt()), group.GetId())
		}
		rows = append(rows, row)
	}
	p.table(headings, rows)
}

// ruleWords says what a rule is, in the words of its flags and of estates, and whether it is hard.
func ruleWords(rule *berthv1.AffinityRule) string {
	if !rule.GetEnabled() {
		return string(cluster.Disabled)
	}
	polarity := cluster.Negative
	if rule.GetPositive() {
		polarity = cluster.Positive
	}
	return string(polarity) + ", " + hardness(rule.GetEnforcing())
}

func hardness(hard bool) string {
	if hard {
		return "hard"
	}
	return "soft"
}

func groupState(status *berthv1.GroupStatus) string {
	switch {
	case status == nil:
		return none
	case status.GetHolds():
		return "holds"
	}
	return "BROKEN"
}

func (a *app) groupText(p *page, group *berthv1.Group, wide bool) {
	p.line("%s", groupRef(group))
	rows := [][2]string{
		{"cluster", group.GetCluster()},
		{"VM rule", ruleMeaning(group.GetVmsRule(), "its VMs run on one node", "its VMs run on different nodes")},
		{"node rule", ruleMeaning(group.GetHostsRule(), "its VMs run on its nodes", "its VMs do not run on its nodes")},
		{"priority", exact(group.GetPriority())},
		{"VMs", memberNames(group.GetVms(), group.GetMemberVms())},
		{"VM labels", strings.Join(group.GetVmLabels(), ", ")},
		{"nodes", memberNames(group.GetHosts(), group.GetMemberHosts())},
		{"node labels", strings.Join(group.GetHostLabels(), ", ")},
		{"state", a.groupStateText(group.GetStatus())},
		{"created", a.at(group.GetCreatedAt())},
	}
	if group.GetUnbalanced() {
		rows = append(rows, [2]string{"unbalanced", "balancing leaves its VMs where they are"})
	}
	if wide {
		rows = append(rows, [2]string{"revision", strconv.FormatUint(group.GetRevision(), 10)}, [2]string{"ID", group.GetId()})
	}
	p.fields("  ", rows...)
	a.breaches(p, group.GetStatus())
	if conflicts := group.GetStatus().GetConflicts(); len(conflicts) > 0 {
		p.blank()
		p.line("conflicts")
		conflictLines(p, "  ", conflicts)
	}
}

// ruleMeaning says in words what a rule wants.
func ruleMeaning(rule *berthv1.AffinityRule, positive, negative string) string {
	switch {
	case !rule.GetEnabled():
		return string(cluster.Disabled)
	case rule.GetPositive():
		return ruleWords(rule) + ": " + positive
	}
	return ruleWords(rule) + ": " + negative
}

// memberNames lists members, and which of them came in by a label.
func memberNames(listed, all []string) string {
	names := make([]string, 0, len(all))
	for _, name := range all {
		if !slices.Contains(listed, name) {
			name += " (by label)"
		}
		names = append(names, name)
	}
	return or(strings.Join(names, ", "), none)
}

func (a *app) groupStateText(status *berthv1.GroupStatus) string {
	text := groupState(status)
	if since := status.GetBrokenSince(); since != nil {
		text += fmt.Sprintf(" since %s (%s)", a.at(since), a.since(since))
	}
	return text
}

// breaches writes what breaks a group, and why that has not been repaired.
func (a *app) breaches(p *page, status *berthv1.GroupStatus) {
	if len(status.GetBreaches()) > 0 {
		p.blank()
		p.line("what breaks it")
		rows := make([][]string, 0, len(status.GetBreaches()))
		for _, breach := range status.GetBreaches() {
			rule := "node"
			if breach.GetScope() == string(affinity.OfVMs) {
				rule = "VM"
			}
			rows = append(rows, []string{rule, hardness(breach.GetHard()), breach.GetText()})
		}
		p.indented("  ", []string{"RULE", "KIND", "WHY"}, rows)
	}
	if status.GetUnrepaired() == "" {
		return
	}
	looked := ""
	if status.GetLookedAt() != nil {
		looked = fmt.Sprintf(" (looked at %s ago)", a.since(status.GetLookedAt()))
	}
	p.line("  not repaired: %s%s", status.GetUnrepaired(), looked)
}
