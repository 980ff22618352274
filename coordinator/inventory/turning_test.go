package inventory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Whoever falls silent is told of as soon as it does, whatever the fleet does meanwhile: what was told last of each node is what a look at
// all of them finds.
func TestTimeTurnsEachNodeWhenALookAtAllWouldFindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		s := &site{
			T: t, random: rand.New(rand.NewPCG(seed, 3)), records: state.NewStore(), soft: newStore(), agents: map[string]*agent{},
		}
		kinds := map[model.Liveness]int{}
		happenings := []func(){s.node, s.hear, s.hear, s.hear, s.time, s.time, s.nodeRecord, s.vm}
		for n := range eventsOf(t) {
			happenings[s.random.IntN(len(happenings))]()
			switch s.random.IntN(1000) {
			case 0:
				s.soft.Reset()
				clear(s.agents)
			case 1, 2, 3: // somebody has read the records a moment before, and comes to look later
				old := s.records.Snapshot()
				s.nodeRecord()
				s.soft.look(s.records.Snapshot())
				s.soft.look(old)
			}
			snapshot, now := s.records.Snapshot(), time.Now()
			s.soft.look(snapshot)
			for node := range snapshot.SharedNodes() {
				is, _ := s.soft.liveness(s.soft.nodes[node.ID], now)
				kinds[is]++
				known := s.soft.nodes[node.ID]
				if known == nil && is != model.Suspect || known != nil && known.published != is {
					t.Fatalf("after %d: node %s is %s, and that was not told", n, node.ID, is)
				}
			}
			if members := s.soft.turning.agenda.Len(); members != snapshot.CountNodes() {
				t.Fatalf("after %d: %d nodes are watched, not %d", n, members, snapshot.CountNodes())
			}
		}
		for _, kind := range []model.Liveness{model.Up, model.Suspect, model.Unreachable, model.Degraded} {
			if kinds[kind] < 100 {
				t.Errorf("of %q there were %d: the test says little of it", kind, kinds[kind])
			}
		}
	})
}

// A view as of a moment before the last one that was made lacks what time has changed since: no later view is made of it.
func TestAViewOfAnEarlierMomentHidesNothingFromALaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, records := newStore(), state.NewStore()
		apply(t, records, enrol("n1"))
		connect(t, store, "n1")
		snapshot := records.Snapshot()
		before := time.Now()
		store.View(snapshot, before)
		time.Sleep(time.Minute)
		after := time.Now()
		store.views.turn(snapshot, after) // for somebody who reads the clock later, and comes first
		if got := store.View(snapshot, before.Add(time.Second)).Node("n1").Facts.Liveness; got != model.Up {
			t.Fatalf("a second after it was heard it is %s", got)
		}
		if got := store.View(snapshot, after).Node("n1").Facts.Liveness; got != model.Unreachable {
			t.Errorf("after a minute of silence it is %s", got)
		}
	})
}

// A fleet that reports costs nobody who waits for silence anything: only a node that turns is noted as another.
func TestANodeThatReportsDoesNotTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, records := newStore(), state.NewStore()
		var agents []*agent
		for n := range 20 {
			id := fmt.Sprint("n", n)
			apply(t, records, enrol(id))
			agents = append(agents, connect(t, store, id))
		}
		store.look(records.Snapshot())
		for range 100 {
			time.Sleep(time.Second)
			for _, a := range agents[1:] {
				a.inventory()
			}
			before := store.changes.count()
			store.look(records.Snapshot())
			turned, _ := store.changes.since(before)
			if slices.ContainsFunc(turned, func(id string) bool { return id != "n0" }) {
				t.Fatalf("%v turned", turned)
			}
		}
	})
}

// Whatever was noted of a node wrongly: within a minute its silence is seen.
func TestASilentNodeThatIsNotNotedIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, records := newStore(), state.NewStore()
		apply(t, records, enrol("n1"))
		connect(t, store, "n1")
		store.look(records.Snapshot())
		store.turning.agenda.Remove("n1")
		time.Sleep(auditEvery)
		store.look(records.Snapshot())
		if told := store.nodes["n1"].published; told != model.Unreachable {
			t.Errorf("after a minute of silence it is told as %s", told)
		}
		if got := store.View(records.Snapshot(), time.Now()).Node("n1").Facts.Liveness; got != model.Unreachable {
			t.Errorf("in the view it is %s", got)
		}
	})
}
