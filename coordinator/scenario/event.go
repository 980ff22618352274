package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/document"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/scenario/format"
	"berth/coordinator/schema"
)

// caller is who asks for what a step does.
const caller = "scenario"

// pass lets time go by: the leader's loops run, and moves come to their end.
type pass struct{ last time.Duration }

func (a *pass) do(w *world, _ uint64, report *StepReport) error {
	if err := w.until(w.at.Add(a.last)); err != nil {
		return err
	}
	report.passed, report.Moves = true, w.moves-w.told.moves
	report.Said = fmt.Sprintf("%s, %s", passes(w.passes-w.told.passes), count(report.Moves, "move"))
	w.told.passes, w.told.moves = w.passes, w.moves
	return nil
}

func passes(n int) string {
	if n == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", n)
}

// byHand is a VM that somebody moved past Berth, with virsh for instance: nobody asked whether it fits.
type byHand struct{ vm, to string }

func (a *byHand) do(w *world, _ uint64, report *StepReport) error {
	vm, err := w.vm(a.vm)
	if err != nil {
		return err
	}
	target, _, err := w.node(a.to)
	if err != nil {
		return err
	}
	if err := w.movable(vm); err != nil {
		return err
	}
	if vm.Holder == target.ID {
		return fmt.Errorf("VM %q runs on %s already", vm.Name, a.to)
	}
	report.Said = fmt.Sprintf("from %s", w.nodeName(vm.Holder))
	w.arriveBy(&flight{vm: vm.ID, source: vm.Holder, target: target.ID})
	return nil
}

// newLeader is another coordinator that begins to lead: what only the old one remembered is lost.
type newLeader struct{}

func (a *newLeader) do(w *world, _ uint64, report *StepReport) error {
	clear(w.histories)
	clear(w.resting)
	w.nextPass = w.at.Add(w.interval)
	report.Said = fmt.Sprintf("its first pass is in %v", w.interval)
	return nil
}

// apply declares a part of an estate anew.
type apply struct{ document *document.Document }

func (a *apply) do(w *world, _ uint64, report *StepReport) error {
	plan, problems := estate.Diff(w.state, a.document, false)
	if err := schema.Problems(problems); err != nil {
		return err
	}
	plan.Assign(w.at, format.MadeID)
	w.become(plan.Apply(w.state))
	changed := make([]string, 0, len(plan.Changes))
	for i := range plan.Changes {
		change := &plan.Changes[i]
		changed = append(changed, fmt.Sprintf("%s/%s", change.Kind, change.Name))
	}
	report.Said = "nothing changes"
	if len(changed) > 0 {
		report.Said = "declared " + strings.Join(changed, ", ")
	}
	return nil
}

// undrain lets a node take VMs again. What its last drain moved away may be asked to come back.
type undrain struct {
	node string
	back bool
}

func (a *undrain) do(w *world, _ uint64, report *StepReport) error {
	record, _, err := w.node(a.node)
	if err != nil {
		return err
	}
	last := slices.IndexFunc(w.plans, func(p model.Plan) bool { return p.Kind == model.PlanDrain && p.Node == record.ID })
	if last >= 0 && w.plans[last].State == model.PlanRunning {
		w.plans[last].State, w.plans[last].Message = model.PlanCancelled, a.node+" takes VMs again"
		if err := w.carry(); err != nil {
			return err
		}
	}
	record.Maintenance, record.MaintenanceReason = false, ""
	report.Said = a.node + " takes VMs again"
	if !a.back {
		return nil
	}
	drained, was := moving.Drained(w.records(), w.plans, record.ID)
	if !was {
		return errors.New("nothing was drained from it: there is nothing to bring back")
	}
	if w.plans[last].EndedAt.IsZero() {
		return errors.New("its drain still has VMs under way: let time pass first")
	}
	fleet, err := w.fleet(record.Cluster)
	if err != nil {
		return err
	}
	plan := balance.Return(fleet, &drained)
	plan.State, plan.Caller = model.PlanRunning, caller
	p := w.pursue(plan)
	report.Plan, report.drained = p.id, true
	if err := w.carry(); err != nil {
		return err
	}
	w.tell(p.id, report)
	return nil
}
