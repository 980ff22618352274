package vm_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// selecting has a coordinator that narrows its list, and two VMs that are chosen.
func selecting(t *testing.T) (*clitest.Site, *clitest.Fake) {
	f := clitest.Steady()
	f.OnListVMs = func(r *berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		answer := &berthv1.ListVMsResponse{SchemaVersion: "1", Filtered: true}
		if slices.Contains(r.GetFilter().GetLabels(), "web") {
			answer.Vms = []*berthv1.VM{{Name: "web1"}, {Name: "web2"}}
		}
		return answer, nil
	}
	f.OnWatchOp = func(_ context.Context, r *berthv1.WatchOperationRequest, send clitest.Send) error {
		op := clitest.CannedOperation("migrate", clitest.Done)
		op.Id = r.GetId()
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
	w, _ := clitest.NewSite(t, f)
	return w, f
}

// Each verb that takes several names takes those that labels choose.
func TestVMsAreChosen(t *testing.T) {
	w, f := selecting(t)
	for _, verb := range [][]string{
		{"stop"},
		{"reboot"},
		{"pause"},
		{"resume"},
		{"reset"},
		{"attach", "disk", "--size", "20G", "--pool", "fast"},
		{"attach", "nic", "--network", "default"},
		{"detach", "disk", "--target", "vdb"},
		{"detach", "nic", "--mac", "52:54:00:12:34:56"},
		{"media", "insert", "--iso", "/srv/iso/rescue.iso"},
		{"media", "eject"},
		{"snapshot", "add", "--name", "weekly"},
		{"snapshot", "revert", "--name", "weekly", "--yes"},
		{"snapshot", "delete", "--name", "weekly", "--yes"},
	} {
		args := append(append([]string{"vm"}, verb...), "--selector", "label=web,state=running", "--no-wait")
		if said := w.Run(args...); said.Exit != term.Done || !strings.Contains(said.Out, "vm/web1") || !strings.Contains(said.Out, "vm/web2") {
			t.Errorf("%q: exit %d, %q, %q", args, said.Exit, said.Out, said.ErrOut)
		}
	}
	for _, request := range clitest.Asked[berthv1.ActOnVMsRequest](f) {
		if !slices.Equal(request.GetVms(), []string{"web1", "web2"}) {
			t.Errorf("asked %v", request)
		}
	}
	listed := clitest.Asked[berthv1.ListVMsRequest](f)[0].GetFilter()
	if !slices.Equal(listed.GetLabels(), []string{"web"}) || !slices.Equal(listed.GetStates(), []string{"running"}) {
		t.Errorf("listed %v", listed)
	}
	if said := w.Run("vm", "start", "--selector", "label=web", "--no-wait"); said.Exit != term.Done {
		t.Errorf("start: %+v", said)
	}
	if sent := clitest.Asked[berthv1.StartVMsRequest](f); len(sent) != 1 || !slices.Equal(sent[0].GetVms(), []string{"web1", "web2"}) {
		t.Errorf("start asked %v", sent)
	}
	for line, exit := range map[string]term.Exit{
		"vm attach disk --selector label=web --size 20G --pool fast --name data": term.WrongUsage,
		"vm detach nic web1 --selector label=web --mac 52:54:00:12:34:56":        term.WrongUsage,
		"vm snapshot add --name weekly":                                          term.WrongUsage,
		"vm snapshot delete --selector label=none --name weekly --yes":           term.NotFound,
		"vm stop --selector label=none":                                          term.NotFound,
		"vm stop --selector colour=red":                                          term.WrongUsage,
		"vm stop --selector label":                                               term.WrongUsage,
		"vm stop web1 --selector label=web":                                      term.WrongUsage,
		"vm start --selector label=web --memory 1G":                              term.WrongUsage,
		"vm start web1 --selector label=web":                                     term.WrongUsage,
		"vm migrate --selector label=web":                                        term.WrongUsage,
		"vm migrate web1 web2 --best --full --dry-run":                           term.WrongUsage,
		"vm start --selector label=web --force --reason why":                     term.WrongUsage,
	} {
		if said := w.Run(strings.Fields(line)...); said.Exit != exit {
			t.Errorf("%s: exit %d, %q", line, said.Exit, said.ErrOut)
		}
	}
}

// A coordinator that does not know filters lists all VMs: none of them is acted on.
func TestNothingIsDoneWhereAFilterIsNotHeeded(t *testing.T) {
	f := clitest.Steady()
	f.OnListVMs = func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		return &berthv1.ListVMsResponse{SchemaVersion: "1", Vms: []*berthv1.VM{{Name: "web1"}}}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "delete", "--selector", "label=web", "--yes")
	if said.Exit != term.Failed || !strings.Contains(said.ErrOut, "does not know --selector") ||
		len(clitest.Asked[berthv1.DeleteVMRequest](f)) != 0 {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
}

// One that is refused does not keep the others from being deleted, and the command says how many were not.
func TestDeleteOfSeveral(t *testing.T) {
	w, f := selecting(t)
	f.OnDeleteVM = func(r *berthv1.DeleteVMRequest) (*berthv1.DeleteVMResponse, error) {
		if r.GetVm() == "web1" {
			return nil, rpc.Errorf(9, &berthv1.ErrorDetail{Code: rpc.Conflict, NextStep: "stop it first"}, "VM %q is not stopped", r.GetVm())
		}
		return &berthv1.DeleteVMResponse{SchemaVersion: "1"}, nil
	}
	said := w.Run("vm", "delete", "web1", "web2", "--keep-disks", "--yes")
	if said.Exit != term.Failed ||
		!strings.Contains(said.Out, "vm/web1 is not deleted: VM \"web1\" is not stopped; next step: stop it first\n") ||
		!strings.Contains(said.Out, "vm/web2 deleted\n") || !strings.Contains(said.ErrOut, "1 of 2 VMs not deleted") {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
	sent := clitest.Asked[berthv1.DeleteVMRequest](f)
	if len(sent) != 2 || !sent[1].GetKeepDisks() || sent[0].GetRequestId() == sent[1].GetRequestId() {
		t.Errorf("asked %v", sent)
	}
	said = w.Run("vm", "delete", "web1", "web2", "--dry-run")
	if len(clitest.Asked[berthv1.DeleteVMRequest](f)) != 2 || !strings.Contains(said.Out, "vm/web1 is not deleted: ") {
		t.Errorf("a dry run: exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
	if said := w.Run("vm", "delete", "--selector", "label=web"); said.Exit != term.WrongUsage {
		t.Errorf("without a terminal: exit %d, %q", said.Exit, said.ErrOut)
	}
}

// Several move one after the other; what no node fits is told, and is the exit code where nothing else is wrong.
func TestMigrateOfSeveral(t *testing.T) {
	w, f := selecting(t)
	move := f.OnMigrateVM
	f.OnMigrateVM = func(r *berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) {
		if r.GetVm() == "web1" {
			return nil, rpc.Errorf(9, &berthv1.ErrorDetail{Code: rpc.NoNodeFits}, "no node fits")
		}
		return move(r)
	}
	said := w.Run("vm", "migrate", "--selector", "label=web", "--best")
	if said.Exit != term.NoNodeFits || !strings.Contains(said.Out, "vm/web1 is not migrated: no node fits\n") ||
		!strings.Contains(said.Out, "vm/web2 migrated from ") || !strings.Contains(said.ErrOut, "1 of 2 VMs not migrated") {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
	if sent := clitest.Asked[berthv1.MigrateVMRequest](f); len(sent) != 2 || sent[1].GetVm() != "web2" {
		t.Errorf("asked %v", sent)
	}
}

// What somebody has cancelled has not failed.
func TestCancelledIsNotFailed(t *testing.T) {
	w, f := selecting(t)
	f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
		op := clitest.CannedOperation("migrate", clitest.Done)
		op.Result, op.Cancelled, op.Message = berthv1.OperationResult_OPERATION_RESULT_FAILED, true, "the copy was given up"
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
	said := w.Run("vm", "migrate", "web1", "--best")
	if said.Exit != term.Failed || !strings.Contains(said.ErrOut, "was cancelled: the copy was given up") ||
		strings.Contains(said.ErrOut, "failed") {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
	said = w.Run("vm", "stop", "web1", "web2")
	if strings.Count(said.Out, "it was cancelled") != 2 {
		t.Errorf("exit %d, %q", said.Exit, said.Out)
	}
}
