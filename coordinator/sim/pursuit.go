package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/affinity"
	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// pursuit carries one plan out, as the leader does: each move is decided anew when its turn comes, so many at once out of a
// node and into one, and VMs that hard rules tie together follow each other to one node.
type pursuit struct {
	*world
	id        string
	turns     []turn
	tied      map[string][]string // VM ID -> those of the plan that hard rules tie to it, itself among them
	freely    bool                // hard rules among VMs keep none on the node
	parallel  int
	bandwidth units.Bytes
	chosen    *placement.Decision // of the pass that found the first move; nil: none did
}

// turn is one move of a plan and how far it has come.
type turn struct {
	cluster.Move
	state string // waiting, moving, or a result
	why   string // of one that waits or stays

	refusal *placement.Decision // the last one
}

// The states of a turn beside the results of moves.
const (
	waiting = "waiting"
	moving  = "moving"
)

// At most so many migrations of a cluster run for plans at once: one for each so many nodes, and at least so many.
const (
	leastMoves   = 5
	nodesPerMove = 20
)

// pursue sets a plan going.
func (w *world) pursue(fleet *balance.Fleet, plan cluster.Plan) *pursuit {
	kept := w.keep(plan)
	p := &pursuit{
		world: w, id: kept.ID, tied: make(map[string][]string),
		freely:   plan.Kind == cluster.PlanDrain && fleet.DrainIgnoresVMRules,
		parallel: cmp.Or(plan.Parallel, fleet.Settings.ParallelMoves), bandwidth: cmp.Or(plan.Bandwidth, w.bandwidth),
	}
	for _, move := range plan.Moves {
		p.turns = append(p.turns, turn{Move: move, state: waiting, why: move.Reason})
	}
	for _, unit := range affinity.Merged(fleet.Groups) {
		bySource := make(map[string][]string)
		for i := range p.turns {
			if t := &p.turns[i]; !t.Stays && slices.Contains(unit, t.VM) {
				bySource[t.Source] = append(bySource[t.Source], t.VM)
			}
		}
		for _, together := range bySource {
			for _, vm := range together {
				p.tied[vm] = together
			}
		}
	}
	w.pursuits = append(w.pursuits, p)
	return p
}

// carry goes on with every plan that runs.
func (w *world) carry() error {
	for _, p := range slices.Clone(w.pursuits) {
		for more := true; more; {
			var err error
			if more, err = p.advance(); err != nil {
				return fmt.Errorf("plan %s: %w", p.id, err)
			}
		}
		if !slices.ContainsFunc(p.turns, func(t turn) bool { return t.state == waiting || t.state == moving }) {
			p.end()
			w.pursuits = slices.DeleteFunc(w.pursuits, func(other *pursuit) bool { return other == p })
		}
	}
	return nil
}

// advance begins what may begin now, those that were not expected to move last. More tells that something moved at once, so
// that others may have room now.
func (p *pursuit) advance() (more bool, err error) {
	p.follow()
	plan := p.plan(p.id)
	var begun, held, asked int
	for _, stays := range []bool{false, true} {
		for i := range p.turns {
			t := &p.turns[i]
			if t.state != waiting || t.Stays != stays {
				continue
			}
			if plan.State != cluster.PlanRunning {
				t.state = cluster.MoveLeft
				continue
			}
			began, blocked, err := p.turn(plan, t)
			if err != nil {
				return false, err
			}
			switch {
			case began:
				begun++
			case blocked:
				held++
			default:
				asked++
			}
		}
	}
	if begun > 0 {
		return p.still, nil
	}
	if asked > 0 && held == 0 && !slices.ContainsFunc(p.turns, func(t turn) bool { return t.state == moving }) {
		p.giveUp()
	}
	return false, nil
}

// follow looks at what has become of the VMs on their way.
func (p *pursuit) follow() {
	for i := range p.turns {
		t := &p.turns[i]
		vm := p.vmByID(t.VM)
		here := vm != nil && vm.Holder == t.Source
		switch {
		case t.state == moving && !p.inFlight(t.VM) && here:
			t.state, t.why = cluster.MoveFailed, p.nodeName(t.Target)+" did not get it"
		case t.state == moving && !p.inFlight(t.VM):
			t.state = cluster.MoveMoved
		case t.state == waiting && !here && (vm != nil || !t.Stays):
			t.state = cluster.MoveGone
		}
	}
}

