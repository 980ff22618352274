package plans

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/consensus"
	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	"berth/coordinator/view"
	"berth/shared/units"
)

// site is two nodes with a VM on the first. It stands for the log, for what agents report, and for the room that moves VMs: it refuses
// every move.
type site struct {
	lead.Inventory
	*Plans

	store    *state.Store
	index    uint64
	silent   atomic.Bool // the second node has not reported to this leader
	waits    atomic.Bool // calls wait
	asked    []string
	recorded []placement.Decision
	lose     context.CancelFunc
}

// agents are those of a site that no node was removed from. Plans tell them nothing.
type agents struct{ lead.Agents }

func (agents) Removed() []evidence.Removed { return nil }

func newSite(t *testing.T) *site {
	s := &site{store: state.NewStore()}
	random := uint64(0)
	leader := lead.New(lead.Config{
		Store: s.store, Proposer: s, Inventory: s, Agents: agents{}, Logger: hclog.NewNullLogger(), Now: time.Now,
		Random: func() uint64 { random += 0x9e3779b97f4a7c15; return random },
	})
	s.Plans = New(leader, s, s, Config{CallsWait: func() bool { return s.waits.Load() }})
	result, err := s.Propose(t.Context(), state.Command{
		Key: "site", Kind: "test", At: time.Now(),
		Expect: []state.Expectation{{Table: state.Nodes, ID: "n1"}, {Table: state.Nodes, ID: "n2"}, {Table: state.VMs, ID: "v1"}},
		Nodes:  []model.Node{{ID: "n1", Name: "node1"}, {ID: "n2", Name: "node2"}},
		VMs: []model.VM{{
			ID: "v1", Name: "web", Holder: "n1", Epoch: 1, LastEpoch: 1, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Kernel: "/vmlinuz"},
		}},
	})
	if err != nil || result.Refusal != nil {
		t.Fatal(err, result.Refusal)
	}
	ctx, cancel := context.WithCancel(context.Background())
	leader.Begin(ctx, 1)
	s.lose = func() {
		cancel()
		leader.End()
		s.Wait()
	}
	return s
}

func (s *site) Propose(_ context.Context, command state.Command) (state.Result, error) {
	data, err := command.Encode()
	if err != nil {
		return state.Result{}, err
	}
	s.index++
	return s.store.FSM().Apply(&raft.Log{Index: s.index, Data: data}).(state.Result), nil
}

func (s *site) ProposeTogether(context.Context, []state.Command) []consensus.Answer { return nil }

func (s *site) Barrier(context.Context) error { return nil }

func (s *site) Settled(*state.Snapshot, time.Time) bool { return true }

func (s *site) Facts(node string, now time.Time) model.NodeFacts {
	reports, available := node != "n2" || !s.silent.Load(), 8*units.GiB
	return model.NodeFacts{
		Liveness: model.Up, Inventory: reports, Telemetry: reports, TelemetryAt: now, InventoryAt: now, DomainsKnown: true,
		Memory: 8 * units.GiB, Available: &available, CPUs: 8,
	}
}

func (s *site) View(snapshot *state.Snapshot, now time.Time) *view.View {
	return view.New(now, snapshot.Index(), view.Records{Nodes: snapshot.Nodes(), VMs: snapshot.VMs()}, map[string]model.NodeFacts{
		"n1": s.Facts("n1", now), "n2": s.Facts("n2", now),
	})
}

func (s *site) BeginMove(_ context.Context, attempt *moving.Attempt) moving.Answer {
	s.asked = append(s.asked, attempt.VMName)
	return moving.Answer{Refusal: &moving.Refusal{
		Cause: moving.NoNode, Why: "full", Decision: &placement.Decision{ID: fmt.Sprint("d", len(s.asked))},
	}}
}

func (s *site) RecordRefusal(_ context.Context, decision placement.Decision) error {
	s.recorded = append(s.recorded, decision)
	return nil
}

func (s *site) CancelOperation(context.Context, string, string) (operation.Operation, error) {
	return operation.Operation{}, nil
}

// FrozenAmong: nobody has frozen anything.
func (*site) FrozenAmong(context.Context, *state.Snapshot, []string) []string { return nil }

// The executor asks for the moves that the driver wants, keeps the last refusal, and ends the plan.
func TestAPlanWhoseMovesAreRefusedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer s.lose()
		drained, err := s.DrainNode(t.Context(), DrainNode{Node: "n1", Caller: "operator/test"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		plan, _ := s.store.Snapshot().Plan(drained.Plan.ID)
		if plan.EndedAt.IsZero() || plan.Moves[0].Result != model.MoveStays || !strings.Contains(plan.Moves[0].Reason, "full") {
			t.Errorf("the plan is %s: %+v", plan.State, plan.Moves)
		}
		if last := fmt.Sprint("d", len(s.asked)); len(s.asked) < 3 || len(s.recorded) != 1 || s.recorded[0].ID != last {
			t.Errorf("asked for %q, recorded %+v", s.asked, s.recorded)
		}
	})
}

// No move begins while a node may still be on its way to a new leader. What people have asked for does not wait for their other calls.
func TestMovesWaitForNodesAndNotForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer s.lose()
		s.silent.Store(true)
		s.waits.Store(true)
		if _, err := s.DrainNode(t.Context(), DrainNode{Node: "n1", Caller: "operator/test"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if len(s.asked) > 0 {
			t.Fatalf("asked for %q", s.asked)
		}
		s.silent.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(s.asked) == 0 {
			t.Error("nothing was asked for after all nodes had reported")
		}
	})
}

func TestWhyAPassIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer s.lose()
		fencing := func(phase model.FencingPhase) {
			node, _ := s.store.Snapshot().Node("n2")
			node.Fencing = model.Fencing{ID: "f1", Phase: phase, AskedAt: time.Now()}
			s.Try(t.Context(), state.Command{Key: s.NewID(), Kind: "test", At: time.Now(), Nodes: []model.Node{node}, Expect: []state.Expectation{{
				Table: state.Nodes, ID: node.ID, Revision: node.Revision,
			}}})
		}
		cases := map[string]func(){
			"not all nodes have reported": func() { s.silent.Store(true) },
			"what people ask for":         func() { s.waits.Store(true) },
			"the fence device of node2":   func() { fencing(model.FencingAsked) },
		}
		for _, want := range slices.Sorted(maps.Keys(cases)) {
			s.silent.Store(false)
			s.waits.Store(false)
			fencing(model.FencingFailed)
			if why := s.idleBecause(s.store.Snapshot()); why != "" {
				t.Errorf("at first: %q", why)
			}
			cases[want]()
			if why := s.idleBecause(s.store.Snapshot()); !strings.HasPrefix(why, want) {
				t.Errorf("want %q: %q", want, why)
			}
		}
	})
}
