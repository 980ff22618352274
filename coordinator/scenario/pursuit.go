package scenario

import (
	"cmp"
	"fmt"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/placement/across"
	"berth/shared/units"
)

// pursuit carries one plan out: it does in the world what the plan's driver says.
type pursuit struct {
	*leader
	id     string
	driver *moving.Driver
	next   time.Time           // when the driver looks again though nothing has happened
	chosen *placement.Decision // of the pass that found the first move; nil: none did
}

// pursue sets a plan going.
func (l *leader) pursue(plan model.Plan) *pursuit {
	p := &pursuit{leader: l, id: l.keep(plan).ID, driver: moving.NewDriver(), next: l.at}
	l.pursuits = append(l.pursuits, p)
	return p
}

// carry goes on with every plan that runs.
func (l *leader) carry() error {
	running := l.pursuits
	l.pursuits = nil
	for i, p := range running {
		over, err := p.advance()
		if err != nil {
			return fmt.Errorf("plan %s: %w", p.id, err)
		}
		if over {
			delete(l.tried, p.id)
			continue
		}
		l.pursuits = append(l.pursuits, running[i])
	}
	return nil
}

// advance does what the driver says until it waits, or the plan has ended. While time stands still, waiting takes none: what
// the driver waits for is known already.
func (p *pursuit) advance() (over bool, err error) {
	for at := p.at; ; {
		began := false
		step := p.driver.Look(moving.Scene{
			Records: p.records(), Plan: *p.plan(p.id), At: at,
			Size: p.sizeNow,
			Fleet: func() *balance.Fleet {
				fleet, err := p.fleet(p.plan(p.id).Cluster)
				if err != nil {
					return nil
				}
				return fleet
			},
		})
		for step.Begin != nil {
			answer, err := p.begin(step.Begin)
			if err != nil {
				return false, err
			}
			began = began || answer.Began != nil
			step = p.driver.Tell(answer)
		}
		for i := range step.GivenUp {
			one := &step.GivenUp[i]
			p.noteDecided(Entry{
				What: "stays", VM: one.VMName, From: one.SourceName, Plan: p.id, Why: one.Decision.Reason,
			}, &one.Decision)
		}
		switch {
		case step.Write != nil && p.write(step.Write):
			return true, nil
		case step.Write != nil, began: // the records are others now
		case p.still:
			at = at.Add(step.Wait)
		default:
			p.next = at.Add(step.Wait)
			return false, nil
		}
	}
}

// write keeps what the driver has decided about its plan, and tells whether it has ended.
func (p *pursuit) write(change *moving.Change) (ended bool) {
	plan := p.plan(p.id)
	*plan = change.Plan
	plan.UpdatedAt = p.at
	if plan.EndedAt.IsZero() {
		return false
	}
	plan.EndedAt = p.at
	stayed := false
	for i := range plan.Moves {
		stayed = stayed || plan.Moves[i].Result != model.MoveMoved
	}
	if plan.Kind == model.PlanDrain || plan.Kind == model.PlanReturn || stayed {
		p.note(Entry{What: "ended", Of: "plan/" + p.id, Plan: p.id, Why: fmt.Sprintf("%s: %s", plan.Kind, plan.Message)})
	}
	return true
}

// begin asks placement for a move of the plan, and begins it if it can be.
func (p *pursuit) begin(attempt *moving.Attempt) (moving.Answer, error) {
	vm := p.vmByID(attempt.VM)
	if refusal := p.unable(vm); refusal != nil {
		return moving.Answer{Refusal: refusal}, nil
	}
	view := p.view().Without(vm.ID, vm.Holder)
	search, _, err := estate.SearchOf(estate.Indexed(&p.state), view, *vm, attempt.Purpose)
	if err != nil {
		return moving.Answer{}, err
	}
	for i := range search.Options {
		option := &search.Options[i]
		option.Request.Memory, option.Request.VCPUs = p.sizeNow(vm)
		attempt.Ask(&option.Request)
		option.Policy = attempt.Policy(option.Policy)
	}
	decision := across.Place(view, search, p.draw())
	plan := p.plan(p.id)
	traffic := moving.TrafficOf(p.records(), plan)
	switch {
	case decision.Outcome == placement.Refused:
		return moving.Answer{Refusal: &moving.Refusal{Cause: moving.NoNode, Why: decision.Reason, Decision: &decision}}, nil
	case decision.Outcome == placement.Stay:
		return moving.Answer{Refusal: &moving.Refusal{Why: decision.Reason}}, nil
	case traffic.Full(vm.Holder, decision.Winner):
		return moving.Answer{NotNow: true}, nil
	}
	if p.chosen != nil && p.chosen.Request.VM == vm.ID && p.chosen.Winner == decision.Winner {
		decision = *p.chosen // it has seen all nodes
	}
	p.moves++
	p.noteDecided(Entry{
		What: string(plan.Kind), VM: vm.Name, From: attempt.SourceName, To: decision.WinnerName, Plan: p.id,
		Why: cmp.Or(attempt.Reason, decision.Reason),
	}, &decision)
	return moving.Answer{Began: p.depart(vm, decision.Winner, p.id, cmp.Or(attempt.Bandwidth, p.bandwidth))}, nil
}

