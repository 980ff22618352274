package inventory

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

// quiet begins a trail that comes by nothing but what has changed.
func quiet(store *Store, heard *changes) *trail {
	return &trail{store: store, heard: heard, audit: audit{off: true}}
}

// moment is what a leader knows now.
func (s *site) moment(snapshot *state.Snapshot) evidence.Moment {
	now := time.Now()
	return evidence.Moment{
		Records: snapshot, At: now, Facts: func(node string) model.NodeFacts { return s.soft.Facts(node, now) },
		MayShow: s.soft.MayShow, WithDisk: s.soft.WithDisk,
	}
}

// plainly has a node run a VM as it should: as nearly all VMs do.
func (s *site) plainly() {
	id, node := fmt.Sprint("v", s.random.IntN(vmsAtMost)), s.nodeID()
	vm, is := s.records.Snapshot().VM(id)
	if !is || node == "gone" {
		return
	}
	for _, other := range s.agents {
		other.change("gone", inState(id, berthv1.DomainState_DOMAIN_STATE_ABSENT))
	}
	if s.agents[node] == nil {
		s.agents[node] = connect(s.T, s.soft, node)
		s.agents[node].inventory()
	}
	vm.Holder, vm.LastNode, vm.Desired = node, node, model.Running
	vm.Whereabouts = model.Whereabouts{Boot: BootOf(s.agents[node].boot)}
	if disk, there := s.records.Snapshot().Resource("disk-a"); there && len(s.records.Snapshot().VMsLinkedTo(disk.ID)) == 0 {
		vm.Disks = []string{disk.ID}
	}
	vm.LastEpoch++
	vm.Epoch = vm.LastEpoch
	shown := running(id)
	shown.Managed, shown.Epoch = true, vm.Epoch
	s.agents[node].change("started", shown)
	s.store(state.Command{Expect: []state.Expectation{{Table: state.VMs, ID: id, Revision: vm.Revision}}, VMs: []model.VM{vm}})
}

// upset has a node show a VM otherwise than it should, or no more.
func (s *site) upset() {
	vm, is := s.records.Snapshot().VM(fmt.Sprint("v", s.random.IntN(vmsAtMost)))
	node := vm.Holder
	if s.random.IntN(3) == 0 {
		node = s.nodeID()
	}
	a := s.agents[node]
	if !is || a == nil {
		return
	}
	shown := inState(vm.ID, berthv1.DomainState_DOMAIN_STATE_RUNNING)
	shown.Managed, shown.Epoch = true, vm.Epoch
	switch s.random.IntN(6) {
	case 0:
		shown.State = berthv1.DomainState_DOMAIN_STATE_PAUSED
	case 1:
		shown.State = berthv1.DomainState_DOMAIN_STATE_ABSENT
	case 2:
		shown.Managed = false
	case 3:
		shown.Epoch++
	case 4:
		shown.Autostart = true
	default:
		shown.Name = "other"
	}
	if s.some() {
		a.change("event", shown)
	} else {
		a.inventory(shown)
	}
}

// astray has the disk of a VM be on another node's pool.
func (s *site) astray() {
	disk, is := s.records.Snapshot().Resource("disk-a")
	if !is {
		return
	}
	disk.Volume = &model.Volume{Pool: "pool-a", Name: "a", Format: "qcow2", Capacity: 1 << 30, Nodes: []string{s.nodeID()}}
	s.store(state.Command{
		Expect: []state.Expectation{{Table: state.Resources, ID: disk.ID, Revision: disk.Revision}}, Resources: []model.Resource{disk},
	})
}

// fence writes down what was tried of a node, and what it needs.
func (s *site) fence() {
	node, is := s.records.Snapshot().Node(s.nodeID())
	if !is {
		return
	}
	switch s.random.IntN(3) {
	case 0:
		node.Fencing = model.Fencing{}
	case 1:
		boot := s.one("boot-1", "boot-2")
		node.Fencing = model.Fencing{Phase: model.FencingProven, Method: model.FenceManual, Boot: boot, EndedAt: time.Now()}
	default:
		node.Fence = model.FenceDevice{Method: model.FenceMethod(s.one("", string(model.FenceWatchdog)))}
	}
	s.store(state.Command{Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: node.Revision}}, Nodes: []model.Node{node}})
}

// work begins an operation if nothing works on any VM, and else ends what works.
func (s *site) work() {
	live := s.records.Snapshot().LiveOperations()
	if len(live) == 0 {
		s.operation()
		return
	}
	op := live[0]
	op.Phase, op.Result, op.EndedAt, op.UpdatedAt = operation.Ended, operation.Done, time.Now(), time.Now()
	s.store(state.Command{
		Expect: []state.Expectation{{Table: state.Operations, ID: op.ID, Revision: op.Revision}}, Operations: []operation.Operation{op},
	})
}

