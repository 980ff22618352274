package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// StartVM decides where a VM goes and commits the start: the record, the reservation and the decision as one. It returns
// once that is done; the operation tells how the start ends. Refusals are of type *Error. Starts that are asked for at the
// same time are decided one after the other, each on what the ones before it will take, and committed together.
func (c *Control) StartVM(ctx context.Context, request StartVM) (started Started, err error) {
	err = again(ctx, "vm/"+request.Name, func() (again retry, err error) {
		started, again, err = c.startTogether(ctx, startRequest{StartVM: request})
		return again, err
	})
	return started, err
}

// startRequest is a start with what only one of several asks for.
type startRequest struct {
	StartVM
	unit  *placement.Unit // what comes along
	among []string        // node IDs: the only ones that will do
	// restart tells that nobody asks for it: the VM is to be highly available and runs nowhere.
	restart bool
}

// startOnce decides and commits one start. The caller holds placing.
func (c *Control) startOnce(ctx context.Context, request startRequest) (started Started, again retry, err error) {
	if !c.leading() {
		return Started{}, decided, errNotLeading
	}
	start := c.decideStart(c.look(), request)
	switch {
	case start.refused:
		return start.Started, decided, c.recordRefusal(ctx, start.Decision)
	case start.first == nil:
		return start.Started, start.again, start.err
	}
	return c.begin(ctx, *start.first)
}

// scene is what a decision looks at.
type scene struct {
	snapshot *state.Snapshot
	view     *cluster.View  // of the snapshot, and of what was decided on it before
	settled  bool           // nobody is missing only because this leader is new
	starting map[string]int // starts that were decided on it before, by node ID
}

// look is the scene as it is now.
func (c *Control) look() scene {
	snapshot := c.Store.Snapshot()
	settled := c.settled(snapshot)
	return scene{snapshot: snapshot, settled: settled, view: c.Inventory.View(snapshot, c.Now()), starting: map[string]int{}}
}

// decidedStart is what the decision about a start came to: an answer, or something to commit.
type decidedStart struct {
	Started
	again   retry
	err     error
	refused bool       // by placement, which is to be recorded; err says nothing
	first   *beginning // to be committed; nil: there is nothing to commit
}