// unable tells why a VM cannot move now; nil: it can.
func (t *traffic) unable(vm *model.VM) *moving.Refusal {
	if vm == nil {
		return &moving.Refusal{Why: "there is no such VM"}
	}
	why := t.movable(vm)
	switch {
	case why == nil && vm.Migration == model.MigrateNever:
		return &moving.Refusal{Why: fmt.Sprintf("VM %q is never to be moved while it runs", vm.Name)}
	case why == nil:
		return nil
	}
	refusal := &moving.Refusal{Why: why.Error()}
	if at := t.flightOf(vm.ID); at >= 0 {
		refusal.Cause, refusal.Operation = moving.Busy, t.flights[at].id
	} else if from := t.nodes[vm.Holder]; from != nil && from.facts.Liveness != model.Up {
		refusal.Cause = moving.Silent
	}
	return refusal
}

// records are the world's as the deciding functions read them.
func (l *leader) records() moving.Records {
	r := records{Facts: estate.Indexed(&l.state), leader: l, vms: make(map[string]*model.VM, len(l.state.VMs))}
	for i := range l.state.VMs {
		r.vms[l.state.VMs[i].ID] = &l.state.VMs[i]
	}
	return r
}

type records struct {
	estate.Facts
	leader *leader
	vms    map[string]*model.VM // by ID
}

func (r records) VM(id string) (model.VM, bool) {
	vm, known := r.vms[id]
	if !known {
		return model.VM{}, false
	}
	return *vm, true
}

func (r records) VMsOn(node string) (found []model.VM) {
	for i := range r.leader.state.VMs {
		if vm := &r.leader.state.VMs[i]; vm.Holder == node {
			found = append(found, *vm)
		}
	}
	return found
}

func (r records) Operation(id string) (operation.Operation, bool) {
	for _, op := range r.LiveOperations() {
		if op.ID == id {
			return op, true
		}
	}
	return operation.Operation{}, false
}

func (r records) LiveOperations() []operation.Operation {
	live := make([]operation.Operation, len(r.leader.flights))
	for i := range r.leader.flights {
		live[i] = r.leader.operationOf(&r.leader.flights[i])
	}
	return live
}

// OperationsOfPlan are the moves of a plan that have begun: of each VM the newest comes first.
func (r records) OperationsOfPlan(plan string) []operation.Operation {
	var all []operation.Operation
	for _, op := range r.LiveOperations() {
		if op.Plan == plan {
			all = append(all, op)
		}
	}
	return append(all, r.leader.tried[plan]...)
}

// operationOf is what a leader's records have of a move that is under way.
func (t *traffic) operationOf(f *flight) operation.Operation {
	return operation.Operation{
		ID: f.id, Kind: operation.Migrate, Phase: operation.Copying, Plan: f.plan, CreatedAt: f.began,
		VM: f.vm, VMName: t.nameOf(f.vm), Source: f.source, SourceName: t.nodeName(f.source), Target: f.target, TargetName: t.nodeName(f.target),
	}
}

// over keeps how a move of a plan has ended.
func (t *traffic) over(f *flight, result operation.Result, message string) {
	if f.plan == "" {
		return
	}
	op := t.operationOf(f)
	op.Phase, op.Result, op.Message, op.EndedAt = operation.Ended, result, message, t.at
	t.tried[f.plan] = append([]operation.Operation{op}, t.tried[f.plan]...)
}

// sizeNow is how large a VM is that runs, as the leader has it: its record may have been given another size for its next start.
func (s *site) sizeNow(vm *model.VM) (memory units.Bytes, vcpus int) {
	size := vm.SizeOn(nil)
	if g, err := s.guest(vm); err == nil {
		size.Memory, size.VCPUs = max(size.Memory, g.memory), max(size.VCPUs, g.vcpus)
	}
	return size.Memory, size.VCPUs
}
