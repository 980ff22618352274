package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// The numbers are a promise: scripts rely on them.
func TestEveryCodeHasItsExitCode(t *testing.T) {
	for code, want := range map[string]int{
		rpc.NoNodeFits: 2, rpc.NotFound: 4, rpc.NoLeader: 5, rpc.Unreachable: 5, rpc.Timeout: 6,
		rpc.Exists: 1, rpc.Busy: 1, rpc.Invalid: 1, rpc.Stale: 1, rpc.Denied: 1, rpc.Unavailable: 1, rpc.Conflict: 1, rpc.Internal: 1,
		"a code of a later release": 1,
	} {
		w, _ := clitest.NewSite(t, clitest.Refuses(connect.CodeUnknown, &berthv1.ErrorDetail{Code: code, NextStep: "do this"}, "it is so"))
		said := w.Run("vm", "show", "web1")
		if int(said.Exit) != want || said.Out != "" {
			t.Errorf("%s: exit %d, want %d; %q", code, said.Exit, want, said.Out)
		}
		if said.ErrOut != "berth: it is so\nnext step: do this\n" && code != rpc.Timeout { // that one is asked again, and told in other words
			t.Errorf("%s: said %q", code, said.ErrOut)
		}
	}
	w, _ := clitest.NewSite(t, clitest.Steady())
	if said := w.Run("vm", "show"); said.Exit != 64 {
		t.Errorf("wrong usage: exit %d, want 64", said.Exit)
	}
}

func TestErrorsAreJSONWhereResultsWouldBe(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Refuses(connect.CodeNotFound, &berthv1.ErrorDetail{
		Code: rpc.NotFound, Subject: "vm/web9", NextStep: "see 'berth vm list'",
	}, `there is no vm "web9"`))
	for _, args := range [][]string{
		{"vm", "show", "web9", "-o", "json"},
		{"-ojson", "vm", "show", "web9"},
		{"vm", "show", "web9", "--output=yaml"},
		{"vm", "show", "-o", "json", "--no-such-flag"},
	} {
		said := w.Run(args...)
		var got struct {
			Error    string
			ExitCode int `json:"exit_code"`
			Detail   struct {
				Code     string
				Subject  string
				NextStep string `json:"next_step"`
			}
		}
		if err := json.Unmarshal([]byte(said.ErrOut), &got); err != nil {
			t.Errorf("%v: %v in %q", args, err, said.ErrOut)
			continue
		}
		if got.ExitCode != int(said.Exit) || got.Error == "" || got.Detail.Code == "" || got.Detail.NextStep == "" || said.Out != "" {
			t.Errorf("%v: got %+v with exit %d and %q", args, got, said.Exit, said.Out)
		}
	}
	clitest.Golden(t, "error-json.golden", w.Run("vm", "show", "web9", "-o", "json").ErrOut)
}

func TestNoNodeFits(t *testing.T) {
	f := clitest.Steady()
	refusal := func() error {
		return rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{
			Code: rpc.NoNodeFits, Subject: "vm/big", DecisionId: "3nqk7d2m0d9zz", Decision: clitest.CannedRefusal(),
			NextStep: "see 'berth decision show 3nqk7d2m0d9zz'; free memory, add a node, or ask for less",
		}, "%s", clitest.CannedRefusal().GetReason())
	}
	f.OnStartVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) { return nil, refusal() }
	f.OnMigrateVM = func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) { return nil, refusal() }
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "start", "big", "--memory", "256G")
	if said.Exit != term.NoNodeFits || said.Out != "" {
		t.Errorf("exit %d, %q", said.Exit, said.Out)
	}
	clitest.Golden(t, "error-no-node-fits.golden", said.ErrOut)
	if said := w.Run("vm", "migrate", "big", "--best"); said.Exit != term.NoNodeFits {
		t.Errorf("migrate: exit %d", said.Exit)
	}
	var whole struct {
		Detail struct{ Decision struct{ Nodes []any } }
	}
	if err := json.Unmarshal([]byte(w.Run("vm", "start", "big", "--memory", "256G", "-o", "json").ErrOut), &whole); err != nil ||
		len(whole.Detail.Decision.Nodes) != 2 {
		t.Errorf("the JSON error does not carry the decision: %+v, %v", whole, err)
	}
}

func TestInterruptedCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := clitest.Steady()
	f.OnGetVM = func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
		cancel()
		return nil, connect.NewError(connect.CodeUnavailable, io.EOF)
	}
	w, _ := clitest.NewSite(t, f)
	if said := w.RunContext(ctx, "vm", "show", "web1"); said.Exit != term.Interrupted || said.ErrOut != "berth: interrupted\n" {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
}
