package control

import (
	"context"
	"fmt"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	"berth/shared/units"
)

// StartVM decides where a VM goes and commits the start: the record, the reservation and the decision as one. It returns
// once that is done; the operation tells how the start ends. Refusals are of type *Error.
func (c *Control) StartVM(ctx context.Context, request StartVM) (Started, error) {
	var started Started
	err := c.plan(ctx, "vm/"+request.Name, func() (again retry, err error) {
		started, again, err = c.startOnce(ctx, request)
		return again, err
	})
	return started, err
}

// retry says why a decision has to be made again.
type retry int

const (
	decided   retry = iota
	moved           // the state moved on under the decision
	unsettled       // refused, but this leader has not heard of all nodes yet
)

// unsettledPause is between two looks at a picture that is still coming together after a failover.
const unsettledPause = 100 * time.Millisecond

// plan decides and commits, one request at a time, so that each decision sees the ones before it. It decides again when
// the state moved on, a few times, and while the picture is not whole, as long as that lasts.
func (c *Control) plan(ctx context.Context, subject string, once func() (retry, error)) error {
	for replans := 0; replans < maxReplans; {
		c.placing.Lock()
		again, err := once()
		c.placing.Unlock()
		switch again {
		case decided:
			return err
		case moved:
			replans++
		case unsettled:
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(unsettledPause):
			}
		}
	}
	return errTooBusy(subject)
}

// tooEarly tells whether a refusal may only be due to nodes that this leader has not heard of yet.
func (c *Control) tooEarly(snapshot *state.Snapshot, decision placement.Decision) bool {
	return decision.Outcome == placement.Refused && !c.Inventory.Settled(snapshot, decision.At)
}

func (c *Control) startOnce(ctx context.Context, request StartVM) (started Started, again retry, err error) {
	if !c.leading() {
		return Started{}, decided, errNotLeading
	}
	snapshot := c.Store.Snapshot()
	if err := quarantined(snapshot); err != nil {
		return Started{}, decided, err
	}
	if op, repeated := operationOf(snapshot, request.RequestID); repeated {
		vm, _ := snapshot.VM(op.VM)
		decision, _ := snapshot.Decision(op.Decision)
		return Started{Operation: op, Decision: decision, VM: vm}, decided, nil
	}
	vm, err := c.startable(snapshot, request)
	if err != nil {
		return Started{}, decided, err
	}
	decision := c.decide(snapshot, placement.Request{
		Purpose: placement.ForStart, VM: vm.ID, VMName: vm.Name,
		Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Pinned: request.Node,
	}, request.Caller)
	if c.tooEarly(snapshot, decision) {
		return Started{}, unsettled, nil
	}
	if request.DryRun {
		decision.DryRun = true
		return Started{Decision: decision, VM: vm}, decided, refusalOf(decision)
	}
	if decision.Outcome == placement.Refused {
		return Started{Decision: decision}, decided, c.recordRefusal(ctx, decision)
	}
	expected := vm.Revision
	op := operation.Operation{
		ID: c.newID(), Kind: operation.Start, Caller: request.Caller, Request: request.RequestID,
		VM: vm.ID, VMName: vm.Name, Pinned: request.Node, Created: expected == 0,
		Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, CreatedAt: decision.At,
	}
	next := operation.Place(op, vm, decision.Winner, decision.WinnerName, decision.ID, decision.At)
	next.VM.Desired, next.VM.Operation, next.VM.Holder, next.VM.Condition = cluster.Running, op.ID, "", ""
	started, again, err = c.begin(ctx, snapshot, next, decision, expected)
	return started, again, err
}

// startable is the VM to start: a new record, or the one that exists.
func (c *Control) startable(snapshot *state.Snapshot, request StartVM) (cluster.VM, error) {
	subject := "vm/" + request.Name
	vm, exists := snapshot.VMByName(request.Name)
	if !exists {
		if request.Spec == nil {
			return cluster.VM{}, &Error{
				Code: NotFound, Subject: subject, Message: fmt.Sprintf("there is no VM %q", request.Name),
				NextStep: "give --memory and --vcpus, or --xml, to make it; 'berth vm list' shows the VMs there are",
			}
		}
		return c.newVM(snapshot, request)
	}
	switch {
	case vm.Operation != "":
		return vm, busy(snapshot, vm)
	case vm.Holder != "" && !c.provenAbsent(vm):
		return vm, &Error{
			Code: Exists, Subject: subject,
			Message:  fmt.Sprintf("VM %q runs already, on %s", vm.Name, nodeName(snapshot, vm.Holder)),
			NextStep: fmt.Sprintf("see 'berth vm show %s', or choose another name", vm.Name),
		}
	case request.Spec != nil:
		return vm, &Error{
			Code: Exists, Subject: subject, Message: fmt.Sprintf("VM %q exists already, stopped", vm.Name),
			NextStep: fmt.Sprintf("start it as it is with 'berth vm start %s', or delete it first with 'berth vm delete %s'",
				vm.Name, vm.Name),
		}
	}
	return vm, nil
}

