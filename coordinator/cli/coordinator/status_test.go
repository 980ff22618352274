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
