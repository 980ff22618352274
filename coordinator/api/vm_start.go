package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/wire"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// StartVM makes a VM if a specification is given, places and starts it.
func (s *vmCalls) StartVM(
	ctx context.Context, request *connect.Request[berthv1.StartVMRequest],
) (*connect.Response[berthv1.StartVMResponse], error) {
	message := request.Msg
	wanted := lifecycle.StartVM{
		Name: message.GetName(), DryRun: message.GetDryRun(), RequestID: message.GetRequestId(),
		Caller: gate.CallerOf(ctx).String(), Force: message.GetForce(), Reason: message.GetReason(),
	}
	if err := forced(message); err != nil {
		return nil, err
	}
	if message.GetVm().GetSpec() == nil && message.GetName() == "" {
		return nil, refusal.Invalid(
			"vm", "name the VM to start, or describe a new one", errors.New("neither a name nor a specification is given"),
		)
	}
	if message.GetVm().GetSpec() != nil {
		if err := describe(&wanted, wire.SpecFrom(message.GetVm().GetSpec())); err != nil {
			return nil, refusal.Invalid("vm/"+wanted.Name, "see 'berth vm start --help'", err)
		}
	} else if message.GetVm() != nil && linked(message.GetVm()) {
		return nil, refusal.New(rpc.Invalid, "vm/"+wanted.Name,
			fmt.Sprintf("change it with 'berth vm set %s' or 'berth key set vm/%s KEY=VALUE', then start it",
				wanted.Name, wanted.Name), "links and keys are given, and no new VM to have them")
	}
	started, err := s.startVM(ctx, wanted, message)
	if err != nil {
		return nil, err
	}
	response := &berthv1.StartVMResponse{SchemaVersion: wire.SchemaVersion, Decision: wire.Decision(started.Decision)}
	if started.Operation.ID != "" {
		response.Operation = wire.Operation(started.Operation)
	}
	if started.VM.ID != "" {
		response.Vm = vmMessage(s.Present(), started.VM)
	}
	return connect.NewResponse(response), nil
}

// forced refuses a start that is forced without a reason which the history can keep.
func forced(message *berthv1.StartVMRequest) error {
	subject := "vm/" + message.GetName()
	switch reason := message.GetReason(); {
	case !message.GetForce() && reason == "":
		return nil
	case !message.GetForce():
		return refusal.New(rpc.Invalid, subject, "leave it out, or force the start", "a reason is given, and nothing is forced")
	case message.GetVm() != nil:
		return refusal.New(rpc.Invalid, subject, "leave one out", "a new VM is described, and the start of one that may run is forced")
	case strings.TrimSpace(reason) == "":
		return refusal.New(rpc.Invalid, subject, "say what you know of the nodes that do not answer", "a start is forced without a reason")
	case strings.ContainsFunc(reason, unicode.IsControl):
		return refusal.New(rpc.Invalid, subject, "write it in one line", "the reason has more than one line")
	default:
		return checkReason(subject, reason)
	}
}

// startVM starts from what this member has: a start that is committed proves that it led, and that what it was decided on is
// as it was. So a start waits for the others once. What is not committed proves nothing: a refusal and a dry run are answers
// about everything that was committed before the call.
func (s *vmCalls) startVM(ctx context.Context, wanted lifecycle.StartVM, message *berthv1.StartVMRequest) (lifecycle.Started, error) {
	present := s.Present()
	if !wanted.DryRun {
		started, err := s.startOn(ctx, present, wanted, message)
		if err == nil || !unproven(err) {
			return started, err
		}
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return lifecycle.Started{}, err
	}
	return s.startOn(ctx, p, wanted, message)
}

// unproven tells whether an error is an answer that nothing was committed for.
func unproven(err error) bool {
	var refused *lead.Error
	if errors.As(err, &refused) {
		return refused.Code != lead.NoNodeFits // that was recorded
	}
	var told *connect.Error
	return errors.As(err, &told)
}

