package estate

import (
	"errors"
	"fmt"
	"slices"

	"berth/coordinator/connected"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
	"berth/coordinator/schema"
)

// ErrDangling is wrapped by the error about a link to what is not there.
var ErrDangling = errors.New("does not exist")

// Resolved is what a VM inherits.
type Resolved struct {
	Cluster string         // name
	Record  model.Resource // of the cluster; as by default if it was never declared
	Owner   model.Owner

	System, Customer []key.Compiled // the two sets, each by name
	Layers           []key.Layer    // what they were compiled from, highest level first; levels without keys are left out

	Planner  string           // that its offer names, or else its cluster's zone; empty: neither does
	Disks    []placement.Disk // those that are volumes or are to become some, in their order
	Networks []string         // of its NICs before the plain ones
}

// Resolve walks the sixteen levels above a VM and compiles its keys. It is in the cluster that it is bound to: by its VDC, or
// because it runs there or its disks are there; if it is bound to none, in the first by name of those that may take it. A VM
// of which nothing says where is in the default cluster, and one in no VDC belongs to nobody. The error wraps ErrNoCluster, or
// ErrDangling and names the link, which only a state that nothing has checked can have.
func Resolve(source Source, vm model.VM) (Resolved, error) {
	s := scopesOf(source)
	record, err := s.record(&vm)
	if err != nil {
		return Resolved{}, err
	}
	return resolveIn(source, vm, record)
}

// ResolveIn is Resolve in a cluster by name.
func ResolveIn(source Source, vm model.VM, clusterName string) (Resolved, error) {
	w := &walk{source: source}
	record := w.namedCluster(clusterName)
	if w.err != nil {
		return Resolved{}, w.err
	}
	return resolveIn(source, vm, record)
}

func resolveIn(source Source, vm model.VM, record model.Resource) (Resolved, error) {
	w := &walk{source: source}
	vdc := w.follow(schema.Ref(model.KindVM, vm.Name), schema.LinkVDC, model.KindVDC, vm.VDC)
	customer := w.link(vdc, schema.LinkCustomer, model.KindCustomer)
	billing := w.link(customer, schema.LinkBillingEntity, model.KindBillingEntity)
	image := w.follow(schema.Ref(model.KindVM, vm.Name), schema.LinkImage, model.KindImage, vm.Image)
	disk := w.follow(schema.Ref(model.KindVM, vm.Name), "first disk", model.KindDisk, firstOf(vm.Disks))
	nic := w.follow(schema.Ref(model.KindVM, vm.Name), "first NIC", model.KindNIC, firstOf(vm.NICs))
	network := w.link(nic, schema.LinkNetwork, model.KindNetwork)

	w.level(key.LevelCluster, record)
	w.level(key.LevelBillingEntity, billing)
	w.level(key.LevelCustomerOffer, w.offerOf(customer))
	w.level(key.LevelCustomer, customer)
	w.level(key.LevelImageOffer, w.offerOf(image))
	w.level(key.LevelImage, image)
	w.level(key.LevelVDCOffer, w.offerOf(vdc))
	w.level(key.LevelVDC, vdc)
	vmOffer := w.follow(schema.Ref(model.KindVM, vm.Name), schema.LinkOffer, model.KindOffer, vm.Offer)
	w.level(key.LevelServerOffer, vmOffer)
	w.layer(key.Layer{Level: key.LevelServer, Resource: schema.Ref(model.KindVM, vm.Name), Keys: vm.Sticky, Sticky: true})
	w.layer(key.Layer{Level: key.LevelServer, Resource: schema.Ref(model.KindVM, vm.Name), Keys: vm.Keys})
	w.level(key.LevelFirstDiskOffer, w.offerOf(disk))
	w.level(key.LevelFirstDisk, disk)
	w.level(key.LevelFirstNICNetworkOffer, w.offerOf(network))
	w.level(key.LevelFirstNICNetwork, network)
	w.level(key.LevelFirstNICOffer, w.offerOf(nic))
	w.level(key.LevelFirstNIC, nic)
	resolved := Resolved{
		Cluster: record.Name, Record: record,
		Owner: model.Owner{Customer: customer.ID, BillingEntity: billing.ID}, Layers: w.layers,
		Planner: w.plannerOf(vmOffer, record), Disks: w.volumesOf(schema.Ref(model.KindVM, vm.Name), &vm), Networks: w.attached(&vm),
	}
	if w.err != nil {
		return Resolved{}, w.err
	}
	resolved.System, resolved.Customer = key.Compile(w.layers)
	return resolved, nil
}

