package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"berth/coordinator/control/drifts"
	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// startOnce decides and commits one start. The caller holds placing.
func (l *Lifecycle) startOnce(ctx context.Context, request startRequest) (started Started, again lead.Retry, err error) {
	if !l.Leading() {
		return Started{}, lead.Decided, lead.ErrNotLeading
	}
	start := l.decideStart(l.look(), request)
	switch {
	case start.refused:
		return start.Started, lead.Decided, l.RecordRefusal(ctx, start.Decision)
	case start.first == nil:
		return start.Started, start.again, start.err
	}
	return l.BeginOperation(ctx, *start.first)
}

// look is the scene as it is now.
func (l *Lifecycle) look() scene {
	snapshot := l.Store.Snapshot()
	settled := l.ViewComplete(snapshot)
	return scene{
		snapshot: snapshot, settled: settled, view: l.Inventory.View(snapshot, l.Now()), starting: map[string]int{},
		survey: l.surveyOf(snapshot),
	}
}

// surveyOf is what every node's word is worth, made once somebody asks.
func (l *Lifecycle) surveyOf(snapshot *state.Snapshot) func() *evidence.Survey {
	return sync.OnceValue(func() *evidence.Survey { return l.fencing.Survey(snapshot) })
}

// retryOf says whether a start is decided again that was refused because of what nodes have not said yet.
func retryOf(err error, settled bool) lead.Retry {
	switch {
	case errors.Is(err, errAskFirst):
		return lead.Stale
	case isEarly(err) && !settled, drifts.GoesSoon(err):
		return lead.Incomplete
	}
	return lead.Decided
}

// unwatched is the epoch of a VM's last run if nobody has seen its end; otherwise what its record says. A backup does not have what was
// started, changed and ended after it was made.
func (s *scene) unwatched(vm *model.VM) uint64 {
	if s.survey().EndUnwatched(vm) || vm.StartedAt.Before(lead.RestoredAt(s.snapshot)) {
		return vm.Epoch
	}
	return vm.Unwatched
}

func (l *Lifecycle) decideStart(now scene, request startRequest) decidedStart {
	snapshot := now.snapshot
	fail := func(err error) decidedStart { return decidedStart{err: err} }
	if err := lead.Quarantined(snapshot); err != nil {
		return fail(err)
	}
	request.Root = l.rootOf(&request.StartVM)
	if op, repeated := OperationOf(snapshot, request.RequestID); repeated {
		vm, _ := snapshot.VM(op.VM)
		decision, _ := snapshot.Decision(op.Decision)
		return decidedStart{Started: Started{Operation: op, Decision: decision, VM: vm}}
	}
	vm, err := l.startable(now, request)
	if again := retryOf(err, now.settled); again != lead.Decided {
		return decidedStart{again: again}
	}
	if err != nil {
		return fail(err)
	}
	vm = l.drifts.Ran(snapshot, vm)
	facts := factsOf(snapshot, request.Root)
	if ready, _ := evidence.Restartable([]model.VM{vm}, l.Now(), evidence.Again(snapshot)); request.restart && len(ready) == 0 {
		return fail(&lead.Error{
			Code: lead.Busy, Subject: "vm/" + vm.Name, Message: fmt.Sprintf(
				"VM %q is not to be restarted any more", vm.Name,
			), NextStep: "see 'berth vm show " + vm.Name + "'",
		})
	}
	if err := cmp.Or(usable(facts, vm), untold(snapshot, vm), undrifted(facts, &vm)); err != nil {
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
	decision := l.decide(search, request.Caller)
	if decision.Outcome == placement.Refused && !now.settled {
		return decidedStart{again: lead.Incomplete}
	}
	decision.DryRun = request.DryRun
	switch {
	case decision.Outcome == placement.Refused && request.DryRun:
		return decidedStart{Started: Started{Decision: decision, VM: vm}, err: refusalOf(decision)}
	case decision.Outcome == placement.Refused && request.restart && vm.Condition.Is(model.RestartRefused):
		return decidedStart{Started: Started{Decision: decision}, err: refusalOf(decision)} // the first of its kind is kept, not each one since
	case decision.Outcome == placement.Refused:
		return decidedStart{Started: Started{Decision: decision}, refused: true}
	}
	target, err := search.target(snapshot, decision)
	if err == nil {
		err = drifts.DisksFree(now.survey, &vm, target.Node)
	}
	if err != nil || request.DryRun {
		return decidedStart{Started: Started{Decision: decision, VM: vm}, again: retryOf(err, now.settled), err: err}
	}
	target.Behind = behind(snapshot, target.Node, now.starting[target.Node])
	expected, at := vm.Revision, l.Now()
	if request.restart {
		evidence.Restarted(&vm, at)
	} else {
		vm.Restarts, vm.RestartedAt, vm.Losses = 0, time.Time{}, nil
	}
	op := operation.Operation{
		ID: l.NewID(), Kind: operation.Start, Caller: request.Caller, Request: request.RequestID,
		VM: vm.ID, VMName: vm.Name, Pinned: request.Node, Created: expected == 0, Restart: request.restart,
		Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, CreatedAt: at,
	}
	if request.Root != nil {
		op.Disks = []string{request.Root.ID}
	}
	forced := l.forced(now, &vm, request)
	switch forced {
	case "":
		vm.Whereabouts = model.Whereabouts{}
	default:
		op.Evidence = []string{forced}
		vm.Whereabouts.Missing = at // if the start fails, it is as missing as before
	}
	vm.Unwatched = now.unwatched(&vm)
	next := operation.Place(op, vm, target, at)
	next.VM.Desired, next.VM.Operation, next.VM.Holder, next.VM.Condition = model.Running, op.ID, "", model.Condition{}
	return decidedStart{first: &First{
		Next: next, snapshot: snapshot, decision: decision, Revision: expected,
		Read: search.unchanged(snapshot, decision), made: request.Root,
	}}
}

// Restart starts a VM that is to be highly available and runs nowhere. Nobody asks for it, so it counts as a restart of the VM.
func (l *Lifecycle) Restart(ctx context.Context, name string) error {
	return lead.Again(ctx, "vm/"+name, func() (lead.Retry, error) {
		last := l.askLastNode(ctx, name)
		l.Placing.Lock()
		defer l.Placing.Unlock()
		_, again, err := l.startOnce(ctx, startRequest{StartVM: StartVM{Name: name, Caller: lead.Berth}, restart: true, last: last})
		return again, err
	})
}
