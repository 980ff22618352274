package estate

import (
	"errors"
	"fmt"
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
)

// ErrDangling is wrapped by the error about a link to what is not there.
var ErrDangling = errors.New("does not exist")

// Resolved is what a VM inherits.
type Resolved struct {
	Cluster string           // name
	Record  cluster.Resource // of the cluster; as by default if it was never declared
	Owner   cluster.Owner

	System, Customer []key.Compiled // the two sets, each by name
	Layers           []key.Layer    // what they were compiled from, highest level first; levels without keys are left out

	Planner  string           // that its offer names, or else its cluster's zone; empty: neither does
	Disks    []placement.Disk // those that are volumes or are to become some, in their order
	Networks []string         // that its NICs are connected to, ascending, each once
}

// Resolve walks the sixteen levels above a VM and compiles its keys. It is in the cluster that it is bound to: by its VDC, or
// because it runs there or its disks are there; if it is bound to none, in the first by name of those that may take it. A VM
// of which nothing says where is in the default cluster, and one in no VDC belongs to nobody. The error wraps ErrNoCluster, or
// ErrDangling and names the link, which only a state that nothing has checked can have.
func Resolve(source Source, vm cluster.VM) (Resolved, error) {
	s := scopesOf(source)
	record, err := s.record(&vm)
	if err != nil {
		return Resolved{}, err
	}
	return resolveIn(source, vm, record)
}

// ResolveIn is Resolve in a cluster by name.
func ResolveIn(source Source, vm cluster.VM, clusterName string) (Resolved, error) {
	w := &walk{source: source}
	record := w.namedCluster(clusterName)
	if w.err != nil {
		return Resolved{}, w.err
	}
	return resolveIn(source, vm, record)
}

func resolveIn(source Source, vm cluster.VM, record cluster.Resource) (Resolved, error) {
	w := &walk{source: source}
	vdc := w.follow(ref(cluster.KindVM, vm.Name), LinkVDC, cluster.KindVDC, vm.VDC)
	customer := w.link(vdc, LinkCustomer, cluster.KindCustomer)
	billing := w.link(customer, LinkBillingEntity, cluster.KindBillingEntity)
	image := w.follow(ref(cluster.KindVM, vm.Name), LinkImage, cluster.KindImage, vm.Image)
	disk := w.follow(ref(cluster.KindVM, vm.Name), "first disk", cluster.KindDisk, firstOf(vm.Disks))
	nic := w.follow(ref(cluster.KindVM, vm.Name), "first NIC", cluster.KindNIC, firstOf(vm.NICs))
	network := w.link(nic, LinkNetwork, cluster.KindNetwork)

	w.level(key.LevelCluster, record)
	w.level(key.LevelBillingEntity, billing)
	w.level(key.LevelCustomerOffer, w.offerOf(customer))
	w.level(key.LevelCustomer, customer)
	w.level(key.LevelImageOffer, w.offerOf(image))
	w.level(key.LevelImage, image)
	w.level(key.LevelVDCOffer, w.offerOf(vdc))
	w.level(key.LevelVDC, vdc)
	vmOffer := w.follow(ref(cluster.KindVM, vm.Name), LinkOffer, cluster.KindOffer, vm.Offer)
	w.level(key.LevelServerOffer, vmOffer)
	w.layer(key.Layer{Level: key.LevelServer, Resource: ref(cluster.KindVM, vm.Name), Keys: vm.Sticky, Sticky: true})
	w.layer(key.Layer{Level: key.LevelServer, Resource: ref(cluster.KindVM, vm.Name), Keys: vm.Keys})
	w.level(key.LevelFirstDiskOffer, w.offerOf(disk))
	w.level(key.LevelFirstDisk, disk)
	w.level(key.LevelFirstNICNetworkOffer, w.offerOf(network))
	w.level(key.LevelFirstNICNetwork, network)
	w.level(key.LevelFirstNICOffer, w.offerOf(nic))
	w.level(key.LevelFirstNIC, nic)
	resolved := Resolved{
		Cluster: record.Name, Record: record,
		Owner: cluster.Owner{Customer: customer.ID, BillingEntity: billing.ID}, Layers: w.layers,
		Planner: w.plannerOf(vmOffer, record), Disks: w.volumesOf(ref(cluster.KindVM, vm.Name), &vm), Networks: w.networksOf(&vm),
	}
	if w.err != nil {
		return Resolved{}, w.err
	}
	resolved.System, resolved.Customer = key.Compile(w.layers)
	return resolved, nil
}

// Request is what placement is asked for a VM. Pins, exclusions and the least gain are the caller's to add.
func Request(resolved Resolved, vm cluster.VM, purpose placement.Purpose) placement.Request {
	request := placement.Request{
		Purpose: purpose, VM: vm.ID, VMName: vm.Name, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs,
		Cluster: resolved.Cluster, Owner: resolved.Owner,
		SystemKeys: key.WeightedOf(resolved.System), CustomerKeys: key.WeightedOf(resolved.Customer),
		Labels: vm.Labels, Preferred: vm.Preferred, HA: vm.HA,
		Planner: resolved.Planner, Disks: resolved.Disks, Networks: resolved.Networks,
	}
	if purpose.Moves() {
		request.Current = vm.Holder
		request.CPU, request.PassedCPU = model(vm.CPU), vm.PassedCPU
	} else {
		request.CPU = model(vm.Spec.CPU)
	}
	if cluster.SettingsOf(&resolved.Record).Storage == cluster.LocalStorage {
		request.Home = vm.Home
	}
	return request
}

