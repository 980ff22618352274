package sim

import (
	"cmp"
	"fmt"
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
)

// start places a VM and starts it.
type start struct {
	vm        string
	described *estate.Document // of a VM that the estate does not have; nil: it has it
	on        string
	seed      *uint64
}

func (a *start) do(w *world, seed uint64, report *StepReport) error {
	before := w.state
	if a.described != nil {
		if _, err := w.vm(a.vm); err == nil {
			return fmt.Errorf("VM %q is there already: leave out its description", a.vm)
		}
		plan, problems := estate.Diff(w.state, a.described, false)
		if err := estate.Problems(problems); err != nil {
			return err
		}
		plan.Assign(w.at, madeID)
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
	resolved, err := estate.Resolve(&w.state, *vm)
	if err != nil {
		return err
	}
	request := estate.Request(resolved, *vm, placement.ForStart)
	if request.Pinned, err = w.pin(a.on); err != nil {
		return err
	}
	decision := w.decide(&resolved, request, or(a.seed, seed))
	report.Decisions = append(report.Decisions, decision)
	if decision.Outcome != placement.Placed {
		w.become(before) // a VM that was never started is not made
		return nil
	}
	vm.Holder, vm.LastNode, vm.Desired = decision.Winner, decision.Winner, cluster.Running
	vm.Resident, vm.Owner = residentsOf(&resolved), resolved.Owner
	record, _ := w.state.Node(decision.Winner)
	vm.Sticky = cluster.StickyCopies(&resolved.Record, &record)
	if cluster.SettingsOf(&resolved.Record).Storage == cluster.LocalStorage {
		vm.Home = decision.Winner // its disk is made there, if it was not there before
	}
	w.arrive(decision.Winner, guest{vm: vm.ID, name: vm.Name, memory: vm.Spec.Memory, vcpus: vm.Spec.VCPUs})
	return nil
}

// decide runs the engine as the leader does.
func (w *world) decide(resolved *estate.Resolved, request placement.Request, seed uint64) placement.Decision {
	policy := placement.PolicyFor(cluster.SettingsOf(&resolved.Record))
	return placement.Explain(placement.Place(w.view(), request, policy, seed))
}

// pin is the ID of a node that is named; empty if none is.
func (w *world) pin(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	record, _, err := w.node(name)
	if err != nil {
		return "", err
	}
	return record.ID, nil
}

// residentsOf is what a VM shows to others from its start on.
func residentsOf(resolved *estate.Resolved) []cluster.ResidentKey {
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
	vm.Holder, vm.Desired = "", cluster.Stopped
	return nil
}

// migrate moves a running VM to the best node, or to the one that is named.
type migrate struct {
	vm       string
	to       string
	ifBetter float64
	seed     *uint64
}

func (a *migrate) do(w *world, seed uint64, report *StepReport) error {
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
	decision, err := w.move(vm, target, a.ifBetter, or(a.seed, seed))
	if err != nil {
		return err
	}
	report.Decisions = append(report.Decisions, decision)
	return nil
}

// move decides where a running VM goes, and takes it there.
func (w *world) move(vm *cluster.VM, target string, ifBetter float64, seed uint64) (placement.Decision, error) {
	none := placement.Decision{}
	if err := w.idle(vm); err != nil {
		return none, err
	}
	g, err := w.guest(vm)
	if err != nil {
		return none, err
	}
	source := w.nodes[vm.Holder]
	if source.facts.Liveness != cluster.Up {
		return none, fmt.Errorf("node %s, which runs VM %q, is not up: a VM moves only when both nodes answer", w.nodeName(vm.Holder), vm.Name)
	}
	if g.state != cluster.DomainRunning {
		return none, fmt.Errorf("VM %q is %s on %s: only a running VM moves", vm.Name, g.state, w.nodeName(vm.Holder))
	}
	resolved, err := estate.Resolve(&w.state, *vm)
	if err != nil {
		return none, err
	}
	if cluster.SettingsOf(&resolved.Record).Storage == cluster.LocalStorage {
		return none, fmt.Errorf("VM %q has its disk on %s: nothing moves in cluster %s, which has local storage",
			vm.Name, w.nodeName(vm.Holder), resolved.Cluster)
	}
	request := estate.Request(resolved, *vm, placement.ForMigrate)
	// As large as it runs, as the leader has it: its record may have been given another size for its next start.
	request.Memory, request.VCPUs = max(request.Memory, g.memory), max(request.VCPUs, g.vcpus)
	request.Pinned, request.IfBetter = target, ifBetter
	decision := w.decide(&resolved, request, seed)
	if decision.Outcome == placement.Placed {
		gone := w.leave(vm.Holder, vm.ID)
		vm.Holder, vm.LastNode = decision.Winner, decision.Winner
		w.arrive(decision.Winner, gone)
	}
	return decision, nil
}

// drain puts a node into maintenance and moves what can be moved away from it, largest VM first.
type drain struct{ node string }

func (a *drain) do(w *world, seed uint64, report *StepReport) error {
	record, n, err := w.node(a.node)
	if err != nil {
		return err
	}
	if n.facts.Liveness != cluster.Up {
		return fmt.Errorf("node %s is not up: nothing can be moved away from it", a.node)
	}
	record.Maintenance, record.MaintenanceReason = true, "drain"
	guests := slices.Clone(n.guests)
	slices.SortStableFunc(guests, func(a, b guest) int { return cmp.Or(cmp.Compare(b.memory, a.memory), cmp.Compare(a.name, b.name)) })
	report.drained = true
	moved := 0
	for i := range guests {
		g := &guests[i]
		if g.foreign {
			report.Left = append(report.Left, Left{Name: g.name, Why: "it is not Berth's"})
			continue
		}
		vm, err := w.vm(g.name)
		if err != nil {
			return err
		}
		if vm.Holder != record.ID {
			report.Left = append(report.Left, Left{Name: g.name, Why: "the node does not hold it"})
			continue
		}
		decision, err := w.move(vm, "", 0, derive(seed, i))
		if err != nil {
			report.Left = append(report.Left, Left{Name: g.name, Why: err.Error()})
			continue
		}
		report.Decisions = append(report.Decisions, decision)
		if decision.Outcome != placement.Placed {
			report.Left = append(report.Left, Left{Name: g.name, Why: decision.Reason})
			continue
		}
		moved++
	}
	report.Said = fmt.Sprintf("%s moved away from %s, %d left", count(moved, "VM"), a.node, len(report.Left))
	return nil
}
