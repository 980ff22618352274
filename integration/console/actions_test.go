package console

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// Each action of the pages does in the cluster what it says, by an operator's name, with scripts and without.
func actionsAct(s *site) {
	_, member := s.leader()
	for _, scriptless := range []bool{false, true} {
		s.sub(fmt.Sprintf("without scripts %t", scriptless), func(s *site) {
			v := s.open(member, looks{scriptless: scriptless})
			v.stopsAndStarts()
			v.migrates()
			v.drains()
			v.plans()
			v.cancels()
		})
	}
}

func (v *tab) stopsAndStarts() {
	v.Helper()
	v.goes("/vms/web1")
	v.click(`details.sure:nth-of-type(1) summary`)
	v.press(`form[action="/vms/web1/stop"] button`)
	v.stands("web1", stopped, "")
	v.goes("/vms/web1")
	v.untilText("stopped")
	v.press(`form[action="/vms/web1/start"] button`)
	v.stands("web1", running, "")
	v.goes("/vms/web1")
	v.untilText("running")
	v.click(`details.sure:nth-of-type(2) summary`)
	v.press(`form[action="/vms/web1/reboot"] button`)
	v.until("the page of the VM", `location.pathname === "/vms/web1" && document.querySelector("h1").textContent === "VM web1"`)
	v.stands("web1", running, "")
	by := v.newest("stop", "web1").GetCaller()
	if !strings.HasPrefix(by, "operator/") {
		v.Errorf("the stop is by %q", by)
	}
}

// newest is the newest operation of a kind.
func (v *tab) newest(kind, vm string) (found *berthv1.Operation) {
	v.Helper()
	v.awaits("an operation "+kind+" of "+vm, func(ctx context.Context) error {
		answer, err := v.api().ListOperations(ctx, connect.NewRequest(&berthv1.ListOperationsRequest{}))
		if err != nil {
			return err
		}
		for _, op := range answer.Msg.GetOperations() {
			if op.GetKind() == kind && op.GetVm() == vm {
				found = op
				return nil
			}
		}
		return errors.New("there is none")
	})
	return found
}

// migrates looks where a VM would go, chooses another node, and has it moved there.
func (v *tab) migrates() {
	v.Helper()
	before, err := v.vm(v.Context(), "web1")
	v.check(err)
	to := "node3"
	if before.GetNode() == to {
		to = "node2"
	}
	v.goes("/vms/web1")
	v.press(`a[href="/vms/web1/migrate"]`)
	v.untilText("Nothing is moved yet")
	v.goes("/vms/web1/migrate?node=" + to)
	if line := v.command(); line != "berth vm migrate web1 --to "+to+" --dry-run" {
		v.Errorf("the preview names %q", line)
	}
	if out, code := v.berth(v.command()); code != 0 || !strings.Contains(out, to) {
		v.Errorf("its command: exit code %d\n%s", code, out)
	}
	if now, err := v.vm(v.Context(), "web1"); err != nil || now.GetNode() != before.GetNode() {
		v.Errorf("after a preview it is %v, %v", now, err)
	}
	v.press(`form[method=post][action="/vms/web1/migrate"] button`)
	v.stands("web1", running, to)
}

// drains tries a drain out, has it done, and ends the maintenance.
func (v *tab) drains() {
	v.Helper()
	v.goes("/nodes/node3")
	v.press(`a[href="/nodes/node3/plan"]`)
	v.untilText("Nothing is moved yet")
	if line := v.command(); line != "berth node drain node3 --dry-run" {
		v.Errorf("the preview names %q", line)
	}
	v.press(`form[action="/nodes/node3/drain"] button`)
	v.until("the plan", `location.pathname.startsWith("/plans/")`)
	v.awaits("node3 to be empty", func(ctx context.Context) error {
		answer, err := v.api().ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{Node: "node3"}))
		if err == nil && len(answer.Msg.GetVms()) > 0 {
			err = fmt.Errorf("it has %d VMs", len(answer.Msg.GetVms()))
		}
		return err
	})
	v.awaits("the page to offer the end of the maintenance", func(context.Context) error {
		v.goes("/nodes/node3")
		if !says[bool](v, `document.querySelector('form[action="/nodes/node3/undrain"]') !== null`) {
			return errors.New("it does not")
		}
		return nil
	})
	v.press(`form[action="/nodes/node3/undrain"] button`)
	v.awaits("the end of the maintenance", func(ctx context.Context) error {
		answer, err := v.api().GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: "node3"}))
		if err == nil && answer.Msg.GetNode().GetMaintenance() {
			err = errors.New("it goes on")
		}
		return err
	})
}

