package vm_test

import (
	"context"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// One VM that is refused does not stop the others. The exit code tells a lack of room from everything else.
func TestSeveralStartsOfWhichSomeFail(t *testing.T) {
	refused := &berthv1.StartedVM{
		Vm: "big", Error: &berthv1.ErrorDetail{Code: rpc.NoNodeFits}, Message: "no node fits: of 3 nodes, memory-promised refuses 3",
	}
	running := &berthv1.StartedVM{Vm: "up", Error: &berthv1.ErrorDetail{Code: rpc.Conflict}, Message: "vm/up is running"}
	for name, c := range map[string]struct {
		others []*berthv1.StartedVM
		result berthv1.OperationResult
		exit   term.Exit
	}{
		"refused":  {others: []*berthv1.StartedVM{refused}, result: clitest.Done, exit: term.NoNodeFits},
		"conflict": {others: []*berthv1.StartedVM{refused, running}, result: clitest.Done, exit: term.Failed},
		"failed":   {result: clitest.Failed, exit: term.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.Steady()
			f.OnStartVMs = func(r *berthv1.StartVMsRequest) (*berthv1.StartVMsResponse, error) {
				answer, err := clitest.CannedStarts(r)
				answer.Started = append(answer.Started[:1], c.others...)
				return answer, err
			}
			f.OnWatchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send clitest.Send) error {
				op := clitest.CannedOperation("start", c.result)
				op.Message = "qemu exited"
				return send(&berthv1.WatchOperationResponse{Operation: op})
			}
			w, _ := clitest.NewSite(t, f)
			said := w.Run("vm", "start", "web1", "big", "up")
			if said.Exit != c.exit {
				t.Errorf("exit %d, want %d", said.Exit, c.exit)
			}
			clitest.Golden(t, "vm-start-many-"+name+".golden", said.Out+clitest.ErrSection(said.ErrOut))
		})
	}
}

// A start that takes too long says so once, and names no VM as failed.
func TestSeveralStartsTimeOut(t *testing.T) {
	f := clitest.Steady()
	f.OnWatchOp = func(ctx context.Context, _ *berthv1.WatchOperationRequest, _ clitest.Send) error {
		<-ctx.Done()
		return ctx.Err()
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "start", "web1", "db1", "--timeout", "200ms")
	if said.Exit != term.TimedOut || !strings.Contains(
		said.ErrOut, "still runs after 200ms; it goes on without this command, and so do those after it",
	) {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
}
