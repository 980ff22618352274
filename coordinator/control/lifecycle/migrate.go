package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	"berth/shared/destination"
)

// MigrateVM decides where a VM goes and commits the migration. When the present node is the best one, the VM stays: the
// decision says so and there is no operation.
func (l *Lifecycle) MigrateVM(ctx context.Context, request MigrateVM) (Migration, error) {
	return l.move(ctx, wantedMove{MigrateVM: request})
}

// errNotNow says that a move has to wait: for its turn, or because its plan runs no more.
var errNotNow = errors.New("the move has to wait for others")

// wantedMove is a migration, and what a plan asks of it. The plan asks again when it is refused, so the refusal is not kept.
type wantedMove struct {
	MigrateVM
	attempt *moving.Attempt // nil: somebody asked for this move by name
}

func (w *wantedMove) purpose() placement.Purpose {
	if w.attempt == nil {
		return placement.ForMigrate
	}
	return w.attempt.Purpose
}

// plan is the ID of the plan that the move is of; empty: of none.
func (w *wantedMove) plan() string {
	if w.attempt == nil {
		return ""
	}
	return w.attempt.Plan
}

func (l *Lifecycle) move(ctx context.Context, request wantedMove) (Migration, error) {
	var migration Migration
	snapshot := l.Store.Snapshot()
	if vm, known := snapshot.VM(request.VM); known { // before the turn, which others wait for
		if err := l.drifts.Unfrozen(ctx, snapshot, &vm, operation.Migrate); err != nil {
			return migration, err
		}
	}
	if request.CopyStorage {
		if err := l.drifts.NotShrunk(ctx, request.VM); err != nil {
			return migration, err
		}
	}
	err := l.InTurn(ctx, "vm/"+request.VM, func() (again lead.Retry, err error) {
		migration, again, err = l.migrateOnce(ctx, request)
		return again, err
	})
	return migration, err
}

func (l *Lifecycle) migrateOnce(ctx context.Context, request wantedMove) (migration Migration, again lead.Retry, err error) {
	if !l.Leading() {
		return Migration{}, lead.Decided, lead.ErrNotLeading
	}
	snapshot := l.Store.Snapshot()
	settled := l.ViewComplete(snapshot)
	if op, repeated := OperationOf(snapshot, request.RequestID); repeated {
		decision, _ := snapshot.Decision(op.Decision)
		return Migration{Operation: op, Decision: decision}, lead.Decided, nil
	}
	vm, err := l.held(snapshot, request.VM)
	if err != nil {
		return Migration{}, lead.Decided, err
	}
	if err := worthIt(request.MigrateVM, vm); err != nil {
		return Migration{}, lead.Decided, err
	}
	if err := usable(snapshot, vm); err != nil {
		return Migration{}, lead.Decided, err
	}
	search, err := l.search(snapshot, snapshot, vm, request.purpose())
	if err != nil {
		return Migration{}, lead.Decided, err
	}
	if err := l.movable(snapshot, vm, &search, request); err != nil {
		if !settled {
			return Migration{}, lead.Incomplete, nil
		}
		return Migration{}, lead.Decided, err
	}
	memory, vcpus := l.Moment(snapshot).Size(&vm)
	search.ask(func(r *placement.Request) {
		r.Memory, r.VCPUs = memory, vcpus
		r.Pinned, r.IfBetter = request.Node, request.IfBetter
		if request.attempt != nil {
			request.attempt.Ask(r)
		}
		if request.CopyStorage {
			r.CopyStorage, r.Home = len(localDisks(r)) > 0, vm.Bound // its home is where its disks are, and they go along
		}
	})
	if request.attempt != nil {
		for i := range search.Options {
			search.Options[i].Policy = request.attempt.Policy(search.Options[i].Policy)
		}
	}
	decision := l.decide(search, request.Caller)
	read := search.unchanged(snapshot, decision)
	quiet := request.attempt != nil
	switch plan, planned := snapshot.Plan(request.plan()); {
	case decision.Outcome == placement.Refused && !settled:
		return Migration{}, lead.Incomplete, nil
	case request.DryRun:
		decision.DryRun = true
		return Migration{Decision: decision}, lead.Decided, refusalOf(decision)
	case decision.Outcome == placement.Refused && quiet:
		return Migration{Decision: decision}, lead.Decided, refusalOf(decision)
	case decision.Outcome == placement.Refused:
		return Migration{Decision: decision}, lead.Decided, l.RecordRefusal(ctx, decision)
	case decision.Outcome == placement.Stay && quiet:
		return Migration{Decision: decision}, lead.Decided, nil
	case decision.Outcome == placement.Stay:
		return Migration{Decision: decision}, lead.Decided, l.record(ctx, decision)
	case planned:
		if limits := moving.TrafficOf(snapshot, &plan); plan.State != model.PlanRunning || limits.Full(vm.Holder, decision.Winner) {
			return Migration{}, lead.Decided, errNotNow
		}
		read = append(read, state.Expectation{Table: state.Plans, ID: plan.ID, Revision: plan.Revision})
	}
	at := l.Now()
	facts := l.Inventory.Facts(decision.Winner, at)
	uri, data := destinationOf(l.Logger, decision.WinnerName, &facts)
	expected := vm.Revision
	vm.LastEpoch++
	op := operation.Operation{
		ID: l.NewID(), Kind: operation.Migrate, Caller: request.Caller, Request: request.RequestID,
		VM: vm.ID, VMName: vm.Name, Source: vm.Holder, SourceName: lead.NodeName(snapshot, vm.Holder), SourceEpoch: vm.Epoch,
		SourceBoot: l.Inventory.Facts(vm.Holder, at).Boot, TargetBoot: facts.Boot,
		Target: decision.Winner, TargetName: decision.WinnerName, TargetURI: uri, TargetHost: data,
		Epoch: vm.LastEpoch,
		Phase: operation.Preparing, Step: 1, Attempt: 1, Decision: decision.ID, Pinned: request.Node,
		Memory: memory, VCPUs: vcpus, Bandwidth: request.Bandwidth, Deadline: copyDeadline(memory),
		CreatedAt: at, UpdatedAt: at, Plan: request.plan(),
	}
	if decision.Request.CopyStorage {
		if err := takeAlong(&op, snapshot, vm, decision); err != nil {
			return Migration{}, lead.Decided, Unlinked(vm, err)
		}
	}
	vm.Operation, vm.Decision = op.ID, decision.ID
	started, again, err := l.BeginOperation(ctx, First{
		Next: operation.Next{Operation: op, VM: vm}, snapshot: snapshot, decision: decision, Revision: expected, Read: read,
	})
	return Migration{Operation: started.Operation, Decision: started.Decision}, again, err
}