func (s *vmCalls) startOn(
	ctx context.Context, p *answer.Moment, wanted lifecycle.StartVM, message *berthv1.StartVMRequest,
) (started lifecycle.Started, err error) {
	if wanted.Node, err = nodeID(p, message.GetNode()); err != nil {
		return started, err
	}
	if vm, known := p.VM(wanted.Name); known { // an existing VM may be named by its ID
		wanted.Name = vm.Name
	}
	if err := attach(p, &wanted, message.GetVm()); err != nil {
		return started, err
	}
	if err := s.mayBeHA(p, &wanted); err != nil {
		return started, err
	}
	if err := admitted(ctx, p, &wanted); err != nil {
		return started, err
	}
	return answer.WhenLeading(ctx, s.Source, func() (lifecycle.Started, error) { return s.Control.StartVM(ctx, wanted) })
}

// AddVM makes a VM without starting it.
func (s *vmCalls) AddVM(
	ctx context.Context, request *connect.Request[berthv1.AddVMRequest],
) (*connect.Response[berthv1.AddVMResponse], error) {
	message := request.Msg
	wanted := lifecycle.StartVM{
		Name: message.GetName(), DryRun: message.GetDryRun(), RequestID: message.GetRequestId(),
		Caller: gate.CallerOf(ctx).String(),
	}
	if err := describe(&wanted, wire.SpecFrom(message.GetVm().GetSpec())); err != nil {
		return nil, refusal.Invalid("vm/"+wanted.Name, "see 'berth vm add --help'", err)
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	if wanted.Node, err = nodeID(p, message.GetNode()); err != nil {
		return nil, err
	}
	if err := attach(p, &wanted, message.GetVm()); err != nil {
		return nil, err
	}
	if err := s.mayBeHA(p, &wanted); err != nil {
		return nil, err
	}
	if err := admitted(ctx, p, &wanted); err != nil {
		return nil, err
	}
	added, err := answer.WhenLeading(ctx, s.Source, func() (lifecycle.Added, error) { return s.Control.AddVM(ctx, lifecycle.AddVM(wanted)) })
	if err != nil {
		return nil, err
	}
	response := &berthv1.AddVMResponse{SchemaVersion: wire.SchemaVersion}
	if added.Decision.ID != "" {
		response.Decision = wire.Decision(added.Decision)
	}
	now := s.Present()
	response.Warnings = now.NetworkWarnings(&added.VM)
	if !message.GetDryRun() {
		response.Vm = vmMessage(now, added.VM)
	}
	return connect.NewResponse(response), nil
}

// admitted refuses a new VM that puts something onto a host which its cluster does not permit. One that exists was judged when it was made.
func admitted(ctx context.Context, p *answer.Moment, wanted *lifecycle.StartVM) error {
	if _, exists := p.VMByName(wanted.Name); wanted.VM == nil || exists {
		return nil
	}
	return p.AdmitVM(ctx, wanted.VM, nil)
}

// describe completes and checks the request for a new VM. An administrator's XML says name, UUID and size itself.
func describe(request *lifecycle.StartVM, spec model.VMSpec) error {
	vm := model.VM{Desired: model.Stopped}
	if spec.XML != "" {
		info, err := domxml.Parse(spec.XML)
		if err != nil {
			return err
		}
		switch {
		case request.Name == "":
			request.Name = info.Name
		case info.Name != "" && info.Name != request.Name:
			return fmt.Errorf("the XML names the VM %q, the request %q: leave one out or make them equal", info.Name, request.Name)
		}
		if spec.Memory != 0 && int64(spec.Memory) != info.MemoryBytes {
			return fmt.Errorf("the XML gives the VM %s of memory, the request %s: leave it out of the request",
				units.Bytes(info.MemoryBytes), spec.Memory)
		}
		if spec.VCPUs != 0 && spec.VCPUs != info.VCPUs {
			return fmt.Errorf("the XML gives the VM %d vCPUs, the request %d: leave them out of the request", info.VCPUs, spec.VCPUs)
		}
		vm.ID = strings.ToLower(info.UUID)
		spec.Memory, spec.VCPUs = units.Bytes(info.MemoryBytes), info.VCPUs
	}
	if err := answer.CheckName("VM", request.Name); err != nil {
		return err
	}
	vm.Name, vm.Spec = request.Name, spec
	request.VM = &vm
	return model.ValidateSpec(spec)
}
