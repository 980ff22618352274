package fencing

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/coordinator/state/statetest"
)

// land is a small site to which anything happens that fencing looks at.
type land struct {
	*statetest.Site
	random *rand.Rand
	facts  map[string]model.NodeFacts
	at     time.Time
	count  int

	few, all *Fencer
}

const landNodes, landVMs = 6, 8

func newLand(t *testing.T, seed uint64) *land {
	l := &land{
		Site: statetest.New(t), random: rand.New(rand.NewPCG(seed, 18)), facts: map[string]model.NodeFacts{}, at: statetest.Noon,
	}
	l.lead()
	l.Apply(state.RaiseLevel(state.FeatureLevel))
	l.Apply(state.Command{
		Expect:    []state.Expectation{{Table: state.Resources, ID: "east-id"}},
		Resources: []model.Resource{{ID: "east-id", Kind: model.KindCluster, Name: "east"}},
	})
	for n := 2; n <= landNodes; n++ {
		id := fmt.Sprint("n", n)
		l.Apply(state.Command{
			Expect: []state.Expectation{{Table: state.Nodes, ID: id}},
			Nodes:  []model.Node{{ID: id, Name: "node-" + id, Cluster: l.one(model.DefaultCluster, "east")}},
		})
	}
	for v := range landVMs {
		id := fmt.Sprint("v", v)
		l.Apply(state.Command{
			Expect: []state.Expectation{{Table: state.VMs, ID: id}},
			VMs:    []model.VM{{ID: id, Name: "vm-" + id, Desired: model.Running, HA: true}},
		})
	}
	return l
}

// lead begins another leadership.
func (l *land) lead() {
	l.few, l.all = NewFencer(l.at, func() string { return "id" }), NewFencer(l.at, func() string { return "id" })
}

func (l *land) one(of ...string) string { return of[l.random.IntN(len(of))] }
func (l *land) some() bool              { return l.random.IntN(2) == 0 }
func (l *land) node() string            { return fmt.Sprint("n", 1+l.random.IntN(landNodes)) }

// happens has one thing happen. It is told by whether both fencers hear of it, or only the records and the reports change.
func (l *land) happens() {
	switch l.random.IntN(12) {
	case 0, 1:
		l.nodeRecord()
	case 2, 3:
		l.vmRecord()
	case 4:
		l.work()
	case 5:
		l.declare()
	case 6:
		node, leased := l.node(), l.some()
		l.both(func(f *Fencer) { f.Leased(node, leased, l.at) })
	case 7:
		node, _ := l.Snapshot().Node(l.node())
		why := l.one("", "it does not answer")
		l.both(func(f *Fencer) { f.Tried(&node, why, l.at) })
	case 8:
		node, _ := l.Snapshot().Node(l.node())
		l.both(func(f *Fencer) { f.Identified(&node, model.FenceIdentities{{Machine: "m"}}, l.at) })
	case 9:
		l.at = l.at.Add(time.Duration(l.random.IntN(40)) * time.Minute)
	default:
		l.hear()
	}
}

// mend has all nodes be as they should, and one fall silent: with all that goes wrong by chance, nobody would be fenced.
func (l *land) mend() {
	silent := l.node()
	for _, node := range l.Snapshot().Nodes() {
		facts := model.NodeFacts{Liveness: model.Up, HeardAt: l.at, Inventory: true, DomainsKnown: true, Boot: "b1", Hardware: "h-" + node.ID}
		method := model.FenceMethod(l.one(string(model.FenceWatchdog), string(model.FenceCommand)))
		node.Boot, node.Hardware, node.Fencing, node.Twin, node.Maintenance = facts.Boot, facts.Hardware, model.Fencing{}, model.Twin{}, false
		node.Fence, node.Watchdog = model.FenceDevice{Method: method}, 0
		if method == model.FenceWatchdog {
			node.Watchdog, facts.Watchdog = time.Minute, time.Minute
			if l.some() {
				node.Watchdog = 0
			} else {
				l.both(func(f *Fencer) { f.Leased(node.ID, true, l.at) })
			}
		}
		if node.ID == silent {
			facts.Liveness = model.Unreachable
			if l.random.IntN(3) == 0 {
				node.Fencing = model.Fencing{ID: "f", Phase: model.FencingProven, Method: method, Boot: node.Boot, AskedAt: l.at, EndedAt: l.at}
				l.both(func(f *Fencer) { f.Proofs[node.ID] = l.at })
			}
		}
		l.facts[node.ID] = facts
		l.put(node)
	}
	l.at = l.at.Add(time.Duration(1+l.random.IntN(5)) * time.Minute)
}