// boot has a machine boot anew.
func (s *site) boot() {
	if a := s.agents[s.nodeID()]; a != nil {
		a.boot, a.sequence = s.one("boot-1", "boot-2", "boot-3/1"), a.sequence+1
		a.reconnect()
	}
}

// Who looks only at what was touched finds what who looks at all finds, whatever has happened: of VMs with what was remembered of the look
// before, and of nodes all that fencing looks at.
func TestATrailNamesAllThatMayBeAnother(t *testing.T) {
	events := eventsOf(t)
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		s := &site{
			T: t, random: rand.New(rand.NewPCG(seed, 18)), records: state.NewStore(), soft: newStore(), agents: map[string]*agent{},
		}
		for range 6 {
			s.node()
		}
		happenings := []func(){
			s.vm, s.vm, s.plainly, s.plainly, s.plainly, s.work, s.resource, s.hear, s.hear, s.hear, s.time, s.time, s.nodeRecord, s.node,
			s.fence, s.boot, s.upset, s.astray, s.astray,
		}
		nodes, vms := quiet(s.soft, &s.soft.changes), quiet(s.soft, &s.soft.stirred)
		var few, all evidence.Follower
		stood := map[string]any{}
		found, skipped, quietNodes := 0, 0, 0
		for n := range events {
			happenings[s.random.IntN(len(happenings))]()
			if s.random.IntN(1000) == 0 {
				s.soft.Reset()
				clear(s.agents)
			}
			snapshot := s.records.Snapshot()
			if s.random.IntN(20) == 0 { // somebody else reads the clock a moment later, and comes first
				s.soft.views.turn(snapshot, time.Now().Add(time.Duration(s.random.IntN(3000))*time.Millisecond))
			}
			p := s.moment(snapshot)
			touched := nodes.nodes(snapshot, p.At)
			stands := map[string]any{}
			guards := p.Guards()
			for node := range snapshot.SharedNodes() {
				stands[node.ID] = []any{*node, p.Facts(node.ID), guards(node.ID), snapshot.Clusters()}
				switch named := touched.All || slices.Contains(touched.IDs, node.ID); {
				case !named && !reflect.DeepEqual(stood[node.ID], stands[node.ID]):
					t.Fatalf("after %d: node %s is another, and nobody says so:\n%+v\n%+v", n, node.ID, stood[node.ID], stands[node.ID])
				case !named:
					quietNodes++
				}
			}
			for id := range stands {
				if guarded := p.Guarded(); guards(id) != guarded[id] {
					t.Fatalf("after %d: node %s is guarded: %t", n, id, guards(id))
				}
			}
			stood = stands

			some := vms.vms(snapshot, p.At)
			if !some.All && len(some.IDs) == 0 {
				skipped++
			}
			isSeen, is := few.Look(evidence.Proofs{}.Survey(p), some)
			p.MayShow = nil
			wantSeen, want := all.Look(evidence.Proofs{}.Survey(p), evidence.Touched{All: true})
			if !reflect.DeepEqual(isSeen, wantSeen) || !reflect.DeepEqual(is, want) {
				t.Fatalf("after %d: %+v is found, of all VMs %+v; seen %+v, of all %+v", n, is, want, isSeen, wantSeen)
			}
			found += len(want)
		}
		if found < events/10 || skipped < events/20 || quietNodes < events {
			t.Errorf("%d findings, %d looks at no VM, %d nodes that nothing is new of: the test says little", found, skipped, quietNodes)
		}
	})
}

// Whatever was not noted: within a minute everything is looked at.
func TestATrailComesByEverythingWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, records := newStore(), state.NewStore()
		for n := range 100 {
			id := fmt.Sprint("n", n)
			apply(t, records, enrol(id))
			connect(t, store, id).session.Keep(model.Pace{Sample: time.Minute}) // and none falls silent
		}
		nodes := store.NodesTouched()
		if first := nodes(records.Snapshot(), time.Now()); !first.All {
			t.Fatalf("the first look is not at all: %+v", first)
		}
		seen := map[string]bool{}
		for range int(auditEvery / time.Second) {
			time.Sleep(time.Second)
			touched := nodes(records.Snapshot(), time.Now())
			if len(touched.IDs) > 4 {
				t.Errorf("%d nodes at once", len(touched.IDs))
			}
			for _, id := range touched.IDs {
				seen[id] = true
			}
		}
		if len(seen) != 100 {
			t.Errorf("%d of 100 nodes were looked at", len(seen))
		}
	})
}
