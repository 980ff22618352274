// Package evidence judges what is known about where a VM may run: which nodes are proven to be off, what has become of a VM
// that somebody else has touched, which copies are too many, which VMs may be started again, and which nodes must be proven off
// first.
//
// It is pure: records, reports of nodes and spans of time go in, verdicts come out. Nothing in it waits, sends, commits or reads
// a clock, so that the leader and the simulator judge alike. Absence is never evidence by itself: a node that is silent, or that
// has not listed its domains, proves nothing.
package evidence

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/shared/units"
)

// Records are the hard facts of one moment. A snapshot of the state has them.
type Records interface {
	Node(id string) (model.Node, bool)
	Nodes() []model.Node
	SharedNodes() iter.Seq[*model.Node] // as SharedVMs
	SharedNode(id string) *model.Node   // nil if there is none
	Clusters() []model.Resource
	Resource(id string) (model.Resource, bool)
	Resources(kind model.Kind) []model.Resource
	VM(id string) (model.VM, bool)
	VMs() []model.VM
	VMsMarked(mark model.Mark) []model.VM
	SharedVMs() iter.Seq[*model.VM] // of the records themselves: nobody changes them
	SharedVM(id string) *model.VM   // nil if there is none
	SharedVMsOn(node string) iter.Seq[*model.VM]
	SharedVMsWithDisk(name string) iter.Seq[*model.VM] // as operation.DiskName has it
	VMsOn(node string) []model.VM
	Operations() []operation.Operation
	LiveOperations() []operation.Operation
	LiveOperationOf(vm string) (operation.Operation, bool)
	Meta(key string) string
}

// Moment is all that a leader knows at one time: the records, and what the nodes have told it.
type Moment struct {
	Records
	At    time.Time
	Facts func(node string) model.NodeFacts // as of At
	// MayShow are the IDs of the nodes that list a domain of a UUID, in whatever state, or that have connected and told nothing of
	// themselves yet; others may be among them. Nil: nobody knows, so that all nodes have to be asked.
	MayShow func(uuid string) []string
	// WithDisk are the IDs of the nodes that list a domain with a disk of a file name, in whatever state; others may be among them. Nil:
	// nobody knows, as before.
	WithDisk func(name string) []string
	// Removed are the nodes that were removed and speak.
	Removed []Removed
}

// Removed is a node that was removed and speaks all the same, with the guests that it showed last.
type Removed struct {
	Node, Name string // its ID, and what people called it
	At         time.Time
	Domains    []model.Domain // that have memory; shared between readers, never changed
}

// NodeName is how people are told of a node; its ID if it is no member any more.
func (m Moment) NodeName(id string) string {
	if node, known := m.Node(id); known {
		return node.Name
	}
	return id
}

// Size is how large a VM is that runs, as in the ledgers. Its record may have been given another size for the next start.
func (m Moment) Size(vm *model.VM) (memory units.Bytes, vcpus int) {
	facts := m.Facts(vm.Holder)
	size := vm.SizeOn(facts.Domain(vm.ID))
	return size.Memory, size.VCPUs
}

// Lacks tells whether the node that should run the VM positively does not: its agent listed all domains after the VM was
// started, and it was not among them.
func (m Moment) Lacks(vm model.VM) bool {
	facts := m.Facts(vm.Holder)
	if facts.Liveness != model.Up || !facts.Inventory || !facts.DomainsKnown || !facts.InventoryAt.After(vm.StartedAt) ||
		!facts.InventoryAt.After(vm.MovedAt) {
		return false
	}
	for _, domain := range facts.Domains {
		if domain.UUID == vm.ID && domain.State.Holds() {
			return false
		}
	}
	return true
}

// strayed says which disk of a VM is recorded on another node's local pool than the one that has the VM: nobody but who moved
// it knows what its content is now. Empty: none is.
func (m Moment) strayed(vm model.VM, node model.Node) string {
	for _, id := range vm.Disks {
		disk, _ := m.Resource(id)
		if disk.Volume == nil || len(disk.Volume.Nodes) == 0 || slices.Contains(disk.Volume.Nodes, node.ID) {
			continue
		}
		return fmt.Sprintf("somebody else moved it to %s, and its disk %s is recorded on %s: move it back there before it is stopped",
			node.Name, disk.Name, m.NodeName(disk.Volume.Nodes[0]))
	}
	return ""
}