func (l *land) both(do func(*Fencer)) {
	do(l.few)
	do(l.all)
}

func (l *land) hear() {
	id := l.node()
	facts := l.facts[id]
	switch l.random.IntN(4) {
	case 0: // it falls silent, or says that it is of no use
		facts.Liveness = []model.Liveness{model.Suspect, model.Unreachable, model.Unreachable, model.Degraded}[l.random.IntN(4)]
		facts.SickSince = time.Time{}
		if facts.Liveness == model.Degraded {
			facts.SickSince, facts.HeardAt = l.at.Add(-time.Duration(l.random.IntN(10))*time.Minute), l.at
		}
	default: // it is heard
		facts.Liveness, facts.HeardAt, facts.Inventory, facts.DomainsKnown = model.Up, l.at, true, true
		facts.SickSince = time.Time{}
		if l.random.IntN(4) == 0 || facts.Boot == "" {
			facts.Boot = l.one("b1", "b2", "b3")
		}
		facts.Watchdog = []time.Duration{0, 0, time.Minute}[l.random.IntN(3)]
		facts.Hardware = l.one("h-"+id, "h-"+id, "h-"+id, "other")
	}
	l.facts[id] = facts
}

func (l *land) nodeRecord() {
	node, _ := l.Snapshot().Node(l.node())
	switch l.random.IntN(7) {
	case 0:
		node.Fence = model.FenceDevice{Method: model.FenceMethod(l.one("", string(model.FenceWatchdog), string(model.FenceManual)))}
	case 1:
		node.Fence = model.FenceDevice{Method: model.FenceCommand, Program: l.one("fence_a", "fence_b")}
	case 2:
		node.Maintenance = l.some()
	case 3:
		node.Labels = [][]string{nil, {"rack-1"}, {"rack-2"}}[l.random.IntN(3)]
	case 4:
		node.Watchdog = []time.Duration{0, time.Minute}[l.random.IntN(2)]
	case 5:
		node.Twin = model.Twin{}
		if l.random.IntN(3) == 0 {
			node.Twin = model.Twin{Why: "two machines say that they are it"}
		}
	default:
		phase := model.FencingPhase(l.one("", "", string(model.FencingAsked), string(model.FencingFailed), string(model.FencingProven)))
		node.Fencing = model.Fencing{}
		if phase != "" {
			node.Fencing = model.Fencing{
				ID: "f", Phase: phase, Method: model.FenceMethod(l.one(string(model.FenceManual), string(model.FenceCommand))), Boot: node.Boot,
				AskedAt: l.at, EndedAt: l.at, Attempt: 1,
			}
		}
	}
	l.put(node)
}

func (l *land) put(node model.Node) {
	l.Apply(state.Command{
		Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: node.Revision}}, Nodes: []model.Node{node},
	})
}

func (l *land) vmRecord() {
	vm, _ := l.Snapshot().VM(fmt.Sprint("v", l.random.IntN(landVMs)))
	switch l.random.IntN(4) {
	case 0:
		vm.HA = l.some()
	case 1:
		vm.Whereabouts.Missing = []time.Time{{}, l.at}[l.random.IntN(2)]
	default:
		vm.Holder = l.one("", l.node(), l.node())
		vm.LastEpoch++
		vm.Epoch, vm.LastNode = vm.LastEpoch, vm.Holder
	}
	l.Apply(state.Command{Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}}, VMs: []model.VM{vm}})
}

