package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// refuses makes a coordinator that refuses to show VMs.
func refuses(code connect.Code, detail *berthv1.ErrorDetail, text string) *fake {
	f := steady()
	f.getVM = func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
		return nil, rpc.Errorf(code, detail, "%s", text)
	}
	return f
}

// The numbers are a promise: scripts rely on them.
func TestEveryCodeHasItsExitCode(t *testing.T) {
	for code, want := range map[string]int{
		rpc.NoNodeFits: 2, rpc.NotFound: 4, rpc.NoLeader: 5, rpc.Unreachable: 5, rpc.Timeout: 6,
		rpc.Exists: 1, rpc.Busy: 1, rpc.Invalid: 1, rpc.Stale: 1, rpc.Denied: 1, rpc.Unavailable: 1, rpc.Conflict: 1, rpc.Internal: 1,
		"a code of a later release": 1,
	} {
		w, _ := newWorld(t, refuses(connect.CodeUnknown, &berthv1.ErrorDetail{Code: code, NextStep: "do this"}, "it is so"))
		said := w.run("vm", "show", "web1")
		if int(said.exit) != want || said.out != "" {
			t.Errorf("%s: exit %d, want %d; %q", code, said.exit, want, said.out)
		}
		if said.errOut != "berth: it is so\nnext step: do this\n" {
			t.Errorf("%s: said %q", code, said.errOut)
		}
	}
	w, _ := newWorld(t, steady())
	if said := w.run("vm", "show"); said.exit != 64 {
		t.Errorf("wrong usage: exit %d, want 64", said.exit)
	}
}

func TestErrorsAreJSONWhereResultsWouldBe(t *testing.T) {
	w, _ := newWorld(t, refuses(connect.CodeNotFound, &berthv1.ErrorDetail{
		Code: rpc.NotFound, Subject: "vm/web9", NextStep: "see 'berth vm list'",
	}, `there is no vm "web9"`))
	for _, args := range [][]string{
		{"vm", "show", "web9", "-o", "json"},
		{"-ojson", "vm", "show", "web9"},
		{"vm", "show", "web9", "--output=yaml"},
		{"vm", "show", "-o", "json", "--no-such-flag"},
	} {
		said := w.run(args...)
		var got struct {
			Error    string
			ExitCode int
			Detail   struct{ Code, Subject, NextStep string }
		}
		if err := json.Unmarshal([]byte(said.errOut), &got); err != nil {
			t.Errorf("%v: %v in %q", args, err, said.errOut)
			continue
		}
		if got.ExitCode != int(said.exit) || got.Error == "" || got.Detail.Code == "" || got.Detail.NextStep == "" || said.out != "" {
			t.Errorf("%v: got %+v with exit %d and %q", args, got, said.exit, said.out)
		}
	}
	golden(t, "error-json.golden", w.run("vm", "show", "web9", "-o", "json").errOut)
}

func TestNoNodeFits(t *testing.T) {
	f := steady()
	refusal := func() error {
		return rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{
			Code: rpc.NoNodeFits, Subject: "vm/big", DecisionId: "3nqk7d2m0d9zz", Decision: cannedRefusal(),
			NextStep: "see 'berth decision show 3nqk7d2m0d9zz'; free memory, add a node, or ask for less",
		}, "%s", cannedRefusal().GetReason())
	}
	f.startVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) { return nil, refusal() }
	f.migrateVM = func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) { return nil, refusal() }
	w, _ := newWorld(t, f)
	said := w.run("vm", "start", "big", "--memory", "256G")
	if said.exit != NoNodeFits || said.out != "" {
		t.Errorf("exit %d, %q", said.exit, said.out)
	}
	golden(t, "error-no-node-fits.golden", said.errOut)
	if said := w.run("vm", "migrate", "big", "--best"); said.exit != NoNodeFits {
		t.Errorf("migrate: exit %d", said.exit)
	}
	var whole struct {
		Detail struct{ Decision struct{ Nodes []any } }
	}
	if err := json.Unmarshal([]byte(w.run("vm", "start", "big", "--memory", "256G", "-o", "json").errOut), &whole); err != nil ||
		len(whole.Detail.Decision.Nodes) != 2 {
		t.Errorf("the JSON error does not carry the decision: %+v, %v", whole, err)
	}
}

// A dry run that finds no node shows the whole decision and still says so by its exit code.
func TestDryRunThatIsRefused(t *testing.T) {
	f := steady()
	refused := cannedRefusal()
	refused.DryRun = true
	f.startVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.NoNodeFits, Decision: refused}, "no node fits")
	}
	f.migrateVM = func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) {
		return &berthv1.MigrateVMResponse{Decision: refused}, nil
	}
	w, _ := newWorld(t, f)
	for _, args := range [][]string{
		{"vm", "start", "big", "--memory", "256G", "--dry-run"}, {"vm", "migrate", "big", "--best", "--dry-run"},
	} {
		said := w.run(args...)
		if said.exit != NoNodeFits || !strings.HasPrefix(said.out, "dry run 3nqk7d2m0d9zz: nothing was changed\n") ||
			!strings.HasPrefix(said.errOut, "berth: no node fits: ") || strings.Contains(said.errOut, "NODE") {
			t.Errorf("%v: exit %d, %q, %q", args, said.exit, said.out, said.errOut)
		}
	}
}

// Without a leader the status shows what is known and still exits with 5.
func TestStatusWithoutLeader(t *testing.T) {
	known := func() *berthv1.StatusResponse {
		answer := cannedStatus()
		answer.Leader, answer.Stale = "", true
		return answer
	}
	refusing := steady()
	refusing.status = func(r *berthv1.StatusRequest) (*berthv1.StatusResponse, error) {
		if r.GetStale() {
			return known(), nil
		}
		return nil, rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader, NextStep: "start them"}, "the coordinators have no leader")
	}
	telling := steady()
	telling.status = func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error) { return known(), nil }
	for name, f := range map[string]*fake{"refusing": refusing, "telling": telling} {
		w, _ := newWorld(t, f)
		said := w.run("status")
		if said.exit != Unreachable || !strings.Contains(said.out, "leader      none") || !strings.Contains(said.errOut, "no leader\nnext step: ") {
			t.Errorf("%s: exit %d, %q, %q", name, said.exit, said.out, said.errOut)
		}
		if said := w.run("status", "--stale"); said.exit != Done {
			t.Errorf("%s: --stale: exit %d", name, said.exit)
		}
	}
}

func TestInterruptedCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := steady()
	f.getVM = func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
		cancel()
		return nil, connect.NewError(connect.CodeUnavailable, io.EOF)
	}
	w, _ := newWorld(t, f)
	if said := w.runContext(ctx, "vm", "show", "web1"); said.exit != Interrupted || said.errOut != "berth: interrupted\n" {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
	}
}
