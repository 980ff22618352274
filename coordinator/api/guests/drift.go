package guests

import (
	"context"
	"errors"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/admission"
	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/drift"
	"berth/coordinator/model"
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
		if vm.Drift == nil && !adopted {
			return state.Command{}, refusal.New(rpc.Conflict, subject, "see 'berth vm show "+vm.Name+"'",
				"nobody has changed the devices of VM %q beside Berth", vm.Name)
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
		command := state.Command{
			Kind: "settle drift", Expect: []state.Expectation{answer.ExpectVM(vm)}, VMs: []model.VM{after},
		}
		var texts []string
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
