package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/estates"
	"berth/coordinator/api/guests"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// linked tells whether a new VM is to have any link, key or other trait.
func linked(wanted *berthv1.NewVM) bool {
	return proto.Size(wanted) > proto.Size(&berthv1.NewVM{Spec: wanted.GetSpec()})
}

// attach gives the request's new VM its links, keys and traits, and refuses what breaks a rule of the estate. A VM of the name
// that exists is for control to judge.
func attach(p *answer.Moment, request *lifecycle.StartVM, wanted *berthv1.NewVM) error {
	if _, exists := p.VMByName(request.Name); request.VM == nil || exists || !linked(wanted) {
		return nil
	}
	vm := *request.VM
	subject := "vm/" + vm.Name
	var err error
	for _, message := range wanted.GetKeys() {
		if vm.Keys, err = schema.SetKey(model.KindVM, vm.Keys, wire.KeyFrom(message, model.SystemKey)); err != nil {
			return refusal.Unsound(subject, estates.KeyHelp, err)
		}
	}
	links, err := wire.WantedVM(wanted)
	if err != nil {
		return refusal.Invalid(subject, "see 'berth vm add --help'", err)
	}
	now := p.Around(vm, links.VM, named(wanted.GetRoot())...)
	if wanted.GetRoot() != nil {
		root, err := rootOf(now, vm.Name, wanted.GetRoot())
		if err != nil {
			return refusal.Unsound("disk/"+root.Name, "see 'berth vm start --help'", err)
		}
		now.Resources = append(now.Resources, root)
		request.Root, links.VM.Disks = &root, append([]string{root.Name}, links.VM.Disks...)
		links.VM.Image = cmp.Or(links.VM.Image, wanted.GetRoot().GetImage()) // its keys count too
		links.Fields = append(links.Fields, "disks", "image")
	}
	if vm, err = estate.EditVM(now, vm, links); err != nil {
		return refusal.Unsound(subject, "see 'berth vm add --help'", err)
	}
	if request.Root != nil {
		vm.Disks = vm.Disks[1:] // control attaches it
		request.Root.ID = ""
	}
	request.VM = &vm
	return nil
}

// named are what a VM's root disk links to, as kind/name.
func named(root *berthv1.RootDisk) []string {
	if root == nil {
		return nil
	}
	return []string{string(model.KindImage) + "/" + root.GetImage(), string(model.KindPool) + "/" + root.GetPool()}
}

// rootOf is the record of the disk that is made with a new VM, without a time.
func rootOf(now estate.State, vmName string, message *berthv1.RootDisk) (model.Resource, error) {
	wanted := estate.Wanted{Links: map[string]string{}, Settings: map[string]string{}}
	set := func(into map[string]string, name, value string) {
		if value != "" {
			into[name] = value
		}
	}
	set(wanted.Links, schema.LinkImage, message.GetImage())
	set(wanted.Links, schema.LinkPool, message.GetPool())
	set(wanted.Settings, schema.SettingBus, message.GetBus())
	if message.GetSizeBytes() != 0 {
		set(wanted.Settings, schema.SettingSize, strconv.FormatInt(message.GetSizeBytes(), 10))
	}
	if message.GetKeep() {
		set(wanted.Settings, schema.SettingKeep, "true")
	}
	name := vmName + rootSuffix
	made, err := estate.NewResource(now, model.KindDisk, name, wanted, rootID, time.Time{})
	if err != nil {
		return model.Resource{Name: name}, err
	}
	return made, nil
}

// nextStartRefused is why no node could take a VM that runs when it is started again, as the nodes are now; empty: one could.
func (s *vmCalls) nextStartRefused(vm model.VM) string {
	if vm.Holder == "" {
		return ""
	}
	switch decision, err := s.Control.Judge(vm, placement.ForStart, ""); {
	case err != nil:
		return err.Error()
	case decision.Outcome == placement.Refused:
		return decision.Reason
	default:
		return ""
	}
}

const (
	rootSuffix = "-root"
	rootID     = "new" // while it is judged; control gives it another
)

