package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/control"
	"berth/coordinator/estate"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// linksRequest is a request for a new VM, with what it is to link to.
type linksRequest interface {
	GetVdc() string
	GetOffer() string
	GetImage() string
	GetDisks() []string
	GetNics() []string
	GetKeys() []*berthv1.Key
	GetPreferred() []string
	GetLabels() []string
	GetMigration() string
	GetHa() bool
	GetWithin() string
	GetRoot() *berthv1.RootDisk
}

// links tells whether a request asks for any link, key or other trait.
func links(wanted linksRequest) bool {
	return wanted.GetVdc() != "" || wanted.GetOffer() != "" || wanted.GetImage() != "" ||
		len(wanted.GetDisks()) > 0 || len(wanted.GetNics()) > 0 || len(wanted.GetKeys()) > 0 ||
		len(wanted.GetPreferred()) > 0 || len(wanted.GetLabels()) > 0 || wanted.GetMigration() != "" || wanted.GetHa() ||
		wanted.GetWithin() != "" || wanted.GetRoot() != nil
}

// attach gives the request for a new VM its links, keys and traits, and refuses what breaks a rule of the estate. A VM of the
// name that exists is for control to judge.
func (p *picture) attach(request *control.StartVM, wanted linksRequest) error {
	if _, exists := p.VMByName(request.Name); request.Spec == nil || exists || !links(wanted) {
		return nil
	}
	vm := cluster.VM{ID: request.ID, Name: request.Name, Spec: *request.Spec, Desired: cluster.Stopped}
	subject := "vm/" + vm.Name
	var err error
	for _, message := range wanted.GetKeys() {
		if vm.Keys, err = estate.SetKey(cluster.KindVM, vm.Keys, wire.KeyFrom(message, cluster.SystemKey)); err != nil {
			return unsound(subject, keyHelp, err)
		}
	}
	if wanted.GetMigration() != "" {
		if vm.Migration, err = estate.ParseMigration(wanted.GetMigration()); err != nil {
			return invalid(subject, "see 'berth vm add --help'", err)
		}
	}
	vm.HA = wanted.GetHa()
	vm.Labels = slices.Sorted(slices.Values(wanted.GetLabels()))
	links := estate.VMLinks{
		VDC: new(wanted.GetVdc()), Offer: new(wanted.GetOffer()), Image: new(wanted.GetImage()),
		Disks: new(wanted.GetDisks()), NICs: new(wanted.GetNics()), Preferred: new(wanted.GetPreferred()), Within: new(wanted.GetWithin()),
	}
	now := p.around(vm, links, named(wanted.GetRoot())...)
	if wanted.GetRoot() != nil {
		root, err := rootOf(now, vm.Name, wanted.GetRoot())
		if err != nil {
			return unsound("disk/"+root.Name, "see 'berth vm start --help'", err)
		}
		now.Resources = append(now.Resources, root)
		links.Disks = new(append([]string{root.Name}, *links.Disks...))
		if request.Root = &root; *links.Image == "" {
			links.Image = new(wanted.GetRoot().GetImage()) // its keys count too
		}
	}
	if vm, err = estate.EditVM(now, vm, links); err != nil {
		return unsound(subject, "see 'berth vm add --help'", err)
	}
	if request.Root != nil {
		vm.Disks = vm.Disks[1:] // control attaches it
		request.Root.ID = ""
	}
	request.Within = vm.Within
	request.VDC, request.Offer, request.Image = vm.VDC, vm.Offer, vm.Image
	request.Disks, request.NICs, request.Keys = vm.Disks, vm.NICs, vm.Keys
	request.Labels, request.Preferred, request.Migration, request.HA = vm.Labels, vm.Preferred, vm.Migration, vm.HA
	return nil
}

// named are what a VM's root disk links to, as kind/name.
func named(root *berthv1.RootDisk) []string {
	if root == nil {
		return nil
	}
	return []string{string(cluster.KindImage) + "/" + root.GetImage(), string(cluster.KindPool) + "/" + root.GetPool()}
}

// rootOf is the record of the disk that is made with a new VM, without a time.
func rootOf(now estate.State, vmName string, message *berthv1.RootDisk) (cluster.Resource, error) {
	wanted := estate.Wanted{Links: map[string]string{}, Settings: map[string]string{}}
	set := func(into map[string]string, name, value string) {
		if value != "" {
			into[name] = value
		}
	}
	set(wanted.Links, estate.LinkImage, message.GetImage())
	set(wanted.Links, estate.LinkPool, message.GetPool())
	set(wanted.Settings, estate.SettingBus, message.GetBus())
	if message.GetSizeBytes() != 0 {
		set(wanted.Settings, estate.SettingSize, strconv.FormatInt(message.GetSizeBytes(), 10))
	}
	if message.GetKeep() {
		set(wanted.Settings, estate.SettingKeep, "true")
	}
	name := vmName + rootSuffix
	made, err := estate.NewResource(now, cluster.KindDisk, name, wanted, rootID, time.Time{})
	if err != nil {
		return cluster.Resource{Name: name}, err
	}
	return made, nil
}