func (c *Control) newVM(snapshot *state.Snapshot, request StartVM) (cluster.VM, error) {
	subject := "vm/" + request.Name
	if err := cluster.ValidateName("VM", request.Name); err != nil {
		return cluster.VM{}, &Error{Code: Invalid, Subject: subject, Message: err.Error(), NextStep: "choose another name"}
	}
	if err := cluster.ValidateSpec(*request.Spec); err != nil {
		return cluster.VM{}, &Error{Code: Invalid, Subject: subject, Message: err.Error(), NextStep: "see 'berth vm start --help'"}
	}
	id := request.ID
	if id == "" {
		id = newUUID()
	}
	if other, taken := snapshot.VM(id); taken {
		return cluster.VM{}, &Error{
			Code: Exists, Subject: subject, Message: fmt.Sprintf("UUID %s belongs to VM %q", id, other.Name),
			NextStep: "remove <uuid> from the XML, or start that VM",
		}
	}
	// A VM of this UUID may have been here before: agents remember its epochs.
	last := snapshot.LastEpoch(id)
	return cluster.VM{ID: id, Name: request.Name, Spec: *request.Spec, Epoch: last, LastEpoch: last, CreatedAt: c.Now()}, nil
}

// provenAbsent tells whether the node that should run the VM positively does not: its agent listed all domains after the
// VM was started, and it was not among them.
func (c *Control) provenAbsent(vm cluster.VM) bool {
	facts := c.Inventory.Facts(vm.Holder, c.Now())
	if facts.Liveness != cluster.Up || !facts.DomainsKnown || !facts.InventoryAt.After(vm.StartedAt) {
		return false
	}
	for _, domain := range facts.Domains {
		if domain.UUID == vm.ID && domain.State.Holds() {
			return false
		}
	}
	return true
}

// StopVM commits the stop of a VM. It returns once that is done; the operation tells how it ends.
func (c *Control) StopVM(ctx context.Context, request StopVM) (operation.Operation, error) {
	for range maxReplans {
		snapshot := c.Store.Snapshot()
		if op, repeated := operationOf(snapshot, request.RequestID); repeated {
			return op, nil
		}
		vm, err := c.held(snapshot, request.VM)
		if err != nil {
			return operation.Operation{}, err
		}
		at := c.Now()
		grace := request.Grace
		if grace == 0 {
			grace = DefaultGrace
		}
		op := operation.Operation{
			ID: c.newID(), Kind: operation.Stop, Caller: request.Caller, Request: request.RequestID,
			VM: vm.ID, VMName: vm.Name, Source: vm.Holder, SourceName: nodeName(snapshot, vm.Holder), Epoch: vm.Epoch,
			Phase: operation.Dispatched, Step: 1, Attempt: 1, Force: request.Force, Grace: grace,
			CreatedAt: at, UpdatedAt: at,
		}
		expected := vm.Revision
		vm.Operation = op.ID
		started, again, err := c.begin(ctx, snapshot, operation.Next{Operation: op, VM: vm}, placement.Decision{}, expected)
		if again == decided {
			return started.Operation, err
		}
	}
	return operation.Operation{}, errTooBusy("vm/" + request.VM)
}

// MigrateVM decides where a VM goes and commits the migration. When the present node is the best one, the VM stays: the
// decision says so and there is no operation.
func (c *Control) MigrateVM(ctx context.Context, request MigrateVM) (Migration, error) {
	var migration Migration
	err := c.plan(ctx, "vm/"+request.VM, func() (again retry, err error) {
		migration, again, err = c.migrateOnce(ctx, request)
		return again, err
	})
	return migration, err
}

