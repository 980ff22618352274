package operation

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/model"
)

// estate is two nodes as they really are, apart from the records that the operation keeps of them.
type estate struct {
	*rapid.T
	domains map[string]Observation     // by node
	volumes map[string]map[string]bool // by node: names of volumes in its local pool
	home    string                     // node whose volumes have the guest's content; empty: none yet
	op      Operation
	vm      model.VM
	root    *model.Volume // the disk's record
	gone    bool          // the VM's record
	at      time.Time

	journal map[string]Answer // by node and step: what an agent answers when it is asked again
}

// carry does what an order says, wholly or, when something breaks, in part; it tells the agent's answer, which may be in
// doubt but never a lie.
func (e *estate) carry(order Order) Answer {
	breaks, doubt := rapid.Bool().Draw(e.T, "breaks"), rapid.Bool().Draw(e.T, "doubt")
	here, source := e.volumes[order.Node], e.op.Source
	fill := func() {
		for _, volume := range order.Volumes {
			here[volume.Name] = true
		}
	}
	remove := func() {
		if order.Node == e.home && e.domains[order.Node].State == model.DomainRunning {
			e.Fatalf("phase %s: volumes of the running guest are to go", e.op.Phase)
		}
		for _, volume := range order.Volumes {
			delete(here, volume.Name)
		}
	}
	outcome := OutcomeDone
	switch order.Action {
	case ActStart:
		fill()
		switch {
		case !breaks:
			e.domains[order.Node], e.home = Observation{State: model.DomainRunning, Epoch: order.Epoch}, order.Node
		case doubt: // killed before it could clean up
		default:
			outcome = OutcomeFailed
			remove()
		}
	case ActPrepare:
		if fill(); breaks && !doubt {
			outcome = OutcomeFailed
			remove()
		}
	case ActMigrate:
		switch at := rapid.IntRange(0, 3).Draw(e.T, "stage"); {
		case breaks && at == 0:
			outcome = OutcomeRefused
		case breaks && at == 1:
			outcome = OutcomeCancelled
		case breaks:
			outcome = OutcomeFailed // with a leftover on the target
			e.domains[order.TargetNode] = Observation{State: model.DomainPaused, Epoch: order.TargetEpoch}
		default:
			e.domains[order.TargetNode] = Observation{State: model.DomainPaused, Epoch: order.TargetEpoch}
			e.domains[source] = Observation{State: model.DomainAbsent, Boot: "boot-1"}
			e.home = order.TargetNode
		}
	case ActResume:
		if e.home != order.Node {
			e.Fatalf("%s is to resume, the content is on %q", order.Node, e.home)
		}
		e.domains[order.Node] = Observation{State: model.DomainRunning, Epoch: order.Epoch}
	case ActDiscard:
		e.domains[order.Node] = Observation{State: model.DomainAbsent}
		remove()
	case ActClear:
		if remove(); breaks && !doubt {
			outcome = OutcomeFailed
		}
	}
	if doubt {
		outcome = OutcomeAmbiguous
	}
	return Answer{
		Operation: order.Operation, Node: order.Node, Step: order.Step, Outcome: outcome, Error: "broke", Seen: e.domains[order.Node],
	}
}

// commit makes the next records durable.
func (e *estate) commit(next Next) {
	e.op, e.vm = next.Operation, next.VM
	if volume, put := next.Volumes["root-id"]; put {
		e.root = &volume
	}
	e.gone = next.DeleteVM
	if slices.Contains(next.DeleteDisks, "root-id") {
		e.root = nil
	}
}

