package node_test

import (
	"context"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Where a VM stays the exit code says so, and why is the last that is read.
func TestGoldenDrains(t *testing.T) {
	whole := func(plan *berthv1.Plan) *berthv1.Plan {
		plan.Moves = plan.GetMoves()[:3]
		return plan
	}
	for name, c := range map[string]struct {
		line   string
		change func(*clitest.Fake)
		exit   term.Exit
	}{
		"node-drain":         {line: "node drain node1 --yes", exit: term.Failed},
		"node-drain-dry-run": {line: "node drain node1 --dry-run", exit: term.Failed},
		"node-drain-json":    {line: "node drain node1 --yes -q -o json", exit: term.Failed},
		"node-drain-empty": {line: "node drain node1 --yes --reason disks --parallel 4 --bandwidth 100M", exit: term.Done, change: func(
			f *clitest.Fake,
		) {
			drain := f.OnDrainNode
			f.OnDrainNode = func(r *berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error) {
				answer, err := drain(r)
				whole(answer.GetPlan())
				return answer, err
			}
			f.OnWatchPlan = clitest.Runs(
				whole(clitest.DrainOf("running", "moved", "moving", "moving")), whole(clitest.DrainOf("done", "moved", "gone", "moved")),
			)
		}},
		"node-drain-nothing": {line: "node drain node1 --yes", exit: term.Done, change: func(f *clitest.Fake) {
			f.OnDrainNode = func(*berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error) {
				plan := clitest.DrainOf("done")
				plan.Moves, plan.EndedAt = nil, plan.GetCreatedAt()
				return &berthv1.DrainNodeResponse{SchemaVersion: "1", Plan: plan}, nil
			}
		}},
		"node-drain-retries": {line: "node drain node1 --yes", exit: term.Failed, change: func(f *clitest.Fake) {
			again := clitest.DrainOf("running", "moved", "waiting", "moved")
			again.Moves[1].Attempts, again.Moves[1].Message = 1, "node3 is full by now"
			f.OnWatchPlan = clitest.Runs(
				clitest.DrainOf("running", "moving", "moving", "waiting"), again, clitest.DrainOf("failed", "moved", "failed", "moved"),
			)
		}},
		"node-drain-cancelled": {line: "node drain node1 --yes", exit: term.Failed, change: func(f *clitest.Fake) {
			f.OnWatchPlan = clitest.Runs(clitest.DrainOf("cancelled", "moved", "left", "left"))
		}},
		"node-drain-refused": {line: "node drain node1 --yes", exit: term.Failed, change: func(f *clitest.Fake) {
			f.OnDrainNode = func(*berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error) {
				return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{
					Code: rpc.Conflict, Subject: "node/node1", NextStep: "take another node out of maintenance first",
				}, "node node1 is the last one of cluster default that takes VMs")
			}
		}},
		"plan-apply-failed": {line: "plan apply last", exit: term.Failed, change: func(f *clitest.Fake) {
			plan := clitest.Evening("failed")
			plan.Moves[0].State, plan.Moves[1].State, plan.Moves[1].Message = "moved", "failed", "no node fits"
			f.OnWatchPlan = clitest.Runs(plan)
		}},
		"plan-watch-timeout": {line: "plan watch node/node1 --timeout 200ms", exit: term.TimedOut, change: func(f *clitest.Fake) {
			f.OnWatchPlan = func(ctx context.Context, _ *berthv1.WatchPlanRequest, _ clitest.SendPlan) error {
				<-ctx.Done()
				return ctx.Err()
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.Steady()
			if c.change != nil {
				c.change(f)
			}
			w, _ := clitest.NewSite(t, f)
			said := w.Run(strings.Fields(c.line)...)
			if said.Exit != c.exit {
				t.Errorf("exit %d, want %d", said.Exit, c.exit)
			}
			clitest.Golden(t, name+".golden", said.Out+clitest.ErrSection(said.ErrOut))
		})
	}
}

// What is asked of the coordinator is what stands on the line. The look ahead is asked with the same limits.
func TestDrainSendsItsLimits(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	w.Run("node", "drain", "node1", "--yes", "--parallel", "4", "--bandwidth", "100M/s", "--reason", "disks")
	sent := clitest.Asked[berthv1.DrainNodeRequest](f)
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
		f := clitest.Steady()
		w, _ := clitest.NewSite(t, f)
		user, tty := clitest.OpenTerminal(t)
		if _, err := user.WriteString(reply); err != nil {
			t.Fatal(err)
		}
		w.In = tty
		said := w.Run("node", "drain", "node1", "-q")
		if !strings.Contains(said.ErrOut, "GOES-TO") || !strings.Contains(
			said.ErrOut, "Put node/node1 into maintenance and move 3 VMs away? 1 will stay. [y/N] ",
		) {
			t.Errorf("%q: said %q", reply, said.ErrOut)
		}
		if sent := clitest.Asked[berthv1.DrainNodeRequest](f); len(sent) != want {
			t.Errorf("%q: the coordinator was asked %d times", reply, len(sent))
		}
	}
}
