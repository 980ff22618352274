package coordinator_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Without a leader the status shows what is known and still exits with 5.
func TestStatusWithoutLeader(t *testing.T) {
	known := func() *berthv1.StatusResponse {
		answer := clitest.CannedStatus()
		answer.Leader, answer.Stale = "", true
		return answer
	}
	refusing := clitest.Steady()
	refusing.OnStatus = func(r *berthv1.StatusRequest) (*berthv1.StatusResponse, error) {
		if r.GetStale() {
			return known(), nil
		}
		return nil, rpc.Errorf(
			connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader, NextStep: "start them"}, "the coordinators have no leader",
		)
	}
	telling := clitest.Steady()
	telling.OnStatus = func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error) { return known(), nil }
	for name, f := range map[string]*clitest.Fake{"refusing": refusing, "telling": telling} {
		w, _ := clitest.NewSite(t, f)
		said := w.Run("status")
		if said.Exit != term.Unreachable || !strings.Contains(said.Out, "leader      none") || !strings.Contains(
			said.ErrOut, "no leader\nnext step: ",
		) {
			t.Errorf("%s: exit %d, %q, %q", name, said.Exit, said.Out, said.ErrOut)
		}
		if said := w.Run("status", "--stale"); said.Exit != term.Done {
			t.Errorf("%s: --stale: exit %d", name, said.Exit)
		}
	}
}

// Without a leader nobody hears the nodes: how many are up is unknown, and what it was is told with its age.
func TestWithoutALeaderWhatNodesTellIsUnknown(t *testing.T) {
	f := clitest.Refuses(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader, NextStep: "start the others"}, "no leader")
	age := 40.0
	f.OnMembers = func(*berthv1.ListMembersRequest) (*berthv1.ListMembersResponse, error) {
		return nil, rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader, NextStep: "start the others"}, "no leader")
	}
	known := &berthv1.StatusResponse{
		Stale: true, AnsweredBy: "coord2", NodesTotal: 3, VmsTotal: 25, Members: []*berthv1.Member{{Name: "coord2", Voter: true}},
	}
	f.OnStatus = func(r *berthv1.StatusRequest) (*berthv1.StatusResponse, error) {
		if !r.GetStale() {
			return nil, rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader, NextStep: "start the others"}, "no leader")
		}
		return known, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("status")
	if said.Exit != term.Unreachable || !strings.Contains(said.Out, "unknown, of 3\n") || !strings.Contains(said.Out, "unknown, of 25\n") {
		t.Errorf("exit %d, %s", said.Exit, said.Out)
	}
	known.NodesUp, known.VmsRunning, known.HeardSeconds = 3, 25, &age
	said = w.Run("status")
	if !strings.Contains(said.Out, "unknown, of 3 (3 up 40s ago)\n") ||
		!strings.Contains(said.Out, "unknown, of 25 (25 running 40s ago)\n") {
		t.Errorf("exit %d, %s", said.Exit, said.Out)
	}
	said = w.Run("coordinator", "list")
	if said.Exit != term.Done || !strings.Contains(said.Out, "coord2") ||
		!strings.Contains(said.ErrOut, "no leader: this is what coord2 knows") {
		t.Errorf("exit %d, %s, %s", said.Exit, said.Out, said.ErrOut)
	}
}

// After another coordinator leads, a node that has not told its guests yet is no reason to say that they do not run.
func TestWhatNoNodeTellsIsNotCalledDown(t *testing.T) {
	f := &clitest.Fake{}
	f.OnStatus = func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error) {
		return &berthv1.StatusResponse{
			Leader: "coord2", AnsweredBy: "coord2", NodesUp: 3, NodesTotal: 3, VmsRunning: 4, VmsTotal: 7, VmsUntold: 3,
		}, nil
	}
	w, _ := clitest.NewSite(t, f)
	if said := w.Run("status"); !strings.Contains(said.Out, "4 of 7 running, 3 unknown: their nodes do not tell\n") {
		t.Errorf("exit %d, %s", said.Exit, said.Out)
	}
}
