package storms

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"berth/coordinator/model"
	bench "berth/integration/bench/hearing"
	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/simagent/crew"
	berthv1 "berth/shared/gen/berth/v1"
)

// Size is what a site has.
type Size struct {
	Nodes, VMs int
	Rest       time.Duration // how long the leader is watched while nothing happens but reports
}

// patience is how long agents may take to come back before the measurement is given up.
const patience = 5 * time.Minute

// site is three coordinators and their agents.
type site struct {
	size    Size
	members *testbed.Coordinators
	agents  *crew.Crew
	callers *callers
	values  map[string]float64
	tell    func(format string, arguments ...any)
}

// Measure raises a site in a folder of its own and takes all figures, by name. Program is the built berth, and tell is told how it goes.
// A start that was accepted and is lost, or runs twice, is a figure; what cannot be measured is an error.
func Measure(
	ctx context.Context, program, folder string, size Size, tell func(format string, arguments ...any),
) (_ map[string]float64, err error) {
	if folder, err = os.MkdirTemp(folder, "berth-storms-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // what is left over is a temporary file
	s := &site{size: size, values: map[string]float64{}, tell: tell}
	if err := s.hear(ctx, program, filepath.Join(folder, "hearing")); err != nil {
		return nil, err
	}
	if s.members, err = testbed.RaiseCoordinators(ctx, program, folder, 3); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.members.Close()) }()
	if s.agents, err = crew.Raise(ctx, folder, size.Nodes); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.agents.Close()) }()
	for _, step := range []func(context.Context) error{s.enrol, s.fill, s.rest, s.restart, s.storm, s.account} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("%d nodes: %w", size.Nodes, err)
		}
	}
	return s.values, nil
}

// hear takes the figures of one coordinator that does nothing but hear its agents.
func (s *site) hear(ctx context.Context, program, folder string) error {
	m, err := bench.Measure(ctx, program, folder, s.size.Nodes)
	if err != nil {
		return fmt.Errorf("%d agents that report: %w", s.size.Nodes, err)
	}
	s.tell("%d nodes: %s reports, visible %s", s.size.Nodes, report.PerSecond(m.Rate), m.Visible.Latency())
	s.is(heard, m.CPU.Median())
	s.is(message, m.CPU.Median()/m.Rate)
	s.is(hearing, m.Memory.All)
	s.is(fresh, m.Visible.Quantile(0.99))
	return nil
}

// is keeps a figure.
func (s *site) is(name string, value float64) {
	s.values[name] = value
	for _, one := range Figures {
		if one.Name == name {
			s.tell("%d nodes: %s %s", s.size.Nodes, name, one.Unit(value))
		}
	}
}

func (s *site) enrol(ctx context.Context) error {
	before, err := testbed.CPUTimes(s.members.PIDs()...)
	if err != nil {
		return err
	}
	if err := s.agents.Enrol(ctx, s.members); err != nil {
		return err
	}
	after, err := testbed.CPUTimes(s.members.PIDs()...)
	if err != nil {
		return err
	}
	s.is(enrol, (after-before).Seconds()/float64(s.size.Nodes))
	// No start waits for its turn on a node: what is measured is the coordinators.
	err = s.members.Command(ctx, "cluster", "set", model.DefaultCluster, "--parallel-starts", strconv.Itoa(model.MaxParallelStarts),
		"--client-config", filepath.Join(s.members.Dir, "client.yaml"))
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := s.agents.Run(); err != nil {
		return err
	}
	took, err := s.agents.AwaitBack(ctx, begun, patience)
	s.tell("%d nodes: all agents have a session %s after their start", s.size.Nodes, took.Round(time.Millisecond))
	return err
}

// leader is the member that leads, and its process.
func (s *site) leader(ctx context.Context) (lead *testbed.Member, err error) {
	err = testbed.Await(ctx, "a leader", patience, func(ctx context.Context) error {
		lead, err = s.members.Leader(ctx)
		return err
	})
	return lead, err
}

// rest watches the leader while nothing happens but that agents report.
func (s *site) rest(ctx context.Context) error {
	lead, err := s.leader(ctx)
	if err != nil {
		return err
	}
	if err := testbed.Pause(ctx, s.size.Rest/2); err != nil {
		return err
	}
	told, err := s.agents.Count(time.Now())
	if err != nil {
		return err
	}
	before, err := testbed.CPUTime(lead.Process.PID())
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := testbed.Pause(ctx, s.size.Rest); err != nil {
		return err
	}
	after, err := testbed.CPUTime(lead.Process.PID())
	if err != nil {
		return err
	}
	then, err := s.agents.Count(time.Now())
	if err != nil {
		return err
	}
	reports := then.Samples - told.Samples
	if reports == 0 {
		return fmt.Errorf("no agent has made a sample in %s", s.size.Rest)
	}
	lasted := time.Since(begun).Seconds()
	s.tell("%d nodes: leader at rest %.3f cores at %.0f reports/s", s.size.Nodes, (after-before).Seconds()/lasted, float64(reports)/lasted)
	s.is(perTold, (after-before).Seconds()/float64(reports))
	memory, err := testbed.Resident(lead.Process.PID())
	s.is(resident, memory.All)
	return err
}

// restart kills all coordinators and starts them, first with agents at addresses of their own, then with all behind one.
func (s *site) restart(ctx context.Context) error {
	accepted, back, err := s.restartOnce(ctx)
	if err != nil {
		return err
	}
	s.is(answered, accepted.Seconds())
	s.is(restart, back.Seconds())
	if err := s.agents.Gather(true); err != nil {
		return err
	}
	if _, back, err = s.restartOnce(ctx); err != nil {
		return err
	}
	s.is(gathered, back.Seconds())
	return s.agents.Gather(false)
}

func (s *site) restartOnce(ctx context.Context) (accepted, back time.Duration, err error) {
	var group errgroup.Group
	for _, m := range s.members.Running() {
		group.Go(func() error { return s.members.Stop(m, syscall.SIGKILL) })
	}
	if err := group.Wait(); err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	for _, m := range s.members.Members {
		if err := s.members.Start(m); err != nil {
			return 0, 0, err
		}
	}
	group.Go(func() error {
		_, err := s.callers.start(ctx, 0)
		accepted = time.Since(begun)
		return err
	})
	group.Go(func() (err error) {
		back, err = s.agents.AwaitBack(ctx, begun, patience)
		return err
	})
	if err := group.Wait(); err != nil {
		return 0, 0, err
	}
	return accepted, back, s.up(ctx)
}

// up waits until the leader says itself that all nodes are there.
func (s *site) up(ctx context.Context) error {
	lead, err := s.leader(ctx)
	if err != nil {
		return err
	}
	return testbed.Await(ctx, "all nodes to be up", patience, func(ctx context.Context) error {
		status, err := lead.API.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err == nil && int(status.Msg.GetNodesUp()) < s.size.Nodes {
			err = fmt.Errorf("%d of %d are", status.Msg.GetNodesUp(), s.size.Nodes)
		}
		return err
	})
}
