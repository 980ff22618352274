package scenario

import (
	"errors"
	"fmt"

	"berth/coordinator/balance"
	"berth/coordinator/document"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/placement"
	"berth/coordinator/placement/across"
	"berth/coordinator/placement/key"
	"berth/coordinator/scenario/format"
	"berth/coordinator/schema"
	"berth/shared/units"
)

// start places a VM and starts it.
type start struct {
	vm        string
	described *document.Document // of a VM that the estate does not have; nil: it has it
	on        string
	seed      *uint64
}

func (a *start) do(w *world, seed uint64, _ *StepReport) error {
	before := w.state
	if a.described != nil {
		if _, err := w.vm(a.vm); err == nil {
			return fmt.Errorf("VM %q is there already: leave out its description", a.vm)
		}
		plan, problems := estate.Diff(w.state, a.described, false)
		if err := schema.Problems(problems); err != nil {
			return err
		}
		plan.Assign(w.at, format.MadeID)
		w.become(plan.Apply(w.state))
	}
	vm, err := w.vm(a.vm)
	if err != nil {
		return err
	}
	if vm.Holder != "" {
		return fmt.Errorf("VM %q runs already, on %s", vm.Name, w.nodeName(vm.Holder))
	}
	if err := w.idle(vm); err != nil {
		return err
	}
	pinned, err := w.pin(a.on)
	if err != nil {
		return err
	}
	view := w.view()
	search, options, err := estate.SearchOf(estate.Indexed(&w.state), view, *vm, placement.ForStart)
	if err != nil {
		return err
	}
	for i := range search.Options {
		search.Options[i].Request.Pinned = pinned
	}
	decision := across.Place(view, search, or(a.seed, seed))
	w.started(vm, &decision)
	if decision.Outcome != placement.Placed {
		w.become(before) // a VM that was never started is not made
		return nil
	}
	resolved := options[decision.Request.Cluster]
	if err := w.makeVolumes(vm, &decision); err != nil {
		return err
	}
	vm.CPU, vm.PassedCPU = decision.Request.CPU, ""
	if vm.Spec.CPU == model.CPUHostPassthrough {
		vm.CPU, vm.PassedCPU = vm.Spec.CPU, view.Node(decision.Winner).Facts.HostCPU
	}
	vm.Holder, vm.LastNode, vm.Desired = decision.Winner, decision.Winner, model.Running
	vm.RanSize = vm.NextSize()
	vm.Resident, vm.Owner = residentsOf(&resolved), resolved.Owner
	record, _ := w.state.Node(decision.Winner)
	vm.Sticky = model.StickyCopies(&resolved.Record, &record)
	if model.SettingsOf(&resolved.Record).Storage == model.LocalStorage {
		vm.Home = decision.Winner // its disk is made there, if it was not there before
	}
	w.arrive(decision.Winner, guest{vm: vm.ID, name: vm.Name, memory: vm.Spec.Memory, vcpus: vm.Spec.VCPUs})
	return nil
}

// started notes how a start was decided.
func (j *journal) started(vm *model.VM, decision *placement.Decision) {
	entry := Entry{What: "start", VM: vm.Name, To: decision.WinnerName, Why: decision.Reason}
	if decision.Outcome != placement.Placed {
		entry.What = "refused"
	}
	j.noteDecided(entry, decision)
}

// decide runs the engine as the leader does.
func (s *site) decide(resolved *estate.Resolved, request placement.Request, seed uint64) (placement.Decision, error) {
	policy, _, err := estate.PolicyOf(&s.state, resolved.Record)
	if err != nil {
		return placement.Decision{}, err
	}
	return placement.Place(s.view(), request, policy, seed), nil
}

// pin is the ID of a node that is named; empty if none is.
func (s *site) pin(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	record, _, err := s.node(name)
	if err != nil {
		return "", err
	}
	return record.ID, nil
}

// residentsOf is what a VM shows to others from its start on.
func residentsOf(resolved *estate.Resolved) []model.ResidentKey {
	return key.ResidentsOf(key.WeightedOf(resolved.Customer))
}

func or(given *uint64, otherwise uint64) uint64 {
	if given != nil {
		return *given
	}
	return otherwise
}

// stop ends a VM, or tells that it is gone with its node.
type stop struct{ vm string }

func (a *stop) do(w *world, _ uint64, report *StepReport) error {
	vm, err := w.vm(a.vm)
	if err != nil {
		return err
	}
	if err := w.idle(vm); err != nil {
		return err
	}
	if _, err := w.guest(vm); err != nil {
		return err
	}
	report.Said = fmt.Sprintf("stopped on %s", w.nodeName(vm.Holder))
	w.leave(vm.Holder, vm.ID)
	vm.Holder, vm.Desired = "", model.Stopped
	return nil
}

// migrate moves a running VM to the best node, or to the one that is named.
type migrate struct {
	vm       string
	to       string
	ifBetter float64
	seed     *uint64
}

func (a *migrate) do(w *world, seed uint64, _ *StepReport) error {
	vm, err := w.vm(a.vm)
	if err != nil {
		return err
	}
	target, err := w.pin(a.to)
	if err != nil {
		return err
	}
	if target != "" && target == vm.Holder {
		return fmt.Errorf("VM %q runs on %s already", vm.Name, a.to)
	}
	return w.move(vm, target, a.ifBetter, or(a.seed, seed))
}

