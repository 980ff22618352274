package guests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/admission"
	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// AcceptDrift keeps what somebody has changed of a VM beside Berth.
func (s *DeviceCalls) AcceptDrift(
	ctx context.Context, request *connect.Request[berthv1.AcceptDriftRequest],
) (*connect.Response[berthv1.AcceptDriftResponse], error) {
	message := request.Msg
	accept := func(vm model.VM) (model.VM, error) {
		vm.Needs = "" // somebody has looked at it
		if vm.Drift == nil {
			return vm, nil
		}
		after, err := drift.Accepted(vm)
		if errors.Is(err, drift.ErrNotStartable) {
			return vm, refusal.New(rpc.Conflict, "vm/"+vm.Name, "write what it needs back with virsh while it runs, or give the change up with "+
				"'berth vm revert "+vm.Name+"'", "%v", err)
		}
		return after, err
	}
	vm, err := s.settleDrift(ctx, message.GetRequestId(), message.GetVm(), keeps, accept)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.AcceptDriftResponse{SchemaVersion: wire.SchemaVersion, Vm: vm}), nil
}

// RevertDrift has the next start of a VM use its record.
func (s *DeviceCalls) RevertDrift(
	ctx context.Context, request *connect.Request[berthv1.RevertDriftRequest],
) (*connect.Response[berthv1.RevertDriftResponse], error) {
	message := request.Msg
	revert := func(vm model.VM) (model.VM, error) {
		for _, edit := range vm.Drift.Edits {
			if edit.Kind == "disk" && edit.Was != "" && edit.Is != "" && !edit.Media && !message.GetWithoutWrites() {
				if edit.Found {
					return vm, refusal.New(rpc.Conflict, "vm/"+vm.Name, "write it back first with 'qemu-img commit "+model.Argument(edit.Is)+
						"' on a node that has the file, and give --without-writes then, or to do without", "%s", edit.Text())
				}
				return vm, refusal.New(rpc.Conflict, "vm/"+vm.Name, "write a snapshot back with 'virsh blockcommit "+vm.Name+" "+edit.Key+
					" --active --pivot --wait' while it runs, or give --without-writes", "%s: what the guest has written there is not in %s",
					edit.Text(), edit.Was)
			}
		}
		return drift.Reverted(vm), nil
	}
	vm, err := s.settleDrift(ctx, message.GetRequestId(), message.GetVm(), "its next start uses its record, not: ", revert)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RevertDriftResponse{SchemaVersion: wire.SchemaVersion, Vm: vm}), nil
}

// keeps is what the history says of changes that were accepted.
const keeps = "is kept as it runs: "

// settleDrift writes what somebody has decided about changes of a VM.
func (s *DeviceCalls) settleDrift(
	ctx context.Context, requestID, name, told string, settle func(model.VM) (model.VM, error),
) (vmName string, err error) {
	_, err = s.Propose(ctx, requestID, func(p *answer.Moment) (state.Command, error) {
		vm, err := p.NamedVM(name)
		if err != nil {
			return state.Command{}, err
		}
		vmName = vm.Name
		subject := "vm/" + vm.Name
		if op, live := p.LiveOperationOf(vm.ID); live {
			return state.Command{}, refusal.New(rpc.Busy, subject, "wait for it with 'berth operation watch "+op.ID+"'",
				"operation %s (%s, %s) works on VM %q", op.ID, op.Kind, op.Phase, vm.Name)
		}
		adopted := told == keeps && vm.Needs != ""
		facts := p.Soft.Facts(vm.Holder, p.At)
		domain := facts.Domain(vm.ID)
		size := drift.SizeBeside(&vm, domain)
		disks, resized := keptDisks(p, &vm, domain, told == keeps)
		if err := unsettled(&vm, size, told == keeps); err != nil && !adopted && len(disks) == 0 {
			return state.Command{}, err
		}
		if told == keeps {
			if err := p.MayGive(ctx, subject, admission.Asked(&vm)); err != nil {
				return state.Command{}, err
			}
		}
		after, err := settle(vm)
		if err != nil {
			return state.Command{}, err
		}
		var texts []string
		if told == keeps && size != (model.Size{}) {
			if after, err = sized(after, size, gate.CallerOf(ctx).String(), p.At); err != nil {
				return state.Command{}, err
			}
			texts = append(texts, operation.SizeText(size))
		}
		command := state.Command{
			Kind: "settle drift", Expect: []state.Expectation{answer.ExpectVM(vm)}, VMs: []model.VM{after},
		}
		for _, disk := range disks {
			command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: disk.ID, Revision: disk.Revision})
		}
		command.Resources, texts = disks, append(texts, resized...)
		if adopted {
			texts = append(texts, "what it was adopted with that needs "+vm.Needs)
		}
		for _, edit := range vm.Drifted() {
			texts = append(texts, edit.Text())
		}
		p.Tell(ctx, &command, "vm.drift-settled", subject, "%s%s", told, strings.Join(texts, "; "))
		return command, nil
	})
	return vmName, err
}

// keptDisks are the records of a VM's disks that somebody has made smaller beside Berth, with the size that they have, and what the history
// says of each. Larger ones are in the records without anybody's word.
func keptDisks(p *answer.Moment, vm *model.VM, domain *model.Domain, keep bool) (disks []model.Resource, texts []string) {
	if !keep || domain == nil || domain.Epoch != vm.Epoch {
		return nil, nil
	}
	resized := drift.ResizedBeside(p, vm, vm.Holder, domain.Devices)
	for i := range resized {
		disks, texts = append(disks, resized[i].Taken()), append(texts, resized[i].Text())
	}
	return disks, texts
}

// unsettled refuses to settle what nobody has changed. What was changed of the size alone is not in the record until somebody accepts it,
// so there is nothing to be reverted of that.
func unsettled(vm *model.VM, size model.Size, keeps bool) error {
	switch {
	case vm.Drift != nil || keeps && size != (model.Size{}):
		return nil
	case size != (model.Size{}):
		return refusal.New(rpc.Conflict, "vm/"+vm.Name,
			fmt.Sprintf("'berth vm set %s --memory %d --vcpus %d --now' gives its guest that back now", model.Argument(vm.Name),
				vm.Spec.Memory, vm.Spec.VCPUs),
			"of VM %q somebody has changed the size alone beside Berth, and its next start has that of its record already", vm.Name)
	default:
		return refusal.New(rpc.Conflict, "vm/"+vm.Name, "see 'berth vm show "+vm.Name+"'",
			"nobody has changed the devices or the size of VM %q beside Berth", vm.Name)
	}
}

// sized is a VM whose record has the size that it runs with.
func sized(vm model.VM, size model.Size, caller string, at time.Time) (model.VM, error) {
	after, err := drift.Sized(vm, size, caller, at)
	if err != nil {
		return vm, refusal.New(rpc.Conflict, "vm/"+vm.Name,
			fmt.Sprintf("change its document with 'berth vm edit %s': its next start has that", model.Argument(vm.Name)),
			"the size of VM %q cannot be changed alone: %v", vm.Name, err)
	}
	return after, nil
}
