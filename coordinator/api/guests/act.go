package guests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Acting does to VMs what needs the leader.
type Acting interface {
	ActOnVM(ctx context.Context, request lifecycle.ActOnVM) (operation.Operation, error)
}

// ActCalls are those that do one thing to several VMs where they run.
type ActCalls struct {
	*answer.Source
	Control Acting
}

// Bounds of one call: how many VMs, and on how many of them it works at a time. Commands that are proposed together share an entry.
const (
	maxActed   = 1000
	actsAtOnce = 16
)

// asked makes the request for one VM of what a call asks for, or refuses it by what its node shows.
type asked func(p *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error)

// ActOnVMs does one thing to several VMs. What is refused of one is told of that one.
func (s *ActCalls) ActOnVMs(
	ctx context.Context, request *connect.Request[berthv1.ActOnVMsRequest],
) (*connect.Response[berthv1.ActOnVMsResponse], error) {
	message := request.Msg
	ask := askedBy(ctx, message)
	switch n := len(message.GetVms()); {
	case ask == nil:
		return nil, refusal.Invalid(
			"action", "say what is to be done: stop, reboot, pause, resume, reset, attach, detach, media, resize, snapshot, restore or forget",
			errors.New("no action is given"),
		)
	case n == 0:
		return nil, refusal.Invalid("vm", "name the VMs", errors.New("no VM is named"))
	case n > maxActed:
		return nil, refusal.Invalid("vm", "do it in several calls", fmt.Errorf("%d VMs are more than %d, which one call takes", n, maxActed))
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vms := make([]model.VM, 0, len(message.GetVms()))
	for _, ref := range message.GetVms() {
		vm, err := p.NamedVM(ref)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(vms, func(other model.VM) bool { return other.ID == vm.ID }) {
			return nil, refusal.New(rpc.Invalid, "vm/"+vm.Name, "name it once", "VM %q is named twice", vm.Name)
		}
		vms = append(vms, vm)
	}
	response := &berthv1.ActOnVMsResponse{SchemaVersion: wire.SchemaVersion, Acted: make([]*berthv1.ActedVM, len(vms))}
	p.View() // of the moment once, not in each goroutine
	var working sync.WaitGroup
	turn := make(chan struct{}, actsAtOnce)
	for i := range vms {
		turn <- struct{}{}
		working.Go(func() {
			defer func() { <-turn }()
			if err := lead.Survive(s.Log, "acting on VM "+vms[i].Name, func() error {
				response.Acted[i] = s.act(ctx, p, &vms[i], ask, message)
				return nil
			}); err != nil {
				refused := refusal.Of(err)
				response.Acted[i] = &berthv1.ActedVM{Vm: vms[i].Name, Error: rpc.Detail(refused), Message: refused.Message()}
			}
		})
	}
	working.Wait()
	return connect.NewResponse(response), nil
}

// act does it to one VM.
func (s *ActCalls) act(ctx context.Context, p *answer.Moment, vm *model.VM, ask asked, message *berthv1.ActOnVMsRequest) *berthv1.ActedVM {
	acted := &berthv1.ActedVM{Vm: vm.Name}
	wanted, err := ask(p, vm)
	var op operation.Operation
	key := ""
	if message.GetRequestId() != "" {
		key = message.GetRequestId() + "/" + vm.ID
	}
	if before, repeated := p.OperationByRequest(key); err != nil && key != "" && repeated {
		op, err = before, nil // it has done what its node shows now
	} else if err == nil {
		wanted.VM, wanted.DryRun, wanted.WhenBack = vm.ID, message.GetDryRun(), message.GetWhenBack()
		wanted.RequestID, wanted.Caller = key, gate.CallerOf(ctx).String()
		op, err = answer.WhenLeading(ctx, s.Source, func() (operation.Operation, error) { return s.Control.ActOnVM(ctx, wanted) })
	}
	if err != nil {
		refused := refusal.Of(err)
		acted.Error, acted.Message = rpc.Detail(refused), refused.Message()
		return acted
	}
	acted.Operation = wire.Operation(op)
	switch {
	case wanted.Kind == operation.Stop:
		for _, text := range Interrupted(p, vm) {
			acted.Follows = append(acted.Follows, "interrupts: "+text)
		}
	case op.Snapshot != nil:
		acted.Device = "snapshot " + op.Snapshot.Name
	case wanted.Size != (model.Size{}):
		acted.Device, acted.Follows = operation.SizeText(wanted.Size), grownOf(vm, wanted.Size)
	case wanted.NewDisk != nil:
		acted.Device, acted.Follows = newDiskText(p, vm, &wanted, &op)
	case len(wanted.Edits) > 0:
		acted.Device, acted.Follows = deviceText(&wanted.Edits[0]), followsOf(p, vm, wanted.Edits)
	}
	return acted
}

// askedBy is what a call asks for; nil: nothing.
func askedBy(ctx context.Context, message *berthv1.ActOnVMsRequest) asked {
	switch message.GetAction().(type) {
	case *berthv1.ActOnVMsRequest_Pause:
		return pause
	case *berthv1.ActOnVMsRequest_Resume:
		return resume
	case *berthv1.ActOnVMsRequest_Reset_:
		return reset
	case *berthv1.ActOnVMsRequest_Attach:
		if wanted := message.GetAttach().GetNewDisk(); wanted != nil {
			return attachNew(ctx, wanted, len(message.GetVms()))
		}
		return attach(ctx, message.GetAttach())
	case *berthv1.ActOnVMsRequest_Detach:
		return detach(ctx, message.GetDetach())
	case *berthv1.ActOnVMsRequest_Media:
		return medium(ctx, message.GetMedia())
	case *berthv1.ActOnVMsRequest_Stop:
		return stop(message.GetStop())
	case *berthv1.ActOnVMsRequest_Reboot:
		return reboot
	case *berthv1.ActOnVMsRequest_Resize:
		return resize(message.GetResize())
	case *berthv1.ActOnVMsRequest_Snapshot:
		return snapshot(message.GetSnapshot())
	case *berthv1.ActOnVMsRequest_Restore:
		return restore(message.GetRestore())
	case *berthv1.ActOnVMsRequest_Forget:
		return forget(message.GetForget())
	}
	return nil
}

func pause(p *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
	wanted := lifecycle.ActOnVM{Kind: operation.Pause}
	if node, domain := shown(p, vm); domain != nil && domain.State == model.DomainPaused {
		switch {
		case domain.Reason == model.ReasonIOError:
			return wanted, refusal.New(rpc.Conflict, "vm/"+vm.Name, "make room where its disks are",
				"VM %q stands still on node %s already, because a disk of it failed or found no room", vm.Name, node)
		case vm.StandsByOrder(domain):
			return wanted, refusal.New(rpc.Conflict, "vm/"+vm.Name, fmt.Sprintf("'berth vm resume %s' lets it run", vm.Name),
				"VM %q is %s already", vm.Name, vm.Paused.Text())
		}
	}
	return wanted, nil
}

// resume refuses to let a guest run of which another node shows a copy that runs: both would write to its disks.
func resume(p *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
	wanted := lifecycle.ActOnVM{Kind: operation.Resume}
	node, domain := shown(p, vm)
	others := slices.DeleteFunc(p.LivingOn(vm.ID), func(name string) bool { return name == node })
	switch {
	case vm.Holder != "" && len(others) > 0:
		return wanted, refusal.New(rpc.Conflict, "vm/"+vm.Name, fmt.Sprintf("end all but one of them, with 'virsh destroy %s' there", vm.Name),
			"VM %q also runs on node %s: let run here as well, both copies would write to its disks", vm.Name, strings.Join(others, ", "))
	case domain != nil && domain.State == model.DomainRunning:
		return wanted, refusal.New(rpc.Conflict, "vm/"+vm.Name, fmt.Sprintf("see 'berth vm show %s'", vm.Name),
			"VM %q runs on node %s: there is nothing to resume", vm.Name, node)
	case domain != nil && domain.State == model.DomainPausedMigration:
		return wanted, refusal.New(rpc.Conflict, "vm/"+vm.Name, fmt.Sprintf("see 'berth vm show %s'", vm.Name),
			"VM %q is paused on node %s by a migration, which ends that itself", vm.Name, node)
	}
	return wanted, nil
}

func reset(p *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
	return lifecycle.ActOnVM{Kind: operation.Reboot, Force: true}, Restartable(p, vm)
}

// Restartable refuses to restart a guest that stands still.
func Restartable(p *answer.Moment, vm *model.VM) error {
	node, domain := shown(p, vm)
	if domain == nil || domain.State != model.DomainPaused {
		return nil
	}
	return refusal.New(rpc.Conflict, "vm/"+vm.Name, fmt.Sprintf("let it run first: 'berth vm resume %s'", vm.Name),
		"VM %q is paused on node %s, and a guest that stands still cannot restart", vm.Name, node)
}

// stoppable refuses to ask a guest to shut down that somebody has paused with Berth: it would not hear that, and be powered off when its
// grace time is over.
func stoppable(p *answer.Moment, vm *model.VM) error {
	node, domain := shown(p, vm)
	if !vm.StandsByOrder(domain) {
		return nil
	}
	return refusal.New(rpc.Conflict, "vm/"+vm.Name, fmt.Sprintf(
		"let it run first with 'berth vm resume %s', or power it off with 'berth vm stop %s --force'", vm.Name, vm.Name,
	), "VM %q is %s on node %s: its guest cannot shut down", vm.Name, vm.Paused.Text(), node)
}

// shown is what the holder of a VM that nothing is being done to shows of it, with the holder's name; nil: nothing.
func shown(p *answer.Moment, vm *model.VM) (node string, domain *model.Domain) {
	holder := p.View().Node(vm.Holder)
	if holder == nil || vm.Operation != "" {
		return p.NodeName(vm.Holder), nil
	}
	return holder.Node.Name, holder.Facts.Domain(vm.ID)
}
