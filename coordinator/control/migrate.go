package control

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	"berth/shared/units"
)

// MigrateVM decides where a VM goes and commits the migration. When the present node is the best one, the VM stays: the
// decision says so and there is no operation.
func (c *Control) MigrateVM(ctx context.Context, request MigrateVM) (Migration, error) {
	return c.move(ctx, wantedMove{MigrateVM: request})
}

// wantedMove is a migration with what only plans ask for.
type wantedMove struct {
	MigrateVM
	quiet  bool // a refusal is not kept: it is asked again
	freely bool // hard rules among VMs weigh, and forbid nothing
}

func (c *Control) move(ctx context.Context, request wantedMove) (Migration, error) {
	var migration Migration
	err := c.plan(ctx, "vm/"+request.VM, func() (again retry, err error) {
		migration, again, err = c.migrateOnce(ctx, request)
		return again, err
	})
	return migration, err
}

func (c *Control) migrateOnce(ctx context.Context, request wantedMove) (migration Migration, again retry, err error) {
	if !c.leading() {
		return Migration{}, decided, errNotLeading
	}
	snapshot := c.Store.Snapshot()
	settled := c.settled(snapshot)
	if op, repeated := operationOf(snapshot, request.RequestID); repeated {
		decision, _ := snapshot.Decision(op.Decision)
		return Migration{Operation: op, Decision: decision}, decided, nil
	}
	vm, err := c.held(snapshot, request.VM)
	if err != nil {
		return Migration{}, decided, err
	}
	if err := worthIt(request.MigrateVM, vm); err != nil {
		return Migration{}, decided, err
	}
	if err := usable(snapshot, vm); err != nil {
		return Migration{}, decided, err
	}
	search, err := c.search(snapshot, snapshot, vm, cmp.Or(request.Purpose, placement.ForMigrate))
	if err != nil {
		return Migration{}, decided, err
	}
	if err := c.movable(snapshot, vm, &search, request); err != nil {
		if !settled {
			return Migration{}, unsettled, nil
		}
		return Migration{}, decided, err
	}
	memory, vcpus := c.sizeNow(vm)
	search.ask(func(r *placement.Request) {
		r.Memory, r.VCPUs = memory, vcpus
		r.Pinned, r.IfBetter = request.Node, request.IfBetter
		r.Leave, r.Among, r.Excluded, r.Unit = request.Leave, request.Among, request.Excluded, request.Unit
		if request.CopyStorage {
			r.CopyStorage, r.Home = len(localDisks(r)) > 0, "" // its home is where its disks are, and they go along
		}
	})
	if request.freely {
		for i := range search.Options {
			search.Options[i].Policy = balance.WithoutVMRules(search.Options[i].Policy)
		}
	}
	decision := c.decide(search, request.Caller)
	read := search.unchanged(snapshot, decision)
	switch plan, planned := snapshot.Plan(request.Plan); {
	case decision.Outcome == placement.Refused && !settled:
		return Migration{}, unsettled, nil
	case request.DryRun:
		decision.DryRun = true
		return Migration{Decision: decision}, decided, refusalOf(decision)
	case decision.Outcome == placement.Refused && request.quiet:
		return Migration{Decision: decision}, decided, refusalOf(decision)
	case decision.Outcome == placement.Refused:
		return Migration{Decision: decision}, decided, c.recordRefusal(ctx, decision)
	case decision.Outcome == placement.Stay && request.quiet:
		return Migration{Decision: decision}, decided, nil
	case decision.Outcome == placement.Stay:
		return Migration{Decision: decision}, decided, c.record(ctx, decision)
	case planned:
		if limits := trafficOf(snapshot, &plan); plan.State != cluster.PlanRunning || limits.full(vm.Holder, decision.Winner) {
			return Migration{}, decided, errNotNow
		}
		read = append(read, state.Expectation{Table: state.Plans, ID: plan.ID, Revision: plan.Revision})
	}
	at := c.Now()
	facts := c.Inventory.Facts(decision.Winner, at)
	expected := vm.Revision
	vm.LastEpoch++
	op := operation.Operation{
		ID: c.newID(), Kind: operation.Migrate, Caller: request.Caller, Request: request.RequestID,
		VM: vm.ID, VMName: vm.Name, Source: vm.Holder, SourceName: nodeName(snapshot, vm.Holder), SourceEpoch: vm.Epoch,
		SourceBoot: c.Inventory.Facts(vm.Holder, at).Boot,
		Target:     decision.Winner, TargetName: decision.WinnerName, TargetURI: facts.MigrationURI, TargetHost: facts.MigrationHost,
		Epoch: vm.LastEpoch,
		Phase: operation.Copying, Step: 1, Attempt: 1, Decision: decision.ID, Pinned: request.Node,
		Memory: memory, VCPUs: vcpus, Bandwidth: request.Bandwidth, Deadline: copyDeadline(memory),
		CreatedAt: at, UpdatedAt: at, Plan: request.Plan,
	}
	if decision.Request.CopyStorage {
		if err := takeAlong(&op, snapshot, vm, decision); err != nil {
			return Migration{}, decided, unlinked(vm, err)
		}
	}
	vm.Operation, vm.Decision = op.ID, decision.ID
	started, again, err := c.begin(ctx, beginning{
		Next: operation.Next{Operation: op, VM: vm}, snapshot: snapshot, decision: decision, vmRevision: expected, read: read,
	})
	return Migration{Operation: started.Operation, Decision: started.Decision}, again, err
}

