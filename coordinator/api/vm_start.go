package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/control"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// StartVM makes a VM if a specification is given, places and starts it.
func (s *Server) StartVM(
	ctx context.Context, request *connect.Request[berthv1.StartVMRequest],
) (*connect.Response[berthv1.StartVMResponse], error) {
	message := request.Msg
	wanted := control.StartVM{
		Name: message.GetName(), DryRun: message.GetDryRun(), RequestID: message.GetRequestId(),
		Caller: callerOf(ctx).String(),
	}
	if message.GetSpec() == nil && message.GetName() == "" {
		return nil, invalid("vm", "name the VM to start, or describe a new one", errors.New("neither a name nor a specification is given"))
	}
	if message.GetSpec() != nil {
		if err := describe(&wanted, wire.SpecFrom(message.GetSpec())); err != nil {
			return nil, invalid("vm/"+wanted.Name, "see 'berth vm start --help'", err)
		}
	} else if links(message) {
		return nil, refusal(rpc.Invalid, "vm/"+wanted.Name, fmt.Sprintf("change it with 'berth vm set %s' or 'berth key set vm/%s', then start it",
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
		response.Vm = s.present().vm(started.VM, nil) // it starts: what the nodes show of it is of no account yet
	}
	return connect.NewResponse(response), nil
}

// startVM starts from what this member has: a start that is committed proves that it led, and that what it was decided on is
// as it was. So a start waits for the others once. What is not committed proves nothing: a refusal and a dry run are answers
// about everything that was committed before the call.
func (s *Server) startVM(ctx context.Context, wanted control.StartVM, message *berthv1.StartVMRequest) (control.Started, error) {
	present := s.present()
	if !wanted.DryRun {
		started, err := s.startOn(ctx, present, wanted, message)
		if err == nil || !unproven(err) {
			return started, err
		}
	}
	p, err := s.verified(ctx)
	if err != nil {
		return control.Started{}, err
	}
	return s.startOn(ctx, p, wanted, message)
}

// unproven tells whether an error is an answer that nothing was committed for.
func unproven(err error) bool {
	var refused *control.Error
	if errors.As(err, &refused) {
		return refused.Code != control.NoNodeFits // that was recorded
	}
	var answer *connect.Error
	return errors.As(err, &answer)
}

func (s *Server) startOn(
	ctx context.Context, p *picture, wanted control.StartVM, message *berthv1.StartVMRequest,
) (started control.Started, err error) {
	if wanted.Node, err = p.nodeID(message.GetNode()); err != nil {
		return started, err
	}
	if vm, known := p.VM(wanted.Name); known { // an existing VM may be named by its ID
		wanted.Name = vm.Name
	}
	if err := p.attach(&wanted, message); err != nil {
		return started, err
	}
	return whenLeading(ctx, s, func() (control.Started, error) { return s.Control.StartVM(ctx, wanted) })
}

// AddVM makes a VM without starting it.
func (s *Server) AddVM(
	ctx context.Context, request *connect.Request[berthv1.AddVMRequest],
) (*connect.Response[berthv1.AddVMResponse], error) {
	message := request.Msg
	wanted := control.StartVM{
		Name: message.GetName(), DryRun: message.GetDryRun(), RequestID: message.GetRequestId(),
		Caller: callerOf(ctx).String(),
	}
	if err := describe(&wanted, wire.SpecFrom(message.GetSpec())); err != nil {
		return nil, invalid("vm/"+wanted.Name, "see 'berth vm add --help'", err)
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	if wanted.Node, err = p.nodeID(message.GetNode()); err != nil {
		return nil, err
	}
	if err := p.attach(&wanted, message); err != nil {
		return nil, err
	}
	added, err := whenLeading(ctx, s, func() (control.Added, error) { return s.Control.AddVM(ctx, control.AddVM(wanted)) })
	if err != nil {
		return nil, err
	}
	response := &berthv1.AddVMResponse{SchemaVersion: wire.SchemaVersion}
	if added.Decision.ID != "" {
		response.Decision = wire.Decision(added.Decision)
	}
	if !message.GetDryRun() {
		response.Vm = s.present().vm(added.VM, nil)
	}
	return connect.NewResponse(response), nil
}

// whenLeading waits, as long as a call waits for a leader, while control has not begun the work of a leadership that this
// member has won.
func whenLeading[T any](ctx context.Context, s *Server, do func() (T, error)) (T, error) {
	waiting, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	for {
		done, err := do()
		var refused *control.Error
		if !errors.As(err, &refused) || refused.Code != control.NoLeader || !s.Consensus.IsLeader() || !pause(waiting, leaderPoll) {
			return done, err
		}
	}
}

// describe completes and checks the request for a new VM. An administrator's XML says name, UUID and size itself.
func describe(request *control.StartVM, spec cluster.VMSpec) error {
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
		request.ID = strings.ToLower(info.UUID)
		spec.Memory, spec.VCPUs = units.Bytes(info.MemoryBytes), info.VCPUs
	}
	if err := checkName("VM", request.Name); err != nil {
		return err
	}
	request.Spec = &spec
	return cluster.ValidateSpec(spec)
}
