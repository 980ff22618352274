package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

type send = func(*berthv1.WatchOperationResponse) error

// migrates sends the given progress and then the end.
func migrates(progress ...*berthv1.MigrationStats) func(context.Context, *berthv1.WatchOperationRequest, send) error {
	return func(_ context.Context, _ *berthv1.WatchOperationRequest, send send) error {
		op := cannedOperation("migrate", running)
		for _, stats := range progress {
			if err := send(&berthv1.WatchOperationResponse{Operation: op, Progress: stats}); err != nil {
				return err
			}
		}
		op = cannedOperation("migrate", done)
		op.Migration = cannedMigration()
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
}

func TestMigrateReportsWhatItTook(t *testing.T) {
	f := steady()
	f.watchOp = migrates(&berthv1.MigrationStats{DataTotalBytes: 1 << 27, DataProcessedBytes: 1 << 26, DataRemainingBytes: 1 << 26})
	w, _ := newWorld(t, f)
	said := w.run("vm", "migrate", "web1", "--best", "--bandwidth", "100M")
	if said.exit != Done {
		t.Errorf("exit %d", said.exit)
	}
	golden(t, "vm-migrate.golden", said.out+errSection(said.errOut))
	if sent := asked[berthv1.MigrateVMRequest](f); len(sent) != 1 || sent[0].GetBandwidthBps() != 100<<20 || sent[0].GetNode() != "" {
		t.Errorf("the coordinator was asked %v", sent)
	}
}

func TestMigrateThatStays(t *testing.T) {
	f := steady()
	f.migrateVM = func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) {
		decision := cannedDecision()
		decision.Outcome, decision.Nodes[0].Current = berthv1.DecisionOutcome_DECISION_OUTCOME_STAY, true
		return &berthv1.MigrateVMResponse{Decision: decision}, nil
	}
	w, _ := newWorld(t, f)
	said := w.run("vm", "migrate", "web1", "--best")
	if want := "vm/web1 stays on node2 (decision 3nqk7d2m0d1ab; 2 of 3 nodes fit, round 1, next best node1 by 100)\n"; said.out != want || said.exit != Done {
		t.Errorf("got %q, exit %d, want %q", said.out, said.exit, want)
	}
}

func TestStop(t *testing.T) {
	f := steady()
	f.watchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send send) error {
		return send(&berthv1.WatchOperationResponse{Operation: cannedOperation("stop", done)})
	}
	w, _ := newWorld(t, f)
	said := w.run("vm", "stop", "web1", "--grace", "10s")
	if said.out != "vm/web1 stopped on node2 after 2.1s\n" || said.errOut != "vm/web1: stopping on node2 (operation 3nqk7d2m0x1ab)\n" {
		t.Errorf("got %q and %q", said.out, said.errOut)
	}
	if sent := asked[berthv1.StopVMRequest](f); len(sent) != 1 || sent[0].GetGraceSeconds() != 10 || sent[0].GetForce() {
		t.Errorf("the coordinator was asked %v", sent)
	}
}

