package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// One client asks for VMs one after the other. Berth and its twins take turns of this many.
const turn = 25

// populated is how many VMs the cluster has when it is asked whether that matters.
const populated = 1000

// placing is what R1 measures, in seconds.
type placing struct {
	alone    report.Figures // StartVM to its reply, nothing else under way
	chained  report.Figures // the same while the start before is still being finished
	crowded  report.Figures // the first again, with populated VMs in the cluster
	dry      report.Figures // the same without the commit
	bare     report.Figures // a bare commit of bareEntry bytes
	bareThen report.Figures // likewise, in turns with crowded
	dressed  report.Figures // a bare commit of Berth's size, under mutual TLS
	cpu      report.Figures // of all coordinators, a start with all that follows
	entry    int            // bytes of the entry that the reply waits for
}

func measureR1(ctx context.Context, b *bench) (_ []report.Row, err error) {
	c, err := testbed.RaiseCoordinators(ctx, b.berth(), b.folder("r1"), 3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	f, err := testbed.EnrolFleet(ctx, c, 3)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lead, err := c.Leader(ctx)
	if err != nil {
		return nil, err
	}
	s, p := starter{ctx: ctx, api: lead.API}, placing{}
	if _, err := s.alone(2 * turn); err != nil {
		return nil, err
	}
	if p.entry, err = entrySize(ctx, c, lead); err != nil {
		return nil, err
	}
	if err := s.clear(); err != nil {
		return nil, err
	}
	if err := f.AwaitReady(ctx, lead.API); err != nil {
		return nil, err
	}
	if err := p.measure(b, c, &s); err != nil {
		return nil, err
	}
	return p.rows(), nil
}

// measure lets Berth and its twins take turns, the first of which does not count.
func (p *placing) measure(b *bench, c *testbed.Coordinators, s *starter) (err error) {
	bare, err := testbed.RaiseBare(b.folder("bare"), testbed.BareEntry, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	dressed, err := testbed.RaiseBare(b.folder("dressed"), p.entry, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dressed.Close()) }()
	for round := range b.rounds(4, 24) + 1 {
		if err := p.turns(c, s, bare, dressed, round > 0); err != nil {
			return err
		}
	}
	if err := s.populate(populated); err != nil {
		return err
	}
	for range b.rounds(2, 8) {
		then, err := commits(bare, turn)
		if err != nil {
			return err
		}
		crowded, err := s.alone(turn)
		if err != nil {
			return err
		}
		p.bareThen, p.crowded = append(p.bareThen, then...), append(p.crowded, crowded...)
	}
	return nil
}

// turns lets everybody have one. The cluster has as many VMs after it as before.
func (p *placing) turns(c *testbed.Coordinators, s *starter, bare, dressed *testbed.BareRaft, counts bool) error {
	before, err := testbed.CPUTimes(c.PIDs()...)
	if err != nil {
		return err
	}
	alone, err := s.alone(turn)
	if err != nil {
		return err
	}
	after, err := testbed.CPUTimes(c.PIDs()...)
	if err != nil {
		return err
	}
	taken := []report.Figures{alone}
	for _, take := range []func(int) (report.Figures, error){
		func(n int) (report.Figures, error) { return commits(bare, n) }, s.chained,
		func(n int) (report.Figures, error) { return commits(dressed, n) }, s.dry,
	} {
		one, err := take(turn)
		if err != nil {
			return err
		}
		taken = append(taken, one)
	}
	if counts {
		for i, all := range []*report.Figures{&p.alone, &p.bare, &p.chained, &p.dressed, &p.dry} {
			*all = append(*all, taken[i]...)
		}
		p.cpu = append(p.cpu, (after-before).Seconds()/turn)
	}
	return s.clear()
}

func (p *placing) rows() []report.Row {
	ratio := func(f report.Figures) float64 { return f.Median() / p.bare.Median() }
	return []report.Row{
		{
			Goal:     "R1",
			What:     "StartVM: API, decision, Raft (3 coordinators, mutual TLS, fsync), reply; one client, nothing else under way",
			Measured: p.alone.Latency(),
			Against: fmt.Sprintf("bare hashicorp/raft, %d-byte commands: %s\nratio of p50: %s",
				testbed.BareEntry, p.bare.Latency(), report.Times(ratio(p.alone))),
			Wanted:  "p50 <= 1.5x bare (stretch 1.2x)",
			Verdict: report.Judge(ratio(p.alone), 1.5),
		},
		{
			What:     "the same, called again at once: the start before is still being finished",
			Measured: p.chained.Latency(), Against: "ratio of p50: " + report.Times(ratio(p.chained)),
		},
		{
			What:     "of it: call, decision and reply, without the commit (dry run)",
			Measured: p.dry.Latency(), Against: "ratio of p50: " + report.Times(ratio(p.dry)),
		},
		{
			What:     fmt.Sprintf("of it: the commit, as bare raft with Berth's %d-byte entry under mutual TLS", p.entry),
			Measured: p.dressed.Latency(), Against: "ratio of p50: " + report.Times(ratio(p.dressed)),
		},
		{
			What:     fmt.Sprintf("StartVM as above, with %d VMs in the cluster instead of at most %d", populated, 2*turn),
			Measured: p.crowded.Latency(),
			Against:  "bare, then: " + p.bareThen.Latency() + "\nratio of p50: " + report.Times(p.crowded.Median()/p.bareThen.Median()),
		},
		{
			What:     "CPU of the 3 coordinators for one start to its end (two commits, one order)",
			Measured: p.cpu.Spread(report.Seconds),
		},
	}
}

// commits takes a turn of bare commits.
func commits(b *testbed.BareRaft, n int) (report.Figures, error) {
	var took report.Figures
	for range n {
		one, err := b.Propose()
		if err != nil {
			return nil, fmt.Errorf("bare raft: %w", err)
		}
		took.Add(one)
	}
	return took, nil
}

// starter asks the leader for VMs.
type starter struct {
	ctx    context.Context
	api    berthv1connect.BerthServiceClient
	number int
	made   []string // VMs that run
}

func (s *starter) request(dry bool) *connect.Request[berthv1.StartVMRequest] {
	s.number++
	return connect.NewRequest(&berthv1.StartVMRequest{
		Name: fmt.Sprintf("vm%05d", s.number), DryRun: dry, RequestId: fmt.Sprintf("bench-%d", s.number),
		Vm: &berthv1.NewVM{Spec: testbed.SimulatedVM()},
	})
}

// start is one call, timed from the request to its reply.
func (s *starter) start(dry bool) (time.Duration, *berthv1.StartVMResponse, error) {
	request := s.request(dry)
	begun := time.Now()
	answer, err := s.api.StartVM(s.ctx, request)
	took := time.Since(begun)
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", request.Msg.GetName(), err)
	}
	if !dry {
		s.made = append(s.made, answer.Msg.GetVm().GetId())
	}
	return took, answer.Msg, nil
}