const (
	rootSuffix = "-root"
	rootID     = "new" // while it is judged; control gives it another
)

// ChangeVM changes what a VM links to, its size, its labels and who may move it. A running VM keeps its size and what its keys
// were until it is started again.
func (s *Server) ChangeVM(
	ctx context.Context, request *connect.Request[berthv1.ChangeVMRequest],
) (*connect.Response[berthv1.ChangeVMResponse], error) {
	message := request.Msg
	var (
		id      string
		changes []estate.FieldChange
	)
	p, err := s.propose(ctx, message.GetRequestId(), func(p *picture) (state.Command, error) {
		vm, err := p.namedVM(message.GetVm())
		if err != nil {
			return state.Command{}, err
		}
		id = vm.ID
		subject := "vm/" + vm.Name
		if op, live := p.LiveOperationOf(vm.ID); live {
			return state.Command{}, refusal(rpc.Busy, subject, fmt.Sprintf("wait for it with 'berth operation watch %s'", op.ID),
				"operation %s (%s, %s) works on VM %q", op.ID, op.Kind, op.Phase, vm.Name)
		}
		before, links := vm, linksWanted(message)
		if err := cmp.Or(resized(&vm, message), giveTraits(&vm, message)); err != nil {
			return state.Command{}, err
		}
		now := p.around(vm, links)
		if vm, err = estate.EditVM(now, vm, links); err != nil {
			return state.Command{}, unsound(subject, "see 'berth vm set --help'", err)
		}
		if changes = estate.VMFields(now, before, vm); len(changes) == 0 {
			return state.Command{}, errUnchanged
		}
		command := state.Command{Kind: "change vm", Expect: []state.Expectation{expectVM(before)}}
		command.VMs = []cluster.VM{vm}
		p.expectLinks(&command, slices.Concat([]string{vm.VDC, vm.Within, vm.Offer, vm.Image}, vm.Disks, vm.NICs)...)
		p.tell(ctx, &command, "vm.changed", subject, "%s", fieldsText(changes))
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	vm, known := p.VM(id)
	if !known {
		return nil, notFound("vm", message.GetVm()) // somebody deleted it meanwhile
	}
	return connect.NewResponse(&berthv1.ChangeVMResponse{
		SchemaVersion: wire.SchemaVersion, Vm: p.vm(vm, p.running()), Changes: wire.Fields(changes),
	}), nil
}

// linksWanted are the links that a request changes.
func linksWanted(message *berthv1.ChangeVMRequest) estate.VMLinks {
	links := estate.VMLinks{VDC: message.Vdc, Offer: message.Offer, Image: message.Image, Within: message.Within}
	if disks := message.GetDisks(); disks != nil {
		links.Disks = new(disks.GetNames())
	}
	if nics := message.GetNics(); nics != nil {
		links.NICs = new(nics.GetNames())
	}
	if preferred := message.GetPreferred(); preferred != nil {
		links.Preferred = new(preferred.GetNames())
	}
	return links
}

// giveTraits gives the VM the labels that a request asks for, and says who may move it and whether it is restarted.
func giveTraits(vm *cluster.VM, message *berthv1.ChangeVMRequest) error {
	if labels := message.GetLabels(); labels != nil {
		vm.Labels = slices.Sorted(slices.Values(labels.GetNames()))
	}
	if message.Ha != nil {
		vm.HA = message.GetHa()
	}
	if message.Migration == nil {
		return nil
	}
	migration, err := estate.ParseMigration(message.GetMigration())
	if err != nil {
		return invalid("vm/"+vm.Name, "see 'berth vm set --help'", err)
	}
	vm.Migration = migration
	return nil
}

// resized gives the VM the size that a request asks for.
func resized(vm *cluster.VM, message *berthv1.ChangeVMRequest) error {
	before := vm.Spec
	if message.MemoryBytes != nil {
		vm.Spec.Memory = units.Bytes(message.GetMemoryBytes())
	}
	if message.Vcpus != nil {
		vm.Spec.VCPUs = int(message.GetVcpus())
	}
	if err := cluster.ValidateSpec(vm.Spec); err != nil {
		return invalid("vm/"+vm.Name, "see 'berth vm set --help' for the ranges", err)
	}
	if vm.Spec.XML != "" && (vm.Spec.Memory != before.Memory || vm.Spec.VCPUs != before.VCPUs) {
		return refusal(rpc.Invalid, "vm/"+vm.Name, "delete the VM and add it with other XML: its disks stay",
			"the size of VM %q stands in its own XML", vm.Name)
	}
	return nil
}