// propose makes a plan, for which the VMs stand where it has something to do.
func (s *site) propose() (id string) {
	s.Helper()
	for _, name := range []string{"db1", "db2", "lot1", "lot2", "lot3", longName} {
		vm, err := s.vm(s.Context(), name)
		s.check(err)
		if vm.GetNode() != "node1" {
			s.does("berth vm migrate " + name + " --to node1")
		}
	}
	s.awaits("a plan", func(ctx context.Context) error {
		answer, err := s.api().ProposePlan(ctx, connect.NewRequest(&berthv1.ProposePlanRequest{}))
		if err != nil {
			return err
		}
		if id = answer.Msg.GetPlan().GetId(); id == "" {
			return errors.New(answer.Msg.GetPlan().GetReason())
		}
		return nil
	})
	return id
}

// ends waits until a plan is in a state.
func (s *site) ends(plan string, states ...string) {
	s.Helper()
	s.awaits("plan "+plan, func(ctx context.Context) error {
		answer, err := s.api().GetPlan(ctx, connect.NewRequest(&berthv1.GetPlanRequest{Id: plan}))
		if err != nil {
			return err
		}
		for _, state := range states {
			if answer.Msg.GetPlan().GetState() == state {
				return nil
			}
		}
		return fmt.Errorf("it is %s: %s", answer.Msg.GetPlan().GetState(), answer.Msg.GetPlan().GetMessage())
	})
}

// plans discards one plan and applies another.
func (v *tab) plans() {
	v.Helper()
	plan := v.propose()
	v.goes("/plans/" + plan)
	v.press(`form[action="/plans/` + plan + `/discard"] button`)
	v.ends(plan, "discarded")
	plan = v.propose()
	v.goes("/plans/" + plan)
	if line := v.command(); line != "berth plan show "+plan {
		v.Errorf("the plan names %q", line)
	}
	v.press(`form[action="/plans/` + plan + `/apply"] button`)
	v.ends(plan, "done")
}

// cancels gives up a migration that takes long, and a plan with moves that do.
func (v *tab) cancels() {
	v.Helper()
	v.fleet.Nodes.Hold(true)
	defer v.fleet.Nodes.Hold(false)
	before, err := v.vm(v.Context(), "db1")
	v.check(err)
	to := "node2"
	if before.GetNode() == to {
		to = "node3"
	}
	v.goes("/vms/db1/migrate?node=" + to)
	v.press(`form[method=post][action="/vms/db1/migrate"] button`)
	op := v.newest("migrate", "db1")
	v.goes("/moves")
	v.untilText("db1")
	v.press(`a[href="/operations/` + op.GetId() + `"]`)
	v.untilText("not yet")
	if line := v.command(); line != "berth operation show "+op.GetId() {
		v.Errorf("the operation names %q", line)
	}
	v.press(`form[action="/operations/` + op.GetId() + `/cancel"] button`)
	v.stands("db1", running, before.GetNode())
	v.awaits("the end of the migration", func(ctx context.Context) error {
		answer, err := v.api().GetOperation(ctx, connect.NewRequest(&berthv1.GetOperationRequest{Id: op.GetId()}))
		if err == nil && (answer.Msg.GetOperation().GetEndedAt() == nil || !answer.Msg.GetOperation().GetCancelled()) {
			err = fmt.Errorf("it is %v", answer.Msg.GetOperation())
		}
		return err
	})
	v.goes("/operations/" + op.GetId())
	v.untilText("cancelled")
	v.fleet.Nodes.Hold(false)
	plan := v.propose()
	v.fleet.Nodes.Hold(true)
	v.goes("/plans/" + plan)
	v.press(`form[action="/plans/` + plan + `/apply"] button`)
	v.until("the button that cancels", `document.querySelector('form[action="/plans/`+plan+`/cancel"]') !== null`)
	v.press(`form[action="/plans/` + plan + `/cancel"] button`)
	v.until("the page of the plan", `location.pathname === "/plans/`+plan+`"`)
	v.fleet.Nodes.Hold(false)
	v.ends(plan, "cancelled", "done", "ended")
}