// work begins an operation, or ends it.
func (l *land) work() {
	for _, op := range l.Snapshot().LiveOperations() {
		op.Phase, op.Result, op.EndedAt = operation.Ended, operation.Done, l.at
		l.Apply(state.Command{
			Expect:     []state.Expectation{{Table: state.Operations, ID: op.ID, Revision: op.Revision}},
			Operations: []operation.Operation{op},
		})
		return
	}
	l.count++
	id := fmt.Sprint("op", l.count)
	l.Apply(state.Command{
		Expect: []state.Expectation{{Table: state.Operations, ID: id}},
		Operations: []operation.Operation{{
			ID: id, Kind: operation.Migrate, VM: fmt.Sprint("v", l.random.IntN(landVMs)), Source: l.node(), Target: l.node(), Epoch: 1,
			Phase: operation.Copying, CreatedAt: l.at, UpdatedAt: l.at,
		}},
	})
}

// declare says after how long nodes are fenced, or pauses high availability.
func (l *land) declare() {
	if l.some() {
		pause := ""
		if l.some() {
			pause = model.HAPause{Caller: "alice", Until: l.at.Add(time.Duration(1+l.random.IntN(60)) * time.Minute)}.Stored()
		}
		l.Apply(state.Command{Kind: "pause", Meta: map[string]string{model.MetaHAPause: pause}})
		return
	}
	was, _ := l.Snapshot().Resource("east-id")
	l.Apply(state.Command{
		Expect: []state.Expectation{{Table: state.Resources, ID: "east-id", Revision: was.Revision}},
		Resources: []model.Resource{{
			ID: "east-id", Kind: model.KindCluster, Name: "east",
			Settings: map[string]string{model.SettingFenceAfter: l.one("30s", "5m"), model.SettingFenceSickAfter: l.one("1m", "0s")},
		}},
	})
}

func (l *land) moment() evidence.Moment {
	facts := maps.Clone(l.facts)
	return evidence.Moment{
		Records: l.Snapshot(), At: l.at, Facts: func(node string) model.NodeFacts { return facts[node] },
		MayShow: func(string) []string { return nil },
	}
}

// stands is all that a look at a node depends on, without time and without what only the fencer knows.
func (l *land) stands(p evidence.Moment) (nodes map[string]any, declared any) {
	nodes = map[string]any{}
	guards := map[string]bool{}
	for _, vm := range p.VMsMarked(model.MarkGuarded) {
		guards[vm.Holder] = true
	}
	for _, op := range p.LiveOperations() {
		vm, _ := p.VM(op.VM)
		guards[op.Source], guards[op.Target] = guards[op.Source] || vm.Guarded(), guards[op.Target] || vm.Guarded()
	}
	for _, node := range p.Nodes() {
		nodes[node.ID] = []any{node, l.facts[node.ID], guards[node.ID]}
	}
	return nodes, p.Clusters()
}

// Who looks at the nodes that were touched, and at those that are ill, does what who looks at all nodes does, whatever has happened.
func TestALookAtTheTouchedAndTheIllIsALookAtAll(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	l := newLand(t, seed)
	const events = 8000
	stood, declared := map[string]any{}, any(nil)
	seen := map[string]int{}
	for n := range events {
		if l.happens(); l.random.IntN(20) == 0 {
			l.mend()
		}
		if l.random.IntN(200) == 0 {
			l.lead()
		}
		p := l.moment()
		touched := evidence.Touched{}
		stands, declares := l.stands(p)
		for id := range stands {
			if !reflect.DeepEqual(stood[id], stands[id]) {
				touched.IDs = append(touched.IDs, id)
			}
		}
		touched.All = !reflect.DeepEqual(declared, declares)
		stood, declared = stands, declares
		l.few.Take(p, touched)
		l.all.Take(p, evidence.Touched{All: true})
		l.same(n, p, seen)
		if len(touched.IDs) == 0 && !touched.All {
			seen["nothing touched"]++
		}
	}
	for _, what := range []string{
		"noticed", string(evidence.FenceAsk), string(evidence.FenceProven), string(evidence.FenceWait), string(evidence.FenceHeld), "released",
		"checked", "tried", "mass", "nothing touched",
	} {
		if seen[what] < 20 {
			t.Errorf("of %q there were %d: the test says little of it (%v)", what, seen[what], seen)
		}
	}
}