// giveUp ends the moves that wait when nothing is on its way that could make room for them.
func (p *pursuit) giveUp() {
	for i := range p.turns {
		t := &p.turns[i]
		if t.state != waiting {
			continue
		}
		if t.state = cluster.MoveStays; t.refusal != nil {
			p.noteDecided(Entry{What: "stays", VM: t.VMName, From: t.SourceName, Plan: p.id, Why: t.why}, t.refusal)
		}
	}
}

// turn begins a move if it can be now. Blocked: it has to wait for others.
func (p *pursuit) turn(plan *cluster.Plan, t *turn) (began, blocked bool, err error) {
	vm := p.vmByID(t.VM)
	if vm == nil { // a domain that is not Berth's
		return false, false, nil
	}
	if vm.Migration == cluster.MigrateNever {
		return false, false, nil
	}
	if why := p.movable(vm); why != nil {
		t.why = why.Error()
		return false, p.inFlight(t.VM), nil
	}
	if p.unitMoves(t) || p.full(t.Source, "") {
		return false, true, nil
	}
	decision, err := p.decideTurn(plan, vm, t)
	if err != nil {
		return false, false, err
	}
	if decision.Outcome != placement.Placed {
		t.why, t.refusal = decision.Reason, &decision
		return false, false, nil
	}
	if p.full("", decision.Winner) {
		return false, true, nil
	}
	if p.chosen != nil && p.chosen.Request.VM == vm.ID && p.chosen.Winner == decision.Winner {
		decision = *p.chosen // it has seen all nodes
	}
	t.state, t.Target, t.TargetName = moving, decision.Winner, decision.WinnerName
	p.moves++
	p.noteDecided(Entry{
		What: string(plan.Kind), VM: vm.Name, From: t.SourceName, To: t.TargetName, Plan: p.id,
		Why: cmp.Or(t.Reason, decision.Reason),
	}, &decision)
	p.depart(vm, decision.Winner, p.id, p.bandwidth)
	return true, false, nil
}

// decideTurn asks the engine, at first with all that is wanted and then with less.
func (p *pursuit) decideTurn(plan *cluster.Plan, vm *cluster.VM, t *turn) (placement.Decision, error) {
	resolved, err := estate.Resolve(&p.state, *vm)
	if err != nil {
		return placement.Decision{}, err
	}
	policy, _, err := estate.PolicyOf(&p.state, resolved.Record)
	if err != nil {
		return placement.Decision{}, err
	}
	var decision placement.Decision
	request := p.movingRequest(&resolved, vm, purposeOf(plan.Kind))
	for _, wanted := range p.wants(plan, t, request) {
		decision = placement.Place(p.view(), wanted.Request, policy, p.draw())
		if decision.Outcome != placement.Placed && wanted.freely {
			decision = placement.Place(p.view(), wanted.Request, balance.WithoutVMRules(policy), p.draw())
		}
		if decision.Outcome == placement.Placed {
			break
		}
	}
	return decision, nil
}

// wanted is one way to ask for a move.
type wanted struct {
	placement.Request
	freely bool // hard rules among VMs need not hold
}

// wants are the ways to ask for a move, the best first: with the VMs that have to come along or where they went, and a VM of
// a drain also alone. Where a drain's VM goes is the engine's to say; the other plans are about their target.
func (p *pursuit) wants(plan *cluster.Plan, t *turn, request placement.Request) []wanted {
	alone := wanted{Request: request}
	alone.Leave = true
	drain := plan.Kind == cluster.PlanDrain
	goal, unit := p.unitOf(t)
	if drain {
		alone.Excluded = p.awaited(t)
	}
	together := alone
	together.Unit = unit
	switch {
	case goal != "":
		together.Unit, together.Among = nil, []string{goal}
	case !drain:
		together.Among = []string{t.Target}
	}
	wants := []wanted{together}
	if drain && (goal != "" || unit != nil) {
		wants = append(wants, alone)
	}
	wants[len(wants)-1].freely = p.freely
	return wants
}

// unitMoves tells whether another VM that has to stay with this one is on its way.
func (p *pursuit) unitMoves(t *turn) bool {
	return slices.ContainsFunc(p.turns, func(other turn) bool {
		return other.VM != t.VM && other.state == moving && slices.Contains(p.tied[t.VM], other.VM)
	})
}

