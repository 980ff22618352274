package clitest

import (
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// groupFake answers about groups.
type groupFake struct {
	listGroups    func(*berthv1.ListGroupsRequest) (*berthv1.ListGroupsResponse, error)
	getGroup      func(*berthv1.GetGroupRequest) (*berthv1.GetGroupResponse, error)
	OnCreateGroup func(*berthv1.CreateGroupRequest) (*berthv1.CreateGroupResponse, error)
	changeGroup   func(*berthv1.ChangeGroupRequest) (*berthv1.ChangeGroupResponse, error)
	deleteGroup   func(*berthv1.DeleteGroupRequest) (*berthv1.DeleteGroupResponse, error)
	checkGroups   func(*berthv1.CheckGroupsRequest) (*berthv1.CheckGroupsResponse, error)
}

func (f *groupFake) listen(l listener) {
	unary(l, berthv1connect.BerthServiceListGroupsProcedure, &f.listGroups)
	unary(l, berthv1connect.BerthServiceGetGroupProcedure, &f.getGroup)
	unary(l, berthv1connect.BerthServiceCreateGroupProcedure, &f.OnCreateGroup)
	unary(l, berthv1connect.BerthServiceChangeGroupProcedure, &f.changeGroup)
	unary(l, berthv1connect.BerthServiceDeleteGroupProcedure, &f.deleteGroup)
	unary(l, berthv1connect.BerthServiceCheckGroupsProcedure, &f.checkGroups)
}

func cannedGroupAnswers() groupFake {
	return groupFake{
		listGroups: func(r *berthv1.ListGroupsRequest) (*berthv1.ListGroupsResponse, error) {
			answer := &berthv1.ListGroupsResponse{SchemaVersion: "1"}
			for _, group := range cannedGroups() {
				if !r.GetBrokenOnly() || !group.GetStatus().GetHolds() {
					answer.Groups = append(answer.Groups, group)
				}
			}
			return answer, nil
		},
		getGroup: func(r *berthv1.GetGroupRequest) (*berthv1.GetGroupResponse, error) {
			for _, group := range cannedGroups() {
				if group.GetName() == r.GetGroup() {
					return &berthv1.GetGroupResponse{SchemaVersion: "1", Group: group}, nil
				}
			}
			return nil, rpc.Errorf(connect.CodeNotFound, &berthv1.ErrorDetail{
				Code: rpc.NotFound, Subject: "group/" + r.GetGroup(), NextStep: "see 'berth group list'",
			}, "there is no group %q", r.GetGroup())
		},
		OnCreateGroup: func(r *berthv1.CreateGroupRequest) (*berthv1.CreateGroupResponse, error) {
			group := proto.Clone(r.GetGroup()).(*berthv1.Group)
			group.MemberVms, group.MemberHosts, group.Status = group.GetVms(), group.GetHosts(), &berthv1.GroupStatus{Holds: true}
			return &berthv1.CreateGroupResponse{SchemaVersion: "1", Group: group, Warnings: CannedConflicts()[1:]}, nil
		},
		changeGroup: func(r *berthv1.ChangeGroupRequest) (*berthv1.ChangeGroupResponse, error) {
			if r.GetGroup() == "rack-7" {
				return &berthv1.ChangeGroupResponse{SchemaVersion: "1", Group: cannedGroups()[1]}, nil
			}
			return &berthv1.ChangeGroupResponse{
				SchemaVersion: "1", Group: cannedGroups()[0], Warnings: CannedConflicts()[1:],
				Changes: []*berthv1.FieldChange{
					{Field: "vms", From: "web1", To: "web1, web2"}, {Field: "vms_rule", From: "positive", To: "negative"},
				},
			}, nil
		},
		deleteGroup: func(*berthv1.DeleteGroupRequest) (*berthv1.DeleteGroupResponse, error) {
			return &berthv1.DeleteGroupResponse{SchemaVersion: "1"}, nil
		},
		checkGroups: func(r *berthv1.CheckGroupsRequest) (*berthv1.CheckGroupsResponse, error) {
			answer := &berthv1.CheckGroupsResponse{SchemaVersion: "1", Groups: 5}
			switch r.GetCluster() {
			case "bad":
				answer.Conflicts = CannedConflicts()
			case "":
				answer.Conflicts = CannedConflicts()[1:]
			}
			return answer, nil
		},
	}
}

func cannedRule(positive, enforcing, enabled bool) *berthv1.AffinityRule {
	return &berthv1.AffinityRule{Positive: &positive, Enforcing: &enforcing, Enabled: &enabled}
}

// cannedGroups are one that is broken and cannot be repaired, and one that holds.
func cannedGroups() []*berthv1.Group {
	return []*berthv1.Group{
		{
			Id: "3nqk7d2m0g1aa", Name: "web", Cluster: "default", Vms: []string{"web1", "web2"}, VmLabels: []string{"tier-web"},
			MemberVms: []string{"web1", "web2", "web3"}, Hosts: []string{"node1"}, MemberHosts: []string{"node1"},
			VmsRule: cannedRule(false, true, true), HostsRule: cannedRule(true, false, true), Priority: proto.Float64(1),
			Unbalanced: true, CreatedAt: Ago(time.Hour), Revision: 21,
			Status: &berthv1.GroupStatus{
				BrokenSince: Ago(12 * time.Minute), LookedAt: Ago(30 * time.Second),
				Breaches: []*berthv1.Breach{
					{Scope: "vms", Hard: true, Vms: []string{"web1", "web2"}, Hosts: []string{"node2"}, Text: "web1 and web2 are both on node2"},
					{Scope: "hosts", Vms: []string{"web1"}, Hosts: []string{"node2"}, Text: "web1 is on node2, which is none of the group's nodes"},
				},
				Unrepaired: "no node fits web2: node1 lacks 3 GiB, node3 is unreachable",
				Conflicts:  CannedConflicts()[1:2],
			},
		},
		{
			Id: "3nqk7d2m0g2aa", Name: "rack-7", Cluster: "default", HostLabels: []string{"rack-7"}, VmLabels: []string{"acme"},
			VmsRule: cannedRule(true, false, false), HostsRule: cannedRule(true, true, true), Priority: proto.Float64(2.5),
			MemberVms: []string{"db1"}, MemberHosts: []string{"node1", "node2"}, CreatedAt: Ago(time.Hour), Revision: 22,
			Status: &berthv1.GroupStatus{Holds: true, HeldSince: Ago(40 * time.Minute)},
		},
	}
}

// CannedConflicts are contradictions between groups.
func CannedConflicts() []*berthv1.Conflict {
	return []*berthv1.Conflict{
		{
			Kind: "vm-rules", Severity: "error", Groups: []string{"app", "web"}, Vms: []string{"web1", "web2"},
			Text:     "group app keeps web1 and web2 on one node, and group web keeps them apart",
			NextStep: "take one of them out of a group, or make a rule soft",
		},
		{
			Kind: "too-few-nodes", Severity: "warning", Groups: []string{"web"}, Vms: []string{"web1", "web2", "web3"},
			Text: "group web keeps 3 VMs apart on 3 nodes: it holds now, not after one node fails", NextStep: "add a node, or make the rule soft",
		},
	}
}