// move decides where a running VM goes, and sets it on its way there.
func (w *world) move(vm *model.VM, target string, ifBetter float64, seed uint64) error {
	if err := w.movable(vm); err != nil {
		return err
	}
	resolved, err := estate.Resolve(&w.state, *vm)
	if err != nil {
		return err
	}
	request := w.movingRequest(&resolved, vm, placement.ForMigrate)
	request.Pinned, request.IfBetter = target, ifBetter
	decision, err := w.decide(&resolved, request, seed)
	if err != nil {
		return err
	}
	entry := Entry{What: "migrate", VM: vm.Name, From: w.nodeName(vm.Holder), To: decision.WinnerName, Why: decision.Reason}
	switch decision.Outcome {
	case placement.Placed:
		defer w.depart(vm, decision.Winner, "", w.bandwidth)
	case placement.Stay:
		entry.What = "stays"
	case placement.Refused:
		entry.What = "refused"
	}
	w.noteDecided(entry, &decision)
	return nil
}

// movable tells why a VM cannot move now; nil: it can.
func (s *site) movable(vm *model.VM) error {
	if err := s.idle(vm); err != nil {
		return err
	}
	g, err := s.guest(vm)
	if err != nil {
		return err
	}
	source := s.nodes[vm.Holder]
	if source.facts.Liveness != model.Up {
		return fmt.Errorf("node %s, which runs VM %q, is not up: a VM moves only when both nodes answer", s.nodeName(vm.Holder), vm.Name)
	}
	if g.state != model.DomainRunning {
		return fmt.Errorf("VM %q is %s on %s: only a running VM moves", vm.Name, g.state, s.nodeName(vm.Holder))
	}
	resolved, err := estate.Resolve(&s.state, *vm)
	if err == nil && model.SettingsOf(&resolved.Record).Storage == model.LocalStorage {
		return fmt.Errorf("VM %q has its disk on %s: nothing moves in cluster %s, which has local storage",
			vm.Name, s.nodeName(vm.Holder), resolved.Cluster)
	}
	return err
}

// movingRequest asks for a VM as large as it runs, as the leader has it: its record may have been given another size for its
// next start.
func (s *site) movingRequest(resolved *estate.Resolved, vm *model.VM, purpose placement.Purpose) placement.Request {
	request := estate.Request(*resolved, *vm, purpose)
	request.Memory, request.VCPUs = s.sizeNow(vm)
	return request
}

// drain puts a node into maintenance and moves what can be moved away from it, as the leader does.
type drain struct {
	node      string
	parallel  int
	bandwidth units.Bytes
}

func (a *drain) do(w *world, _ uint64, report *StepReport) error {
	record, n, err := w.node(a.node)
	if err != nil {
		return err
	}
	if n.facts.Liveness != model.Up {
		return fmt.Errorf("node %s is not up: nothing can be moved away from it", a.node)
	}
	if at := w.unfinished(record.ID, model.PlanDrain); at != nil {
		return fmt.Errorf("node %s is being drained already, by %s", a.node, at.ID)
	}
	fleet, err := w.fleet(record.Cluster)
	if err != nil {
		return err
	}
	preflight := balance.Drain(fleet, record.ID, a.parallel, a.bandwidth)
	if preflight.Refused != "" {
		return errors.New(preflight.Refused)
	}
	record.Maintenance, record.MaintenanceReason = true, "drain"
	if back := w.unfinished(record.ID, model.PlanReturn); back != nil {
		back.State, back.Message = model.PlanCancelled, a.node+" is drained again"
	}
	plan := preflight.Plan
	plan.State, plan.Caller, plan.Parallel, plan.Bandwidth = model.PlanRunning, caller, a.parallel, a.bandwidth
	p := w.pursue(plan)
	report.Plan, report.Warnings, report.drained = p.id, preflight.Warnings, true
	if err := w.carry(); err != nil {
		return err
	}
	w.tell(p.id, report)
	return nil
}

// unfinished is the plan of a kind for a node of which something may still move; nil: there is none.
func (l *leader) unfinished(node string, kind model.PlanKind) *model.Plan {
	for i := range l.plans {
		if plan := &l.plans[i]; plan.Node == node && plan.Kind == kind && moving.Unfinished(plan) {
			return plan
		}
	}
	return nil
}

// tell says how far a plan has come in its step.
func (l *leader) tell(id string, report *StepReport) {
	moved, begun := 0, 0
	for _, move := range moving.Moves(l.records(), *l.plan(id)) {
		switch move.State {
		case model.MoveMoved:
			moved++
		case moving.Moving, moving.Waiting:
			begun++
		default:
			report.Left = append(report.Left, Left{Name: move.VMName, Why: move.Reason})
		}
	}
	report.Said = fmt.Sprintf("%s moved, %d left", count(moved, "VM"), len(report.Left))
	if begun > 0 {
		report.Said = fmt.Sprintf("%s to move, %d left", count(begun, "VM"), len(report.Left))
	}
}
