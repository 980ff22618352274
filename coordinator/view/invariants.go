package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"berth/coordinator/model"
	"berth/shared/units"
)

// CheckRecords tells every way in which replicated records contradict each other; nil when they agree. These hold after
// every command, so tests and simulations call it after every step.
func CheckRecords(nodes []model.Node, vms []model.VM, reservations []model.Reservation) error {
	var broken []error
	report := func(format string, a ...any) { broken = append(broken, fmt.Errorf(format, a...)) }

	nodeIDs, nodeNames := make(map[string]bool), make(map[string]string)
	for _, node := range nodes {
		if nodeIDs[node.ID] {
			report("node ID %s is there twice", node.ID)
		}
		if other, taken := nodeNames[node.Name]; taken {
			report("nodes %s and %s are both called %s", other, node.ID, node.Name)
		}
		nodeIDs[node.ID], nodeNames[node.Name] = true, node.ID
		if err := errors.Join(model.ValidateName("node", node.Name), model.ValidateSettings(node.Settings)); err != nil {
			report("node %s: %w", node.ID, err)
		}
		for name, value := range node.Keys {
			if err := model.ValidateKeyFigure("key "+name, value); err != nil {
				report("node %s: %w", node.ID, err)
			}
		}
	}
	vmIDs, vmNames, parts := make(map[string]bool), make(map[string]string), make(map[string]string)
	for _, vm := range vms {
		if vmIDs[vm.ID] {
			report("VM ID %s is there twice", vm.ID)
		}
		if other, taken := vmNames[vm.Name]; taken {
			report("VMs %s and %s are both called %s", other, vm.ID, vm.Name)
		}
		vmIDs[vm.ID], vmNames[vm.Name] = true, vm.ID
		if err := errors.Join(model.ValidateName("VM", vm.Name), model.ValidateSpec(vm.Spec)); err != nil {
			report("VM %s: %w", vm.ID, err)
		}
		for _, key := range slices.Concat(vm.Keys, vm.Sticky) {
			if err := model.ValidateKey(model.KindVM, key); err != nil {
				report("VM %s: %w", vm.ID, err)
			}
		}
		for _, part := range slices.Concat(vm.Disks, vm.NICs) {
			if other, taken := parts[part]; taken {
				report("VMs %s and %s both have resource %s", other, vm.ID, part)
			}
			parts[part] = vm.ID
		}
		if vm.Desired != model.Running && vm.Desired != model.Stopped {
			report("VM %s is wanted %q", vm.ID, vm.Desired)
		}
		if vm.Holder != "" && !nodeIDs[vm.Holder] {
			report("VM %s is held by node %s, which does not exist", vm.ID, vm.Holder)
		}
		if vm.Holder != "" && vm.Epoch == 0 {
			report("VM %s is held by node %s without an epoch", vm.ID, vm.Holder)
		}
	}
	operations := make(map[string]string)
	for _, held := range reservations {
		if !nodeIDs[held.Node] {
			report("operation %s reserves on node %s, which does not exist", held.Operation, held.Node)
		}
		if !vmIDs[held.VM] {
			report("operation %s reserves for VM %s, which does not exist", held.Operation, held.VM)
		}
		if other, taken := operations[held.VM]; taken {
			report("operations %s and %s both reserve for VM %s", other, held.Operation, held.VM)
		}
		operations[held.VM] = held.Operation
	}
	return errors.Join(broken...)
}

// Check tells every way in which the view contradicts itself or shows what must never be; nil when all is well. A VM
// that runs on two nodes at once is what must never be.
func (v *View) Check() error {
	var broken []error
	report := func(format string, a ...any) { broken = append(broken, fmt.Errorf(format, a...)) }

	runs := make(map[string]string)
	for i, node := range v.Nodes.All() {
		if i > 0 && v.Nodes.At(i-1).Node.ID >= node.Node.ID {
			report("nodes %s and %s are not in order", v.Nodes.At(i-1).Node.ID, node.Node.ID)
		}
		if err := node.check(); err != nil {
			report("node %s: %w", node.Node.ID, err)
		}
		for _, domain := range node.Facts.Domains {
			if domain.State != model.DomainRunning {
				continue
			}
			if other, twice := runs[domain.UUID]; twice {
				report("VM %s runs on node %s and on node %s", domain.UUID, other, node.Node.ID)
			}
			runs[domain.UUID] = node.Node.ID
		}
	}
	return errors.Join(broken...)
}

func (n *NodeView) check() error {
	var broken []error
	var promised, charged units.Bytes
	vcpus := 0
	for i := range n.Allocations {
		one := &n.Allocations[i]
		if i > 0 && n.Allocations[i-1].VM >= one.VM {
			broken = append(broken, fmt.Errorf("VM %s is counted out of order or twice", one.VM))
		}
		promised, charged = add(promised, one.Memory), add(charged, one.physicalCharge())
		vcpus += one.VCPUs
	}
	if promised != n.PromisedUsed {
		broken = append(broken, fmt.Errorf("%v are promised, its VMs add up to %v", n.PromisedUsed, promised))
	}
	if vcpus != n.VCPUsUsed {
		broken = append(broken, fmt.Errorf("%d vCPUs are used, its VMs add up to %d", n.VCPUsUsed, vcpus))
	}
	if n.PhysicalKnown && n.PhysicalFree < add(add(*n.Facts.Available, -n.Borrowed), -charged) {
		broken = append(broken, fmt.Errorf("%v physically free, less than %v available minus %v borrowed and %v charged",
			n.PhysicalFree, *n.Facts.Available, n.Borrowed, charged))
	}
	if !slices.IsSortedFunc(n.Facts.Domains, func(a, b model.Domain) int { return cmp.Compare(a.UUID, b.UUID) }) {
		broken = append(broken, errors.New("its domains are not sorted by UUID"))
	}
	return errors.Join(broken...)
}
