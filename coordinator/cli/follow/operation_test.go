package follow_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestMigrateReportsWhatItTook(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = clitest.Migrates(&berthv1.MigrationStats{DataTotalBytes: 1 << 27, DataProcessedBytes: 1 << 26, DataRemainingBytes: 1 << 26})
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "migrate", "web1", "--best", "--bandwidth", "100M")
	if said.Exit != term.Done {
		t.Errorf("exit %d", said.Exit)
	}
	clitest.Golden(t, "vm-migrate.golden", said.Out+clitest.ErrSection(said.ErrOut))
	if sent := clitest.Asked[berthv1.MigrateVMRequest](f); len(sent) != 1 || sent[0].GetBandwidthBps() != 100<<20 || sent[0].GetNode() != "" {
		t.Errorf("the coordinator was asked %v", sent)
	}
}

func TestMigrateThatStays(t *testing.T) {
	f := clitest.Steady()
	f.OnMigrateVM = func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) {
		decision := clitest.CannedDecision()
		decision.Outcome, decision.Nodes[0].Current = berthv1.DecisionOutcome_DECISION_OUTCOME_STAY, true
		return &berthv1.MigrateVMResponse{Decision: decision}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "migrate", "web1", "--best")
	want := "vm/web1 stays on node2 (decision 3nqk7d2m0d1ab; 2 of 3 nodes fit, round 1, next best node1 by 100)\n" +
		"  what would have to differ: without key Group1, node1 or node2 by lot\n"
	if said.Out != want || said.Exit != term.Done {
		t.Errorf("got %q, exit %d, want %q", said.Out, said.Exit, want)
	}
}

func TestStop(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
		return send(&berthv1.WatchOperationResponse{Operation: clitest.CannedOperation("stop", clitest.Done)})
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "stop", "web1", "--grace", "10s")
	if said.Out != "vm/web1 stopped on node2 after 2.1s\n" || said.ErrOut != "vm/web1: stopping on node2 (operation 3nqk7d2m0x1ab)\n" {
		t.Errorf("got %q and %q", said.Out, said.ErrOut)
	}
	if sent := clitest.Asked[berthv1.StopVMRequest](f); len(sent) != 1 || sent[0].GetGraceSeconds() != 10 || sent[0].GetForce() {
		t.Errorf("the coordinator was asked %v", sent)
	}
}

// Whoever stops a VM in the middle of a backup reads what that has cost.
func TestStopDuringABackup(t *testing.T) {
	f := clitest.Steady()
	f.OnStopVM = func(*berthv1.StopVMRequest) (*berthv1.StopVMResponse, error) {
		return &berthv1.StopVMResponse{
			SchemaVersion: "1", Operation: clitest.CannedOperation("stop", clitest.Running), Interrupted: []string{"it has a backup job"},
		}, nil
	}
	f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
		return send(&berthv1.WatchOperationResponse{Operation: clitest.CannedOperation("stop", clitest.Done)})
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "stop", "web1", "--interrupt-backup")
	if said.Out != "vm/web1 stopped on node2 after 2.1s\n" || !strings.Contains(said.ErrOut, "interrupts: it has a backup job\n") {
		t.Errorf("got %q and %q", said.Out, said.ErrOut)
	}
	if sent := clitest.Asked[berthv1.StopVMRequest](f); len(sent) != 1 || !sent[0].GetInterruptBackup() {
		t.Errorf("the coordinator was asked %v", sent)
	}
	said = w.Run("vm", "stop", "web1", "--interrupt-backup", "--no-wait")
	if !strings.Contains(said.ErrOut, "interrupts: it has a backup job\n") {
		t.Errorf("who does not wait reads %q", said.ErrOut)
	}
}

func TestReboot(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
		return send(&berthv1.WatchOperationResponse{Operation: clitest.CannedOperation("reboot", clitest.Done)})
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "reboot", "web1", "--force")
	if said.Out != "vm/web1 restarted on node2 after 2.1s\n" || said.ErrOut != "vm/web1: rebooting on node2 (operation 3nqk7d2m0x1ab)\n" {
		t.Errorf("got %q and %q", said.Out, said.ErrOut)
	}
	if sent := clitest.Asked[berthv1.RebootVMRequest](f); len(sent) != 1 || !sent[0].GetForce() || sent[0].GetRequestId() == "" {
		t.Errorf("the coordinator was asked %v", sent)
	}
}

