package guests

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// Describing is what control does for documents.
type Describing interface {
	Document(ctx context.Context, vm model.VM) (text, node string, err error)
	DocumentUnused(before, after *model.VM) error
}

// DocumentCalls are the calls about the libvirt documents of VMs.
type DocumentCalls struct {
	*answer.Source
	Control Describing
}

// GetVMDocument gives the document of a VM.
func (s *DocumentCalls) GetVMDocument(
	ctx context.Context, request *connect.Request[berthv1.GetVMDocumentRequest],
) (*connect.Response[berthv1.GetVMDocumentResponse], error) {
	message := request.Msg
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, err := p.NamedVM(message.GetVm())
	if err != nil {
		return nil, err
	}
	response := &berthv1.GetVMDocumentResponse{SchemaVersion: wire.SchemaVersion, Vm: vm.Name, Revision: vm.Revision}
	switch {
	case message.GetRecord():
		response.Xml = vm.Spec.XML
		err = editable(&vm)
	case vm.Holder == "" || message.GetNext():
		response.Xml, err = nextDocument(p, &vm)
	default:
		var told [2]string
		told, err = answer.WhenLeading(ctx, s.Source, func() ([2]string, error) {
			text, node, err := s.Control.Document(ctx, vm)
			return [2]string{text, node}, err
		})
		response.Xml, response.Node = told[0], told[1]
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(response), nil
}

// nextDocument is the document that the next start of a VM has.
func nextDocument(p *answer.Moment, vm *model.VM) (string, error) {
	spec, err := estate.SpecOf(p.Snapshot, *vm)
	if err != nil {
		return "", refusal.Invalid("vm/"+vm.Name, fmt.Sprintf("see 'berth vm show %s'", vm.Name), err)
	}
	text, err := operation.Document(&spec, vm)
	if err != nil {
		return "", refusal.Invalid("vm/"+vm.Name, fmt.Sprintf("see 'berth vm show %s'", vm.Name), err)
	}
	return domxml.WithoutSecrets(text), nil
}

// editable says why the document of a VM cannot be changed as a whole.
func editable(vm *model.VM) error {
	switch {
	case vm.Spec.XML == "":
		return refusal.New(rpc.Conflict, "vm/"+vm.Name, fmt.Sprintf("'berth vm set %s' changes it, 'berth vm attach' gives it devices", vm.Name),
			"VM %q has no document of its own: its nodes make one of what its record says", vm.Name)
	case vm.Drift != nil:
		return refusal.New(rpc.Conflict, "vm/"+vm.Name, fmt.Sprintf(
			"write them into it with 'berth vm accept %s', or have them undone with 'berth vm revert %s', a stop and a start", vm.Name, vm.Name,
		), "devices of VM %q were changed beside its document, which would be started with both", vm.Name)
	}
	return nil
}

// SetVMDocument gives a VM another document for its next start.
func (s *DocumentCalls) SetVMDocument(
	ctx context.Context, request *connect.Request[berthv1.SetVMDocumentRequest],
) (*connect.Response[berthv1.SetVMDocumentResponse], error) {
	message := request.Msg
	response := &berthv1.SetVMDocumentResponse{SchemaVersion: wire.SchemaVersion}
	_, err := s.Propose(ctx, message.GetRequestId(), func(p *answer.Moment) (state.Command, error) {
		vm, err := p.NamedVM(message.GetVm())
		if err != nil {
			return state.Command{}, err
		}
		response.Vm, response.Waits = vm.Name, vm.Holder != ""
		after, changes, err := documented(ctx, p, vm, message)
		if err != nil {
			return state.Command{}, err
		}
		response.Warnings = p.NetworkWarnings(&after)
		if len(changes) > 0 {
			if err := snapshotsKept(&vm, &after); err != nil {
				return state.Command{}, err
			}
			if err := s.Control.DocumentUnused(&vm, &after); err != nil {
				return state.Command{}, err
			}
		}
		if message.GetDryRun() || len(changes) == 0 {
			return state.Command{}, answer.ErrUnchanged
		}
		p.Defer(ctx, &vm, &after, changes)
		command := state.Command{Kind: "set document", Expect: []state.Expectation{answer.ExpectVM(vm)}, VMs: []model.VM{after}}
		p.Tell(ctx, &command, "vm.changed", "vm/"+vm.Name, "%s", answer.FieldsText(changes))
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(response), nil
}

// documented is a VM with another document, and what of its record changes with that; nothing: it has that document.
func documented(
	ctx context.Context, p *answer.Moment, vm model.VM, message *berthv1.SetVMDocumentRequest,
) (model.VM, []estate.FieldChange, error) {
	subject, wanted := "vm/"+vm.Name, message.GetXml()
	if op, live := p.LiveOperationOf(vm.ID); live {
		return vm, nil, refusal.New(rpc.Busy, subject, fmt.Sprintf("wait for it with 'berth operation watch %s'", op.ID),
			"operation %s (%s, %s) works on VM %q", op.ID, op.Kind, op.Phase, vm.Name)
	}
	if err := editable(&vm); err != nil {
		return vm, nil, err
	}
	if wanted == vm.Spec.XML { // also if the same is asked for again
		return vm, nil, nil
	}
	if message.GetRevision() != 0 && message.GetRevision() != vm.Revision {
		return vm, nil, refusal.New(rpc.Conflict, subject, fmt.Sprintf("see 'berth vm xml %s --next', and do it again", vm.Name),
			"VM %q was changed since its document was read", vm.Name)
	}
	info, err := domxml.Parse(wanted)
	switch {
	case err != nil:
	case info.Name != "" && info.Name != vm.Name:
		err = fmt.Errorf("the document names the VM %q: leave that as it is, %q", info.Name, vm.Name)
	case info.UUID != "" && !strings.EqualFold(info.UUID, vm.ID):
		err = fmt.Errorf("the document has the UUID %s: leave that as it is, %s", info.UUID, vm.ID)
	}
	before, after := vm.Spec, vm
	if err == nil {
		after.Spec.XML, after.Spec.Memory, after.Spec.VCPUs = wanted, units.Bytes(info.MemoryBytes), info.VCPUs
		err = model.ValidateSpec(after.Spec)
	}
	if err == nil && vm.Ran == nil && vm.Holder != "" { // started by an earlier release: what it ran with is what its document says
		devices, broken := operation.Devices(&before, vm.ID)
		after.Ran, err = operation.Ran(devices), broken
	}
	if err != nil {
		return vm, nil, refusal.Invalid(subject, "mend the document", err)
	}
	if err := p.AdmitVM(ctx, &after, &before); err != nil {
		return vm, nil, err
	}
	if vm.Holder == "" {
		after.Settled = vm.Epoch // what is told of its last run changes the document no more
	}
	changes := []estate.FieldChange{{Field: "document", From: "as it was", To: "as edited", Waits: true}}
	if before.Memory != after.Spec.Memory {
		changes = append(changes, estate.FieldChange{
			Field: model.MemoryField, From: before.Memory.String(), To: after.Spec.Memory.String(), Waits: true,
		})
	}
	if before.VCPUs != after.Spec.VCPUs {
		changes = append(changes, estate.FieldChange{
			Field: model.VCPUsField, From: strconv.Itoa(before.VCPUs), To: strconv.Itoa(after.Spec.VCPUs), Waits: true,
		})
	}
	return after, changes, nil
}

// snapshotsKept refuses a document without a disk that has snapshots of the VM: they would stay in a file that is not the VM's any more.
func snapshotsKept(before, after *model.VM) error {
	had, _ := operation.Devices(&before.Spec, before.ID) // what cannot be read had none
	has, err := operation.Devices(&after.Spec, after.ID)
	if err != nil {
		return refusal.Invalid("vm/"+after.Name, "mend the document", err)
	}
	for _, one := range had {
		if slices.ContainsFunc(has, func(d domxml.Device) bool { return d.Source == one.Source }) {
			continue
		}
		if name := before.SnapshotWhere(func(s model.DiskSource) bool { return s == model.DiskSource(one.Source) }); name != "" {
			return refusal.New(rpc.Conflict, "vm/"+after.Name,
				fmt.Sprintf("delete the snapshot first: 'berth vm snapshot delete %s --name %s'", after.Name, name),
				"the document is without disk %s, which has the snapshot %q: it would stay in a file that is not the VM's any more", one.Key, name)
		}
	}
	return nil
}
