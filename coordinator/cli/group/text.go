package group

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/affinity"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

func table(a *term.App, p *term.Page, groups []*berthv1.Group, wide bool) {
	headings := []string{"NAME", "CLUSTER", "VMS-RULE", "NODES-RULE", "VMS", "NODES", "STATE", "SINCE"}
	if wide {
		headings = append(headings, "PRIORITY", "UNBALANCED", "VM-LABELS", "NODE-LABELS", "CREATED", "ID")
	}
	rows := make([][]string, 0, len(groups))
	for _, group := range groups {
		row := []string{
			group.GetName(), cmp.Or(group.GetCluster(), term.None), term.Dense(ruleWords(group.GetVmsRule())), term.Dense(
				ruleWords(group.GetHostsRule()),
			),
			strconv.Itoa(len(group.GetMemberVms())), strconv.Itoa(len(group.GetMemberHosts())),
			state(group.GetStatus()), a.Since(since(group.GetStatus())),
		}
		if wide {
			row = append(row, term.Exact(group.GetPriority()), strconv.FormatBool(group.GetUnbalanced()),
				cmp.Or(strings.Join(group.GetVmLabels(), ","), term.None), cmp.Or(strings.Join(group.GetHostLabels(), ","), term.None),
				a.At(group.GetCreatedAt()), group.GetId())
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}

// ruleWords says what a rule is, in the words of its flags and of estates, and whether it is hard.
func ruleWords(rule *berthv1.AffinityRule) string {
	if !rule.GetEnabled() {
		return string(model.Disabled)
	}
	polarity := model.Negative
	if rule.GetPositive() {
		polarity = model.Positive
	}
	return string(polarity) + ", " + hardness(rule.GetEnforcing())
}

func hardness(hard bool) string {
	if hard {
		return "hard"
	}
	return "soft"
}

func state(status *berthv1.GroupStatus) string {
	switch {
	case status == nil:
		return term.None
	case status.GetHolds():
		return "holds"
	}
	return "BROKEN"
}

func text(a *term.App, p *term.Page, group *berthv1.Group, wide bool) {
	p.Line("%s", ref(group))
	rows := [][2]string{
		{"cluster", group.GetCluster()},
		{"VM rule", ruleMeaning(group.GetVmsRule(), "its VMs run on one node", "its VMs run on different nodes")},
		{"node rule", ruleMeaning(group.GetHostsRule(), "its VMs run on its nodes", "its VMs do not run on its nodes")},
		{"priority", term.Exact(group.GetPriority())},
		{"VMs", memberNames(group.GetVms(), group.GetMemberVms())},
		{"VM labels", strings.Join(group.GetVmLabels(), ", ")},
		{"nodes", memberNames(group.GetHosts(), group.GetMemberHosts())},
		{"node labels", strings.Join(group.GetHostLabels(), ", ")},
		{"state", stateText(a, group.GetStatus())},
		{"created", a.At(group.GetCreatedAt())},
	}
	if group.GetUnbalanced() {
		rows = append(rows, [2]string{"unbalanced", "balancing leaves its VMs where they are"})
	}
	if wide {
		rows = append(rows, [2]string{"revision", strconv.FormatUint(group.GetRevision(), 10)}, [2]string{"ID", group.GetId()})
	}
	p.Fields("  ", rows...)
	breaches(a, p, group.GetStatus())
	if conflicts := group.GetStatus().GetConflicts(); len(conflicts) > 0 {
		p.Blank()
		p.Line("conflicts")
		term.ConflictLines(p, "  ", conflicts)
	}
}

// ruleMeaning says in words what a rule wants.
func ruleMeaning(rule *berthv1.AffinityRule, positive, negative string) string {
	switch {
	case !rule.GetEnabled():
		return string(model.Disabled)
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
	return cmp.Or(strings.Join(names, ", "), term.None)
}

func stateText(a *term.App, status *berthv1.GroupStatus) string {
	text := state(status)
	if since := since(status); since != nil {
		text += fmt.Sprintf(" since %s (%s)", a.At(since), a.Since(since))
	}
	return text
}

// since is when a group came to be as it is.
func since(status *berthv1.GroupStatus) *timestamppb.Timestamp {
	if status.GetHolds() {
		return status.GetHeldSince()
	}
	return status.GetBrokenSince()
}

// breaches writes what breaks a group, and why that has not been repaired.
func breaches(a *term.App, p *term.Page, status *berthv1.GroupStatus) {
	if len(status.GetBreaches()) > 0 {
		p.Blank()
		p.Line("what breaks it")
		rows := make([][]string, 0, len(status.GetBreaches()))
		for _, breach := range status.GetBreaches() {
			rule := "node"
			if breach.GetScope() == string(affinity.OfVMs) {
				rule = "VM"
			}
			rows = append(rows, []string{rule, hardness(breach.GetHard()), breach.GetText()})
		}
		p.Indented("  ", []string{"RULE", "KIND", "WHY"}, rows)
	}
	if status.GetUnrepaired() == "" {
		return
	}
	looked := ""
	if status.GetLookedAt() != nil {
		looked = fmt.Sprintf(" (looked at %s ago)", a.Since(status.GetLookedAt()))
	}
	p.Line("  not repaired: %s%s", status.GetUnrepaired(), looked)
}
