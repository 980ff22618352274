package fencing

import (
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// Take takes in the nodes that were touched since it was called last, for the looks that follow.
func (f *Fencer) Take(p evidence.Moment, touched evidence.Touched) {
	_, paused := p.Paused()
	level := levelOf(p)
	if f.taken && paused == f.paused && level == f.level && !touched.All {
		for _, id := range touched.IDs {
			f.take(p, id)
		}
		for id := range f.again {
			f.take(p, id)
		}
		clear(f.again)
		return
	}
	f.attention = newAttention()
	f.taken, f.paused, f.level, f.rules = true, paused, level, rulesOf(p)
	f.dues = newDues()
	for node := range p.SharedNodes() {
		f.take(p, node.ID)
	}
}

func (f *Fencer) take(p evidence.Moment, id string) {
	node := p.SharedNode(id)
	if node == nil {
		f.fleet.Forget(id)
		f.forget(id)
		delete(f.ill, id)
		delete(f.fresh, id)
		delete(f.unsettled, id)
		return
	}
	f.fresh[id] = true
	f.expect(node, f.identities, f.powers)
	if p.Facts(id).Liveness != model.Up || node.Fencing != (model.Fencing{}) || node.Held() {
		f.ill[id] = true
		return
	}
	delete(f.ill, id)
	one := evidence.Silence{Node: *node, Liveness: model.Up}
	f.rules.apply(&one)
	f.fleet.Count(&one)
}

// Silences are all nodes as fencing looks at them.
func (f *Fencer) Silences(p evidence.Moment) []evidence.Silence {
	var nodes []*model.Node
	for node := range p.SharedNodes() {
		nodes = append(nodes, node)
	}
	return f.silences(p, rulesOf(p), nodes)
}

func (f *Fencer) silences(p evidence.Moment, rules rules, nodes []*model.Node) []evidence.Silence {
	if len(nodes) == 0 {
		return nil
	}
	waits := map[string]int{}
	for _, op := range p.LiveOperations() {
		if vm, _ := p.VM(op.VM); vm.Guarded() && op.Result != operation.Parked {
			waits[op.Source]++
			if op.Target != op.Source {
				waits[op.Target]++
			}
		}
	}
	awaited := f.awaited(p)
	all := make([]evidence.Silence, 0, len(nodes))
	for _, node := range nodes {
		one := f.silence(p, *node, p.Facts(node.ID))
		one.Waiting, one.Missing, one.OffFor = waits[node.ID], awaited[node.ID], p.At.Sub(f.provenAt(node.ID))
		rules.apply(&one)
		if one.Liveness == model.Unreachable || one.Liveness == model.Degraded {
			one.HA = evidence.HighlyAvailable(p.VMsOn(node.ID))
		}
		all = append(all, one)
	}
	return all
}

// verdicts are what follows from the nodes' silence.
func (f *Fencer) verdicts(p evidence.Moment) []evidence.FenceVerdict {
	var nodes []*model.Node
	for _, id := range attended(f.ill) {
		if node := p.SharedNode(id); node != nil {
			nodes = append(nodes, node)
		}
	}
	some := f.silences(p, f.rules, nodes)
	for i := range some {
		f.fleet.Count(&some[i])
	}
	return f.fleet.Fencing(p.At.Sub(f.since), some)
}

// Look says what follows from the nodes' silence: of FenceAsk and FenceProven something is to be done. News are those that
// nothing happens to until somebody does something, and of which that was not said before. Nodes are as Take has taken them in.
func (f *Fencer) Look(p evidence.Moment) (verdicts, news []evidence.FenceVerdict) {
	verdicts = f.verdicts(p)
	if pause, paused := p.Paused(); paused {
		for i := range verdicts {
			verdicts[i].Act, verdicts[i].Why, verdicts[i].Next = evidence.FenceHeld, pause.Why(), model.HAResume
		}
	}
	before := f.held
	f.held = map[string]evidence.FenceVerdict{}
	for _, verdict := range verdicts {
		if verdict.Act == evidence.FenceAsk || verdict.Act == evidence.FenceProven {
			continue
		}
		f.held[verdict.Node] = verdict
		if verdict.Act == evidence.FenceHeld && before[verdict.Node].Why != verdict.Why {
			news = append(news, verdict)
		}
	}
	return verdicts, news
}

// Checks are the nodes whose devices are to be asked which machines they switch. Each is to be begun.
func (f *Fencer) Checks(p evidence.Moment) (nodes []model.Node) {
	for _, id := range f.identity.Due(p.At) {
		node := p.SharedNode(id)
		switch {
		case node == nil || node.Fence.Method != model.FenceCommand || f.Checking(id): // its end has it looked at again
		case f.nextCheck(node, identityEvery).After(p.At):
			f.identity.Set(id, f.nextCheck(node, identityEvery))
		default:
			nodes = append(nodes, *node)
		}
	}
	return nodes
}

// Trial is the node whose devices are to be asked next for the power state: of those that are due the one that was asked longest ago.
func (f *Fencer) Trial(p evidence.Moment) (node model.Node, due bool) {
	for _, id := range f.power.Due(p.At) {
		if record := p.SharedNode(id); record != nil {
			f.ready.Set(id, f.powers.of(record).at)
		}
	}
	for {
		id, _, there := f.ready.First()
		if !there {
			return model.Node{}, false
		}
		if record := p.SharedNode(id); record != nil && record.Fence.Method == model.FenceCommand && !record.Fenced() {
			return *record, true
		}
		f.ready.Remove(id)
	}
}

// Tried takes in what came of asking the devices of a node for the power state.
func (f *Fencer) Tried(node *model.Node, why string, at time.Time) {
	f.powers.tried(node, why, at)
	f.again[node.ID] = true
}

// Identified takes in what a node's devices say.
func (f *Fencer) Identified(node *model.Node, said model.FenceIdentities, at time.Time) {
	f.identities.identified(node, said, at)
	f.again[node.ID] = true
}
