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

	"berth/coordinator/cluster"
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
	berth   figures // accepted starts a second
	bare    figures // bare commits of bareEntry bytes a second
	took    figures // one call
	cpu     figures // of all coordinators, a start with all that follows, in seconds
	synced  figures // accepted starts for each fdatasync of the leader
	syncs   figures // of the leader, a second
}

func measureR2(ctx context.Context, b *bench) (_ []row, err error) {
	c, err := raiseCoordinators(ctx, b.berth(), b.folder("r2"), 3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	f, err := enrolFleet(ctx, c, 4)
	if err != nil {
		return nil, err
	}
	defer f.close()
	// No start waits for its turn on a node: what is measured is the coordinators.
	err = c.command(ctx, "cluster", "set", "default", "--parallel-starts", strconv.Itoa(cluster.MaxParallelStarts),
		"--client-config", filepath.Join(c.dir, "client.yaml"))
	if err != nil {
		return nil, err
	}
	lead, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := raiseBare(b.folder("bare2"), bareEntry, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	s := starter{ctx: ctx, api: lead.api}
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
	var rows []row
	for i := range all {
		rows = append(rows, all[i].rows()...)
	}
	return rows, nil
}

// measure lets Berth and its twin take turns. The last turn counts what the leader syncs: that slows it down, so its
// speed does not count.
func (t *throng) measure(b *bench, c *coordinators, lead *member, s *starter, bare *bareRaft) error {
	clients, err := c.clients(lead, t.clients)
	if err != nil {
		return err
	}
	defer clients.close()
	if err := clients.connect(s.ctx); err != nil {
		return err
	}
	for range b.rounds(2, 6) {
		then, err := bare.together(t.clients, spell)
		if err != nil {
			return err
		}
		before, err := cpuTimes(c.pids()...)
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
		after, err := cpuTimes(c.pids()...)
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
	counting, err := countSyncs(lead.process.pid())
	if err != nil {
		return err
	}
	taken, lasted, err := s.together(clients, spell)
	syncs, failed := counting.end()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	t.synced, t.syncs = figures{float64(len(taken)) / float64(syncs)}, figures{float64(syncs) / lasted.Seconds()}
	if err := awaitRest(s.ctx, s.api); err != nil {
		return err
	}
	return s.clear()
}

func (t *throng) rows() []row {
	share := t.berth.median() / t.bare.median()
	rows := []row{
		{
			goal: "R2", what: fmt.Sprintf("placements committed by 3 coordinators, %d clients, each with its own connection", t.clients),
			measured: t.berth.spread(perSecond) + "\none call: " + t.took.latency(),
			against: fmt.Sprintf("bare hashicorp/raft, %d-byte commands, %d clients: %s\nratio: %s",
				bareEntry, t.clients, t.bare.spread(perSecond), times(share)),
			wanted: ">= 0.7x bare (stretch > 50,000/s)", verdict: atLeast(share, 0.7),
		},
		{what: "CPU of the 3 coordinators for one start to its end", measured: t.cpu.spread(seconds)},
	}
	synced := row{
		goal: "R3", what: fmt.Sprintf("placements for each fdatasync of the leader, %d clients (counted by strace, in a turn of its own)", t.clients),
		measured: digits(t.synced.median()), against: "its syncs: " + perSecond(t.syncs.median()),
	}
	if t.clients == crowds[len(crowds)-1] {
		synced.wanted, synced.verdict = ">= 10 (stretch 100)", atLeast(t.synced.median(), 10)
	}
	return append(rows, synced)
}

// together is how many commits a second so many proposers get.
func (b *bareRaft) together(proposers int, lasting time.Duration) (float64, error) {
	var group errgroup.Group
	var count atomic.Int64
	begun := time.Now()
	for range proposers {
		group.Go(func() error {
			for time.Since(begun) < lasting {
				switch _, err := b.propose(); {
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

func (c *coordinators) clients(lead *member, n int) (*clients, error) {
	all := &clients{}
	var idle []func()
	for range n {
		one, err := operatorClient(filepath.Join(c.dir, "client.yaml"))
		if err != nil {
			return nil, err
		}
		idle = append(idle, one.CloseIdleConnections)
		all.apis = append(all.apis, berthv1connect.NewBerthServiceClient(one, "https://"+lead.listen.API))
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
func (s *starter) together(c *clients, lasting time.Duration) (took figures, all time.Duration, err error) {
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
				took.add(time.Since(asked))
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
	return await(ctx, "the operations to end", 2*time.Minute, func(ctx context.Context) error {
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
	return counter, await(context.Background(), "strace", 10*time.Second, func(context.Context) error {
		tracer, err := tracerOf(pid)
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