// model is a CPU model that a node has to be able to run; none: any node passes its own CPU through.
func model(cpu string) string {
	if cpu == cluster.CPUHostPassthrough {
		return ""
	}
	return cpu
}

// SpecOf is what a VM is made of when it is started on a node: its own description with the linked disks before the plain
// ones and the linked NICs before the plain networks. An image that has a file is the last disk; VMs share it, so it is
// read-only. The seed image of a VM with user data is for its node to add. A VM that is described by XML has its devices
// from there: its links say only what keys it inherits. The error wraps ErrDangling, ErrNoVolume if a disk is not made yet, or
// cluster.ErrInvalid if the whole cannot be.
func SpecOf(source Source, vm cluster.VM) (cluster.VMSpec, error) { return SpecIn(source, vm, nil) }

// SpecIn is SpecOf with the disks that are not made yet in the pools that were chosen for them.
func SpecIn(source Source, vm cluster.VM, pools []placement.PoolChoice) (cluster.VMSpec, error) {
	spec, err := assemble(source, vm, pools)
	if err != nil {
		return cluster.VMSpec{}, err
	}
	if err := cluster.ValidateSpec(spec); err != nil {
		return cluster.VMSpec{}, fmt.Errorf("vm/%s with what it links to: %w", vm.Name, err)
	}
	return spec, nil
}

// assemble is SpecIn before the whole is checked.
func assemble(source Source, vm cluster.VM, pools []placement.PoolChoice) (cluster.VMSpec, error) {
	spec := vm.Spec
	if spec.XML != "" {
		return spec, nil
	}
	w, subject := &walk{source: source}, ref(cluster.KindVM, vm.Name)
	disks := make([]cluster.Disk, 0, len(vm.Disks)+len(spec.Disks)+1)
	for _, id := range vm.Disks {
		record := w.follow(subject, "disk", cluster.KindDisk, id)
		disk := diskOf(record)
		if record.ID != "" && IsVolume(&record) {
			order := w.madeIn(&record, pools)
			disk.Format, disk.Pool, disk.Volume = order.Format, order.PoolName, order.Name
		}
		disks = append(disks, disk)
	}
	disks = append(disks, spec.Disks...)
	if image := w.follow(subject, LinkImage, cluster.KindImage, vm.Image); image.Settings[SettingPath] != "" {
		disk := diskOf(image)
		disk.ReadOnly = true
		disks = append(disks, disk)
	}
	networks := w.attached(&vm)
	if w.err != nil {
		return cluster.VMSpec{}, w.err
	}
	if len(disks) > 0 {
		spec.Disks = disks
	}
	if len(networks) > 0 {
		spec.Networks = networks
	}
	return spec, nil
}

// madeIn is the volume of a disk where it is, or where it is to be made.
func (w *walk) madeIn(record *cluster.Resource, pools []placement.PoolChoice) cluster.VolumeOrder {
	choice := chosen(pools, record.ID)
	if record.Volume != nil {
		choice = placement.PoolChoice{Pool: record.Volume.Pool}
	}
	if choice.Pool == "" && w.err == nil {
		w.err = fmt.Errorf("%s has %w yet: the first start of its VM makes it", ref(record.Kind, record.Name), ErrNoVolume)
	}
	return w.order(record, choice)
}

// attached are the networks of a VM: those of its NICs before the plain ones.
func (w *walk) attached(vm *cluster.VM) []string {
	if len(vm.NICs)+len(vm.Spec.Networks) == 0 {
		return nil
	}
	networks := make([]string, 0, len(vm.NICs)+len(vm.Spec.Networks))
	for _, id := range vm.NICs {
		network := w.link(w.follow(ref(cluster.KindVM, vm.Name), "NIC", cluster.KindNIC, id), LinkNetwork, cluster.KindNetwork)
		networks = append(networks, network.Settings[SettingSource])
	}
	return append(networks, vm.Spec.Networks...)
}

// networksOf are the networks of a VM as placement looks at them. What a VM that is described by XML is connected to, is not
// known.
func (w *walk) networksOf(vm *cluster.VM) []string {
	if vm.Spec.XML != "" {
		return nil
	}
	networks := w.attached(vm)
	slices.Sort(networks)
	return slices.Compact(networks)
}

func diskOf(record cluster.Resource) cluster.Disk {
	disk := cluster.Disk{
		Path: record.Settings[SettingPath], Format: record.Settings[SettingFormat], Bus: record.Settings[SettingBus],
	}
	if disk.Bus == "" {
		disk.Bus = defaultBus
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
func (w *walk) follow(subject, link string, kind cluster.Kind, id string) cluster.Resource {
	if id == "" || w.err != nil {
		return cluster.Resource{}
	}
	found, ok := w.source.Resource(id)
	if !ok || found.Kind != kind {
		w.err = fmt.Errorf("%s: its %s, the %s with ID %s, %w", subject, link, kind, id, ErrDangling)
		return cluster.Resource{}
	}
	return found
}

func (w *walk) link(from cluster.Resource, link string, kind cluster.Kind) cluster.Resource {
	return w.follow(ref(from.Kind, from.Name), link, kind, from.Links[link])
}

func (w *walk) offerOf(from cluster.Resource) cluster.Resource {
	return w.link(from, LinkOffer, cluster.KindOffer)
}

func (w *walk) level(level key.Level, from cluster.Resource) {
	w.layer(key.Layer{Level: level, Resource: ref(from.Kind, from.Name), Keys: from.Keys})
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