// sizeNow is how large a VM is that runs: its record may have been given another size since, for its next start. The larger
// one counts, as it does in the ledgers.
func (c *Control) sizeNow(vm cluster.VM) (units.Bytes, int) {
	memory, vcpus := vm.Spec.Memory, vm.Spec.VCPUs
	facts := c.Inventory.Facts(vm.Holder, c.Now())
	for i := range facts.Domains {
		if domain := &facts.Domains[i]; domain.UUID == vm.ID {
			memory, vcpus = max(memory, domain.Memory), max(vcpus, domain.VCPUs)
		}
	}
	return memory, vcpus
}

// How long a copy may take, as Nova and KubeVirt have it, of memory and disks alike.
const (
	copySecondsPerGiB = 150
	leastCopy         = 60 * time.Second
)

func copyDeadline(memory units.Bytes) time.Duration {
	return max(leastCopy, time.Duration(float64(memory)/float64(units.GiB)*copySecondsPerGiB*float64(time.Second)))
}

// worthIt refuses a least gain that is none.
func worthIt(request MigrateVM, vm cluster.VM) error {
	refuse := func(message, next string) error {
		return &Error{Code: Invalid, Subject: "vm/" + vm.Name, Message: message, NextStep: next}
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
func (c *Control) movable(snapshot *state.Snapshot, vm cluster.VM, search *searched, request wantedMove) error {
	subject := "vm/" + vm.Name
	source := nodeName(snapshot, vm.Holder)
	if request.Node == vm.Holder {
		return &Error{
			Code: Conflict, Subject: subject, Message: fmt.Sprintf("VM %q runs on %s already", vm.Name, source),
			NextStep: "name another node, or let --best choose",
		}
	}
	if vm.Migration == cluster.MigrateNever {
		return &Error{
			Code: Conflict, Subject: subject, Message: fmt.Sprintf("VM %q is never to be moved while it runs", vm.Name),
			NextStep: fmt.Sprintf("allow it with 'berth vm set %s --migration manual', or stop it and start it elsewhere", vm.Name),
		}
	}
	if vm.CPU == cluster.CPUHostPassthrough && vm.PassedCPU == "" {
		return &Error{
			Code: Conflict, Subject: subject,
			Message:  fmt.Sprintf("VM %q has the CPU of %s passed through, and that node did not tell which it is: no other is known to be the same", vm.Name, source),
			NextStep: "stop it and start it elsewhere",
		}
	}
	if err := portable(snapshot, vm, search, request.CopyStorage); err != nil {
		return err
	}
	facts := c.Inventory.Facts(vm.Holder, c.Now())
	if facts.Liveness != cluster.Up {
		return &Error{
			Code: Unavailable, Subject: "node/" + source,
			Message:  fmt.Sprintf("node %s, which runs VM %q, is %s: %s", source, vm.Name, facts.Liveness, facts.LivenessReason),
			NextStep: fmt.Sprintf("look at 'berth node show %s'; a VM moves only when both nodes answer", source),
		}
	}
	for _, domain := range facts.Domains {
		if domain.UUID != vm.ID {
			continue
		}
		if domain.State == cluster.DomainRunning {
			return nil
		}
		return &Error{
			Code: Conflict, Subject: subject, Message: fmt.Sprintf("VM %q is %s on %s (%s)", vm.Name, domain.State, source, domain.Reason),
			NextStep: fmt.Sprintf("only a running VM moves: resume it on %s with 'virsh resume %s'", source, vm.Name),
		}
	}
	if !facts.DomainsKnown {
		return nil // the source's agent will look before it acts
	}
	return &Error{
		Code: Conflict, Subject: subject, Message: fmt.Sprintf("node %s does not show VM %q any more", source, vm.Name),
		NextStep: fmt.Sprintf("see 'berth vm show %s'; 'berth vm start %s' starts it again", vm.Name, vm.Name),
	}
}
