package term_test

import (
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// However many coordinators there are, a request whose outcome is not known is repeated three times at most.
func TestARequestIsRepeatedThreeTimesAtMost(t *testing.T) {
	var all []*clitest.Fake
	for range 5 {
		f := clitest.Steady()
		f.OnStartVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
			return nil, rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.Unavailable, NextStep: "run it again"}, "it is not known")
		}
		all = append(all, f)
	}
	w, _ := clitest.NewSite(t, all...)
	if said := w.Run("vm", "start", "web1"); said.Exit != term.Failed || said.ErrOut != "berth: it is not known\nnext step: run it again\n" {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	sent, ids := 0, map[string]bool{}
	for _, f := range all {
		for _, request := range clitest.Asked[berthv1.StartVMRequest](f) {
			sent++
			ids[request.GetRequestId()] = true
		}
	}
	if sent != 1+3 || len(ids) != 1 {
		t.Errorf("sent %d times, with %d request IDs", sent, len(ids))
	}
}
