package follow_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// A person who watches a migration sees a bar with its figures, full at the end, and the result below it.
func TestMigrationShowsABarOnATerminal(t *testing.T) {
	tty, shown := clitest.Terminal(t)
	f := clitest.Steady()
	f.OnWatchOp = func(ctx context.Context, r *berthv1.WatchOperationRequest, send clitest.Send) error {
		for _, step := range []struct {
			sent int64
			show string
		}{{20, " 16% [="}, {60, " 47% [="}, {120, " 94% [="}} {
			err := send(&berthv1.WatchOperationResponse{
				Operation: clitest.CannedOperation("migrate", clitest.Running),
				Progress: &berthv1.MigrationStats{
					ElapsedSeconds: 0.3, DataTotalBytes: 128 << 20, DataProcessedBytes: step.sent << 20,
					DataRemainingBytes: (128 - step.sent) << 20, MemoryBps: 70 << 20,
				},
			})
			if err := errors.Join(err, shown.Await(ctx, step.show)); err != nil {
				return err
			}
		}
		return clitest.Migrates()(ctx, r, send)
	}
	w, _ := clitest.NewSite(t, f)
	var out strings.Builder
	exit := w.RunTo(t.Context(), &out, tty, "vm", "migrate", "web1", "--best", "--timeout", "10s")
	_ = tty.Close()
	<-shown.Done
	if exit != term.Done || !strings.HasPrefix(out.String(), "vm/web1 running on node2: moved from node1") {
		t.Errorf("exit %d, %q", exit, out.String())
	}
	for _, want := range []string{
		"web1 node1 -> node2", "60 MiB sent, 68 MiB left, 70 MiB/s, 300ms",
		"100%", "132 MiB sent, 70 MiB/s, downtime 185ms, hand-over 45ms",
	} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("the screen never showed %q", want)
		}
	}
	if t.Failed() {
		t.Logf("the screen at the end: %q", shown.String()[max(0, len(shown.String())-500):])
	}
}

// A terminal that cannot move its cursor gets lines.
func TestADumbTerminalGetsLines(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = clitest.Migrates()
	w, _ := clitest.NewSite(t, f)
	w.Env = map[string]string{"TERM": "dumb"}
	tty, shown := clitest.Terminal(t)
	if exit := w.RunTo(t.Context(), io.Discard, tty, "vm", "migrate", "web1", "--best"); exit != term.Done {
		t.Errorf("exit %d", exit)
	}
	_ = tty.Close()
	<-shown.Done
	if got := shown.String(); got != "vm/web1: migrating from node1 to node2 (operation 3nqk7d2m0x1ab)\r\n" {
		t.Errorf("the screen showed %q", got)
	}
}
