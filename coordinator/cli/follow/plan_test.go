package follow_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// drainUntilCancelled is a drain that goes on until it is cancelled, and then lets end what copies. Once it is shown to go on,
// something more is done.
func drainUntilCancelled(f *clitest.Fake, shown func(context.Context) error) {
	cancelled := make(chan struct{})
	f.OnWatchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, send clitest.SendPlan) error {
		if err := errors.Join(send(clitest.DrainOf("running", "moved", "moving", "waiting")), shown(ctx)); err != nil {
			return err
		}
		select {
		case <-cancelled:
			return send(clitest.DrainOf("cancelled", "moved", "moved", "left"))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.OnCancelPlan = func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error) {
		defer close(cancelled)
		plan := clitest.DrainOf("cancelled", "moved", "moving", "left")
		plan.EndedAt = nil // what copies is let end
		return &berthv1.CancelPlanResponse{SchemaVersion: "1", Plan: plan}, nil
	}
}

// The first interrupt asks the coordinator to stop, and the command stays until what copies has ended.
func TestAnInterruptStopsADrain(t *testing.T) {
	f := clitest.Steady()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	drainUntilCancelled(f, func(context.Context) error { return nil })
	w, _ := clitest.NewSite(t, f)
	var out bytes.Buffer
	errOut := clitest.Until{Word: "vm/web1: migrating", Then: interrupt}
	if exit := w.RunTo(ctx, &out, &errOut, "node", "drain", "node1", "--yes"); exit != term.Interrupted {
		t.Errorf("exit %d", exit)
	}
	clitest.Golden(t, "node-drain-interrupted.golden", out.String()+clitest.ErrSection(errOut.String()))
	if sent := clitest.Asked[berthv1.CancelPlanRequest](f); len(sent) != 1 || sent[0].GetAbort() || sent[0].GetId() != "3nqk7d2m0p1ab" {
		t.Errorf("the coordinator was asked %v", sent)
	}
}

// A terminal shows an interrupt as ^C in the line of a bar. What is said then stands in a line of its own, from its beginning.
func TestAnInterruptAtABarIsAnsweredInALineOfItsOwn(t *testing.T) {
	tty, shown := clitest.Terminal(t)
	f := clitest.Steady()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	drainUntilCancelled(f, func(ctx context.Context) error {
		err := shown.Await(ctx, "web1 -> node3")
		if err == nil {
			interrupt()
		}
		return err
	})
	w, _ := clitest.NewSite(t, f)
	exit := w.RunTo(ctx, io.Discard, tty, "node", "drain", "node1", "--yes")
	_ = tty.Close()
	<-shown.Done
	before, _, said := strings.Cut(shown.String(), "note: stopping: ")
	if exit != term.Interrupted || !said || !strings.HasSuffix(before, "\r\x1b[K") {
		t.Errorf("exit %d, the screen at the end: %q", exit, before[max(0, len(before)-500):])
	}
}

// The second one leaves at once. What copies is named.
func TestASecondInterruptLeaves(t *testing.T) {
	f := clitest.Steady()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	interrupts := make(chan context.CancelFunc, 2)
	interrupts <- interrupt
	f.OnWatchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, _ clitest.SendPlan) error {
		(<-interrupts)()
		<-ctx.Done()
		return ctx.Err()
	}
	f.OnCancelPlan = func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error) {
		plan := clitest.DrainOf("cancelled", "moved", "moving", "left")
		plan.EndedAt = nil
		return &berthv1.CancelPlanResponse{SchemaVersion: "1", Plan: plan}, nil
	}
	w, _ := clitest.NewSite(t, f)
	w.NextInterrupt = func(ctx context.Context) (context.Context, context.CancelFunc) {
		next, cancel := context.WithCancel(ctx)
		interrupts <- cancel
		return next, cancel
	}
	said := w.RunContext(ctx, "node", "drain", "node1", "--yes", "-q")
	if said.Exit != term.Interrupted || !strings.Contains(said.Out, "1 VM moved, 1 still copying, 2 did not move") ||
		!strings.HasPrefix(
			said.ErrOut, "berth: interrupted; node1 is not empty and stays in maintenance\nnext step: 'berth node drain node1' goes on",
		) {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
}