// Request is what placement is asked for a VM: as large as its next start makes it, or if it moves, as it was started. Pins, exclusions
// and the least gain are the caller's to add.
func Request(resolved Resolved, vm model.VM, purpose placement.Purpose) placement.Request {
	size, networks := vm.NextSize(), connected.AtStart
	if purpose.Moves() {
		size, networks = vm.SizeOn(nil), connected.Running
	}
	request := placement.Request{
		Purpose: purpose, VM: vm.ID, VMName: vm.Name, Memory: size.Memory, VCPUs: size.VCPUs,
		Cluster: resolved.Cluster, Owner: resolved.Owner,
		SystemKeys: key.WeightedOf(resolved.System), CustomerKeys: key.WeightedOf(resolved.Customer),
		Labels: vm.Labels, Preferred: vm.Preferred, HA: vm.HA,
		Planner: resolved.Planner, Disks: resolved.Disks, Networks: networks(&vm, resolved.Networks),
	}
	if purpose.Moves() {
		request.Current = vm.Holder
		request.CPU, request.PassedCPU = cpuModel(vm.CPU), vm.PassedCPU
	} else {
		request.CPU = cpuModel(vm.Spec.CPU)
	}
	if model.SettingsOf(&resolved.Record).Storage == model.LocalStorage {
		request.Home = vm.Home
	}
	if vm.Bound != "" {
		request.Home = vm.Bound
	}
	return request
}

// cpuModel is a CPU model that a node has to be able to run; none: any node passes its own CPU through.
func cpuModel(cpu string) string {
	if cpu == model.CPUHostPassthrough {
		return ""
	}
	return cpu
}

// SpecOf is what a VM is made of when it is started on a node: its own description with the linked disks before the plain
// ones and the linked NICs before the plain networks. A linked disk that was attached to its guest is none of them: the attachment
// says under which name the VM has it. An image that has a file is the last disk; VMs share it, so it is
// read-only. The seed image of a VM with user data is for its node to add. A VM that is described by XML has its devices
// from there: its links say only what keys it inherits. The error wraps ErrDangling, ErrNoVolume if a disk is not made yet, or
// model.ErrInvalid if the whole cannot be.
func SpecOf(source Source, vm model.VM) (model.VMSpec, error) { return SpecIn(source, vm, nil) }

// SpecIn is SpecOf with the disks that are not made yet in the pools that were chosen for them.
func SpecIn(source Source, vm model.VM, pools []placement.PoolChoice) (model.VMSpec, error) {
	spec, err := assemble(source, vm, pools)
	if err != nil {
		return model.VMSpec{}, err
	}
	if err := model.ValidateSpec(spec); err != nil {
		return model.VMSpec{}, fmt.Errorf("vm/%s with what it links to: %w", vm.Name, err)
	}
	return spec, nil
}