// A leader that dies during an operation is not the end of it: the watch goes on elsewhere, and says so once.
func TestWatchGoesOnAfterTheCoordinatorDied(t *testing.T) {
	first, second := clitest.Steady(), clitest.Steady()
	var servers []*clitest.Server
	first.OnWatchOp = func(ctx context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
		if err := send(&berthv1.WatchOperationResponse{Operation: clitest.CannedOperation("start", clitest.Running)}); err != nil {
			return err
		}
		go servers[0].Stop()
		<-ctx.Done()
		return ctx.Err()
	}
	w, servers2 := clitest.NewSite(t, first, second)
	servers = servers2
	said := w.Run("vm", "start", "web1")
	if said.Exit != term.Done || !strings.HasPrefix(said.Out, "vm/web1 running on node2 ") {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
	if n := len(clitest.Asked[berthv1.WatchOperationRequest](second)); n != 1 {
		t.Errorf("the second coordinator was watched %d times", n)
	}
	if n := len(clitest.Asked[berthv1.StartVMRequest](second)); n != 0 {
		t.Errorf("the VM was started %d times more", n)
	}
}

// A stream that only ends, as when a coordinator stops leading, is opened again as well.
func TestWatchOpensAgain(t *testing.T) {
	f := clitest.Steady()
	var opened atomic.Int32
	f.OnWatchOp = func(ctx context.Context, r *berthv1.WatchOperationRequest, send clitest.Send) error {
		switch opened.Add(1) {
		case 1:
			return send(&berthv1.WatchOperationResponse{Operation: clitest.CannedOperation("start", clitest.Running)})
		case 2:
			return rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader}, "the coordinators have no leader")
		case 3:
			return connect.NewError(connect.CodeCanceled, errors.New("the server stops"))
		}
		return clitest.EndsWell(ctx, r, send)
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "start", "web1")
	if said.Exit != term.Done || strings.Count(said.ErrOut, "note: ") != 1 {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
}

func TestOperationThatDoesNotEndWell(t *testing.T) {
	for name, c := range map[string]struct {
		result berthv1.OperationResult
		exit   term.Exit
	}{"failed": {clitest.Failed, term.Failed}, "parked": {clitest.Parked, term.Failed}} {
		f := clitest.Steady()
		f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
			op := clitest.CannedOperation("start", c.result)
			op.Message = "node2: libvirt: cannot access /srv/web1.qcow2: no such file"
			return send(&berthv1.WatchOperationResponse{Operation: op})
		}
		w, _ := clitest.NewSite(t, f)
		said := w.Run("vm", "start", "web1")
		if said.Exit != c.exit || said.Out != "" {
			t.Errorf("%s: exit %d, %q", name, said.Exit, said.Out)
		}
		clitest.Golden(t, "error-operation-"+name+".golden", said.ErrOut)
	}
}

func TestWaitTimesOut(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = clitest.Never
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "start", "web1", "--timeout", "200ms")
	if said.Exit != term.TimedOut {
		t.Errorf("exit %d", said.Exit)
	}
	clitest.Golden(t, "error-timeout.golden", said.ErrOut)
}

func TestInterruptedWait(t *testing.T) {
	f := clitest.Steady()
	ctx, cancel := context.WithCancel(t.Context())
	f.OnWatchOp = func(ctx context.Context, r *berthv1.WatchOperationRequest, send clitest.Send) error {
		cancel()
		return clitest.Never(ctx, r, send)
	}
	w, _ := clitest.NewSite(t, f)
	said := w.RunContext(ctx, "vm", "start", "web1")
	if said.Exit != term.Interrupted || !strings.Contains(said.ErrOut, "operation 3nqk7d2m0x1ab) goes on, watch it with") ||
		!strings.Contains(said.ErrOut, "cancel it with 'berth operation cancel 3nqk7d2m0x1ab'") {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
}

// When a node fails, the VM is placed again: what is reported is the decision that counted in the end.
func TestStartThatWasPlacedAgain(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
		op := clitest.CannedOperation("start", clitest.Done)
		op.Target, op.DecisionId, op.Attempt = "node1", "3nqk7d2m0d2cd", 2
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
	f.OnGetDecision = func(r *berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
		decision := clitest.CannedDecision()
		decision.Id, decision.Winner = r.GetId(), "node1"
		decision.Nodes = decision.Nodes[1:]
		decision.Nodes[0].Rank = 1
		return &berthv1.GetDecisionResponse{Decision: decision}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "start", "web1")
	if want := "vm/web1 running on node1 (decision 3nqk7d2m0d2cd; 1 of 2 nodes fit, round 1, customer score -100)\n"; said.Out != want {
		t.Errorf("got %q, want %q", said.Out, want)
	}
}

func TestOperationWatch(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = clitest.Migrates()
	w, _ := clitest.NewSite(t, f)
	said := w.Run("operation", "watch", "3nqk7d2m0x1ab")
	if said.Exit != term.Done || !strings.Contains(said.Out, "migration  132 MiB sent") {
		t.Errorf("exit %d, %q", said.Exit, said.Out)
	}
}

// Who starts a VM on a busy node is told that it waits, what for, and when its turn has come.
func TestAStartThatWaitsForItsTurn(t *testing.T) {
	f := clitest.Steady()
	queued := clitest.CannedOperation("start", clitest.Running)
	queued.Phase, queued.Doing = "queued", "to start on node2; waits for its turn: 5 other starts come first on node2"
	f.OnStartVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		return &berthv1.StartVMResponse{Operation: queued}, nil
	}
	f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
		started, ended := clitest.CannedOperation("start", clitest.Running), clitest.CannedOperation("start", clitest.Done)
		for _, op := range []*berthv1.Operation{queued, started, ended} {
			if err := send(&berthv1.WatchOperationResponse{Operation: op}); err != nil {
				return err
			}
		}
		return nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "start", "web1")
	want := "vm/web1: to start on node2; waits for its turn: 5 other starts come first on node2 (operation 3nqk7d2m0x1ab)\n" +
		"vm/web1: starting on node2\n"
	if said.Exit != term.Done || said.ErrOut != want {
		t.Errorf("exit %d, got %q, want %q", said.Exit, said.ErrOut, want)
	}
}
