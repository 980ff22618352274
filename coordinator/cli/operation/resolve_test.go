package operation_test

import (
	"context"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// An operation that parks again has not been resolved.
func TestAResolutionThatParksAgain(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
		op := clitest.CannedParked()
		op.Message = "to keep target, as was decided, could not be done: node2 does not answer"
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("operation", "resolve", "migrate", "--keep", "target")
	if said.Exit != term.Failed || !strings.Contains(said.ErrOut, "is parked again: to keep target") {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
	f.OnWatchOp = clitest.EndsWell
	if said = w.Run(
		"operation", "resolve", "migrate", "--keep", "target",
	); said.Exit != term.Done || !strings.Contains(said.Out, "is resolved: node2 has the VM") {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
}

// A resolution that is not waited for goes on.
func TestAResolutionThatTakesLong(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = clitest.Never
	w, _ := clitest.NewSite(t, f)
	said := w.Run("operation", "resolve", "migrate", "--keep", "target", "--timeout", "200ms")
	if said.Exit != term.TimedOut || !strings.Contains(said.ErrOut, "still runs after 200ms; it goes on without this command") {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
}
