package console

import (
	"net/url"
	"slices"
	"strings"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// groupsPage is what the page of groups shows.
type groupsPage struct {
	Groups    []*berthv1.Group
	Conflicts []*berthv1.Conflict
	Broken    int
	More      bool
}

// showGroups shows what is wanted of VMs among each other, what is broken first.
func showGroups(v *visit) (*page, error) {
	groups, err := v.API.ListGroups(v.ctx, connect.NewRequest(&berthv1.ListGroupsRequest{}))
	if err != nil {
		return nil, err
	}
	conflicts, err := v.API.CheckGroups(v.ctx, connect.NewRequest(&berthv1.CheckGroupsRequest{}))
	if err != nil {
		return nil, err
	}
	shown := groupsPage{
		Groups: groups.Msg.GetGroups(), Conflicts: conflicts.Msg.GetConflicts(), More: groups.Msg.GetNextPageToken() != "",
	}
	slices.SortStableFunc(shown.Groups, func(a, b *berthv1.Group) int { return lacking(broken(a)) - lacking(broken(b)) })
	for _, group := range shown.Groups {
		if broken(group) {
			shown.Broken++
		}
	}
	return &page{name: "groups", Title: "Groups and rules", Here: "groups", Command: "berth group list; berth group check", Body: shown}, nil
}

func broken(group *berthv1.Group) bool {
	return group.GetStatus() != nil && !group.GetStatus().GetHolds()
}

// rule says what a group wants.
func rule(r *berthv1.AffinityRule, together, apart string) string {
	if r == nil || r.Enabled != nil && !r.GetEnabled() {
		return ""
	}
	what := apart
	if r.GetPositive() {
		what = together
	}
	if r.GetEnforcing() {
		return what + ", always"
	}
	return what + ", if possible"
}

// listPlans lists plans, those that wait or run first.
func listPlans(v *visit) (*page, error) {
	answer, err := v.API.ListPlans(v.ctx, connect.NewRequest(&berthv1.ListPlansRequest{Limit: 100}))
	if err != nil {
		return nil, err
	}
	all := answer.Msg.GetPlans()
	slices.SortStableFunc(all, func(a, b *berthv1.Plan) int { return lacking(living(a)) - lacking(living(b)) })
	nodes, err := allNodes(v.ctx, v)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.GetName())
	}
	return &page{name: "plans", Title: "Plans", Here: "plans", Command: "berth plan list", Body: struct {
		Plans []*berthv1.Plan
		Nodes []string
	}{all, names}}, nil
}

func living(plan *berthv1.Plan) bool {
	return plan.GetState() == "proposed" || plan.GetState() == "running"
}

// planPage is what the page of one plan shows, and of one that is only tried out.
type planPage struct {
	Plan   *berthv1.Plan
	WhatIf bool
	Node   string // that would be drained
	Stuck  int    // moves that cannot be made
}

func showPlan(v *visit) (*page, error) {
	answer, err := v.API.GetPlan(v.ctx, connect.NewRequest(&berthv1.GetPlanRequest{Id: v.path("id")}))
	if err != nil {
		return nil, err
	}
	plan := answer.Msg.GetPlan()
	refresh := 0
	if plan.GetState() == "running" {
		refresh = 10
	}
	return &page{
		name: "plan", Title: "Plan " + plan.GetId(), Here: "plans", Command: "berth plan show " + quoted(plan.GetId()), Refresh: refresh,
		Body: planPage{Plan: plan, Stuck: stuck(plan)},
	}, nil
}

func stuck(plan *berthv1.Plan) (n int) {
	for _, move := range plan.GetMoves() {
		if move.GetState() == "stays" || move.GetState() == "failed" {
			n++
		}
	}
	return n
}

// previewDrain tries out what a drain would do, and drains nothing.
func previewDrain(v *visit) (*page, error) {
	if v.ReadOnly {
		return nil, errReadOnly
	}
	node := v.path("node")
	if other := v.asked("of"); other != "" { // a form without JavaScript cannot put it into the path
		node = other
	}
	answer, err := v.API.DrainNode(v.ctx, connect.NewRequest(&berthv1.DrainNodeRequest{Node: node, DryRun: true}))
	if err != nil {
		return nil, err
	}
	plan := answer.Msg.GetPlan()
	return &page{
		name: "plan", Title: "What a drain of " + node + " would do", Here: "plans",
		Command: "berth node drain " + quoted(node) + " --dry-run", Body: planPage{Plan: plan, WhatIf: true, Node: node, Stuck: stuck(plan)},
	}, nil
}

func drainNode(v *visit) (string, error) {
	answer, err := v.API.DrainNode(v.ctx, connect.NewRequest(&berthv1.DrainNodeRequest{
		Node: v.path("node"), Reason: v.asked("reason"), RequestId: v.requestID(),
	}))
	if err != nil {
		return "", err
	}
	return planAddress(answer.Msg.GetPlan().GetId()), nil
}

func undrainNode(v *visit) (string, error) {
	_, err := v.API.UndrainNode(v.ctx, connect.NewRequest(&berthv1.UndrainNodeRequest{
		Node: v.path("node"), ReturnVms: v.asked("return") != "", RequestId: v.requestID(),
	}))
	return "/nodes/" + url.PathEscape(v.path("node")), err
}

func applyPlan(v *visit) (string, error) {
	_, err := v.API.ApplyPlan(v.ctx, connect.NewRequest(&berthv1.ApplyPlanRequest{Id: v.path("id"), RequestId: v.requestID()}))
	return planAddress(v.path("id")), err
}

func discardPlan(v *visit) (string, error) {
	_, err := v.API.DiscardPlan(v.ctx, connect.NewRequest(&berthv1.DiscardPlanRequest{Id: v.path("id"), RequestId: v.requestID()}))
	return planAddress(v.path("id")), err
}

func cancelPlan(v *visit) (string, error) {
	_, err := v.API.CancelPlan(v.ctx, connect.NewRequest(&berthv1.CancelPlanRequest{Id: v.path("id"), RequestId: v.requestID()}))
	return planAddress(v.path("id")), err
}

func planAddress(id string) string { return "/plans/" + url.PathEscape(id) }

// wants joins what a group's two rules say.
func wants(group *berthv1.Group) string {
	var both []string
	if text := rule(group.GetVmsRule(), "its VMs on one node", "its VMs on different nodes"); text != "" {
		both = append(both, text)
	}
	if text := rule(group.GetHostsRule(), "on its nodes", "off its nodes"); text != "" {
		both = append(both, text)
	}
	return strings.Join(both, "; ")
}