func (c *Control) decideStart(now scene, request startRequest) decidedStart {
	snapshot := now.snapshot
	fail := func(err error) decidedStart { return decidedStart{err: err} }
	if err := quarantined(snapshot); err != nil {
		return fail(err)
	}
	request.Root = c.rootOf(&request.StartVM)
	if op, repeated := operationOf(snapshot, request.RequestID); repeated {
		vm, _ := snapshot.VM(op.VM)
		decision, _ := snapshot.Decision(op.Decision)
		return decidedStart{Started: Started{Operation: op, Decision: decision, VM: vm}}
	}
	vm, err := c.startable(snapshot, request.StartVM)
	if err != nil {
		return fail(err)
	}
	facts := factsOf(snapshot, request.Root)
	if ready, _ := Restartable([]cluster.VM{vm}, c.Now()); request.restart && len(ready) == 0 {
		return fail(&Error{
			Code: Busy, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q is not to be restarted any more", vm.Name), NextStep: "see 'berth vm show " + vm.Name + "'",
		})
	}
	if err := usable(facts, vm); err != nil {
		return fail(err)
	}
	if err := untold(snapshot, vm); err != nil {
		return fail(err)
	}
	search, err := searchOn(now.view, snapshot, facts, vm, placement.ForStart)
	if err != nil {
		return fail(err)
	}
	search.ask(func(r *placement.Request) {
		r.Pinned, r.Unit, r.Among, r.Restart = request.Node, request.unit, request.among, request.restart
	})
	search.only(snapshot, request.Node)
	decision := c.decide(search, request.Caller)
	if decision.Outcome == placement.Refused && !now.settled {
		return decidedStart{again: unsettled}
	}
	decision.DryRun = request.DryRun
	switch {
	case decision.Outcome == placement.Refused && request.DryRun:
		return decidedStart{Started: Started{Decision: decision, VM: vm}, err: refusalOf(decision)}
	case decision.Outcome == placement.Refused && request.restart && strings.HasPrefix(vm.Condition, restartRefused):
		return decidedStart{Started: Started{Decision: decision}, err: refusalOf(decision)} // the first of its kind is kept, not each one since
	case decision.Outcome == placement.Refused:
		return decidedStart{Started: Started{Decision: decision}, refused: true}
	}
	target, err := search.target(snapshot, decision)
	if err != nil || request.DryRun {
		return decidedStart{Started: Started{Decision: decision, VM: vm}, err: err}
	}
	target.Behind = behind(snapshot, target.Node, now.starting[target.Node])
	expected, at := vm.Revision, c.Now()
	if request.restart {
		Restarted(&vm, at)
	} else {
		vm.Restarts, vm.RestartedAt = 0, time.Time{}
	}
	op := operation.Operation{
		ID: c.newID(), Kind: operation.Start, Caller: request.Caller, Request: request.RequestID,
		VM: vm.ID, VMName: vm.Name, Pinned: request.Node, Created: expected == 0, Restart: request.restart,
		Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, CreatedAt: at,
	}
	if request.Root != nil {
		op.Disks = []string{request.Root.ID}
	}
	next := operation.Place(op, vm, target, at)
	next.VM.Desired, next.VM.Operation, next.VM.Holder, next.VM.Condition = cluster.Running, op.ID, "", ""
	return decidedStart{first: &beginning{
		Next: next, snapshot: snapshot, decision: decision, vmRevision: expected,
		read: search.unchanged(snapshot, decision), made: request.Root,
	}}
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
	if vm.Operation != "" {
		return vm, busy(snapshot, vm)
	}
	if due, _ := Discardable(c.picture(snapshot), &vm); len(due) > 0 {
		return vm, &Error{
			Code: Busy, Subject: subject, Message: fmt.Sprintf("%s discards the paused copy first that a migration has left there", nodeName(snapshot, due[0].Node)),
			NextStep: "try again in some seconds; the log of its agent says what is in the way",
		}
	}
	if elsewhere := c.elsewhere(vm); elsewhere != "" {
		return vm, &Error{
			Code: Conflict, Subject: subject,
			Message:  fmt.Sprintf("a domain with the UUID of VM %q is on %s, and Berth has not started it there", vm.Name, nodeName(snapshot, elsewhere)),
			NextStep: fmt.Sprintf("see 'berth vm show %s': take it over with 'berth vm adopt %s' if it runs there, or end it with 'virsh destroy'", vm.Name, vm.Name),
		}
	}
	if picture := c.picture(snapshot); vm.Holder != "" && !picture.lacks(vm) {
		if facts := picture.Facts(vm.Holder); facts.Liveness == cluster.Up && facts.Inventory && facts.DomainsKnown && facts.Domain(vm.ID) == nil {
			return vm, &Error{
				Code: Busy, Subject: subject,
				Message:  fmt.Sprintf("%s does not show VM %q, but has not listed its domains since the VM came there", nodeName(snapshot, vm.Holder), vm.Name),
				NextStep: "try again in half a minute",
			}
		}
		return vm, &Error{
			Code: Exists, Subject: subject,
			Message:  fmt.Sprintf("VM %q runs already, on %s", vm.Name, nodeName(snapshot, vm.Holder)),
			NextStep: fmt.Sprintf("see 'berth vm show %s', or choose another name", vm.Name),
		}
	}
	if lying := c.showing(snapshot, vm.ID, true); lying != "" {
		return vm, &Error{
			Code: Conflict, Subject: subject,
			Message:  fmt.Sprintf("VM %q may run still: node %s, which was proven to be off, answers and shows it", vm.Name, lying),
			NextStep: "boot that machine anew, or stop the copy there by hand, and start the VM then",
		}
	}
	if request.Spec != nil || request.linked() {
		return vm, &Error{
			Code: Exists, Subject: subject, Message: fmt.Sprintf("VM %q exists already, stopped", vm.Name),
			NextStep: fmt.Sprintf("start it as it is with 'berth vm start %s', or delete it first with 'berth vm delete %s'",
				vm.Name, vm.Name),
		}
	}
	return vm, nil
}