// alone takes a turn in which each start begins when everything about the one before is over.
func (s *starter) alone(n int) (report.Figures, error) {
	var all report.Figures
	for range n {
		took, answer, err := s.start(false)
		if err != nil {
			return nil, err
		}
		if _, err := testbed.AwaitEnd(s.ctx, s.api, answer.GetOperation().GetId()); err != nil {
			return nil, err
		}
		all.Add(took)
	}
	return all, nil
}

// chained takes a turn of starts one right after the other's reply, and waits for the last one's end.
func (s *starter) chained(n int) (report.Figures, error) {
	var all report.Figures
	last := ""
	for range n {
		took, answer, err := s.start(false)
		if err != nil {
			return nil, err
		}
		last = answer.GetOperation().GetId()
		all.Add(took)
	}
	_, err := testbed.AwaitEnd(s.ctx, s.api, last)
	return all, err
}

func (s *starter) dry(n int) (report.Figures, error) {
	var all report.Figures
	for range n {
		took, _, err := s.start(true)
		if err != nil {
			return nil, err
		}
		all.Add(took)
	}
	return all, nil
}

// together is how many calls are under way where nothing is measured.
const together = 16

// clear stops and forgets the VMs that were started.
func (s *starter) clear() error {
	group, ctx := errgroup.WithContext(s.ctx)
	group.SetLimit(together)
	for _, vm := range s.made {
		group.Go(func() error {
			answer, err := s.api.StopVM(ctx, connect.NewRequest(&berthv1.StopVMRequest{Vm: vm, Force: true}))
			if err != nil {
				return fmt.Errorf("stop VM %s: %w", vm, err)
			}
			if _, err := testbed.AwaitEnd(ctx, s.api, answer.Msg.GetOperation().GetId()); err != nil {
				return err
			}
			_, err = s.api.DeleteVM(ctx, connect.NewRequest(&berthv1.DeleteVMRequest{Vm: vm}))
			return err
		})
	}
	s.made = nil
	return group.Wait()
}

// populate starts n VMs that stay.
func (s *starter) populate(n int) error {
	group, ctx := errgroup.WithContext(s.ctx)
	group.SetLimit(together)
	for range n {
		request := s.request(false)
		group.Go(func() error {
			answer, err := s.api.StartVM(ctx, request)
			if err != nil {
				return fmt.Errorf("start %s: %w", request.Msg.GetName(), err)
			}
			_, err = testbed.AwaitEnd(ctx, s.api, answer.Msg.GetOperation().GetId())
			return err
		})
	}
	return group.Wait()
}

// entrySize is the size in bytes of the command that a start's reply waits for, as the log of a follower has it. Each of
// the starts so far made two entries, of which the one with the decision is the larger.
func entrySize(ctx context.Context, c *testbed.Coordinators, lead *testbed.Member) (int, error) {
	at := slices.IndexFunc(c.Members, func(m *testbed.Member) bool { return m != lead })
	follower := c.Members[at]
	if err := c.Stop(follower, syscall.SIGTERM); err != nil {
		return 0, err
	}
	sizes, err := commandSizes(filepath.Join(follower.Data(), "raft", "log.db"), 2*turn)
	if err != nil {
		return 0, err
	}
	if err := c.Start(follower); err != nil {
		return 0, err
	}
	return int(sizes.Quantile(0.75)), c.AwaitWhole(ctx)
}

// commandSizes are those of the newest commands of a log.
func commandSizes(path string, newest int) (report.Figures, error) {
	store, err := raftboltdb.New(raftboltdb.Options{
		Path: path, BoltOptions: &bbolt.Options{ReadOnly: true, Timeout: time.Second},
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer store.Close()
	first, err := store.FirstIndex()
	if err != nil {
		return nil, err
	}
	last, err := store.LastIndex()
	if err != nil {
		return nil, err
	}
	var sizes report.Figures
	for index := last; index >= max(first, 1) && len(sizes) < newest; index-- {
		var entry raft.Log
		if err := store.GetLog(index, &entry); err != nil {
			return nil, fmt.Errorf("entry %d of %s: %w", index, path, err)
		}
		if entry.Type == raft.LogCommand {
			sizes = append(sizes, float64(len(entry.Data)))
		}
	}
	if len(sizes) == 0 {
		return nil, fmt.Errorf("%s: %w", path, report.ErrNothing)
	}
	return sizes, nil
}
