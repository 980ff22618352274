package storms

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
)

// fill starts the VMs in two halves. The leader is killed in the middle of the second one.
func (s *site) fill(ctx context.Context) error {
	lead, err := s.leader(ctx)
	if err != nil {
		return err
	}
	if s.callers, err = newCallers(s.members); err != nil {
		return err
	}
	if err := s.up(ctx); err != nil {
		return err
	}
	s.callers.ask(lead)
	half := s.size.VMs / 2
	before, err := testbed.CPUTimes(s.members.PIDs()...)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := s.callers.together(ctx, half, func(int64, time.Time) {}); err != nil {
		return err
	}
	s.is(starts, float64(half)/time.Since(begun).Seconds())
	if err := awaitRest(ctx, lead.API); err != nil {
		return err
	}
	after, err := testbed.CPUTimes(s.members.PIDs()...)
	if err != nil {
		return err
	}
	s.is(spent, (after-before).Seconds()/float64(half))
	return s.kill(ctx, lead, s.size.VMs-half)
}

// kill ends the leader in the middle of starts.
func (s *site) kill(ctx context.Context, lead *testbed.Member, vms int) error {
	var mu sync.Mutex
	var at time.Time
	var first time.Duration
	err := s.callers.together(ctx, vms, func(number int64, asked time.Time) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case at.IsZero() && number >= int64(vms/2):
			at = time.Now()
			_ = lead.Process.Cmd.Process.Signal(syscall.SIGKILL) // it runs: Stop tells if it does not end
		case !at.IsZero() && asked.After(at) && first == 0:
			first = time.Since(at)
		}
	})
	if err := errors.Join(err, s.members.Stop(lead, syscall.SIGKILL)); err != nil {
		return err
	}
	if first == 0 {
		return errors.New("no survivor has accepted a start: there were too few to kill the leader in the middle of them")
	}
	s.is(killed, first.Seconds())
	back, err := s.agents.AwaitBack(ctx, at, patience)
	if err != nil {
		return err
	}
	s.is(moved, back.Seconds())
	return errors.Join(s.members.Start(lead), s.members.AwaitWhole(ctx), s.up(ctx))
}

const (
	lookEvery  = 50 * time.Millisecond
	startEvery = 100 * time.Millisecond
	starters   = 4                // clients that go on starting VMs while the agents come back
	aftermath  = 10 * time.Second // how long they, and the look at the memory, go on when all are back
)

// storm breaks all connections while clients go on.
func (s *site) storm(ctx context.Context) error {
	lead, err := s.leader(ctx)
	if err != nil {
		return err
	}
	s.callers.ask(lead)
	if err := testbed.Pause(ctx, s.size.Rest/2); err != nil {
		return err
	}
	rest, err := testbed.Resident(lead.Process.PID())
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	var most, failed float64
	var took report.Figures
	var mu sync.Mutex
	watchers.Go(func() {
		for testbed.Pause(watching, lookEvery) == nil {
			if now, err := testbed.Resident(lead.Process.PID()); err == nil {
				most = max(most, now.All)
			}
		}
	})
	for client := range starters {
		watchers.Go(func() {
			for testbed.Pause(watching, startEvery) == nil {
				begun := time.Now()
				_, err := s.callers.start(ctx, client)
				mu.Lock()
				took.Add(time.Since(begun))
				if err != nil {
					failed++
					s.tell("%d nodes: in the storm: %v", s.size.Nodes, err)
				}
				mu.Unlock()
			}
		})
	}
	begun := time.Now()
	err = s.agents.Drop()
	back := time.Duration(0)
	if err == nil {
		back, err = s.agents.AwaitBack(ctx, begun, patience)
	}
	if err == nil {
		err = testbed.Pause(ctx, aftermath)
	}
	stop()
	watchers.Wait()
	if err != nil {
		return err
	}
	s.tell("%d nodes: the leader had %s at rest, starts took %s", s.size.Nodes, rest, took.Latency())
	s.is(storm, back.Seconds())
	s.is(peak, most/rest.All)
	s.is(longest, took.Quantile(1))
	s.is(refused, failed)
	return s.up(ctx)
}