// A drain that cannot be asked to stop goes on, and that is what is said.
func TestAnInterruptThatStopsNothing(t *testing.T) {
	f := clitest.Steady()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	f.OnWatchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, _ clitest.SendPlan) error {
		interrupt()
		<-ctx.Done()
		return ctx.Err()
	}
	f.OnCancelPlan = func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error) {
		return nil, rpc.Errorf(connect.CodeInternal, &berthv1.ErrorDetail{Code: rpc.Internal}, "the log is full")
	}
	f.OnGetPlan = func(*berthv1.GetPlanRequest) (*berthv1.GetPlanResponse, error) {
		return &berthv1.GetPlanResponse{SchemaVersion: "1", Plan: clitest.DrainOf("running", "moving", "waiting", "waiting")}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.RunContext(ctx, "node", "drain", "node1", "--yes", "-q")
	want := "berth: interrupted, and the plan goes on, for it could not be asked to stop: the log is full\n" +
		"next step: 'berth plan cancel 3nqk7d2m0p1ab' stops it\n"
	if said.Exit != term.Interrupted || said.ErrOut != want {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
}

// An interrupt that comes when all is through changes nothing: the node is empty.
func TestAnInterruptThatComesTooLate(t *testing.T) {
	f := clitest.Steady()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	through := func() *berthv1.Plan {
		plan := clitest.DrainOf("done", "moved", "moved", "moved")
		plan.Moves = plan.GetMoves()[:3]
		return plan
	}
	f.OnWatchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, _ clitest.SendPlan) error {
		interrupt()
		<-ctx.Done()
		return ctx.Err()
	}
	f.OnCancelPlan = func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error) {
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.Conflict}, "the plan has ended")
	}
	f.OnGetPlan = func(*berthv1.GetPlanRequest) (*berthv1.GetPlanResponse, error) {
		return &berthv1.GetPlanResponse{SchemaVersion: "1", Plan: through()}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.RunContext(ctx, "node", "drain", "node1", "--yes", "-q")
	if said.Exit != term.Done || said.Out != "node/node1 is empty: 3 VMs moved in 3m12s (plan 3nqk7d2m0p1ab)\n" || said.ErrOut != "" {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
}

// A leader that dies during a drain is not the end of it, and nothing is drained twice.
func TestADrainGoesOnAfterTheCoordinatorDied(t *testing.T) {
	first, second := clitest.Steady(), clitest.Steady()
	var servers []*clitest.Server
	first.OnWatchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, send clitest.SendPlan) error {
		if err := send(clitest.DrainOf("running", "moving", "moving", "waiting")); err != nil {
			return err
		}
		go servers[0].Stop()
		<-ctx.Done()
		return ctx.Err()
	}
	w, started := clitest.NewSite(t, first, second)
	servers = started
	said := w.Run("node", "drain", "node1", "--yes")
	if said.Exit != term.Failed || !strings.Contains(said.Out, "3 VMs moved in 3m12s, 1 did not move") {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
	if n := len(clitest.Asked[berthv1.DrainNodeRequest](second)); n != 0 {
		t.Errorf("the node was drained %d times more", n)
	}
}

// Lines for a log: what begins and ends at once, and a sum each ten seconds while nothing else is told.
func TestPlanLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		a := &term.App{Now: time.Now}
		l := follow.NewPlanReporter(a, &out)
		plan := clitest.DrainOf("running", "moved", "moving", "waiting")
		for i := range 50 { // every half second
			seen := proto.Clone(plan).(*berthv1.Plan)
			seen.Moves[1].CopiedBytes, seen.Moves[1].RemainingBytes = int64(i)*clitest.Gib/50, 2*clitest.Gib-int64(i)*clitest.Gib/50
			l.Update(seen)
			time.Sleep(500 * time.Millisecond)
		}
		want := `node/node1: moving VMs away (3 VMs, 12 GiB; plan 3nqk7d2m0p1ab)
vm/db1: running on node2
vm/web1: migrating from node1 to node3
node/node1: 1 of 3 VMs, 8.4 GiB of 12 GiB, 1 moving, 1 staying
node/node1: 1 of 3 VMs, 8.8 GiB of 12 GiB, 1 moving, 1 staying
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}

// A person who watches a drain sees a bar for the whole and one for each VM that moves.
func TestDrainShowsBarsOnATerminal(t *testing.T) {
	tty, shown := clitest.Terminal(t)
	f := clitest.Steady()
	f.OnWatchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, send clitest.SendPlan) error {
		for _, step := range []struct {
			plan *berthv1.Plan
			show string
		}{
			{clitest.DrainOf("running", "moving", "moving", "waiting"), "0 of 3 VMs, 2 GiB of 12 GiB, 2 moving, 1 staying"},
			{clitest.DrainOf("running", "moved", "moving", "moving"), "web2 -> node2"},
		} {
			if err := errors.Join(send(step.plan), shown.Await(ctx, step.show)); err != nil {
				return err
			}
		}
		return send(clitest.DrainOf("done", "moved", "moved", "moved"))
	}
	w, _ := clitest.NewSite(t, f)
	var out strings.Builder
	exit := w.RunTo(t.Context(), &out, tty, "node", "drain", "node1", "--yes", "--timeout", "10s")
	_ = tty.Close()
	<-shown.Done
	if exit != term.Failed || !strings.HasPrefix(out.String(), "node/node1: 3 VMs moved in 3m12s, 1 did not move") {
		t.Errorf("exit %d, %q", exit, out.String())
	}
	for _, want := range []string{"node/node1", "db1 -> node2", "web1 -> node3", "1 GiB copied, 7 GiB left", "12% [===>"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("the screen never showed %q", want)
		}
	}
	if t.Failed() {
		t.Logf("the screen: %q", shown.String()[max(0, len(shown.String())-1500):])
	}
}