// ChangeVM changes what a VM links to, its size, its labels and who may move it. A running VM keeps its size and what its keys
// were until it is started again.
func (s *vmCalls) ChangeVM(
	ctx context.Context, request *connect.Request[berthv1.ChangeVMRequest],
) (*connect.Response[berthv1.ChangeVMResponse], error) {
	message := request.Msg
	var (
		id      string
		changes []estate.FieldChange
	)
	p, err := s.Propose(ctx, message.GetRequestId(), func(p *answer.Moment) (state.Command, error) {
		vm, err := p.NamedVM(message.GetVm())
		if err != nil {
			return state.Command{}, err
		}
		id = vm.ID
		subject := "vm/" + vm.Name
		if op, live := p.LiveOperationOf(vm.ID); live {
			return state.Command{}, refusal.New(rpc.Busy, subject, fmt.Sprintf("wait for it with 'berth operation watch %s'", op.ID),
				"operation %s (%s, %s) works on VM %q", op.ID, op.Kind, op.Phase, vm.Name)
		}
		before := vm
		wanted, err := wire.WantedOf(message.GetChange())
		if err != nil {
			return state.Command{}, refusal.Invalid(subject, "see 'berth vm set --help'", err)
		}
		if err := resized(&vm, wanted); err != nil {
			return state.Command{}, err
		}
		now := p.Around(vm, wanted.VM)
		if vm, err = estate.EditVM(now, vm, wanted); err != nil {
			return state.Command{}, refusal.Unsound(subject, "see 'berth vm set --help'", err)
		}
		if changes = estate.VMFields(now, before, vm); len(changes) == 0 {
			return state.Command{}, answer.ErrUnchanged
		}
		if err := p.AdmitVM(ctx, &vm, &before.Spec); err != nil {
			return state.Command{}, err
		}
		if touchesHA(changes) {
			if err := estates.MayBeHA(p, &vm, s.Control.PoolLocks); err != nil {
				return state.Command{}, err
			}
		}
		command := state.Command{Kind: "change vm", Expect: []state.Expectation{answer.ExpectVM(before)}}
		p.Defer(ctx, &before, &vm, changes)
		command.VMs = []model.VM{vm}
		p.ExpectLinks(&command, slices.Concat([]string{vm.VDC, vm.Within, vm.Offer, vm.Image}, vm.Disks, vm.NICs)...)
		p.Tell(ctx, &command, "vm.changed", subject, "%s", answer.FieldsText(changes))
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	vm, known := p.VM(id)
	if !known {
		return nil, refusal.NotFound("vm", message.GetVm()) // somebody deleted it meanwhile
	}
	response := &berthv1.ChangeVMResponse{
		SchemaVersion: wire.SchemaVersion, Vm: vmMessage(p, vm), Changes: wire.Fields(changes),
	}
	if slices.ContainsFunc(changes, func(one estate.FieldChange) bool { return one.Waits }) {
		response.NextStartRefused = s.nextStartRefused(vm)
	}
	restart := func(c estate.FieldChange) bool { return c.Field == "restart" }
	if touchesHA(changes) || slices.ContainsFunc(changes, restart) {
		response.HaGaps = guests.HAGaps(p, &vm, s.Control)
	}
	return connect.NewResponse(response), nil
}

// resized gives the VM the size that is wanted, if one is.
func resized(vm *model.VM, wanted estate.WantedVM) error {
	before := vm.Spec
	for i := range schema.VM {
		if f := &schema.VM[i]; f.Spec && slices.Contains(wanted.Fields, f.Name) {
			f.Copy(vm, &wanted.VM)
		}
	}
	if err := model.ValidateSpec(vm.Spec); err != nil {
		return refusal.Invalid("vm/"+vm.Name, "see 'berth vm set --help' for the ranges", err)
	}
	if vm.Spec.XML != "" && (vm.Spec.Memory != before.Memory || vm.Spec.VCPUs != before.VCPUs) {
		return refusal.New(rpc.Invalid, "vm/"+vm.Name, fmt.Sprintf(
			"'berth vm edit %s' changes it for the next start, and 'berth vm set %s --now' the guest that runs as well", vm.Name, vm.Name,
		),
			"the size of VM %q stands in its own XML", vm.Name)
	}
	return nil
}
