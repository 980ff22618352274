package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// addKind is the kind of the command that makes a VM.
const addKind = "add vm"

// AddVM makes a VM without starting it. In a cluster with local storage it decides where the VM's disk is to be: the VM
// will start there and nowhere else. Nothing is reserved. Refusals are of type *Error.
func (l *Lifecycle) AddVM(ctx context.Context, request AddVM) (Added, error) {
	var added Added
	err := l.InTurn(ctx, "vm/"+request.Name, func() (again lead.Retry, err error) {
		added, again, err = l.addOnce(ctx, StartVM(request))
		return again, err
	})
	return added, err
}

func (l *Lifecycle) addOnce(ctx context.Context, request StartVM) (added Added, again lead.Retry, err error) {
	if !l.Leading() {
		return Added{}, lead.Decided, lead.ErrNotLeading
	}
	snapshot := l.Store.Snapshot()
	if snapshot.Answered(request.RequestID, addKind) {
		return addedBefore(snapshot, request.Name)
	}
	request.Root = l.rootOf(&request)
	vm, err := l.addable(snapshot, request)
	if err != nil {
		return Added{}, lead.Decided, err
	}
	facts := factsOf(snapshot, request.Root)
	settled := l.ViewComplete(snapshot)
	search, err := l.search(snapshot, facts, vm, placement.ForCreate)
	if err != nil {
		return Added{}, lead.Decided, err
	}
	if err := describable(facts, vm); err != nil {
		return Added{}, lead.Decided, err
	}
	var decision placement.Decision
	switch {
	case search.localOnly():
		search.ask(func(r *placement.Request) { r.Pinned = request.Node })
		decision = l.decide(search, request.Caller)
		if decision.Outcome == placement.Refused && !settled {
			return Added{}, lead.Incomplete, nil
		}
		if decision.Outcome == placement.Refused && !request.DryRun {
			return Added{Decision: decision}, lead.Decided, l.RecordRefusal(ctx, decision)
		}
		vm.Home, vm.Decision = decision.Winner, decision.ID
	case request.Node != "":
		message := fmt.Sprintf("VM %q may go to several clusters: it has no node before it is started", vm.Name)
		if len(search.Options) == 1 {
			message = fmt.Sprintf("cluster %q has shared storage: a VM there has no node before it is started", search.Options[0].Cluster)
		}
		return Added{}, lead.Decided, &lead.Error{
			Code: lead.Invalid, Subject: "vm/" + vm.Name, Message: message, NextStep: "leave the node out, and name it when the VM is started",
		}
	}
	read := search.unchanged(snapshot, decision)
	if vm.Home != "" {
		read = append(read, NodeUnmoved(snapshot, vm.Home))
	}
	if request.DryRun {
		decision.DryRun = decision.ID != ""
		return Added{VM: vm, Decision: decision}, lead.Decided, refusalOf(decision)
	}
	again, err = l.add(ctx, request, &vm, decision, read)
	if again != lead.Decided || err != nil {
		return Added{}, again, err
	}
	return Added{VM: vm, Decision: decision}, lead.Decided, nil
}

// describable refuses a VM that no node could be given a description of. Disks that its first start makes are in no pool yet.
func describable(facts estate.Facts, vm model.VM) error {
	if _, err := estate.SpecOf(facts, vm); err != nil && !errors.Is(err, estate.ErrNoVolume) {
		return Unlinked(vm, err)
	}
	return nil
}

// addable is the record to make.
func (l *Lifecycle) addable(snapshot *state.Snapshot, request StartVM) (model.VM, error) {
	subject := "vm/" + request.Name
	if other, exists := snapshot.VMByName(request.Name); exists {
		return model.VM{}, &lead.Error{
			Code: lead.Exists, Subject: subject, Message: fmt.Sprintf("VM %q exists already (ID %s)", other.Name, other.ID),
			NextStep: fmt.Sprintf("see 'berth vm show %s', or choose another name", other.Name),
		}
	}
	if request.VM == nil {
		return model.VM{}, &lead.Error{
			Code: lead.Invalid, Subject: subject, Message: fmt.Sprintf("VM %q is not described", request.Name),
			NextStep: "give --memory and --vcpus, or --xml",
		}
	}
	vm, err := l.newVM(snapshot, request)
	vm.Desired = model.Stopped
	return vm, err
}

// addedBefore answers a request that was carried out before.
func addedBefore(snapshot *state.Snapshot, name string) (Added, lead.Retry, error) {
	vm, exists := snapshot.VMByName(name)
	if !exists {
		return Added{}, lead.Decided, &lead.Error{
			Code: lead.NotFound, Subject: "vm/" + name, Message: fmt.Sprintf("VM %q was made by this request and is gone again", name),
			NextStep: "make it anew with another request",
		}
	}
	decision, _ := snapshot.Decision(vm.Decision)
	return Added{VM: vm, Decision: decision}, lead.Decided, nil
}

// add commits the record, with the decision on its home if there was one.
func (l *Lifecycle) add(
	ctx context.Context, request StartVM, vm *model.VM, decision placement.Decision, read []state.Expectation,
) (lead.Retry, error) {
	event := model.Event{
		At: vm.CreatedAt, Kind: "vm.created", Subject: "vm/" + vm.Name, Message: "made; it does not run yet", Caller: request.Caller,
	}
	command := state.Command{
		Key: request.RequestID, Kind: addKind, Caller: request.Caller, At: vm.CreatedAt,
		Expect: append([]state.Expectation{{Table: state.VMs, ID: vm.ID}}, read...),
	}
	if command.Key == "" {
		command.Key = l.NewID()
	}
	if decision.ID != "" {
		command.Decisions = []placement.Decision{decision}
		event.Decision, event.Message = decision.ID, "made; its disk is to be on "+decision.WinnerName
	}
	command.VMs, command.Events = []model.VM{*vm}, []model.Event{event}
	if request.Root != nil {
		lead.Create(&command, *request.Root)
	}
	result, err := l.Propose(ctx, command)
	switch {
	case err != nil:
		return lead.Decided, err
	case result.Refusal == nil:
		vm.Revision = result.Index
		return lead.Decided, nil
	case result.Refusal.Code == state.Stale:
		return lead.Stale, nil
	default:
		return lead.Decided, lead.RefusalOf(result.Refusal, vm.Name)
	}
}
