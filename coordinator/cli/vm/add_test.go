package vm_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// A refusal by system keys shows what the nodes scored, beside what else refused them.
func TestNoNodeIsGoodEnough(t *testing.T) {
	f := clitest.Steady()
	f.OnStartVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{
			Code: rpc.NoNodeFits, Subject: "vm/web1", Decision: clitest.CannedBandRefusal(), NextStep: "see 'berth decision show 3nqk7d2m0d1ab'",
		}, "%s", clitest.CannedBandRefusal().GetReason())
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "start", "web1")
	if said.Exit != term.NoNodeFits {
		t.Errorf("exit %d", said.Exit)
	}
	clitest.Golden(t, "error-no-node-good-enough.golden", said.ErrOut)
}

// In a cluster with local storage a VM is placed when it is declared: the answer says where its disk belongs.
func TestAddPlacesWhereStorageIsLocal(t *testing.T) {
	f := clitest.Steady()
	f.OnAddVM = func(r *berthv1.AddVMRequest) (*berthv1.AddVMResponse, error) {
		decision := clitest.CannedDecision()
		decision.Purpose, decision.DryRun = "create", r.GetDryRun()
		return &berthv1.AddVMResponse{SchemaVersion: "1", Vm: &berthv1.VM{Name: "web1", Home: "node2"}, Decision: decision}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "add", "web1", "--memory", "1G")
	want := "vm/web1 added, its disk belongs on node2 (decision 3nqk7d2m0d1ab; 2 of 3 nodes fit, round 1, next best node1 by 100)\n"
	if said.Out != want {
		t.Errorf("said %q, want %q", said.Out, want)
	}
	if said := w.Run("vm", "add", "web1", "--memory", "1G", "--dry-run"); !strings.HasPrefix(
		said.Out, "dry run 3nqk7d2m0d1ab: nothing was changed\n",
	) {
		t.Errorf("said %q", said.Out)
	}
	f.OnAddVM = func(*berthv1.AddVMRequest) (*berthv1.AddVMResponse, error) {
		return nil, rpc.Errorf(
			connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.NoNodeFits, Decision: clitest.CannedRefusal()}, "no node fits",
		)
	}
	if said := w.Run(
		"vm", "add", "web1", "--memory", "1G", "--dry-run",
	); said.Exit != term.NoNodeFits || !strings.Contains(said.Out, "memory-promised") {
		t.Errorf("exit %d, %q", said.Exit, said.Out)
	}
}
