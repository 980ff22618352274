package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	berthv1 "berth/shared/gen/berth/v1"
)

// failover is what R4 measures, in seconds from the kill, or from when the leader was asked to stop.
type failover struct {
	accepted report.Figures // a survivor has accepted a start
	elected  report.Figures // a survivor knows a new leader
	ended    report.Figures // what was at work before has ended
	handed   report.Figures // a survivor has accepted a start, after the leader was asked to stop
	acked    []ack
}

// ack is a start that was accepted.
type ack struct{ name, id string }

func measureR4(ctx context.Context, b *bench) (_ []report.Row, err error) {
	c, err := testbed.RaiseCoordinators(ctx, b.berth(), b.folder("r4"), 3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	f, err := testbed.EnrolFleet(ctx, c, 3)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var o failover
	kills, stops := b.rounds(3, 25), b.rounds(2, 10)
	if text := os.Getenv("FAILOVERS"); text != "" {
		if kills, err = strconv.Atoi(text); err != nil || kills < 1 {
			return nil, fmt.Errorf("FAILOVERS is %q, want a number of kills", text)
		}
	}
	for round := range kills + stops {
		signal := syscall.SIGKILL
		if round >= kills {
			signal = syscall.SIGTERM
		}
		if err := o.end(ctx, c, round, signal); err != nil {
			return nil, fmt.Errorf("end %d of the leader: %w", round+1, err)
		}
		if err := f.AwaitReady(ctx, c.Members[0].API); err != nil {
			return nil, err
		}
	}
	lost, err := o.lost(ctx, c, f)
	if err != nil {
		return nil, err
	}
	fmt.Println(o.goal(kills, stops, lost))
	return o.rows(lost), nil
}

// The limits of the write gap (FAULTS.md, G9), in seconds.
const (
	gapMedian, gapTail = 3, 5
	gapHandedOver      = 0.5
	endedWithin        = 10
)

// goal is the line for the table of goals.
func (o *failover) goal(kills, stops int, lost []error) string {
	verdict := "not met"
	if o.accepted.Median() <= gapMedian && o.accepted.Quantile(0.99) <= gapTail && o.handed.Median() <= gapHandedOver &&
		o.ended.Quantile(0.99) <= endedWithin && len(lost) == 0 {
		verdict = "met"
	}
	return fmt.Sprintf("GOAL G9: write gap %s over %d kills, %s over %d planned stops, operations ended after %s, %d of %d starts lost | "+
		"wanted p50 <= 3 s and p99 <= 5 s, p50 <= 0.5 s when planned, <= 10 s, none lost | %s",
		o.accepted.Latency(), kills, o.handed.Latency(), stops, o.ended.Latency(), len(lost), len(o.acked), verdict)
}

// end starts VMs, kills the leader in the middle of that or asks it to stop, and goes on until a survivor has accepted the
// next one.
func (o *failover) end(ctx context.Context, c *testbed.Coordinators, number int, signal syscall.Signal) error {
	if err := c.AwaitWhole(ctx); err != nil {
		return err
	}
	lead, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	// The moment falls anywhere between two heartbeats and two commits.
	busy := time.Duration(300+rand.IntN(700)) * time.Millisecond
	killed := make(chan time.Time, 1)
	time.AfterFunc(busy, func() {
		killed <- time.Now()
		_ = lead.Process.Cmd.Process.Signal(signal)
	})
	survivors := slices.DeleteFunc(slices.Clone(c.Running()), func(m *testbed.Member) bool { return m == lead })
	elected := make(chan time.Time, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	at, err := o.startUntil(ctx, lead, survivors, number, killed, func() { go awaitElection(watching, survivors, lead.Name, elected) })
	if err != nil {
		return err
	}
	took := time.Since(at)
	select {
	case then := <-elected:
		if signal == syscall.SIGKILL {
			o.elected.Add(then.Sub(at))
		}
	case <-time.After(5 * time.Second):
		return errors.New("a start was accepted, and no survivor names the leader")
	}
	if signal == syscall.SIGKILL {
		o.accepted.Add(took)
		if err := awaitRest(ctx, survivors[0].API); err != nil {
			return err
		}
		o.ended.Add(time.Since(at))
	} else {
		o.handed.Add(took)
	}
	if err := c.Stop(lead, syscall.SIGKILL); err != nil {
		return err
	}
	return c.Start(lead)
}

// startUntil starts VMs through the leader, and after its death through the survivors, until one of these has accepted a
// start. It returns the moment of the kill.
func (o *failover) startUntil(
	ctx context.Context, lead *testbed.Member, survivors []*testbed.Member, number int, killed <-chan time.Time, died func(),
) (at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	try := 0
	for count := 0; ; {
		through := lead
		if !at.IsZero() {
			through = survivors[try%len(survivors)]
			try++
		}
		request := &berthv1.StartVMRequest{
			Name: fmt.Sprintf("kill%d-vm%d", number, count), RequestId: fmt.Sprintf("kill%d-%d", number, count),
			Vm: &berthv1.NewVM{Spec: testbed.SimulatedVM()},
		}
		answer, err := through.API.StartVM(ctx, connect.NewRequest(request))
		if at.IsZero() {
			select {
			case at = <-killed:
				died()
			default:
			}
		}
		switch {
		case err == nil:
			o.acked = append(o.acked, ack{answer.Msg.GetVm().GetName(), answer.Msg.GetVm().GetId()})
			if !at.IsZero() && through != lead {
				return at, nil
			}
			count++
		case at.IsZero():
			return at, fmt.Errorf("start %s before the kill: %w", request.GetName(), err)
		case ctx.Err() != nil:
			return at, fmt.Errorf("no survivor has accepted a start: %w: %w", ctx.Err(), err)
		default:
			time.Sleep(10 * time.Millisecond) // the same request again: it is the same start
		}
	}
}

// awaitElection tells when a survivor names another leader than the dead one.
func awaitElection(ctx context.Context, survivors []*testbed.Member, dead string, elected chan<- time.Time) {
	for ctx.Err() == nil {
		for _, m := range survivors {
			status, err := m.API.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{Stale: true}))
			if err != nil {
				continue
			}
			if leader := status.Msg.GetLeader(); leader != "" && leader != dead {
				elected <- time.Now()
				return
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// lost checks, when everything has come to rest, that every accepted VM runs, and on one node only.
func (o *failover) lost(ctx context.Context, c *testbed.Coordinators, f *testbed.Fleet) (lost []error, err error) {
	if err := c.AwaitWhole(ctx); err != nil {
		return nil, err
	}
	if err := awaitRest(ctx, c.Members[0].API); err != nil {
		return nil, err
	}
	known := map[string]*berthv1.VM{}
	for question := (&berthv1.ListVMsRequest{}); ; {
		answer, err := c.Members[0].API.ListVMs(ctx, connect.NewRequest(question))
		if err != nil {
			return nil, err
		}
		for _, vm := range answer.Msg.GetVms() {
			known[vm.GetId()] = vm
		}
		if question.PageToken = answer.Msg.GetNextPageToken(); question.PageToken == "" {
			break
		}
	}
	for _, a := range o.acked {
		switch vm := known[a.id]; {
		case vm == nil:
			lost = append(lost, fmt.Errorf("VM %s is not known any more", a.name))
		case vm.GetState() != berthv1.VMState_VM_STATE_RUNNING:
			lost = append(lost, fmt.Errorf("VM %s is %s", a.name, vm.GetState()))
		default:
			if err := f.RunsOnce(a.id); err != nil {
				lost = append(lost, err)
			}
		}
	}
	return lost, nil
}

func (o *failover) rows(lost []error) []report.Row {
	verdict := report.Judge(o.accepted.Quantile(0.99), 3)
	what := fmt.Sprintf("%d VMs acknowledged over all kills: lost or running twice", len(o.acked))
	measured := fmt.Sprintf("%d of %d", len(lost), len(o.acked))
	if len(lost) > 0 {
		verdict = report.NotMet
		measured += fmt.Sprintf(", the first: %v", lost[0])
	}
	return []report.Row{
		{
			Goal: "R4", What: "leader killed with SIGKILL in the middle of starts: until a survivor has accepted the next start",
			Measured: o.accepted.Latency(), Against: "the goal's own limit",
			Wanted: "p99 <= 3 s, none acknowledged lost (stretch 1 s)", Verdict: verdict,
		},
		{What: "of it: until a survivor names the new leader", Measured: o.elected.Latency()},
		{What: "until the operations of before have ended", Measured: o.ended.Latency()},
		{
			What: "leader asked to stop in the middle of starts: until a survivor has accepted the next start", Measured: o.handed.Latency(),
			Wanted: "p50 <= 0.5 s",
		},
		{What: what, Measured: measured},
	}
}