func (c *Control) migrateOnce(ctx context.Context, request MigrateVM) (migration Migration, again retry, err error) {
	if !c.leading() {
		return Migration{}, decided, errNotLeading
	}
	snapshot := c.Store.Snapshot()
	if op, repeated := operationOf(snapshot, request.RequestID); repeated {
		decision, _ := snapshot.Decision(op.Decision)
		return Migration{Operation: op, Decision: decision}, decided, nil
	}
	vm, err := c.held(snapshot, request.VM)
	if err != nil {
		return Migration{}, decided, err
	}
	if err := c.movable(snapshot, vm, request.Node); err != nil {
		if !c.Inventory.Settled(snapshot, c.Now()) {
			return Migration{}, unsettled, nil
		}
		return Migration{}, decided, err
	}
	decision := c.decide(snapshot, placement.Request{
		Purpose: placement.ForMigrate, VM: vm.ID, VMName: vm.Name, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs,
		Pinned: request.Node, Current: vm.Holder,
	}, request.Caller)
	switch {
	case c.tooEarly(snapshot, decision):
		return Migration{}, unsettled, nil
	case request.DryRun:
		decision.DryRun = true
		return Migration{Decision: decision}, decided, refusalOf(decision)
	case decision.Outcome == placement.Refused:
		return Migration{Decision: decision}, decided, c.recordRefusal(ctx, decision)
	case decision.Outcome == placement.Stay:
		return Migration{Decision: decision}, decided, c.record(ctx, decision)
	}
	facts := c.Inventory.Facts(decision.Winner, decision.At)
	expected := vm.Revision
	vm.LastEpoch++
	op := operation.Operation{
		ID: c.newID(), Kind: operation.Migrate, Caller: request.Caller, Request: request.RequestID,
		VM: vm.ID, VMName: vm.Name, Source: vm.Holder, SourceName: nodeName(snapshot, vm.Holder), SourceEpoch: vm.Epoch,
		Target: decision.Winner, TargetName: decision.WinnerName, TargetURI: facts.MigrationURI, TargetHost: facts.MigrationHost,
		Epoch: vm.LastEpoch,
		Phase: operation.Copying, Step: 1, Attempt: 1, Decision: decision.ID, Pinned: request.Node,
		Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Bandwidth: request.Bandwidth, Deadline: copyDeadline(vm.Spec.Memory),
		CreatedAt: decision.At, UpdatedAt: decision.At,
	}
	vm.Operation, vm.Decision = op.ID, decision.ID
	started, again, err := c.begin(ctx, snapshot, operation.Next{Operation: op, VM: vm}, decision, expected)
	return Migration{Operation: started.Operation, Decision: started.Decision}, again, err
}

// copyDeadline is how long a copy may take: 150 s a GiB, at least 60 s, as Nova and KubeVirt have it.
func copyDeadline(memory units.Bytes) time.Duration {
	return max(60*time.Second, time.Duration(float64(memory)/float64(units.GiB)*150*float64(time.Second)))
}

// held is a VM that some node holds and no operation works on.
func (c *Control) held(snapshot *state.Snapshot, id string) (cluster.VM, error) {
	if !c.leading() {
		return cluster.VM{}, errNotLeading
	}
	if err := quarantined(snapshot); err != nil {
		return cluster.VM{}, err
	}
	vm, exists := snapshot.VM(id)
	switch {
	case !exists:
		return vm, &Error{
			Code: NotFound, Subject: "vm/" + id, Message: fmt.Sprintf("there is no VM %q", id), NextStep: "see 'berth vm list'",
		}
	case vm.Operation != "":
		return vm, busy(snapshot, vm)
	case vm.Holder == "":
		return vm, &Error{
			Code: Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q does not run", vm.Name),
			NextStep: fmt.Sprintf("start it with 'berth vm start %s'", vm.Name),
		}
	}
	return vm, nil
}

