package evidence

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"berth/coordinator/model"
)

// odd changes something of what nodes and records have of a VM that chance leaves alone.
func (s *estate) odd(random *rand.Rand) {
	coin := func() bool { return random.IntN(3) == 0 }
	switch random.IntN(12) {
	case 0:
		s.vm.Paused = model.Stand{}
		if coin() {
			s.vm.Paused = model.Stand{By: "alice", At: s.at}
		}
	case 1:
		s.vm.Persistent = coin()
	case 2:
		s.vm.Condition = model.Condition{}
		if coin() {
			s.vm.Condition = model.Condition{Kind: model.OutOfBand, Text: "out of band: it was moved"}
		}
	case 3:
		s.vm.HA, s.vm.Bound = coin(), ""
		if coin() {
			s.vm.Bound = "its disk is on one node"
		}
	case 4:
		s.vm.Drift = nil
		if coin() {
			s.vm.Drift = &model.Drift{Node: "n1", Edits: []model.DeviceEdit{{Kind: "disk", Key: "vdb", Is: "/x.img"}}}
		}
	case 5:
		s.vm.Disks = nil
		if coin() {
			s.vm.Disks = []string{"d1"}
		}
	case 6:
		s.resources = []model.Resource{{
			Kind: model.KindDisk, ID: "d1", Name: "root", Volume: &model.Volume{Nodes: []string{[]string{"n1", "n2"}[random.IntN(2)]}},
		}}
	case 7: // as nearly all VMs are
		s.vm.Whereabouts, s.vm.Kept, s.vm.Discards = model.Whereabouts{Boot: "n1-boot"}, "", nil
		s.vm.Holder, s.vm.LastNode = "n1", "n1"
		for _, node := range []string{"n2", "n3", "n4"} {
			s.lists(node)
		}
		s.shows("n1", model.DomainRunning, s.vm.Epoch)
	default:
		s.change([]string{"n1", "n1", "n2", "n3"}[random.IntN(4)], func(f *model.NodeFacts) {
			if len(f.Domains) == 0 {
				return
			}
			domain := f.Domains[0]
			domain.Managed, domain.Autostart, domain.Persistent, domain.Name = !coin(), coin(), coin(), []string{"db", "db", "web"}[random.IntN(3)]
			f.Domains = []model.Domain{domain}
		})
	}
}

// looked is a look at all VMs.
func (f *Follower) looked(s *Survey) []Found {
	_, found := f.Look(s, Touched{All: true})
	return found
}

// seenOf are the VMs of which more is seen than is written down.
func seenOf(s *Survey) []model.VM {
	var f Follower
	return s.seen(f.turn(s, Touched{All: true}))
}

// stands is what a look at a VM that runs as it should depends on, of records and of what nodes list.
func (s *estate) stands() any {
	type listed struct {
		uuid, name                   string
		state                        model.DomainState
		epoch                        uint64
		managed, starts, isPersisted bool
	}
	type told struct {
		liveness         model.Liveness
		boot             string
		inventory, known bool
		domains          []listed
	}
	var nodes []told
	for _, node := range s.nodes {
		facts := s.facts[node.ID]
		one := told{facts.Liveness, facts.Boot, facts.Inventory, facts.DomainsKnown, nil}
		for _, d := range facts.Domains {
			one.domains = append(one.domains, listed{d.UUID, d.Name, d.State, d.Epoch, d.Managed, d.Autostart, d.Persistent})
		}
		nodes = append(nodes, one)
	}
	return []any{nodes, slices.Clone(s.nodes), slices.Clone(s.resources), s.vm}
}

// Who looks only at VMs that were touched, and at those that did not run as they should at the last look, finds what who looks at every VM
// finds, whatever has happened; and who asks only the nodes that may show a VM sees the copies that a look at all nodes sees.
func TestALookAtWhatIsOddIsALookAtAll(t *testing.T) {
	rounds, plain, found, skipped := 100_000, 0, 0, 0
	if testing.Short() {
		rounds /= 10
	}
	random := rand.New(rand.NewPCG(18, 2))
	s, few, all := running(), Follower{}, Follower{}
	var stood any
	for i := range rounds {
		if i%20 == 0 { // so that not all is in disorder for good
			s, few, all = running(), Follower{}, Follower{}
		}
		switch random.IntN(4) {
		case 0:
			s.chance(random)
		case 1:
			s.odd(random)
		case 2:
			s.chance(random)
			s.odd(random)
		}
		s.at = s.at.Add(5)
		moment := Moment{Records: s, At: s.at, Facts: func(node string) model.NodeFacts { return s.facts[node] }}
		whole := s.proof.Survey(moment)
		moment.MayShow = s.mayShow
		some := s.proof.Survey(moment)
		if some.plain(&s.vm) {
			plain++
		}
		if is, want := some.copies(&s.vm), whole.copies(&s.vm); len(is)+len(want) > 0 && !reflect.DeepEqual(is, want) {
			t.Fatalf("after %d events the copies are %+v, of all nodes %+v", i, is, want)
		}
		var touched Touched
		stands := s.stands()
		if !reflect.DeepEqual(stood, stands) {
			touched.IDs = []string{s.vm.ID}
		} else if !few.odd[s.vm.ID] {
			skipped++
		}
		stood = stands
		isSeen, is := few.Look(some, touched)
		wantSeen, want := all.Look(whole, Touched{All: true})
		if !reflect.DeepEqual(isSeen, wantSeen) {
			t.Fatalf("after %d events %+v is to be kept, of all VMs %+v", i, isSeen, wantSeen)
		}
		if !reflect.DeepEqual(is, want) {
			t.Fatalf("after %d events %+v is found, of all VMs %+v", i, is, want)
		}
		if found += len(want); !reflect.DeepEqual(few.before, all.before) || !reflect.DeepEqual(few.missing, all.missing) {
			t.Fatalf("after %d events %+v is remembered, of all VMs %+v", i, few, all)
		}
	}
	if plain < rounds/50 || found < rounds/50 || skipped < rounds/100 {
		t.Errorf("of %d looks %d are at a VM that is as it should be, %d find something, and %d look at nothing: all have to be seen",
			rounds, plain, found, skipped)
	}
}