// same has both fencers look, and compares what they find with what a walk over all nodes finds.
func (l *land) same(n int, p evidence.Moment, seen map[string]int) {
	l.Helper()
	compare := func(what string, few, all any) {
		l.Helper()
		if !reflect.DeepEqual(few, all) {
			l.Fatalf("after %d events, %s:\n%+v\nof all nodes:\n%+v", n, what, few, all)
		}
	}
	few, all := l.few.Notice(p), l.all.Notice(p)
	compare("what is to be noticed", few, all)
	compare("when nodes were heard", l.few.heard, l.all.heard)
	compare("when nodes fell", l.few.fell, l.all.fell)
	compare("what was told to disarm", l.few.disarmed, l.all.disarmed)
	seen["noticed"] += len(all)
	for _, one := range all {
		if l.some() { // or it was not stored
			for _, node := range one.Command.Nodes {
				l.put(node)
			}
		}
	}

	verdicts, _ := l.few.Look(p)
	want := evidence.Fencing(p.At.Sub(l.all.since), l.all.Silences(p))
	l.all.Look(p)
	if _, paused := p.Paused(); paused {
		compare("number of verdicts", len(verdicts), len(want))
	} else {
		compare("verdicts", verdicts, want)
		for _, one := range want {
			seen[string(one.Act)]++
			if one.Act == evidence.FenceHeld && one.Next != "" && one.Next[:4] == "look" {
				seen["mass"]++
			}
		}
	}
	compare("what is held", l.few.held, l.all.held)

	l.all.Take(p, evidence.Touched{All: true})
	freed, free := l.few.Release(p), l.all.Release(p)
	compare("what is released", freed, free)
	seen["released"] += len(free)
	off := 0
	for _, node := range p.Nodes() {
		vms := slices.DeleteFunc(p.VMsOn(node.ID), func(vm model.VM) bool { return vm.Operation != "" })
		if l.all.Off(p, &node) && len(vms) > 0 {
			off++
		}
	}
	if len(free) > off {
		l.Fatalf("after %d events %d nodes are released, and %d are off with VMs", n, len(free), off)
	}
	l.devices(p, compare, seen)
}

// devices compares whose devices are to be asked with what a walk finds, and asks those of some of them.
func (l *land) devices(p evidence.Moment, compare func(string, any, any), seen map[string]int) {
	var checks []string
	var trial string
	var oldest time.Time
	for _, node := range p.Nodes() {
		if node.Fence.Method != model.FenceCommand {
			continue
		}
		if !l.all.Checking(node.ID) && !l.all.nextCheck(&node, identityEvery).After(p.At) {
			checks = append(checks, node.ID)
		}
		last := l.all.powers.of(&node)
		if node.Fenced() || !last.at.IsZero() && p.At.Sub(last.at) < last.every() {
			continue
		}
		if trial == "" || last.at.Before(oldest) {
			trial, oldest = node.ID, last.at
		}
	}
	var is []string
	for _, node := range l.few.Checks(p) {
		is = append(is, node.ID)
		l.both(func(f *Fencer) { f.Begin(&node, identityEvery, p.At) })
	}
	l.all.Checks(p)
	slices.Sort(is)
	compare("whose device is asked which machine it switches", is, checks)
	seen["checked"] += len(checks)
	node, _ := l.few.Trial(p)
	compare("whose device is tried", node.ID, trial)
	if trial != "" {
		seen["tried"]++
	}
}
