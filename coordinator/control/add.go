package control

import (
	"context"
	"errors"
	"fmt"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// addKind is the kind of the command that makes a VM.
const addKind = "add vm"

// AddVM makes a VM without starting it. In a cluster with local storage it decides where the VM's disk is to be: the VM
// will start there and nowhere else. Nothing is reserved. Refusals are of type *Error.
func (c *Control) AddVM(ctx context.Context, request AddVM) (Added, error) {
	var added Added
	err := c.plan(ctx, "vm/"+request.Name, func() (again retry, err error) {
		added, again, err = c.addOnce(ctx, StartVM(request))
		return again, err
	})
	return added, err
}

func (c *Control) addOnce(ctx context.Context, request StartVM) (added Added, again retry, err error) {
	if !c.leading() {
		return Added{}, decided, errNotLeading
	}
	snapshot := c.Store.Snapshot()
	if snapshot.Answered(request.RequestID, addKind) {
		return addedBefore(snapshot, request.Name)
	}
	request.Root = c.rootOf(&request)
	vm, err := c.addable(snapshot, request)
	if err != nil {
		return Added{}, decided, err
	}
	facts := factsOf(snapshot, request.Root)
	settled := c.settled(snapshot)
	search, err := c.search(snapshot, facts, vm, placement.ForCreate)
	if err != nil {
		return Added{}, decided, err
	}
	if err := describable(facts, vm); err != nil {
		return Added{}, decided, err
	}
	var decision placement.Decision
	switch {
	case search.localOnly():
		search.ask(func(r *placement.Request) { r.Pinned = request.Node })
		decision = c.decide(search, request.Caller)
		if decision.Outcome == placement.Refused && !settled {
			return Added{}, unsettled, nil
		}
		if decision.Outcome == placement.Refused && !request.DryRun {
			return Added{Decision: decision}, decided, c.recordRefusal(ctx, decision)
		}
		vm.Home, vm.Decision = decision.Winner, decision.ID
	case request.Node != "":
		message := fmt.Sprintf("VM %q may go to several clusters: it has no node before it is started", vm.Name)
		if len(search.Options) == 1 {
			message = fmt.Sprintf("cluster %q has shared storage: a VM there has no node before it is started", search.Options[0].Cluster)
		}
		return Added{}, decided, &Error{
			Code: Invalid, Subject: "vm/" + vm.Name, Message: message, NextStep: "leave the node out, and name it when the VM is started",
		}
	}
	read := search.unchanged(snapshot, decision)
	if vm.Home != "" {
		read = append(read, unmoved(snapshot, vm.Home))
	}
	if request.DryRun {
		decision.DryRun = decision.ID != ""
		return Added{VM: vm, Decision: decision}, decided, refusalOf(decision)
	}
	again, err = c.add(ctx, request, &vm, decision, read)
	if again != decided || err != nil {
		return Added{}, again, err
	}
	return Added{VM: vm, Decision: decision}, decided, nil
}

// describable refuses a VM that no node could be given a description of. Disks that its first start makes are in no pool yet.
func describable(facts estate.Facts, vm cluster.VM) error {
	if _, err := estate.SpecOf(facts, vm); err != nil && !errors.Is(err, estate.ErrNoVolume) {
		return unlinked(vm, err)
	}
	return nil
}

// addable is the record to make.
func (c *Control) addable(snapshot *state.Snapshot, request StartVM) (cluster.VM, error) {
	subject := "vm/" + request.Name
	if other, exists := snapshot.VMByName(request.Name); exists {
		return cluster.VM{}, &Error{
			Code: Exists, Subject: subject, Message: fmt.Sprintf("VM %q exists already (ID %s)", other.Name, other.ID),
			NextStep: fmt.Sprintf("see 'berth vm show %s', or choose another name", other.Name),
		}
	}
	if request.Spec == nil {
		return cluster.VM{}, &Error{
			Code: Invalid, Subject: subject, Message: fmt.Sprintf("VM %q is not described", request.Name),
			NextStep: "give --memory and --vcpus, or --xml",
		}
	}
	vm, err := c.newVM(snapshot, request)
	vm.Desired = cluster.Stopped
	return vm, err
}

// addedBefore answers a request that was carried out before.
func addedBefore(snapshot *state.Snapshot, name string) (Added, retry, error) {
	vm, exists := snapshot.VMByName(name)
	if !exists {
		return Added{}, decided, &Error{
			Code: NotFound, Subject: "vm/" + name, Message: fmt.Sprintf("VM %q was made by this request and is gone again", name),
			NextStep: "make it anew with another request",
		}
	}
	decision, _ := snapshot.Decision(vm.Decision)
	return Added{VM: vm, Decision: decision}, decided, nil
}

// add commits the record, with the decision on its home if there was one.
func (c *Control) add(
	ctx context.Context, request StartVM, vm *cluster.VM, decision placement.Decision, read []state.Expectation,
) (retry, error) {
	event := cluster.Event{
		At: vm.CreatedAt, Kind: "vm.created", Subject: "vm/" + vm.Name, Message: "made; it does not run yet", Caller: request.Caller,
	}
	command := state.Command{
		Key: request.RequestID, Kind: addKind, Caller: request.Caller, At: vm.CreatedAt,
		Expect: append([]state.Expectation{{Table: state.VMs, ID: vm.ID}}, read...),
	}
	if command.Key == "" {
		command.Key = c.newID()
	}
	if decision.ID != "" {
		command.Decisions = []placement.Decision{decision}
		event.Decision, event.Message = decision.ID, "made; its disk is to be on "+decision.WinnerName
	}
	command.VMs, command.Events = []cluster.VM{*vm}, []cluster.Event{event}
	if request.Root != nil {
		create(&command, *request.Root)
	}
	result, err := c.propose(ctx, command)
	switch {
	case err != nil:
		return decided, err
	case result.Refusal == nil:
		vm.Revision = result.Index
		return decided, nil
	case result.Refusal.Code == state.Stale:
		return moved, nil
	default:
		return decided, fromRefusal(result.Refusal, vm.Name)
	}
}
