// Package softrules measures what it costs decisions that soft rules come before the bands: with rules, beside the same decision with the
// rules within the bands, and for a VM in no group, for which nothing may change.
package softrules

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
	"berth/integration/bench/report"
	"berth/shared/units"
)

// What a decision may take of what it takes with soft rules within the bands. That of a VM without any is the same decision; the rest
// is what two measurements of one thing differ by.
const (
	mostWithRules = 1.1
	mostWithout   = 1.05
)

// sizes are the clusters that goals are set for.
var sizes = []int{1000, 10_000, 100_000}

// others are the members of the group that are there already, each on a node of its own.
const others = 20

var (
	errNoNode = errors.New("the engine finds no node: choose fewer placements, or smaller VMs")
	errNoWish = errors.New("the soft rules of the group say nothing, so they cannot be measured")
)

// Site is what the decisions are made on: a cluster of so many nodes as the engine reads it, a VM that is asked for, and when.
type Site struct {
	Columns func(nodes int) *view.Columns
	Request placement.Request
	At      time.Time
}

// wishing is a cluster with a group, as P1 has it without: a soft rule wants its VMs on every eighth node, another one on different nodes.
func (s *Site) wishing(nodes int) (columns *view.Columns, member, stranger placement.Request) {
	columns = s.Columns(nodes)
	soft := func(polarity model.Polarity) model.Rule { return model.Rule{Polarity: polarity} }
	group := model.Group{
		ID: "g1", Name: "service", Cluster: model.DefaultCluster, VMs: []string{"member"}, Priority: model.DefaultPriority,
		NodesRule: soft(model.Positive), VMsRule: soft(model.Negative),
	}
	for i := 1; i < nodes; i += 8 { // one in eight is full, and none of these
		group.Nodes = append(group.Nodes, columns.IDs[i])
	}
	for i := range others {
		group.VMs = append(group.VMs, fmt.Sprintf("other%02d", i))
	}
	columns.Groups = view.NewGroups([]model.Group{group})
	for i := range others {
		columns.Charge(1+8*i, view.Allocation{VM: group.VMs[1+i], Memory: units.GiB, VCPUs: 1})
	}
	member, stranger = s.Request, s.Request
	member.VM, stranger.VM = "member", "stranger"
	return columns, member, stranger
}

// decider makes decisions about one VM. Each one draws its own tie.
type decider struct {
	engine  *placement.Engine
	columns *view.Columns
	request *placement.Request
	at      time.Time
	seed    uint64
	last    placement.Choice
}

func (d *decider) timed(took *report.Figures) error {
	d.seed++
	begun := time.Now()
	d.last = d.engine.Choose(d.columns, d.at, d.request, d.seed)
	if took.Add(time.Since(begun)); d.last.Node < 0 {
		return errNoNode
	}
	return nil
}

// pair is one decision before and after soft rules came before the bands, on the same columns.
type pair struct {
	what        string
	most        float64
	now, before *decider
}

// pairs are about a member and about a stranger.
func (s *Site) pairs(nodes int) ([]pair, error) {
	columns, member, stranger := s.wishing(nodes)
	pairs := []pair{
		{what: fmt.Sprintf("a VM with two soft rules of a group of %d", others+1), most: mostWithRules},
		{what: "a VM in no group", most: mostWithout},
	}
	for i, request := range []*placement.Request{&member, &stranger} {
		policy := policies.Default()
		now, err := placement.NewEngine(policy)
		before, failed := placement.NewEngine(policy.WithoutPrefer())
		if err := errors.Join(err, failed); err != nil {
			return nil, err
		}
		one := &pairs[i]
		one.now = &decider{engine: now, columns: columns, request: request, at: s.At}
		one.before = &decider{engine: before, columns: columns, request: request, at: s.At}
		var first report.Figures
		if err := errors.Join(one.now.timed(&first), one.before.timed(&first)); err != nil { // they make their scratch
			return nil, err
		}
	}
	if last := pairs[0].now.last; last.Kept == 0 || last.Kept == last.Candidates {
		return nil, errNoWish
	}
	return pairs, nil
}

// Measure takes both rows at three sizes. The effort is 10 for figures to quote, and 1 to see that everything works.
func Measure(ctx context.Context, site Site, effort int) (rows []report.Row, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the goals are for one processor
	for _, n := range sizes {
		pairs, err := site.pairs(n)
		if err != nil {
			return rows, err
		}
		for i := range pairs {
			decision, err := pairs[i].decisions(ctx, n, max(3, effort*1_000_000/n))
			if err != nil {
				return rows, err
			}
			placements := max(20, min(10*n, effort*2_000_000/n)) // far from full
			sequence, err := pairs[i].sequences(ctx, n, max(3, effort), placements)
			if err != nil {
				return rows, err
			}
			rows = append(rows, decision, sequence)
		}
	}
	return rows, nil
}

// decisions are P1's, now and before in turn.
func (p *pair) decisions(ctx context.Context, nodes, rounds int) (report.Row, error) {
	var now, before report.Figures
	runtime.GC()
	for range rounds {
		if err := errors.Join(ctx.Err(), p.now.timed(&now), p.before.timed(&before)); err != nil {
			return report.Row{}, err
		}
	}
	ratio := now.Median() / before.Median()
	return report.Row{
		Goal: "P1g", What: fmt.Sprintf("%d nodes: P1's decision with soft rules before the bands, for %s", nodes, p.what),
		Measured: now.Latency() + ": " + report.Times(ratio), Against: "within the bands " + before.Latency(),
		Wanted: "<= " + report.Times(p.most), Verdict: report.Judge(ratio, p.most),
	}, nil
}

// sequences are P6's, placement after placement, each charged before the next, now and before in turn.
func (p *pair) sequences(ctx context.Context, nodes, repeats, placements int) (report.Row, error) {
	var now, before report.Figures
	for range repeats {
		err := errors.Join(ctx.Err(), p.now.sequence(placements, &now), p.before.sequence(placements, &before))
		if err != nil {
			return report.Row{}, err
		}
	}
	ratio := now.Median() / before.Median()
	return report.Row{
		Goal: "P6g", What: fmt.Sprintf("%d nodes: P6's placements with soft rules before the bands, of %s", nodes, p.what),
		Measured: now.Latency() + " each: " + report.Times(ratio), Against: "within the bands " + before.Latency(),
		Wanted: "<= " + report.Times(p.most), Verdict: report.Judge(ratio, p.most),
	}, nil
}

// sequence places on a copy of the columns, and adds what one placement took.
func (d *decider) sequence(placements int, took *report.Figures) error {
	charged := *d
	charged.columns = d.columns.Clone()
	var each report.Figures
	begun := time.Now()
	for range placements {
		if err := charged.timed(&each); err != nil {
			return err
		}
		charged.columns.Charge(charged.last.Node, view.Allocation{
			Memory: d.request.Memory, VCPUs: d.request.VCPUs, Owner: d.request.Owner,
		})
	}
	took.Add(time.Since(begun) / time.Duration(placements))
	return nil
}
