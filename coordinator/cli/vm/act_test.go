package vm_test

import (
	"context"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// Each VM has a line of its own: that one is refused does not keep the others from being acted on, and the command says so.
func TestPauseOfSeveral(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
		op := clitest.CannedOperation("pause", clitest.Done)
		op.Source = "node2"
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "pause", "web1", "db1")
	if said.Exit != term.Failed || !strings.Contains(said.Out, "vm/web1 paused on node2 after 2.1s\n") ||
		!strings.Contains(said.Out, `vm/db1 is not paused: VM "db1" is paused by operator/admin`) ||
		!strings.Contains(said.ErrOut, "berth: 1 of 2 VMs not paused") {
		t.Errorf("exit %d, said %q and %q", said.Exit, said.Out, said.ErrOut)
	}
	sent := clitest.Asked[berthv1.ActOnVMsRequest](f)
	if len(sent) != 1 || len(sent[0].GetVms()) != 2 || sent[0].GetPause() == nil || sent[0].GetRequestId() == "" || sent[0].GetDryRun() {
		t.Errorf("the coordinator was asked %v", sent)
	}
	for _, args := range [][]string{{"vm", "pause"}, {"vm", "resume", "web1", "web1"}, {"vm", "reset", ""}} {
		if said := w.Run(args...); said.Exit != term.WrongUsage {
			t.Errorf("%q: exit %d, %q", args, said.Exit, said.ErrOut)
		}
	}
}

// Several are stopped together, with what a stop of one takes, and each is waited for.
func TestStopOfSeveral(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
		op := clitest.CannedOperation("stop", clitest.Done)
		op.Source = "node2"
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "stop", "web1", "db1", "--grace", "10s", "--interrupt-backup")
	if said.Exit != term.Failed || !strings.Contains(said.Out, "vm/web1 stopped on node2 after 2.1s\n") ||
		!strings.Contains(said.Out, "vm/db1 is not stopped: ") || !strings.Contains(said.ErrOut, "berth: 1 of 2 VMs not stopped") {
		t.Errorf("exit %d, said %q and %q", said.Exit, said.Out, said.ErrOut)
	}
	said = w.Run("vm", "reboot", "web1", "web2", "--force", "--no-wait")
	sent := clitest.Asked[berthv1.ActOnVMsRequest](f)
	if len(sent) != 2 || sent[0].GetStop().GetGraceSeconds() != 10 || !sent[0].GetStop().GetInterruptBackup() || sent[1].GetReset_() == nil {
		t.Errorf("exit %d, the coordinator was asked %v", said.Exit, sent)
	}
}

// A medium is a file of the node or a volume of a pool.
func TestWhatIsPutIntoADrive(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	w.Run("vm", "media", "insert", "web1", "--iso", "isos/rescue.iso", "--no-wait")
	w.Run("vm", "media", "insert", "web1", "--iso", "/srv/rescue.iso", "--no-wait")
	sent := clitest.Asked[berthv1.ActOnVMsRequest](f)
	if len(sent) != 2 || sent[0].GetMedia().GetPool() != "isos" || sent[0].GetMedia().GetVolume() != "rescue.iso" ||
		sent[0].GetMedia().GetPath() != "" || sent[1].GetMedia().GetPath() != "/srv/rescue.iso" {
		t.Errorf("the coordinator was asked %v", sent)
	}
	if said := w.Run("vm", "media", "insert", "web1", "--iso", "rescue.iso"); said.Exit != term.WrongUsage {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
}