// Lines for a log: the beginning at once, then at most one each two seconds.
func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &lines{out: &out, now: time.Now}
		op := cannedOperation("migrate", running)
		for i := range 12 { // every half second
			stats := &berthv1.MigrationStats{
				ElapsedSeconds: float64(i) / 2, DataTotalBytes: 128 << 20, DataProcessedBytes: int64(i) << 20,
				DataRemainingBytes: int64(128-i) << 20, MemoryBps: 2 << 20,
			}
			l.update(&berthv1.WatchOperationResponse{Operation: op, Progress: stats})
			time.Sleep(500 * time.Millisecond)
		}
		want := `vm/web1: migrating from node1 to node2 (operation 3nqk7d2m0x1ab)
vm/web1: 4 MiB sent, 124 MiB left, 2 MiB/s, 2s
vm/web1: 8 MiB sent, 120 MiB left, 2 MiB/s, 4s
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}

// A leader that dies during an operation is not the end of it: the watch goes on elsewhere, and says so once.
func TestWatchGoesOnAfterTheCoordinatorDied(t *testing.T) {
	first, second := steady(), steady()
	var servers []*server
	first.watchOp = func(ctx context.Context, _ *berthv1.WatchOperationRequest, send send) error {
		if err := send(&berthv1.WatchOperationResponse{Operation: cannedOperation("start", running)}); err != nil {
			return err
		}
		go servers[0].stop()
		<-ctx.Done()
		return ctx.Err()
	}
	w, servers2 := newWorld(t, first, second)
	servers = servers2
	said := w.run("vm", "start", "web1")
	if said.exit != Done || !strings.HasPrefix(said.out, "vm/web1 running on node2 ") {
		t.Errorf("exit %d, %q, %q", said.exit, said.out, said.errOut)
	}
	if n := len(asked[berthv1.WatchOperationRequest](second)); n != 1 {
		t.Errorf("the second coordinator was watched %d times", n)
	}
	if n := len(asked[berthv1.StartVMRequest](second)); n != 0 {
		t.Errorf("the VM was started %d times more", n)
	}
}

// A stream that only ends, as when a coordinator stops leading, is opened again as well.
func TestWatchOpensAgain(t *testing.T) {
	f := steady()
	var opened atomic.Int32
	f.watchOp = func(ctx context.Context, r *berthv1.WatchOperationRequest, send send) error {
		switch opened.Add(1) {
		case 1:
			return send(&berthv1.WatchOperationResponse{Operation: cannedOperation("start", running)})
		case 2:
			return rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader}, "the coordinators have no leader")
		case 3:
			return connect.NewError(connect.CodeCanceled, errors.New("the server stops"))
		}
		return endsWell(ctx, r, send)
	}
	w, _ := newWorld(t, f)
	said := w.run("vm", "start", "web1")
	if said.exit != Done || strings.Count(said.errOut, "note: ") != 1 {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
	}
}

func TestOperationThatDoesNotEndWell(t *testing.T) {
	for name, c := range map[string]struct {
		result berthv1.OperationResult
		exit   Exit
	}{"failed": {failed, Failed}, "parked": {parked, Failed}} {
		f := steady()
		f.watchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send send) error {
			op := cannedOperation("start", c.result)
			op.Message = "node2: libvirt: cannot access /srv/web1.qcow2: no such file"
			return send(&berthv1.WatchOperationResponse{Operation: op})
		}
		w, _ := newWorld(t, f)
		said := w.run("vm", "start", "web1")
		if said.exit != c.exit || said.out != "" {
			t.Errorf("%s: exit %d, %q", name, said.exit, said.out)
		}
		golden(t, "error-operation-"+name+".golden", said.errOut)
	}
}

// never is an operation that does not end.
func never(ctx context.Context, _ *berthv1.WatchOperationRequest, send send) error {
	if err := send(&berthv1.WatchOperationResponse{Operation: cannedOperation("start", running)}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestWaitTimesOut(t *testing.T) {
	f := steady()
	f.watchOp = never
	w, _ := newWorld(t, f)
	said := w.run("vm", "start", "web1", "--timeout", "200ms")
	if said.exit != TimedOut {
		t.Errorf("exit %d", said.exit)
	}
	golden(t, "error-timeout.golden", said.errOut)
}

func TestInterruptedWait(t *testing.T) {
	f := steady()
	ctx, cancel := context.WithCancel(t.Context())
	f.watchOp = func(ctx context.Context, r *berthv1.WatchOperationRequest, send send) error {
		cancel()
		return never(ctx, r, send)
	}
	w, _ := newWorld(t, f)
	said := w.runContext(ctx, "vm", "start", "web1")
	if said.exit != Interrupted || !strings.Contains(said.errOut, "operation 3nqk7d2m0x1ab) goes on, watch it with") {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
	}
}

// When a node fails, the VM is placed again: what is reported is the decision that counted in the end.
func TestStartThatWasPlacedAgain(t *testing.T) {
	f := steady()
	f.watchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send send) error {
		op := cannedOperation("start", done)
		op.Target, op.DecisionId, op.Attempt = "node1", "3nqk7d2m0d2cd", 2
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
	f.getDecision = func(r *berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
		decision := cannedDecision()
		decision.Id, decision.Winner = r.GetId(), "node1"
		decision.Nodes = decision.Nodes[1:]
		decision.Nodes[0].Rank = 1
		return &berthv1.GetDecisionResponse{Decision: decision}, nil
	}
	w, _ := newWorld(t, f)
	said := w.run("vm", "start", "web1")
	if want := "vm/web1 running on node1 (decision 3nqk7d2m0d2cd; 1 of 2 nodes fit, round 1, customer score -100)\n"; said.out != want {
		t.Errorf("got %q, want %q", said.out, want)
	}
}

func TestOperationWatch(t *testing.T) {
	f := steady()
	f.watchOp = migrates()
	w, _ := newWorld(t, f)
	said := w.run("operation", "watch", "3nqk7d2m0x1ab")
	if said.exit != Done || !strings.Contains(said.out, "migration  132 MiB sent") {
		t.Errorf("exit %d, %q", said.exit, said.out)
	}
}

// until collects what is written, and calls then when a word has come.
type until struct {
	bytes.Buffer
	word string
	then func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if strings.Contains(u.String(), u.word) {
		u.then()
	}
	return n, err
}

// Following events survives the loss of a coordinator, and shows no event twice and none that was not asked for.
func TestEventsAreFollowedAcrossCoordinators(t *testing.T) {
	older := &berthv1.Event{Index: 900, At: ago(time.Hour), Kind: "vm.started", Subject: "vm/ancient"}
	newer := &berthv1.Event{Index: 1002, At: ago(30 * time.Second), Kind: "vm.stopped", Subject: "vm/web1"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, second := steady(), steady()
	first.events = func(_ context.Context, _ *berthv1.WatchEventsRequest, send func(*berthv1.WatchEventsResponse) error) error {
		for _, event := range cannedEvents() {
			if err := send(&berthv1.WatchEventsResponse{Event: event}); err != nil {
				return err
			}
		}
		return rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader}, "the coordinators have no leader")
	}
	second.events = func(ctx context.Context, _ *berthv1.WatchEventsRequest, send func(*berthv1.WatchEventsResponse) error) error {
		for _, event := range append([]*berthv1.Event{older}, append(cannedEvents()[:2], newer)...) {
			if err := send(&berthv1.WatchEventsResponse{Event: event}); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}
	w, _ := newWorld(t, first, second)
	out, errOut := until{word: "vm.stopped", then: cancel}, bytes.Buffer{}
	if exit := w.runTo(ctx, &out, &errOut, "events", "--follow", "--backlog", "3"); exit != Done {
		t.Errorf("exit %d, %s", exit, errOut.String())
	}
	var subjects []string
	for line := range strings.Lines(out.String()) {
		subjects = append(subjects, strings.Fields(line)[2]+" "+strings.Fields(line)[3])
	}
	want := "vm.started vm/web1, vm.placed vm/web1, node.unreachable node/node3, vm.stopped vm/web1"
	if got := strings.Join(subjects, ", "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Who starts a VM on a busy node is told that it waits, what for, and when its turn has come.
func TestAStartThatWaitsForItsTurn(t *testing.T) {
	f := steady()
	queued := cannedOperation("start", running)
	queued.Phase, queued.Message = "queued", "waits for its turn: 5 other starts come first on node2"
	f.startVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		return &berthv1.StartVMResponse{Operation: queued}, nil
	}
	f.watchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send send) error {
		for _, op := range []*berthv1.Operation{queued, cannedOperation("start", running), cannedOperation("start", done)} {
			if err := send(&berthv1.WatchOperationResponse{Operation: op}); err != nil {
				return err
			}
		}
		return nil
	}
	w, _ := newWorld(t, f)
	said := w.run("vm", "start", "web1")
	want := "vm/web1: to start on node2; waits for its turn: 5 other starts come first on node2 (operation 3nqk7d2m0x1ab)\nvm/web1: starting on node2\n"
	if said.exit != Done || said.errOut != want {
		t.Errorf("exit %d, got %q, want %q", said.exit, said.errOut, want)
	}
}
