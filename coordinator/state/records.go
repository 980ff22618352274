package state

import (
	"iter"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/state/naming"
)

// Records are what is there at one moment: nodes, VMs, what people declare, and coordinators. Who may come in is Access.
type Records struct{ tables }

// Nodes are all nodes, by ID.
func (r Records) Nodes() []model.Node { return list(r.tables, string(Nodes), byID, "", cloneNode) }

// Node is the node with this ID.
func (r Records) Node(id string) (model.Node, bool) {
	return one(r.tables, string(Nodes), byID, id, cloneNode)
}

// NodeByName is the node with this name.
func (r Records) NodeByName(name string) (model.Node, bool) {
	return one(r.tables, string(Nodes), byName, name, cloneNode)
}

// NodeByHostUUID is a node whose libvirt has this host UUID.
func (r Records) NodeByHostUUID(uuid string) (model.Node, bool) {
	return one(r.tables, string(Nodes), byHost, uuid, cloneNode)
}

// NodeByMachineID is a node of the machine with this ID.
func (r Records) NodeByMachineID(id string) (model.Node, bool) {
	return one(r.tables, string(Nodes), byMachine, id, cloneNode)
}

// SharedNodes walks all nodes, by ID. The records are the state's own, and nobody changes them.
func (r Records) SharedNodes() iter.Seq[*model.Node] {
	return each[model.Node](r.tables, string(Nodes), byID, "")
}

// SharedNodesFrom is SharedNodes by name, of those that have this name or come after it.
func (r Records) SharedNodesFrom(name string) iter.Seq[*model.Node] {
	return since[model.Node](r.tables, string(Nodes), byName, name)
}

// HasNode tells whether there is a node with this ID.
func (r Records) HasNode(id string) bool {
	_, there := get[model.Node](r.tables, string(Nodes), id)
	return there
}

// SharedNode is the node with this ID, nil if there is none. Nobody changes it.
func (r Records) SharedNode(id string) *model.Node {
	node, _ := get[model.Node](r.tables, string(Nodes), id)
	return node
}

// CountNodes is how many nodes there are.
func (r Records) CountNodes() int { return r.count(string(Nodes)) }

// NodeByRef is the node with this ID, or else with this name.
func (r Records) NodeByRef(ref string) (model.Node, bool) {
	return either("node", ref, r.Node, r.NodeByName)
}

// VMs are all VMs, by name.
func (r Records) VMs() []model.VM { return list(r.tables, string(VMs), byName, "", cloneVM) }

// VMsMarked are the VMs that have a mark, by ID.
func (r Records) VMsMarked(mark model.Mark) []model.VM {
	return list(r.tables, string(VMs), byMark, text(string(mark)), cloneVM)
}

// SharedVMsMarked walks the VMs that have a mark, by ID. Nobody changes them.
func (r Records) SharedVMsMarked(mark model.Mark) iter.Seq[*model.VM] {
	return each[model.VM](r.tables, string(VMs), byMark, text(string(mark)))
}

// SharedVMs walks all VMs, by name. The records are the state's own, and nobody changes them: who wants to asks for a copy by VM.
func (r Records) SharedVMs() iter.Seq[*model.VM] {
	return each[model.VM](r.tables, string(VMs), byName, "")
}

// SharedVMsFrom is SharedVMs of those that have this name or come after it.
func (r Records) SharedVMsFrom(name string) iter.Seq[*model.VM] {
	return since[model.VM](r.tables, string(VMs), byName, name)
}

// CountVMs is how many VMs there are.
func (r Records) CountVMs() int { return r.count(string(VMs)) }

// SharedVM is the VM with this ID, nil if there is none. Nobody changes it.
func (r Records) SharedVM(id string) *model.VM {
	vm, _ := get[model.VM](r.tables, string(VMs), id)
	return vm
}

// SharedVMsOn walks the VMs that the node with this ID holds, by name. Nobody changes them.
func (r Records) SharedVMsOn(node string) iter.Seq[*model.VM] {
	return each[model.VM](r.tables, string(VMs), byHolder, text(node))
}

