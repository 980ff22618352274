package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// What people read of plans and drains that go well.
func TestGoldenPlans(t *testing.T) {
	w, _ := newWorld(t, steady())
	for name, args := range map[string][]string{
		"plan-list":             {"plan", "list"},
		"plan-list-wide":        {"plan", "list", "-o", "wide"},
		"plan-list-name":        {"plan", "list", "--live", "-o", "name"},
		"plan-show-waiting":     {"plan", "show"},
		"plan-show":             {"plan", "show", "last"},
		"plan-show-drain-wide":  {"plan", "show", "node/node1", "-o", "wide"},
		"plan-show-json":        {"plan", "show", "last", "-o", "json"},
		"plan-new":              {"plan", "new"},
		"plan-new-dry-run":      {"plan", "new", "--dry-run"},
		"plan-new-even":         {"plan", "new", "--cluster", "prod"},
		"plan-apply":            {"plan", "apply", "last"},
		"plan-apply-no-wait":    {"plan", "apply", "last", "--no-wait"},
		"plan-discard":          {"plan", "discard", "last"},
		"plan-cancel":           {"plan", "cancel", "node/node1"},
		"node-drain-cancel":     {"node", "drain", "node1", "--cancel", "--abort"},
		"node-drain-no-wait":    {"node", "drain", "node1", "--yes", "--no-wait"},
		"node-undrain":          {"node", "undrain", "node1"},
		"node-undrain-return":   {"node", "undrain", "node1", "--return"},
		"node-undrain-dry-run":  {"node", "undrain", "node1", "--return", "--dry-run"},
		"node-undrain-name":     {"node", "undrain", "node1", "-o", "name"},
		"node-undrain-no-wait":  {"node", "undrain", "node1", "--return", "--no-wait"},
		"plan-watch-evening":    {"plan", "watch", "last"},
		"plan-watch-quiet-name": {"plan", "watch", "last", "-q", "-o", "name"},
	} {
		t.Run(name, func(t *testing.T) {
			said := w.run(args...)
			if said.exit != Done {
				t.Errorf("exit %d", said.exit)
			}
			golden(t, name+".golden", said.out+errSection(said.errOut))
		})
	}
}

// Where a VM stays the exit code says so, and why is the last that is read.
func TestGoldenDrains(t *testing.T) {
	whole := func(plan *berthv1.Plan) *berthv1.Plan {
		plan.Moves = plan.GetMoves()[:3]
		return plan
	}
	for name, c := range map[string]struct {
		line   string
		change func(*fake)
		exit   Exit
	}{
		"node-drain":         {line: "node drain node1 --yes", exit: Failed},
		"node-drain-dry-run": {line: "node drain node1 --dry-run", exit: Failed},
		"node-drain-json":    {line: "node drain node1 --yes -q -o json", exit: Failed},
		"node-drain-empty": {line: "node drain node1 --yes --reason disks --parallel 4 --bandwidth 100M", exit: Done, change: func(f *fake) {
			drain := f.drainNode
			f.drainNode = func(r *berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error) {
				answer, err := drain(r)
				whole(answer.GetPlan())
				return answer, err
			}
			f.watchPlan = runs(whole(drainOf("running", "moved", moveMoving, moveMoving)), whole(drainOf("done", "moved", "gone", "moved")))
		}},
		"node-drain-nothing": {line: "node drain node1 --yes", exit: Done, change: func(f *fake) {
			f.drainNode = func(*berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error) {
				plan := drainOf("done")
				plan.Moves, plan.EndedAt = nil, plan.GetCreatedAt()
				return &berthv1.DrainNodeResponse{SchemaVersion: "1", Plan: plan}, nil
			}
		}},
		"node-drain-retries": {line: "node drain node1 --yes", exit: Failed, change: func(f *fake) {
			again := drainOf("running", "moved", moveWaiting, "moved")
			again.Moves[1].Attempts, again.Moves[1].Message = 1, "node3 is full by now"
			f.watchPlan = runs(drainOf("running", moveMoving, moveMoving, moveWaiting), again, drainOf("failed", "moved", "failed", "moved"))
		}},
		"node-drain-cancelled": {line: "node drain node1 --yes", exit: Failed, change: func(f *fake) {
			f.watchPlan = runs(drainOf("cancelled", "moved", "left", "left"))
		}},
		"node-drain-refused": {line: "node drain node1 --yes", exit: Failed, change: func(f *fake) {
			f.drainNode = func(*berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error) {
				return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{
					Code: rpc.Conflict, Subject: "node/node1", NextStep: "take another node out of maintenance first",
				}, "node node1 is the last one of cluster default that takes VMs")
			}
		}},
		"plan-apply-failed": {line: "plan apply last", exit: Failed, change: func(f *fake) {
			plan := evening("failed")
			plan.Moves[0].State, plan.Moves[1].State, plan.Moves[1].Message = "moved", "failed", "no node fits"
			f.watchPlan = runs(plan)
		}},
		"plan-watch-timeout": {line: "plan watch node/node1 --timeout 200ms", exit: TimedOut, change: func(f *fake) {
			f.watchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, _ sendPlan) error {
				<-ctx.Done()
				return ctx.Err()
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := steady()
			if c.change != nil {
				c.change(f)
			}
			w, _ := newWorld(t, f)
			said := w.run(strings.Fields(c.line)...)
			if said.exit != c.exit {
				t.Errorf("exit %d, want %d", said.exit, c.exit)
			}
			golden(t, name+".golden", said.out+errSection(said.errOut))
		})
	}
}

