package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"

	"berth/coordinator/model"
	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// crowds are how many clients R2 asks for VMs at once.
var crowds = [...]int{16, 256}

// spell is how long a crowd asks before the other twin has its turn.
const spell = 3 * time.Second

// throng is what R2 and R3 measure with one number of clients.
type throng struct {
	clients int
	berth   report.Figures // accepted starts a second
	bare    report.Figures // bare commits of bareEntry bytes a second
	took    report.Figures // one call
	cpu     report.Figures // of all coordinators, a start with all that follows, in seconds
	synced  report.Figures // accepted starts for each fdatasync of the leader
	syncs   report.Figures // of the leader, a second
}

func measureR2(ctx context.Context, b *bench) (_ []report.Row, err error) {
	c, err := testbed.RaiseCoordinators(ctx, b.berth(), b.folder("r2"), 3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	f, err := testbed.EnrolFleet(ctx, c, 4)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// No start waits for its turn on a node: what is measured is the coordinators.
	err = c.Command(ctx, "cluster", "set", "default", "--parallel-starts", strconv.Itoa(model.MaxParallelStarts),
		"--client-config", filepath.Join(c.Dir, "client.yaml"))
	if err != nil {
		return nil, err
	}
	lead, err := c.Leader(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := testbed.RaiseBare(b.folder("bare2"), testbed.BareEntry, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	s := starter{ctx: ctx, api: lead.API}
	if _, err := s.alone(turn); err != nil { // everything is warm, and known, before anybody counts
		return nil, err
	}
	var all []throng
	for _, clients := range crowds {
		t := throng{clients: clients}
		if err := t.measure(b, c, lead, &s, bare); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	var rows []report.Row
	for i := range all {
		rows = append(rows, all[i].rows()...)
	}
	return rows, nil
}

// measure lets Berth and its twin take turns. The last turn counts what the leader syncs: that slows it down, so its
// speed does not count.
func (t *throng) measure(b *bench, c *testbed.Coordinators, lead *testbed.Member, s *starter, bare *testbed.BareRaft) error {
	clients, err := clientsOf(c, lead, t.clients)
	if err != nil {
		return err
	}
	defer clients.close()
	if err := clients.connect(s.ctx); err != nil {
		return err
	}
	for range b.rounds(2, 6) {
		then, err := proposeTogether(bare, t.clients, spell)
		if err != nil {
			return err
		}
		before, err := testbed.CPUTimes(c.PIDs()...)
		if err != nil {
			return err
		}
		taken, lasted, err := s.together(clients, spell)
		if err != nil {
			return err
		}
		if err := awaitRest(s.ctx, s.api); err != nil {
			return err
		}
		after, err := testbed.CPUTimes(c.PIDs()...)
		if err != nil {
			return err
		}
		t.bare, t.took = append(t.bare, then), append(t.took, taken...)
		t.berth = append(t.berth, float64(len(taken))/lasted.Seconds())
		t.cpu = append(t.cpu, (after-before).Seconds()/float64(len(taken)))
		if err := s.clear(); err != nil {
			return err
		}
	}
	counting, err := countSyncs(lead.Process.PID())
	if err != nil {
		return err
	}
	taken, lasted, err := s.together(clients, spell)
	syncs, failed := counting.end()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	t.synced, t.syncs = report.Figures{float64(len(taken)) / float64(syncs)}, report.Figures{float64(syncs) / lasted.Seconds()}
	if err := awaitRest(s.ctx, s.api); err != nil {
		return err
	}
	return s.clear()
}

func (t *throng) rows() []report.Row {
	share := t.berth.Median() / t.bare.Median()
	rows := []report.Row{
		{
			Goal: "R2", What: fmt.Sprintf("placements committed by 3 coordinators, %d clients, each with its own connection", t.clients),
			Measured: t.berth.Spread(report.PerSecond) + "\none call: " + t.took.Latency(),
			Against: fmt.Sprintf("bare hashicorp/raft, %d-byte commands, %d clients: %s\nratio: %s",
				testbed.BareEntry, t.clients, t.bare.Spread(report.PerSecond), report.Times(share)),
			Wanted: ">= 0.7x bare (stretch > 50,000/s)", Verdict: report.AtLeast(share, 0.7),
		},
		{What: "CPU of the 3 coordinators for one start to its end", Measured: t.cpu.Spread(report.Seconds)},
	}
	synced := report.Row{
		Goal: "R3", What: fmt.Sprintf(
			"placements for each fdatasync of the leader, %d clients (counted by strace, in a turn of its own)", t.clients,
		),
		Measured: report.Digits(t.synced.Median()), Against: "its syncs: " + report.PerSecond(t.syncs.Median()),
	}
	if t.clients == crowds[len(crowds)-1] {
		synced.Wanted, synced.Verdict = ">= 10 (stretch 100)", report.AtLeast(t.synced.Median(), 10)
	}
	return append(rows, synced)
}

// together is how many commits a second so many proposers get.
func proposeTogether(b *testbed.BareRaft, proposers int, lasting time.Duration) (float64, error) {
	var group errgroup.Group
	var count atomic.Int64
	begun := time.Now()
	for range proposers {
		group.Go(func() error {
			for time.Since(begun) < lasting {
				switch _, err := b.Propose(); {
				case err == nil:
					count.Add(1)
				case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost):
					return fmt.Errorf("bare raft has lost its leader: the machine is too busy to measure anything: %w", err)
				default:
					return fmt.Errorf("bare raft: %w", err)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(count.Load()) / time.Since(begun).Seconds(), err
}

// clients are callers with a connection each.
type clients struct {
	apis  []berthv1connect.BerthServiceClient
	close func()
}

func clientsOf(c *testbed.Coordinators, lead *testbed.Member, n int) (*clients, error) {
	all := &clients{}
	var idle []func()
	for range n {
		one, err := testbed.OperatorClient(filepath.Join(c.Dir, "client.yaml"))
		if err != nil {
			return nil, err
		}
		idle = append(idle, one.CloseIdleConnections)
		all.apis = append(all.apis, berthv1connect.NewBerthServiceClient(one, "https://"+lead.Listen.API))
	}
	all.close = func() {
		for _, one := range idle {
			one()
		}
	}
	return all, nil
}

// connect makes the connections before anything is measured, as the bare twin's are.
func (c *clients) connect(ctx context.Context) error {
	for _, api := range c.apis {
		if _, err := api.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{})); err != nil {
			return fmt.Errorf("connect a client: %w", err)
		}
	}
	return nil
}

// together lets each client start one VM after the other, and returns how long each call took, and all together.
func (s *starter) together(c *clients, lasting time.Duration) (took report.Figures, all time.Duration, err error) {
	group, ctx := errgroup.WithContext(s.ctx)
	var mu sync.Mutex
	begun := time.Now()
	for _, api := range c.apis {
		group.Go(func() error {
			for time.Since(begun) < lasting {
				mu.Lock()
				request := s.request(false)
				mu.Unlock()
				asked := time.Now()
				answer, err := api.StartVM(ctx, request)
				if err != nil {
					return fmt.Errorf("start %s: %w", request.Msg.GetName(), err)
				}
				mu.Lock()
				took.Add(time.Since(asked))
				s.made = append(s.made, answer.Msg.GetVm().GetId())
				mu.Unlock()
			}
			return nil
		})
	}
	err = group.Wait()
	return took, time.Since(begun), err
}

// awaitRest waits until no operation runs.
func awaitRest(ctx context.Context, api berthv1connect.BerthServiceClient) error {
	return testbed.Await(ctx, "the operations to end", 2*time.Minute, func(ctx context.Context) error {
		answer, err := api.ListOperations(ctx, connect.NewRequest(&berthv1.ListOperationsRequest{RunningOnly: true}))
		if err != nil {
			return err
		}
		if running := len(answer.Msg.GetOperations()); running > 0 {
			return fmt.Errorf("%d operations run", running)
		}
		return nil
	})
}

// syncCounter counts the syncs of a process.
type syncCounter struct {
	strace *exec.Cmd
	output *strings.Builder
}

func countSyncs(pid int) (*syncCounter, error) {
	counter := &syncCounter{output: &strings.Builder{}}
	counter.strace = exec.Command("strace", "-f", "-c", "-e", "trace=fdatasync,fsync", "-p", strconv.Itoa(pid))
	counter.strace.Stderr = counter.output
	counter.strace.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := counter.strace.Start(); err != nil {
		return nil, fmt.Errorf("count syncs: %w", err)
	}
	return counter, testbed.Await(context.Background(), "strace", 10*time.Second, func(context.Context) error {
		tracer, err := testbed.TracerOf(pid)
		if err == nil && tracer != counter.strace.Process.Pid {
			err = fmt.Errorf("process %d is traced by %d", pid, tracer)
		}
		return err
	})
}

// end is how many there were. Strace's table has a line a call: share, seconds, microseconds a call, calls, errors, name.
func (c *syncCounter) end() (int, error) {
	if err := c.strace.Process.Signal(syscall.SIGINT); err != nil {
		return 0, err
	}
	_ = c.strace.Wait() // it ends by the signal
	count := 0
	for line := range strings.Lines(c.output.String()) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.HasSuffix(fields[len(fields)-1], "sync") {
			continue
		}
		calls, err := strconv.Atoi(fields[3])
		if err != nil {
			return 0, fmt.Errorf("read what strace counted: %w", err)
		}
		count += calls
	}
	if count == 0 {
		return 0, fmt.Errorf("strace has counted nothing: %s", c.output.String())
	}
	return count, nil
}