// VM is the VM with this ID.
func (r Records) VM(id string) (model.VM, bool) { return one(r.tables, string(VMs), byID, id, cloneVM) }

// VMByName is the VM with this name.
func (r Records) VMByName(name string) (model.VM, bool) {
	return one(r.tables, string(VMs), byName, name, cloneVM)
}

// VMByRef is the VM with this ID, or else with this name.
func (r Records) VMByRef(ref string) (model.VM, bool) { return either("vm", ref, r.VM, r.VMByName) }

// VMsOn are the VMs that the node with this ID holds, by name.
func (r Records) VMsOn(node string) []model.VM {
	if node == "" {
		return nil
	}
	return list(r.tables, string(VMs), byHolder, text(node), cloneVM)
}

// VMsLinkedTo are the VMs that name the resource with this ID.
func (r Records) VMsLinkedTo(resource string) []model.VM {
	if resource == "" || strings.ContainsRune(resource, 0) {
		return nil
	}
	return list(r.tables, string(VMs), byLink, text(resource), cloneVM)
}

// SharedVMsWithDisk are the VMs that name a disk themselves; see operation.DiskName.
func (r Records) SharedVMsWithDisk(name string) iter.Seq[*model.VM] {
	return each[model.VM](r.tables, string(VMs), byDisk, text(name))
}

// LastEpoch is the highest epoch that a VM with this ID has had, a deleted one included; 0 if there was none. A VM that
// is made with a used ID has to go on from there.
func (r Records) LastEpoch(vm string) uint64 { return r.lastEpoch(vm) }

func (t tables) lastEpoch(vm string) uint64 {
	if row, ok := get[model.VM](t, string(VMs), vm); ok {
		return row.EpochsGiven()
	}
	if row, ok := get[epochRow](t, tableEpochs, vm); ok {
		return row.Epoch
	}
	return 0
}

// Resources are all resources of a kind, by name.
func (r Records) Resources(kind model.Kind) []model.Resource {
	return list(r.tables, string(Resources), byName, naming.OfResource(kind, ""), cloneResource)
}

// Clusters are the declared clusters, by name.
func (r Records) Clusters() []model.Resource { return r.Resources(model.KindCluster) }

// Groups are all groups, by name.
func (r Records) Groups() []model.Resource { return r.Resources(model.KindGroup) }

// Resource is the resource with this ID.
func (r Records) Resource(id string) (model.Resource, bool) {
	return one(r.tables, string(Resources), byID, id, cloneResource)
}

// ResourceByName is the resource of a kind with this name.
func (r Records) ResourceByName(kind model.Kind, name string) (model.Resource, bool) {
	return one(r.tables, string(Resources), byName, naming.OfResource(kind, name), cloneResource)
}

// Members are all coordinators, by name.
func (r Records) Members() []model.Member {
	return list(r.tables, string(Members), byName, "", copied[model.Member])
}

// Member is the coordinator with this ID.
func (r Records) Member(id string) (model.Member, bool) {
	return one(r.tables, string(Members), byID, id, copied[model.Member])
}

// MemberByName is the coordinator with this name.
func (r Records) MemberByName(name string) (model.Member, bool) {
	return one(r.tables, string(Members), byName, name, copied[model.Member])
}

// Meta is the value of this key; empty if it has none.
func (r Records) Meta(key string) string {
	row, _ := one(r.tables, string(Meta), byID, key, copied[metaRow])
	return row.Value
}

// MetaUnder are the keys that begin like this, in order.
func (r Records) MetaUnder(prefix string) (keys []string) {
	for row := range each[metaRow](r.tables, string(Meta), byID, prefix) {
		keys = append(keys, row.Key)
	}
	return keys
}

// MetaRevision is what a change of a value has to expect; 0 when it is not there.
func (r Records) MetaRevision(key string) uint64 {
	row, _ := one(r.tables, string(Meta), byID, key, copied[metaRow])
	return row.Revision
}
