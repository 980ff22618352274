package adoption

import (
	"context"
	"fmt"

	"berth/coordinator/admission"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/drift"
	"berth/coordinator/estate"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/state"
	"berth/shared/domxml"
	"berth/shared/domxml/guard"
	"berth/shared/units"
)

// described is the record of a domain, as its node describes it, with what its owner should know.
func (a *Adoption) described(ctx context.Context, request AdoptVMs, one evidence.Copy) (vm model.VM, note string, err error) {
	limited, cancel := context.WithTimeout(ctx, lead.AskLimit)
	defer cancel()
	done, err := a.Agents.Perform(limited, one.Node, lead.Task{Describe: one.Domain.UUID})
	if err != nil {
		return vm, "", problemf(fmt.Sprintf("see 'virsh dumpxml %s' on %s", model.Argument(one.Domain.Name), one.Name), "%v", err)
	}
	text, err := domxml.WithoutMark(done.DomainXML)
	if err != nil {
		return vm, "", problemf("this is a defect of berth: please report it with the domain's XML", "%v", err)
	}
	info, err := domxml.Parse(text)
	if err != nil {
		return vm, "", problemf(fmt.Sprintf("see 'virsh dumpxml %s' on %s", model.Argument(one.Domain.Name), one.Name), "%v", err)
	}
	vm = model.VM{
		ID: one.Domain.UUID, Name: one.Domain.Name, Desired: model.Running, CreatedAt: a.Now(), StartedAt: one.Domain.Since,
		Spec: model.VMSpec{Memory: units.Bytes(info.MemoryBytes), VCPUs: info.VCPUs, XML: text},
		VDC:  request.VDC, Adopted: true, Persistent: one.Domain.Persistent,
	}
	if info.Passthrough {
		vm.CPU, vm.PassedCPU = model.CPUHostPassthrough, a.Inventory.Facts(one.Node, a.Now()).HostCPU
	}
	if err := model.ValidateName("VM", vm.Name); err != nil {
		return vm, "", problemf("shut it down, rename it with 'virsh domrename', and start it", "%v", err)
	}
	if err := model.ValidateSpec(vm.Spec); err != nil {
		return vm, "", problemf(fmt.Sprintf("see 'virsh dumpxml %s' on %s", model.Argument(one.Domain.Name), one.Name), "%v", err)
	}
	snapshot := a.Store.Snapshot()
	node, _ := snapshot.Node(one.Node)
	facts := a.Inventory.Facts(one.Node, a.Now())
	local, err := drift.LocalDisk(snapshot, &vm, node.ClusterName(), &facts)
	if err != nil {
		return vm, "", problemf(fmt.Sprintf("see 'virsh dumpxml %s' on %s", model.Argument(one.Domain.Name), one.Name), "%v", err)
	}
	permitted := admission.Permitted(snapshot, func(id string) model.NodeFacts { return a.Inventory.Facts(id, a.Now()) }, node.ClusterName())
	found, err := admission.Spec(&vm.Spec, permitted)
	if err != nil {
		return vm, "", problemf(fmt.Sprintf("see 'virsh dumpxml %s' on %s", model.Argument(one.Domain.Name), one.Name), "%v", err)
	}
	if err := mayGive(request, &vm, permitted, found); err != nil {
		return vm, "", err
	}
	if len(found) > 0 {
		vm.Needs, vm.Bound = guard.Join(guard.Needs(found)), one.Node
		note = fmt.Sprintf("it stays on its node, because no other one is to be given its document: %s; let it through with 'berth vm accept %s'",
			textOf(found), model.Argument(vm.Name))
	}
	if local != "" {
		vm.Bound = one.Node
		if snapshot.FeatureLevel() < state.DriftLevel { // nobody would keep that
			vm.Migration = model.MigrateNever
		}
		if note != "" {
			note += "; "
		}
		note += fmt.Sprintf("it stays on its node: disk %s is in no storage pool that Berth knows as shared; if all nodes see it, make a "+
			"libvirt pool of its folder on each and declare that with 'berth pool add NAME --cluster %s --scope shared'", local, node.ClusterName())
	}
	return vm, note, nil
}

// mayGive refuses a document with what the cluster permits and the caller may not put onto a host: other nodes would be given it. What the
// cluster does not permit binds the VM, whoever adopts it.
func mayGive(request AdoptVMs, vm *model.VM, permitted guard.Permitted, bound []guard.Finding) error {
	permitted.Permissions = admission.Less(permitted.Permissions, request.Lacks)
	all, err := admission.Spec(&vm.Spec, permitted)
	if err != nil {
		return err
	}
	found := admission.New(bound, all)
	if len(found) == 0 {
		return nil
	}
	needs := guard.Needs(found)
	with := admission.Less(guard.Permissions(), admission.Less(request.Lacks, needs))
	return problemf(fmt.Sprintf("have an operator adopt it who has %s, or have such a one let %s do it: 'berth identity set %s --permit %s'",
		guard.Listed(needs), request.Caller, request.Caller, guard.Join(with)),
		"other nodes would be given its document, and %s may not do that: %s", request.Caller, textOf(found))
}

// inherited completes the record of a domain that becomes a VM with what it inherits where it runs.
func (a *Adoption) inherited(snapshot *state.Snapshot, vm *model.VM, one evidence.Copy) error {
	if other, taken := snapshot.VMByName(vm.Name); taken {
		return problemf("rename one of them", "another VM is called %s (ID %s)", vm.Name, other.ID)
	}
	node, known := snapshot.Node(one.Node)
	if !known {
		return problemf("enrol the node again", "node %s was removed", one.Name)
	}
	if inside, declared := snapshot.ResourceByName(
		model.KindCluster, node.ClusterName(),
	); vm.VDC == "" && declared && inside.Name != model.DefaultCluster {
		vm.Within = inside.ID
	}
	there := *vm
	there.Holder = node.ID
	resolved, err := estate.Resolve(snapshot, there)
	if err != nil {
		return lifecycle.Unlinked(*vm, err)
	}
	if resolved.Cluster != node.ClusterName() {
		return problemf("name another VDC, or none", "its VDC is in cluster %s, and %s is in %s", resolved.Cluster, node.Name, node.ClusterName())
	}
	vm.Owner, vm.Resident = resolved.Owner, key.ResidentsOf(key.WeightedOf(resolved.Customer))
	if model.SettingsOf(&resolved.Record).Storage == model.LocalStorage {
		vm.Home = node.ID
	}
	// A VM of this UUID may have been here before, and its mark may be left: agents remember its epochs.
	vm.Epoch = max(snapshot.LastEpoch(vm.ID), one.Domain.Epoch)
	vm.LastEpoch = vm.Epoch
	return nil
}

// textOf tells the first findings of a document.
func textOf(found []guard.Finding) string {
	const most = 4
	texts := make([]string, 0, len(found))
	for i := range found {
		texts = append(texts, found[i].Text())
	}
	return units.Some(texts, most, "; ")
}