// assemble is SpecIn before the whole is checked.
func assemble(source Source, vm model.VM, pools []placement.PoolChoice) (model.VMSpec, error) {
	spec := vm.Spec
	if spec.XML != "" {
		return spec, nil
	}
	w, subject := &walk{source: source}, schema.Ref(model.KindVM, vm.Name)
	disks := make([]model.Disk, 0, len(vm.Disks)+len(spec.Disks)+1)
	for _, id := range vm.Disks {
		record := w.follow(subject, "disk", model.KindDisk, id)
		disk := diskOf(record)
		if record.ID != "" && IsVolume(&record) {
			order := w.madeIn(&record, pools)
			disk.Format, disk.Pool, disk.Volume = order.Format, order.PoolName, order.Name
		}
		if disk.Volume != "" && attachedTo(&vm, disk.Volume) {
			continue
		}
		disks = append(disks, disk)
	}
	disks = append(disks, spec.Disks...)
	if image := w.follow(subject, schema.LinkImage, model.KindImage, vm.Image); image.Settings[schema.SettingPath] != "" {
		disk := diskOf(image)
		disk.ReadOnly = true
		disks = append(disks, disk)
	}
	networks := w.attached(&vm)
	if w.err != nil {
		return model.VMSpec{}, w.err
	}
	if len(disks) > 0 {
		spec.Disks = disks
	}
	if len(networks) > 0 {
		spec.Networks = networks
	}
	return spec, nil
}

// attachedTo tells whether somebody has attached a volume to the guest of a VM with Berth. That gives it the same name at each start.
func attachedTo(vm *model.VM, volume string) bool {
	return slices.ContainsFunc(vm.Edits(), func(e model.DeviceEdit) bool { return e.By != "" && e.Was == "" && e.Source.Volume == volume })
}

// madeIn is the volume of a disk where it is, or where it is to be made.
func (w *walk) madeIn(record *model.Resource, pools []placement.PoolChoice) model.VolumeOrder {
	choice := chosen(pools, record.ID)
	if record.Volume != nil {
		choice = placement.PoolChoice{Pool: record.Volume.Pool}
	}
	if choice.Pool == "" && w.err == nil {
		w.err = fmt.Errorf("%s has %w yet: the first start of its VM makes it", schema.Ref(record.Kind, record.Name), ErrNoVolume)
	}
	return w.order(record, choice)
}

// attached are the networks of a VM: those of its NICs before the plain ones.
func (w *walk) attached(vm *model.VM) []string {
	if len(vm.NICs)+len(vm.Spec.Networks) == 0 {
		return nil
	}
	networks := make([]string, 0, len(vm.NICs)+len(vm.Spec.Networks))
	for _, id := range vm.NICs {
		network := w.link(w.follow(schema.Ref(model.KindVM, vm.Name), "NIC", model.KindNIC, id), schema.LinkNetwork, model.KindNetwork)
		networks = append(networks, network.Settings[schema.SettingSource])
	}
	return append(networks, vm.Spec.Networks...)
}

func diskOf(record model.Resource) model.Disk {
	disk := model.Disk{
		Path: record.Settings[schema.SettingPath], Format: record.Settings[schema.SettingFormat], Bus: record.Settings[schema.SettingBus],
	}
	if disk.Bus == "" {
		disk.Bus = schema.DefaultBus
	}
	return disk
}

// walk follows links and keeps the first that leads nowhere.
type walk struct {
	source Source
	layers []key.Layer
	err    error
}

// follow finds what a link leads to. An empty ID is no link.
func (w *walk) follow(subject, link string, kind model.Kind, id string) model.Resource {
	if id == "" || w.err != nil {
		return model.Resource{}
	}
	found, ok := w.source.Resource(id)
	if !ok || found.Kind != kind {
		w.err = fmt.Errorf("%s: its %s, the %s with ID %s, %w", subject, link, kind, id, ErrDangling)
		return model.Resource{}
	}
	return found
}

func (w *walk) link(from model.Resource, link string, kind model.Kind) model.Resource {
	return w.follow(schema.Ref(from.Kind, from.Name), link, kind, from.Links[link])
}

func (w *walk) offerOf(from model.Resource) model.Resource {
	return w.link(from, schema.LinkOffer, model.KindOffer)
}

func (w *walk) level(level key.Level, from model.Resource) {
	w.layer(key.Layer{Level: level, Resource: schema.Ref(from.Kind, from.Name), Keys: from.Keys})
}

func (w *walk) layer(layer key.Layer) {
	if len(layer.Keys) > 0 {
		w.layers = append(w.layers, layer)
	}
}

func firstOf(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}