// movable refuses what a migration could only fail at.
func (c *Control) movable(snapshot *state.Snapshot, vm cluster.VM, target string) error {
	subject := "vm/" + vm.Name
	source := nodeName(snapshot, vm.Holder)
	if target == vm.Holder {
		return &Error{
			Code: Conflict, Subject: subject, Message: fmt.Sprintf("VM %q runs on %s already", vm.Name, source),
			NextStep: "name another node, or let --best choose",
		}
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

// decide runs the engine on the present view.
func (c *Control) decide(snapshot *state.Snapshot, request placement.Request, caller string) placement.Decision {
	at := c.Now()
	decision := placement.Place(c.Inventory.View(snapshot, at), request, c.Policy, c.Random())
	decision.ID, decision.At, decision.Caller = cluster.NewID(at, c.Random()), at, caller
	return decision
}

// begin commits the first record of an operation and sets its runner going. It reports again when the decision was made
// on a state that is no more.
func (c *Control) begin(
	ctx context.Context, snapshot *state.Snapshot, next operation.Next, decision placement.Decision, vmRevision uint64,
) (started Started, again retry, err error) {
	op := next.Operation
	command := state.Command{
		Key: op.Request, Kind: string(op.Kind) + " vm", Caller: op.Caller, At: op.UpdatedAt,
		Expect: []state.Expectation{
			{Table: state.VMs, ID: op.VM, Revision: vmRevision},
			{Table: state.Operations, ID: op.ID},
		},
		VMs: []cluster.VM{next.VM}, Operations: []operation.Operation{op},
		Events: []cluster.Event{c.event(op, op.Caller, "vm."+string(op.Kind), beginText(op))},
	}
	if command.Key == "" {
		command.Key = op.ID
	}
	if decision.ID != "" {
		decision.Operation = op.ID
		command.Decisions = []placement.Decision{decision}
		target, _ := snapshot.Node(op.Target)
		command.Expect = append(command.Expect, state.Expectation{Table: state.Nodes, ID: op.Target, Revision: target.Revision})
	}
	result, err := c.propose(ctx, command)
	if err != nil {
		return Started{}, decided, err
	}
	if result.Refusal != nil {
		if result.Refusal.Code == state.Stale {
			return Started{}, moved, nil
		}
		return Started{}, decided, fromRefusal(result.Refusal, op)
	}
	op.Revision, next.VM.Revision = result.Index, result.Index
	c.drive(op.ID)
	return Started{Operation: op, Decision: decision, VM: next.VM}, decided, nil
}

// record keeps a decision that led to no operation.
func (c *Control) record(ctx context.Context, decision placement.Decision) error {
	_, err := c.propose(ctx, state.Command{
		Key: decision.ID, Kind: "record decision", Caller: decision.Caller, At: decision.At,
		Decisions: []placement.Decision{decision},
		Events: []cluster.Event{{
			At: decision.At, Kind: "decision." + string(decision.Outcome), Subject: "vm/" + decision.Request.VMName,
			Message: decision.Reason, Caller: decision.Caller, Decision: decision.ID,
		}},
	})
	return err
}

// recordRefusal keeps the decision and returns it as the error that it is. Not being able to keep it changes nothing
// about the answer.
func (c *Control) recordRefusal(ctx context.Context, decision placement.Decision) error {
	if err := c.record(ctx, decision); err != nil {
		c.Logger.Warn("a refused decision could not be kept", "decision", decision.ID, "error", err)
	}
	return refusalOf(decision)
}

func refusalOf(decision placement.Decision) error {
	if decision.Outcome != placement.Refused {
		return nil
	}
	next := fmt.Sprintf("see 'berth decision show %s'", decision.ID)
	if decision.DryRun {
		next = "free memory on a node, take one out of maintenance, or ask for less"
	}
	return &Error{
		Code: NoNodeFits, Subject: "vm/" + decision.Request.VMName, Message: decision.Reason, NextStep: next, Decision: &decision,
	}
}

func fromRefusal(refusal *state.Refusal, op operation.Operation) error {
	code, next := Invalid, "this is a defect of berth: please report it with 'berth operation list' and the coordinator's log"
	if refusal.Code == state.NameTaken {
		code, next = Exists, "choose another name"
	}
	return &Error{Code: code, Subject: "vm/" + op.VMName, Message: refusal.Message, NextStep: next}
}

func busy(snapshot *state.Snapshot, vm cluster.VM) error {
	what := "an operation"
	if op, known := snapshot.Operation(vm.Operation); known {
		what = fmt.Sprintf("operation %s (%s, %s)", op.ID, op.Kind, op.Phase)
		if op.Result == operation.Parked {
			return &Error{
				Code: Busy, Subject: "vm/" + vm.Name, Operation: op.ID,
				Message:  fmt.Sprintf("VM %q is locked by the parked operation %s: %s", vm.Name, op.ID, op.Message),
				NextStep: fmt.Sprintf("see 'berth operation show %s' for what both nodes show", op.ID),
			}
		}
	}
	return &Error{
		Code: Busy, Subject: "vm/" + vm.Name, Operation: vm.Operation,
		Message:  fmt.Sprintf("%s works on VM %q", what, vm.Name),
		NextStep: fmt.Sprintf("wait for it with 'berth operation watch %s'", vm.Operation),
	}
}

// operationOf finds the operation that a request made before. Newest first, so that a retry finds it at once.
func operationOf(snapshot *state.Snapshot, requestID string) (operation.Operation, bool) {
	if requestID == "" {
		return operation.Operation{}, false
	}
	return snapshot.OperationByRequest(requestID)
}

func nodeName(snapshot *state.Snapshot, id string) string {
	if node, known := snapshot.Node(id); known {
		return node.Name
	}
	return id
}