// run goes on until the operation has ended. A leader may crash after any order: its answer is then not heard, and the
// same order is sent again.
func (e *estate) run(place func(e *estate)) {
	for range 400 {
		switch {
		case !e.op.Live():
			return
		case e.op.Phase == Placing:
			place(e)
			continue
		case e.op.Phase == Judging:
			if next, decided := Settle(e.op, e.vm, maps.Clone(e.domains), e.at); decided {
				e.commit(next)
			}
			continue
		}
		for _, order := range Orders(e.op, e.vm, 1) {
			identity := fmt.Sprint(order.Node, "/", order.Step)
			answer, known := e.journal[identity]
			if !known || order.Action == ActDiscard || order.Action == ActClear || order.Action == ActResume {
				answer = e.carry(order)
				e.journal[identity] = answer
			}
			if rapid.IntRange(0, 4).Draw(e.T, "unheard") == 0 {
				continue
			}
			if next, moved := Step(e.op, e.vm, answer, e.at); moved {
				e.commit(next)
			}
		}
	}
	e.Fatalf("still %s after 400 rounds", e.op.Phase)
}

// check compares what is there with the records: every volume is the disk's, and where it says.
func (e *estate) check() {
	for node, volumes := range e.volumes {
		want := map[string]bool{}
		if e.root != nil && slices.Contains(e.root.Nodes, node) {
			want = map[string]bool{rootOrder.Name: true, seedOrder.Name: true}
		}
		if !maps.Equal(volumes, want) {
			e.Fatalf("%s ended as %s (%s): %s has %v, want %v\n%q", e.op.Kind, e.op.Result, e.op.Message, node, volumes, want, e.op.Evidence)
		}
	}
}

func newEstate(t *rapid.T, op Operation, vm model.VM) *estate {
	absent := Observation{State: model.DomainAbsent, Boot: "boot-1"}
	return &estate{
		T: t, op: op, vm: vm, at: noon, domains: map[string]Observation{"n1": absent, "n2": absent},
		volumes: map[string]map[string]bool{"n1": {}, "n2": {}}, journal: map[string]Answer{},
	}
}

func TestWhateverBreaksAStartLeavesNoVolumeBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op, vm := making()
		op.Cancel = rapid.Bool().Draw(t, "cancelled")
		e := newEstate(t, op, vm)
		e.run(func(e *estate) {
			if len(e.op.Excluded) > 1 || e.op.Cancel {
				e.commit(Abandon(e.op, e.vm, "no node is left", e.at))
				return
			}
			e.commit(Place(e.op, e.vm, Target{Node: "n2", Name: "node2", Volumes: orders}, e.at))
		})
		e.check()
		switch done := e.op.Result == Done; {
		case done != (e.root != nil), done == e.gone:
			t.Fatalf("ended as %s, disk %+v, VM gone %t", e.op.Result, e.root, e.gone)
		case done && e.domains[e.vm.Holder].State != model.DomainRunning:
			t.Fatalf("done, and %s shows it %s", e.vm.Holder, e.domains[e.vm.Holder].State)
		}
	})
}

func TestWhateverBreaksACopyLeavesOneSetOfVolumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op, vm := copying()
		op.Cancel = rapid.Bool().Draw(t, "cancelled")
		e := newEstate(t, op, vm)
		at := rootAt("n1")["root-id"]
		e.root, e.home = &at, "n1"
		e.domains["n1"] = Observation{State: model.DomainRunning, Epoch: 4, Boot: "boot-1"}
		e.volumes["n1"] = map[string]bool{rootOrder.Name: true, seedOrder.Name: true}
		e.run(nil)
		e.check()
		if e.domains[e.vm.Holder].State != model.DomainRunning || e.home != e.vm.Holder || e.vm.Home != e.vm.Holder {
			t.Fatalf("%s holds it and shows it %s, content on %s, home %s", e.vm.Holder, e.domains[e.vm.Holder].State, e.home, e.vm.Home)
		}
	})
}

func TestWhateverBreaksADeletionGoesWholeOrStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op, vm := deleting()
		e := newEstate(t, op, vm)
		at := rootAt("n1")["root-id"]
		e.root = &at
		e.volumes["n1"] = map[string]bool{rootOrder.Name: true, seedOrder.Name: true}
		e.run(nil)
		if e.gone != (e.op.Result == Done) || e.gone != (e.root == nil) {
			t.Fatalf("ended as %s, VM gone %t, disk %+v", e.op.Result, e.gone, e.root)
		}
		if e.gone {
			e.check()
		}
	})
}