// What is asked of the coordinator is what stands on the line. The look ahead is asked with the same limits.
func TestDrainSendsItsLimits(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
	w.run("node", "drain", "node1", "--yes", "--parallel", "4", "--bandwidth", "100M/s", "--reason", "disks")
	sent := asked[berthv1.DrainNodeRequest](f)
	if len(sent) != 2 || !sent[0].GetDryRun() || sent[1].GetDryRun() || len(sent[1].GetRequestId()) < 16 || sent[1].GetReason() != "disks" {
		t.Fatalf("the coordinator was asked %v", sent)
	}
	for _, request := range sent {
		if request.GetParallel() != 4 || request.GetBandwidthBps() != 100<<20 || request.GetNode() != "node1" {
			t.Errorf("the coordinator was asked %v", request)
		}
	}
}

// Nobody is moved who was not agreed to.
func TestDrainAsksFirst(t *testing.T) {
	for reply, want := range map[string]int{"y\n": 2, "n\n": 1} {
		f := steady()
		w, _ := newWorld(t, f)
		user, tty := openTerminal(t)
		if _, err := user.WriteString(reply); err != nil {
			t.Fatal(err)
		}
		w.in = tty
		said := w.run("node", "drain", "node1", "-q")
		if !strings.Contains(said.errOut, "GOES-TO") || !strings.Contains(said.errOut, "Put node/node1 into maintenance and move 3 VMs away? 1 will stay. [y/N] ") {
			t.Errorf("%q: said %q", reply, said.errOut)
		}
		if sent := asked[berthv1.DrainNodeRequest](f); len(sent) != want {
			t.Errorf("%q: the coordinator was asked %d times", reply, len(sent))
		}
	}
}

// The first interrupt asks the coordinator to stop, and the command stays until what copies has ended.
func TestAnInterruptStopsADrain(t *testing.T) {
	f := steady()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	cancelled := make(chan struct{})
	f.watchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, send sendPlan) error {
		if err := send(drainOf("running", "moved", moveMoving, moveWaiting)); err != nil {
			return err
		}
		select {
		case <-cancelled:
			return send(drainOf("cancelled", "moved", "moved", "left"))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.cancelPlan = func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error) {
		defer close(cancelled)
		plan := drainOf("cancelled", "moved", moveMoving, "left")
		plan.EndedAt = nil // what copies is let end
		return &berthv1.CancelPlanResponse{SchemaVersion: "1", Plan: plan}, nil
	}
	w, _ := newWorld(t, f)
	var out bytes.Buffer
	errOut := until{word: "vm/web1: migrating", then: interrupt}
	if exit := w.runTo(ctx, &out, &errOut, "node", "drain", "node1", "--yes"); exit != Interrupted {
		t.Errorf("exit %d", exit)
	}
	golden(t, "node-drain-interrupted.golden", out.String()+errSection(errOut.String()))
	if sent := asked[berthv1.CancelPlanRequest](f); len(sent) != 1 || sent[0].GetAbort() || sent[0].GetId() != "3nqk7d2m0p1ab" {
		t.Errorf("the coordinator was asked %v", sent)
	}
}

// The second one leaves at once. What copies is named.
func TestASecondInterruptLeaves(t *testing.T) {
	f := steady()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	interrupts := make(chan context.CancelFunc, 2)
	interrupts <- interrupt
	f.watchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, _ sendPlan) error {
		(<-interrupts)()
		<-ctx.Done()
		return ctx.Err()
	}
	f.cancelPlan = func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error) {
		plan := drainOf("cancelled", "moved", moveMoving, "left")
		plan.EndedAt = nil
		return &berthv1.CancelPlanResponse{SchemaVersion: "1", Plan: plan}, nil
	}
	w, _ := newWorld(t, f)
	w.nextInterrupt = func(ctx context.Context) (context.Context, context.CancelFunc) {
		next, cancel := context.WithCancel(ctx)
		interrupts <- cancel
		return next, cancel
	}
	said := w.runContext(ctx, "node", "drain", "node1", "--yes", "-q")
	if said.exit != Interrupted || !strings.Contains(said.out, "1 VM moved, 1 still copying, 2 did not move") ||
		!strings.HasPrefix(said.errOut, "berth: interrupted; node1 is not empty and stays in maintenance\nnext step: 'berth node drain node1' goes on") {
		t.Errorf("exit %d, %q, %q", said.exit, said.out, said.errOut)
	}
}