// unitOf is where the VMs that have to stay with this one have gone; else those that are still to come along.
func (p *pursuit) unitOf(t *turn) (goal string, rest *placement.Unit) {
	for i := range p.turns {
		other := &p.turns[i]
		if other.VM == t.VM || !slices.Contains(p.tied[t.VM], other.VM) {
			continue
		}
		switch other.state {
		case cluster.MoveMoved:
			goal = other.Target
		case waiting:
			g, err := p.guest(p.vmByID(other.VM))
			if err != nil {
				continue
			}
			if rest == nil {
				rest = &placement.Unit{}
			}
			rest.VMs, rest.Memory, rest.VCPUs = append(rest.VMs, other.VM), rest.Memory+g.memory, rest.VCPUs+g.vcpus
		}
	}
	if rest != nil {
		slices.Sort(rest.VMs)
	}
	return goal, rest
}

// awaited are the nodes to which VMs are still to follow those that hard rules tie them to, ascending: what is free there is
// theirs, and no other move of the plan takes it.
func (p *pursuit) awaited(t *turn) []string {
	var nodes []string
	for i := range p.turns {
		other := &p.turns[i]
		if other.state != waiting || slices.Contains(p.tied[t.VM], other.VM) {
			continue
		}
		for j := range p.turns {
			gone := &p.turns[j]
			if (gone.state == moving || gone.state == cluster.MoveMoved) && slices.Contains(p.tied[other.VM], gone.VM) &&
				!slices.Contains(nodes, gone.Target) {
				nodes = append(nodes, gone.Target)
			}
		}
	}
	slices.Sort(nodes)
	return nodes
}

// full tells whether another move out of a node, or into one, has to wait.
func (p *pursuit) full(source, target string) bool {
	name := p.plan(p.id).Cluster
	var out, in, all, nodes int
	for i := range p.state.Nodes {
		if p.state.Nodes[i].Cluster == name {
			nodes++
		}
	}
	for _, f := range p.flights {
		if p.clusterOf(f.source) != name {
			continue
		}
		all++
		if f.source == source {
			out++
		}
		if f.target == target {
			in++
		}
	}
	return all >= max(leastMoves, nodes/nodesPerMove) || out >= p.parallel || in >= p.parallel
}

func purposeOf(kind cluster.PlanKind) placement.Purpose {
	switch kind {
	case cluster.PlanDrain:
		return placement.ForDrain
	case cluster.PlanReturn:
		return placement.ForReturn
	case cluster.PlanRepair:
		return placement.ForRepair
	default:
		return placement.ForBalance
	}
}

// end writes down how each move came out.
func (p *pursuit) end() {
	plan := p.plan(p.id)
	plan.Moves = make([]cluster.Move, 0, len(p.turns))
	count := make(map[string]int)
	var rest []string
	for i := range p.turns {
		t := &p.turns[i]
		move := t.Move
		move.Result, move.Stays = t.state, t.state == cluster.MoveStays
		if t.state != cluster.MoveMoved {
			move.Target, move.TargetName, move.Reason = "", "", t.why
			rest = append(rest, strings.TrimSuffix(fmt.Sprintf("%s %s: %s", move.VMName, t.state, t.why), ": "))
		}
		count[t.state]++
		plan.Moves = append(plan.Moves, move)
	}
	if plan.State == cluster.PlanRunning {
		plan.State = cluster.PlanDone
		if count[cluster.MoveFailed] > 0 {
			plan.State = cluster.PlanFailed
		}
	}
	plan.EndedAt, plan.UpdatedAt = p.at, p.at
	message := strings.Join(append([]string{fmt.Sprintf("%d moved", count[cluster.MoveMoved])}, rest...), "; ")
	if plan.Message != "" { // why it was cancelled
		message = plan.Message + ": " + message
	}
	plan.Message = message
	if plan.Kind == cluster.PlanDrain || plan.Kind == cluster.PlanReturn || len(rest) > 0 {
		p.note(Entry{What: "ended", Of: "plan/" + p.id, Plan: p.id, Why: fmt.Sprintf("%s: %s", plan.Kind, plan.Message)})
	}
}