// linked tells whether the request says what a new VM belongs to.
func (r *StartVM) linked() bool {
	return r.VDC != "" || r.Offer != "" || r.Image != "" || r.Migration != "" || r.HA || r.Within != "" || r.Root != nil ||
		len(r.Disks)+len(r.NICs)+len(r.Keys)+len(r.Labels)+len(r.Preferred) > 0
}

// newVM is the record of a VM that is not there yet. Whether its links lead to what they should shows when it inherits.
func (c *Control) newVM(snapshot *state.Snapshot, request StartVM) (cluster.VM, error) {
	invalid := func(err error, next string) error {
		return &Error{Code: Invalid, Subject: "vm/" + request.Name, Message: err.Error(), NextStep: next}
	}
	if err := cluster.ValidateName("VM", request.Name); err != nil {
		return cluster.VM{}, invalid(err, "choose another name")
	}
	if err := cluster.ValidateSpec(*request.Spec); err != nil {
		return cluster.VM{}, invalid(err, "see 'berth vm start --help'")
	}
	for _, key := range request.Keys {
		if err := cluster.ValidateKey(cluster.KindVM, key); err != nil {
			return cluster.VM{}, invalid(err, "see 'berth key --help'")
		}
	}
	id := request.ID
	if id == "" {
		id = cluster.NewUUID(c.Random(), c.Random())
	}
	if other, taken := snapshot.VM(id); taken {
		return cluster.VM{}, &Error{
			Code: Exists, Subject: "vm/" + request.Name, Message: fmt.Sprintf("UUID %s belongs to VM %q", id, other.Name),
			NextStep: "remove <uuid> from the XML, or start that VM",
		}
	}
	disks := request.Disks
	if request.Root != nil {
		disks = append([]string{request.Root.ID}, disks...)
	}
	// A VM of this UUID may have been here before: agents remember its epochs.
	last := snapshot.LastEpoch(id)
	return cluster.VM{
		ID: id, Name: request.Name, Spec: *request.Spec, Epoch: last, LastEpoch: last, CreatedAt: c.Now(),
		VDC: request.VDC, Offer: request.Offer, Image: request.Image, Disks: disks, NICs: request.NICs, Keys: request.Keys,
		Labels: request.Labels, Preferred: request.Preferred, Migration: request.Migration, HA: request.HA, Within: request.Within,
	}, nil
}

// elsewhere is the ID of a node that shows a VM which it does not hold; empty: none does. The last node may only not have
// told yet that it has stopped the VM: it is asked.
func (c *Control) elsewhere(vm cluster.VM) string {
	picture, shown := c.picture(c.Store.Snapshot()), c.Inventory.Shown(vm.ID)
	var strangers []string
	c.fencing(func(f *Fencer) { strangers = f.Strangers(picture, vm, shown) })
	for _, node := range strangers {
		if node == vm.LastNode && vm.Epoch > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), holderLimit)
			_, err := c.Agents.Perform(ctx, node, Task{Refuse: &CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
			cancel()
			if err == nil {
				continue
			}
		}
		return node
	}
	return ""
}

// Strangers are those of the nodes that show a VM which do not hold it. What a node showed before it was switched off does
// not count.
func (f *Fencer) Strangers(p Picture, vm cluster.VM, shown []string) []string {
	return slices.DeleteFunc(slices.Clone(shown), func(id string) bool {
		node, _ := p.Node(id)
		return id == vm.Holder || f.Off(p, &node)
	})
}