// A drain that cannot be asked to stop goes on, and that is what is said.
func TestAnInterruptThatStopsNothing(t *testing.T) {
	f := steady()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	f.watchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, _ sendPlan) error {
		interrupt()
		<-ctx.Done()
		return ctx.Err()
	}
	f.cancelPlan = func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error) {
		return nil, rpc.Errorf(connect.CodeInternal, &berthv1.ErrorDetail{Code: rpc.Internal}, "the log is full")
	}
	f.getPlan = func(*berthv1.GetPlanRequest) (*berthv1.GetPlanResponse, error) {
		return &berthv1.GetPlanResponse{SchemaVersion: "1", Plan: drainOf("running", moveMoving, moveWaiting, moveWaiting)}, nil
	}
	w, _ := newWorld(t, f)
	said := w.runContext(ctx, "node", "drain", "node1", "--yes", "-q")
	want := "berth: interrupted, and the plan goes on, for it could not be asked to stop: the log is full\n" +
		"next step: 'berth plan cancel 3nqk7d2m0p1ab' stops it\n"
	if said.exit != Interrupted || said.errOut != want {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
	}
}

// An interrupt that comes when all is through changes nothing: the node is empty.
func TestAnInterruptThatComesTooLate(t *testing.T) {
	f := steady()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	through := func() *berthv1.Plan {
		plan := drainOf("done", "moved", "moved", "moved")
		plan.Moves = plan.GetMoves()[:3]
		return plan
	}
	f.watchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, _ sendPlan) error {
		interrupt()
		<-ctx.Done()
		return ctx.Err()
	}
	f.cancelPlan = func(*berthv1.CancelPlanRequest) (*berthv1.CancelPlanResponse, error) {
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.Conflict}, "the plan has ended")
	}
	f.getPlan = func(*berthv1.GetPlanRequest) (*berthv1.GetPlanResponse, error) {
		return &berthv1.GetPlanResponse{SchemaVersion: "1", Plan: through()}, nil
	}
	w, _ := newWorld(t, f)
	said := w.runContext(ctx, "node", "drain", "node1", "--yes", "-q")
	if said.exit != Done || said.out != "node/node1 is empty: 3 VMs moved in 3m12s (plan 3nqk7d2m0p1ab)\n" || said.errOut != "" {
		t.Errorf("exit %d, %q, %q", said.exit, said.out, said.errOut)
	}
}

// A leader that dies during a drain is not the end of it, and nothing is drained twice.
func TestADrainGoesOnAfterTheCoordinatorDied(t *testing.T) {
	first, second := steady(), steady()
	var servers []*server
	first.watchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, send sendPlan) error {
		if err := send(drainOf("running", moveMoving, moveMoving, moveWaiting)); err != nil {
			return err
		}
		go servers[0].stop()
		<-ctx.Done()
		return ctx.Err()
	}
	w, started := newWorld(t, first, second)
	servers = started
	said := w.run("node", "drain", "node1", "--yes")
	if said.exit != Failed || !strings.Contains(said.out, "3 VMs moved in 3m12s, 1 did not move") {
		t.Errorf("exit %d, %q, %q", said.exit, said.out, said.errOut)
	}
	if n := len(asked[berthv1.DrainNodeRequest](second)); n != 0 {
		t.Errorf("the node was drained %d times more", n)
	}
}

// Lines for a log: what begins and ends at once, and a sum each ten seconds while nothing else is told.
func TestPlanLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &planLines{out: &out, now: time.Now, turns: turns{}}
		plan := drainOf("running", "moved", moveMoving, moveWaiting)
		for i := range 50 { // every half second
			seen := proto.Clone(plan).(*berthv1.Plan)
			seen.Moves[1].CopiedBytes, seen.Moves[1].RemainingBytes = int64(i)*gib/50, 2*gib-int64(i)*gib/50
			l.update(seen)
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
	tty, shown := terminal(t)
	f := steady()
	f.watchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, send sendPlan) error {
		for _, step := range []struct {
			plan *berthv1.Plan
			show string
		}{
			{drainOf("running", moveMoving, moveMoving, moveWaiting), "0 of 3 VMs, 2 GiB of 12 GiB, 2 moving, 1 staying"},
			{drainOf("running", "moved", moveMoving, moveMoving), "web2 -> node2"},
		} {
			if err := errors.Join(send(step.plan), shown.await(ctx, step.show)); err != nil {
				return err
			}
		}
		return send(drainOf("done", "moved", "moved", "moved"))
	}
	w, _ := newWorld(t, f)
	var out strings.Builder
	exit := w.runTo(t.Context(), &out, tty, "node", "drain", "node1", "--yes", "--timeout", "10s")
	_ = tty.Close()
	<-shown.done
	if exit != Failed || !strings.HasPrefix(out.String(), "node/node1: 3 VMs moved in 3m12s, 1 did not move") {
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
