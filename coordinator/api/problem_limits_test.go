package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	berthv1 "berth/shared/gen/berth/v1"
)

// A coordinator that can have few connections is told before agents are turned away, and one that has said nothing is not.
func TestCoordinatorsThatAreNearTheirLimitAreTold(t *testing.T) {
	members := []*berthv1.Member{{Name: "c1", AgentsMost: 500}, {Name: "c2"}, {Name: "c3", AgentsMost: 34816}}
	if found := limitProblems(members, 400); found != nil {
		t.Errorf("with room for one agent in five more: %q", found)
	}
	want := []string{"coordinator c1 can have 500 connections of agents, and the site has 401 nodes: with 'systemctl edit " +
		"berth-coordinator' there set LimitNOFILE=2048 or more below [Service], then restart it"}
	if diff := cmp.Diff(want, limitProblems(members, 401)); diff != "" {
		t.Error(diff)
	}
}
