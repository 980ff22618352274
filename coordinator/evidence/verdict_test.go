package evidence

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// mayShow is the list that an inventory keeps.
func (s *estate) mayShow(uuid string) []string {
	var ids []string
	for _, node := range s.nodes {
		facts := s.facts[node.ID]
		if facts.Domain(uuid) != nil || facts.Liveness == model.Up && !facts.Inventory {
			ids = append(ids, node.ID)
		}
	}
	return ids
}

// chance changes something of an estate.
func (s *estate) chance(random *rand.Rand) {
	node := s.nodes[random.IntN(len(s.nodes))].ID
	some := func() string { return []string{"", "n1", "n2", "n3", "n4", "n9"}[random.IntN(6)] }
	ago := func() time.Time { return s.at.Add(-time.Duration(random.IntN(90)) * time.Minute) }
	coin := func() bool { return random.IntN(2) == 0 }
	switch random.IntN(16) {
	case 0, 1:
		states := []model.DomainState{
			model.DomainRunning, model.DomainPaused, model.DomainPausedMigration, model.DomainShutoff, model.DomainCrashed, model.DomainOrphan,
		}
		s.shows(node, states[random.IntN(len(states))], uint64(random.IntN(4)))
		s.change(node, func(f *model.NodeFacts) { f.Domains[0].Saved, f.Domains[0].Since = coin(), ago() })
	case 2, 3:
		s.lists(node)
	case 4:
		s.change(node, func(f *model.NodeFacts) {
			f.Liveness = []model.Liveness{model.Up, model.Up, model.Suspect, model.Unreachable, model.Degraded}[random.IntN(5)]
			f.HeardAt = ago()
		})
	case 5:
		s.change(node, func(f *model.NodeFacts) {
			if f.Inventory, f.DomainsKnown, f.MetAt = coin(), coin(), s.at.Add(-time.Duration(random.IntN(60))*time.Second); !f.Inventory {
				f.Domains = nil
			}
		})
	case 6:
		s.change(node, func(f *model.NodeFacts) {
			f.InventoryAt, f.Liveness, f.Inventory, f.DomainsKnown = ago(), model.Up, true, true
		})
	case 7:
		s.change(node, func(f *model.NodeFacts) {
			f.Endings = nil
			if coin() {
				f.Endings = map[string]model.Ending{vmID: {At: ago(), RanSince: ago(), Whole: coin()}}
			}
		})
	case 8:
		s.fenced(node)
	case 9:
		at := slices.IndexFunc(s.nodes, func(n model.Node) bool { return n.ID == node })
		s.nodes[at].Fencing = model.Fencing{}
		s.change(node, func(f *model.NodeFacts) { f.Liveness, f.HeardAt = model.Up, s.at })
	case 10:
		s.vm.Holder = some()
	case 11:
		s.vm.LastNode, s.vm.Kept = some(), some()
	case 12:
		s.vm.Discards = nil
		if coin() {
			s.vm.Discards = []model.Discard{{Node: some(), Epoch: uint64(random.IntN(4))}}
		}
	case 13:
		s.vm.Whereabouts = model.Whereabouts{}
		if random.IntN(4) == 0 {
			s.vm.Whereabouts = model.Whereabouts{Boot: node + "-boot", Missing: ago()}
		}
	case 14:
		s.vm.Epoch, s.vm.StartedAt, s.vm.MovedAt = uint64(random.IntN(4)), ago(), ago()
	default:
		s.history = []operation.Operation{{VM: vmID, Kind: operation.Migrate, Source: some(), Target: some(), Epoch: s.vm.Epoch}}
	}
}

// Who asks only the nodes that may be in the way has the verdict of all nodes, whatever has happened.
func TestAVerdictIsThatOfAllNodes(t *testing.T) {
	random := rand.New(rand.NewPCG(18, 1))
	s, may, refused := running(), 0, 0
	rounds := 100_000
	if testing.Short() {
		rounds /= 10
	}
	for i := range rounds {
		if s.chance(random); i%500 == 0 {
			s = running() // so that not all is in disorder for good
		}
		moment := Moment{Records: s, At: s.at, Facts: func(node string) model.NodeFacts { return s.facts[node] }}
		all := s.proof.Survey(moment)
		moment.MayShow = s.mayShow
		some := s.proof.Survey(moment)
		refuses := []string{"", s.vm.LastNode}[random.IntN(2)]
		want, is := all.Start(&s.vm, refuses), some.Verdict(&s.vm, refuses)
		if want.May {
			may++
		} else {
			refused++
		}
		if way := want.InTheWay(); !reflect.DeepEqual(is.InTheWay(), way) {
			t.Fatalf("after %d events in the way are %+v, of all nodes %+v", i, is.InTheWay(), way)
		}
		want.Words, is.Words = nil, nil
		if !reflect.DeepEqual(is, want) {
			t.Fatalf("after %d events the verdict is %+v, of all nodes %+v", i, is, want)
		}
		for _, contradicting := range []bool{false, true} {
			if is, want := s.proof.Showing(moment, vmID, contradicting), s.proof.Showing(all.Moment, vmID, contradicting); is != want {
				t.Fatalf("after %d events %q shows it, of all nodes %q", i, is, want)
			}
		}
	}
	if may < rounds/100 || refused < rounds/100 {
		t.Errorf("%d may start and %d may not: both have to be seen", may, refused)
	}
}