// worthIt refuses a least gain that is none.
func worthIt(request MigrateVM, vm model.VM) error {
	refuse := func(message, next string) error {
		return &lead.Error{Code: lead.Invalid, Subject: "vm/" + vm.Name, Message: message, NextStep: next}
	}
	switch gain := request.IfBetter; {
	case gain < 0, math.IsNaN(gain), math.IsInf(gain, 0):
		return refuse(fmt.Sprintf("a least gain of %g is not a number from 0 up", gain), "give a gain of score, 5 for instance")
	case gain > 0 && request.Node != "":
		return refuse("a least gain is for the best node, and a node is named", "leave one of both out")
	}
	return nil
}

// movable refuses what a migration could only fail at.
func (l *Lifecycle) movable(snapshot *state.Snapshot, vm model.VM, search *searched, request wantedMove) error {
	subject := "vm/" + vm.Name
	source := lead.NodeName(snapshot, vm.Holder)
	if request.Node == vm.Holder {
		return &lead.Error{
			Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf("VM %q runs on %s already", vm.Name, source),
			NextStep: "name another node, or let --best choose",
		}
	}
	if vm.Migration == model.MigrateNever {
		return &lead.Error{
			Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf("VM %q is never to be moved while it runs", vm.Name),
			NextStep: fmt.Sprintf("allow it with 'berth vm set %s --migration manual', or stop it and start it elsewhere", vm.Name),
		}
	}
	if vm.CPU == model.CPUHostPassthrough && vm.PassedCPU == "" {
		return &lead.Error{
			Code: lead.Conflict, Subject: subject,
			Message: fmt.Sprintf(
				"VM %q has the CPU of %s passed through, and that node did not tell which it is: no other is known to be the same", vm.Name,
				source,
			),
			NextStep: "stop it and start it elsewhere",
		}
	}
	if err := portable(snapshot, vm, search, request.CopyStorage); err != nil {
		return err
	}
	if request.CopyStorage {
		if err := cmp.Or(noCopies(snapshot, vm, "moved with its disks"), wholeDisks(&vm),
			noSnapshots(&vm, "a copy of the disks would not have them")); err != nil {
			return err
		}
	}
	facts := l.Inventory.Facts(vm.Holder, l.Now())
	if facts.Liveness != model.Up {
		return &lead.Error{
			Code: lead.Unavailable, Subject: "node/" + source,
			Message:  fmt.Sprintf("node %s, which runs VM %q, is %s: %s", source, vm.Name, facts.Liveness, facts.LivenessReason),
			NextStep: fmt.Sprintf("look at 'berth node show %s'; a VM moves only when both nodes answer", source),
		}
	}
	if facts.Ailing != "" {
		return &lead.Error{
			Code: lead.Unavailable, Subject: "node/" + source, Message: fmt.Sprintf("node %s, which runs VM %q: %s", source, vm.Name, facts.Ailing),
			NextStep: "free space on the disk of " + source + " first: without its journal it lets no VM go",
		}
	}
	for _, domain := range facts.Domains {
		if domain.UUID != vm.ID {
			continue
		}
		if domain.State == model.DomainRunning {
			return bound(snapshot, &vm, search.Options[0].Cluster, &facts, request.attempt != nil)
		}
		return &lead.Error{
			Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf("VM %q is %s on %s (%s)", vm.Name, domain.State, source, domain.Reason),
			NextStep: fmt.Sprintf("only a running VM moves: resume it on %s with 'virsh resume %s'", source, vm.Name),
		}
	}
	if !facts.DomainsKnown {
		return nil // the source's agent will look before it acts
	}
	return &lead.Error{
		Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf("node %s does not show VM %q any more", source, vm.Name),
		NextStep: fmt.Sprintf("see 'berth vm show %s'; 'berth vm start %s' starts it again", vm.Name, vm.Name),
	}
}

// destinationOf is where the source's libvirt reaches the target's, and the address for the memory stream. What the target says of itself
// is opened by another host's root: it counts as far as it agrees with the record, and with where its agent calls from.
func destinationOf(log hclog.Logger, target string, facts *model.NodeFacts) (uri, data string) {
	uri, believed := destination.URI(target, facts.MigrationURI, facts.CalledFrom)
	if !believed {
		log.Warn("a node's migration_uri is neither its name nor the address that its agent calls from: its name is used",
			"node", target, "says", fmt.Sprintf("%.200q", facts.MigrationURI), "used", uri)
	}
	if err := destination.CheckData(facts.MigrationHost); err != nil {
		log.Warn("a node's migrate_data_address is not used", "node", target, "error", err)
		return uri, ""
	}
	return uri, facts.MigrationHost
}
