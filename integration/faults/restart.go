package faults

import (
	"context"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/drive"
	"berth/integration/faults/followed"
	"berth/integration/faults/plant"
)

// askLimit bounds one question to an agent.
const askLimit = 10 * time.Second

// restart starts VMs that are to be highly available and run nowhere.
func (k *keeper) restart() {
	snapshot := k.view()
	if !k.facts.Settled(snapshot, k.world.Now) || lead.Quarantined(snapshot) != nil {
		return
	}
	silent := func(node string) bool { return k.facts.Facts(node, k.world.Now).Liveness == model.Unreachable }
	ready, resting := evidence.Restartable(k.world.bug.Unheld(snapshot.VMs(), silent), k.now(), k.world.bug.Again(evidence.Again(snapshot)))
	for _, id := range sortedKeys(resting) {
		if vm, _ := snapshot.VM(id); !vm.Condition.Same(resting[id]) {
			after := vm
			after.Condition = resting[id]
			k.keepBeside(vm, after)
		}
	}
	ready, _ = k.restarter.Behind(ready, k.now(), evidence.Ahead(k.moment(snapshot), evidence.Again(snapshot)))
	for _, vm := range k.restarter.Due(ready, k.world.Now) {
		if !k.restartOne(vm) {
			k.restarter.Waits(vm.ID, k.world.Now)
		}
	}
}

func (k *keeper) restartOne(vm model.VM) bool {
	snapshot := k.view()
	copied := k.fencer.Showing(k.moment(snapshot), vm.ID, false) != ""
	if (copied || !k.mayStart(snapshot, vm)) && k.world.bug != plant.SilenceIsDeath {
		return false
	}
	node := k.choose(snapshot, vm, "", nil)
	if node == nil || !k.disksFree(&vm, node.ID) {
		return false
	}
	before := vm.Revision
	evidence.Restarted(&vm, k.now())
	k.beginStart(vm, before, node, true)
	return true
}

// mayStart tells whether a VM may be started, by the question that control asks for every start. The node that had it last is not asked to
// refuse it, so as long as it shows the VM there is no start.
func (k *keeper) mayStart(snapshot *state.Snapshot, vm model.VM) bool {
	answer := k.fencer.Survey(k.moment(snapshot)).Start(&vm, "")
	if answer.May {
		k.world.Note("may start", vm.Holder, vm.ID, answer.Proof)
	}
	return answer.May
}

// follow takes note of what has become of VMs that nothing is done to.
func (k *keeper) follow() {
	if lead.Quarantined(k.view()) != nil {
		k.follower = evidence.Follower{}
		return
	}
	resumeTorn(k.world)
	k.takeUp()
	k.discard()
	k.removeCopies()
	survey := k.fencer.Survey(k.moment(k.view()))
	seen, found := k.follower.Look(survey, k.touched[1](k.view(), survey.At))
	for _, one := range seen {
		if before, known := k.view().VM(one.ID); known {
			k.keepBeside(before, one)
		}
	}
	deeds := followed.Deeds{Now: k.now(), Refuse: k.refuse, TakeOver: k.takeOver, Keep: k.keepBeside}
	for _, one := range found {
		facts := k.factsOf(one.VM.Holder)
		if k.world.bug.HasRoom(&one, facts.Domain(one.VM.ID)) {
			k.unpause(one.VM)
		}
		deeds.Do(&one)
	}
}

func (k *keeper) keepBeside(before, after model.VM) { k.tryBeside(before, after, func(bool) {}) }

func (k *keeper) tryBeside(before, after model.VM, done func(stored bool)) {
	k.try(state.Command{
		Key: k.world.newKey(), Kind: "follow vm", Caller: "berth", At: k.now(),
		Expect: []state.Expectation{{Table: state.VMs, ID: before.ID, Revision: before.Revision}}, VMs: []model.VM{after},
	}, done)
}

// refuse has a VM's holder refuse it for good, if it is not there.
func (k *keeper) refuse(vm model.VM, then func()) {
	k.perform("refuses", vm.Holder, vm.ID, func(l *life) error { return l.jobs.Refuse(context.Background(), vm.ID, vm.Epoch) }, then)
}

// perform has an agent do a task about a VM, unless it is at that already.
func (k *keeper) perform(what, node, vm string, task func(l *life) error, then func()) {
	k.performOn(k.sessions[node], what, node, vm, task, then)
}

// performOn is perform on a session.
func (k *keeper) performOn(s *session, what, node, vm string, task func(l *life) error, then func()) {
	w, term, name := k.world, k.term, what+" "+node+" "+vm
	if s == nil || k.asking[name] {
		return
	}
	k.asking[name] = true
	w.After(askLimit, func() { delete(k.asking, name) })
	s.down(func() {
		l := s.life
		l.Go(func() {
			if err := task(l); err != nil || l.dead {
				return
			}
			w.Note(what, l.host.ID, vm, "")
			s.up(func() {
				if k.term == term {
					then()
				}
			})
		})
	})
}

// discard has the copies discarded that operations had to leave on silent nodes.
func (k *keeper) discard() {
	moment := k.moment(k.view())
	for _, vm := range moment.VMs() {
		if len(vm.Discards) == 0 || vm.Operation != "" {
			continue
		}
		due, over := evidence.Discardable(moment, &vm)
		if len(over) > 0 {
			k.keepBeside(vm, evidence.WithoutDiscards(vm, over))
			continue
		}
		for _, left := range due {
			k.perform("discards", left.Node, vm.ID, func(l *life) error {
				return l.jobs.Discard(context.Background(), vm.ID, left.Epoch)
			}, func() {
				if now, known := k.view().VM(vm.ID); known {
					k.keepBeside(now, evidence.WithoutDiscards(now, []model.Discard{left}))
				}
			})
		}
	}
}

// takeOver gives a VM that runs on another node than recorded a new epoch there.
func (k *keeper) takeOver(vm model.VM, node string) {
	record, known := k.view().Node(node)
	if !known {
		return
	}
	at, before := k.now(), vm.Revision
	vm.LastEpoch = vm.EpochsGiven() + 1
	op := drive.Adopt(k.world.newID("adopt"), &vm, node, at)
	vm.Operation, vm.Desired = op.ID, model.Running
	k.begin(operation.Next{Operation: op, VM: vm}, before, state.Expectation{Table: state.Nodes, ID: node, Revision: record.Revision})
}
