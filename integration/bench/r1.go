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

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

const (
	// One client asks for VMs one after the other. Berth and its twins take turns of this many.
	turn = 25
	// populated is how many VMs the cluster has when it is asked whether that matters.
	populated = 1000
)

// placing is what R1 measures, in seconds.
type placing struct {
	alone    figures // StartVM to its reply, nothing else under way
	chained  figures // the same while the start before is still being finished
	crowded  figures // the first again, with populated VMs in the cluster
	dry      figures // the same without the commit
	bare     figures // a bare commit of bareEntry bytes
	bareThen figures // likewise, in turns with crowded
	dressed  figures // a bare commit of Berth's size, under mutual TLS
	cpu      figures // of all coordinators, a start with all that follows
	entry    int     // bytes of the entry that the reply waits for
}

func measureR1(ctx context.Context, b *bench) (_ []row, err error) {
	c, err := raiseCoordinators(ctx, b.berth(), b.folder("r1"), 3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	f, err := enrolFleet(ctx, c, 3)
	if err != nil {
		return nil, err
	}
	defer f.close()
	lead, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	s := starter{ctx: ctx, api: lead.api}
	p := placing{}
	if _, err := s.alone(2 * turn); err != nil {
		return nil, err
	}
	if p.entry, err = c.entrySize(ctx, lead); err != nil {
		return nil, err
	}
	if err := s.clear(); err != nil {
		return nil, err
	}
	if err := f.awaitReady(ctx, lead.api); err != nil {
		return nil, err
	}
	if err := p.measure(b, c, &s); err != nil {
		return nil, err
	}
	return p.rows(), nil
}

// measure lets Berth and its twins take turns, the first of which does not count.
func (p *placing) measure(b *bench, c *coordinators, s *starter) (err error) {
	bare, err := raiseBare(b.folder("bare"), bareEntry, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	dressed, err := raiseBare(b.folder("dressed"), p.entry, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dressed.close()) }()
	for round := range b.rounds(4, 24) + 1 {
		if err := p.turns(c, s, bare, dressed, round > 0); err != nil {
			return err
		}
	}
	if err := s.populate(populated); err != nil {
		return err
	}
	for range b.rounds(2, 8) {
		then, err := bare.commits(turn)
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
func (p *placing) turns(c *coordinators, s *starter, bare, dressed *bareRaft, counts bool) error {
	before, err := cpuTimes(c.pids()...)
	if err != nil {
		return err
	}
	alone, err := s.alone(turn)
	if err != nil {
		return err
	}
	after, err := cpuTimes(c.pids()...)
	if err != nil {
		return err
	}
	taken := []figures{alone}
	for _, take := range []func(int) (figures, error){bare.commits, s.chained, dressed.commits, s.dry} {
		one, err := take(turn)
		if err != nil {
			return err
		}
		taken = append(taken, one)
	}
	if counts {
		for i, all := range []*figures{&p.alone, &p.bare, &p.chained, &p.dressed, &p.dry} {
			*all = append(*all, taken[i]...)
		}
		p.cpu = append(p.cpu, (after-before).Seconds()/turn)
	}
	return s.clear()
}

func (p *placing) rows() []row {
	ratio := func(f figures) float64 { return f.median() / p.bare.median() }
	return []row{
		{
			goal:     "R1",
			what:     "StartVM: API, decision, Raft (3 coordinators, mutual TLS, fsync), reply; one client, nothing else under way",
			measured: p.alone.latency(),
			against: fmt.Sprintf("bare hashicorp/raft, %d-byte commands: %s\nratio of p50: %s",
				bareEntry, p.bare.latency(), times(ratio(p.alone))),
			wanted:  "p50 <= 1.5x bare (stretch 1.2x)",
			verdict: judge(ratio(p.alone), 1.5),
		},
		{
			what:     "the same, called again at once: the start before is still being finished",
			measured: p.chained.latency(), against: "ratio of p50: " + times(ratio(p.chained)),
		},
		{
			what:     "of it: call, decision and reply, without the commit (dry run)",
			measured: p.dry.latency(), against: "ratio of p50: " + times(ratio(p.dry)),
		},
		{
			what:     fmt.Sprintf("of it: the commit, as bare raft with Berth's %d-byte entry under mutual TLS", p.entry),
			measured: p.dressed.latency(), against: "ratio of p50: " + times(ratio(p.dressed)),
		},
		{
			what:     fmt.Sprintf("StartVM as above, with %d VMs in the cluster instead of at most %d", populated, 2*turn),
			measured: p.crowded.latency(),
			against:  "bare, then: " + p.bareThen.latency() + "\nratio of p50: " + times(p.crowded.median()/p.bareThen.median()),
		},
		{
			what:     "CPU of the 3 coordinators for one start to its end (two commits, one order)",
			measured: p.cpu.spread(seconds),
		},
	}
}

// commits takes a turn of bare commits.
func (b *bareRaft) commits(n int) (figures, error) {
	var took figures
	for range n {
		one, err := b.propose()
		if err != nil {
			return nil, fmt.Errorf("bare raft: %w", err)
		}
		took.add(one)
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
		Name: fmt.Sprintf("vm%05d", s.number), Spec: simulatedVM(), DryRun: dry, RequestId: fmt.Sprintf("bench-%d", s.number),
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
func (s *starter) alone(n int) (figures, error) {
	var all figures
	for range n {
		took, answer, err := s.start(false)
		if err != nil {
			return nil, err
		}
		if _, err := awaitEnd(s.ctx, s.api, answer.GetOperation().GetId()); err != nil {
			return nil, err
		}
		all.add(took)
	}
	return all, nil
}

// chained takes a turn of starts one right after the other's reply, and waits for the last one's end.
func (s *starter) chained(n int) (figures, error) {
	var all figures
	last := ""
	for range n {
		took, answer, err := s.start(false)
		if err != nil {
			return nil, err
		}
		last = answer.GetOperation().GetId()
		all.add(took)
	}
	_, err := awaitEnd(s.ctx, s.api, last)
	return all, err
}

func (s *starter) dry(n int) (figures, error) {
	var all figures
	for range n {
		took, _, err := s.start(true)
		if err != nil {
			return nil, err
		}
		all.add(took)
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
			if _, err := awaitEnd(ctx, s.api, answer.Msg.GetOperation().GetId()); err != nil {
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
			_, err = awaitEnd(ctx, s.api, answer.Msg.GetOperation().GetId())
			return err
		})
	}
	return group.Wait()
}

// entrySize is the size in bytes of the command that a start's reply waits for, as the log of a follower has it. Each of
// the starts so far made two entries, of which the one with the decision is the larger.
func (c *coordinators) entrySize(ctx context.Context, lead *member) (int, error) {
	at := slices.IndexFunc(c.members, func(m *member) bool { return m != lead })
	follower := c.members[at]
	if err := c.stop(follower, syscall.SIGTERM); err != nil {
		return 0, err
	}
	sizes, err := commandSizes(filepath.Join(follower.data(), "raft", "log.db"), 2*turn)
	if err != nil {
		return 0, err
	}
	if err := c.start(follower); err != nil {
		return 0, err
	}
	return int(sizes.quantile(0.75)), c.awaitWhole(ctx)
}

// commandSizes are those of the newest commands of a log.
func commandSizes(path string, newest int) (figures, error) {
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
	var sizes figures
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
		return nil, fmt.Errorf("%s: %w", path, errNothing)
	}
	return sizes, nil
}
