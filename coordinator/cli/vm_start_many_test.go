package cli

import (
	"context"
	"strings"
	"testing"

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
		exit   Exit
	}{
		"refused":  {others: []*berthv1.StartedVM{refused}, result: done, exit: NoNodeFits},
		"conflict": {others: []*berthv1.StartedVM{refused, running}, result: done, exit: Failed},
		"failed":   {result: failed, exit: Failed},
	} {
		t.Run(name, func(t *testing.T) {
			f := steady()
			f.startVMs = func(r *berthv1.StartVMsRequest) (*berthv1.StartVMsResponse, error) {
				answer, err := cannedStarts(r)
				answer.Started = append(answer.Started[:1], c.others...)
				return answer, err
			}
			f.watchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send send) error {
				op := cannedOperation("start", c.result)
				op.Message = "qemu exited"
				return send(&berthv1.WatchOperationResponse{Operation: op})
			}
			w, _ := newWorld(t, f)
			said := w.run("vm", "start", "web1", "big", "up")
			if said.exit != c.exit {
				t.Errorf("exit %d, want %d", said.exit, c.exit)
			}
			golden(t, "vm-start-many-"+name+".golden", said.out+errSection(said.errOut))
		})
	}
}

// A start that takes too long says so once, and names no VM as failed.
func TestSeveralStartsTimeOut(t *testing.T) {
	f := steady()
	f.watchOp = func(ctx context.Context, _ *berthv1.WatchOperationRequest, _ send) error {
		<-ctx.Done()
		return ctx.Err()
	}
	w, _ := newWorld(t, f)
	said := w.run("vm", "start", "web1", "db1", "--timeout", "200ms")
	if said.exit != TimedOut || !strings.Contains(said.errOut, "still runs after 200ms; it goes on without this command, and so do those after it") {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
	}
}
