package adoption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// describeAtOnce is how many nodes are asked for XML at once.
const describeAtOnce = 8

// AdoptVMs takes domains under management, each by an operation of its own: one that cannot be taken does not hold up the
// others. They come back by node and name. A VM that is Berth's and has lost its mark, or runs where Berth has not started it,
// is taken over under its record.
func (a *Adoption) AdoptVMs(ctx context.Context, request AdoptVMs) ([]AdoptedVM, error) {
	if !a.Leading() {
		return nil, lead.ErrNotLeading
	}
	snapshot := a.Store.Snapshot()
	if err := lead.Quarantined(snapshot); err != nil {
		return nil, err
	}
	shown, unheard := a.fencing.Survey(snapshot).Shown()
	found, rows := choose(snapshot, request, shown, unheard)
	results := make([]AdoptedVM, len(found))
	var group errgroup.Group
	group.SetLimit(describeAtOnce)
	for i := range found {
		group.Go(func() error {
			one := found[i]
			if err := lead.Survive(a.Logger, "adopting domain "+one.Domain.Name, func() error {
				results[i] = a.adoptOne(ctx, request, one, shown)
				return nil
			}); err != nil {
				results[i] = AdoptedVM{Name: one.Domain.Name, ID: one.Domain.UUID, Node: one.Name, Problem: err.Error(), NextStep: "try again"}
			}
			return nil
		})
	}
	_ = group.Wait() // nobody returns an error
	rows = append(rows, results...)
	slices.SortStableFunc(rows, func(x, y AdoptedVM) int {
		return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Name, y.Name), cmp.Compare(x.ID, y.ID))
	})
	return rows, ctx.Err()
}

// adoptOne adopts one domain, and says what became of it.
func (a *Adoption) adoptOne(ctx context.Context, request AdoptVMs, one evidence.Copy, shown map[string][]evidence.Copy) AdoptedVM {
	row := AdoptedVM{Name: one.Domain.Name, ID: one.Domain.UUID, Node: one.Name}
	op, note, err := a.tryAdopt(ctx, request, one, shown)
	if err == nil && one.Domain.Autostart {
		note = strings.TrimPrefix(note+"; its autostart is switched off: a host that boots would start it, wherever it runs by then", "; ")
	}
	row.Operation, row.Note = op, note
	var known *problem
	var refused *lead.Error
	switch {
	case err == nil:
	case errors.As(err, &known):
		row.Problem, row.NextStep = known.what, known.next
	case errors.As(err, &refused):
		row.Problem, row.NextStep = refused.Message, refused.NextStep
	default:
		row.Problem, row.NextStep = err.Error(), "try again"
	}
	return row
}

func (a *Adoption) tryAdopt(
	ctx context.Context, request AdoptVMs, one evidence.Copy, shown map[string][]evidence.Copy,
) (op operation.Operation, note string, err error) {
	uuid := one.Domain.UUID
	key := ""
	if request.RequestID != "" {
		key = request.RequestID + "/" + uuid
		if op, repeated := lifecycle.OperationOf(a.Store.Snapshot(), key); repeated {
			return op, "", nil
		}
	}
	wanted := adoptee{node: one.Node, caller: request.Caller, request: key}
	if vm, ours := a.Store.Snapshot().VM(uuid); ours {
		if err := a.retakable(ctx, vm, one, shown[uuid]); err != nil || request.DryRun {
			return operation.Operation{}, "", err
		}
		op, err = a.adopt(ctx, func(snapshot *state.Snapshot) (adoptee, error) {
			now, known := snapshot.VM(uuid)
			if !known || now.Revision != vm.Revision {
				return adoptee{}, &lead.Error{
					Code: lead.Busy, Subject: "vm/" + vm.Name, Message: fmt.Sprintf(
						"VM %q has changed meanwhile", vm.Name,
					), NextStep: "look again, and adopt it again",
				}
			}
			wanted.vm = now
			wanted.vm.LastEpoch = max(now.LastEpoch, one.Domain.Epoch) // somebody may have written a higher one
			return wanted, nil
		})
		return op, "", err
	}
	if err := adoptable(one, shown, request.Domains); err != nil {
		return operation.Operation{}, "", err
	}
	vm, note, err := a.described(ctx, request, one)
	if err != nil {
		return operation.Operation{}, "", err
	}
	prepare := func(snapshot *state.Snapshot) (adoptee, error) {
		wanted.vm, wanted.created = vm, true
		return wanted, a.inherited(snapshot, &wanted.vm, one)
	}
	if request.DryRun {
		_, err := prepare(a.Store.Snapshot())
		return operation.Operation{}, note, err
	}
	op, err = a.adopt(ctx, prepare)
	return op, note, err
}

// retakable refuses to write a new mark for a VM that is as recorded, or of which more than one copy is there. A holder that
// does not have it refuses it for good first.
func (a *Adoption) retakable(ctx context.Context, vm model.VM, one evidence.Copy, copies []evidence.Copy) error {
	alive := evidence.Living(copies)
	switch {
	case vm.Operation != "":
		return lead.VMBusy(a.Store.Snapshot(), vm)
	case one.IsOrphan():
		return orphaned(&one)
	case vm.Holder == one.Node && one.Is(&vm):
		return problemf(fmt.Sprintf("see 'berth vm show %s'", vm.Name), "it is VM %s already", vm.Name)
	case one.Domain.State == model.DomainShutoff:
		return problemf(fmt.Sprintf("start it with 'berth vm start %s'", vm.Name), "it is off")
	case one.Domain.Name != vm.Name:
		return problemf(fmt.Sprintf("shut it down, and name it back with 'virsh domrename %s %s' on %s", model.Argument(one.Domain.Name),
			vm.Name, one.Name),
			"it is VM %s under another name", vm.Name)
	case one.Domain.State != model.DomainRunning:
		return problemf(
			fmt.Sprintf("let it run with 'virsh resume %s' on %s", vm.Name, one.Name), "it is %s (%s)", one.Domain.State, one.Domain.Reason,
		)
	case endless(&one) != nil:
		return endless(&one)
	case len(alive) > 1:
		return problemf("end the other with 'virsh destroy', see 'berth vm show "+vm.Name+"'", "it is %s", evidence.Places(alive))
	case vm.Holder == "" || vm.Holder == one.Node:
		return nil
	}
	answer := a.fencing.Survey(a.Store.Snapshot()).Verdict(&vm, "")
	switch answer.Of(vm.Holder).Standing {
	case evidence.IsOff:
		return nil // it cannot refuse it, and need not
	case evidence.LacksIt:
		if a.Refuse(ctx, vm.Holder, &vm, lead.AskLimit) == nil {
			return nil
		}
	}
	return problemf("wait until that node answers, or prove that it is off with 'berth node fence'",
		"%s holds it, and has not shown that it does not run it any more", lead.NodeName(a.Store.Snapshot(), vm.Holder))
}
