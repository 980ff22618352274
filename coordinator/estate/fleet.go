package estate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/balance"
	"berth/coordinator/binding"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/planner"
	"berth/coordinator/schema"
	"berth/coordinator/view"
)

// FleetOf is one cluster as balancing, repairs and drains look at it: the records of the facts joined with the view. Recent are its
// plans, newest first. Seed and History are the caller's to add. The error says what of the estate does not hold together.
func FleetOf(facts Facts, view *view.View, clusterName string, recent []model.Plan) (*balance.Fleet, error) {
	var vms []*model.VM
	for _, node := range view.Nodes.All() {
		vms = slices.AppendSeq(vms, view.VMsOn(node.Node.ID))
	}
	return fleetAmong(facts, view, clusterName, recent, GroupsOf(facts, clusterName), vms)
}

// FleetForDrain is FleetOf with no more VMs than a drain of a node, by its ID, looks at: those there, and the members of all groups.
func FleetForDrain(facts Facts, view *view.View, clusterName, node string, recent []model.Plan) (*balance.Fleet, error) {
	groups, vms := GroupsOf(facts, clusterName), slices.Collect(view.VMsOn(node))
	for i := range groups {
		for _, id := range groups[i].VMs {
			if vm := view.VM(id); vm != nil {
				vms = append(vms, vm)
			}
		}
	}
	return fleetAmong(facts, view, clusterName, recent, groups, vms)
}

// fleetAmong is the fleet of some VMs, each of which may be there more than once.
func fleetAmong(
	facts Facts, view *view.View, clusterName string, recent []model.Plan, groups []model.Group, vms []*model.VM,
) (*balance.Fleet, error) {
	w := &walk{source: facts}
	record := w.namedCluster(clusterName)
	if w.err != nil {
		return nil, w.err
	}
	policy, balancer, err := PolicyOf(facts, record)
	if err != nil {
		return nil, err
	}
	linked, _ := policyRecord(facts, record) // PolicyOf has found it
	settings := model.SettingsOf(&record)
	fleet := &balance.Fleet{
		At: view.At, Cluster: clusterName, View: view, Settings: settings, Policy: policy, Balancer: balancer,
		Groups: groups, Recent: recent,
		DrainIgnoresVMRules: Effective(&linked, schema.PolicyForm.Setting(schema.SettingDrainIgnores)) == "true",
		DisperseAccounts:    Effective(&linked, schema.PolicyForm.Setting(schema.SettingDisperse)) == "true",
	}
	f := &fleetMaker{facts: facts, cluster: clusterName, local: settings.Storage == model.LocalStorage, unbalanced: map[string]bool{}}
	f.planner = cmp.Or(w.plannerOf(model.Resource{}, record), policy.Planner)
	if w.err != nil {
		return nil, w.err
	}
	for i := range fleet.Groups {
		if group := &fleet.Groups[i]; group.Unbalanced {
			for _, vm := range group.VMs {
				f.unbalanced[vm] = true
			}
		}
	}
	for _, vm := range vms {
		if node := f.holder(view, vm); node != nil {
			fleet.VMs = append(fleet.VMs, f.vm(vm, node))
		}
	}
	slices.SortFunc(fleet.VMs, func(a, b balance.VM) int { return cmp.Compare(a.ID, b.ID) })
	fleet.VMs = slices.CompactFunc(fleet.VMs, func(a, b balance.VM) bool { return a.ID == b.ID })
	fleet.Ask = func(id string, purpose placement.Purpose) (placement.Request, error) { return f.ask(view, id, purpose) }
	return fleet, nil
}

// namedCluster is the record of a cluster by name.
func (w *walk) namedCluster(name string) model.Resource {
	record, known := ClusterNamed(w.source, name)
	if !known {
		w.err = fmt.Errorf("%s %w", schema.Ref(model.KindCluster, name), ErrDangling)
	}
	return record
}

// ClusterNamed is the record of a cluster. The default one is there without being declared.
func ClusterNamed(source Source, name string) (model.Resource, bool) {
	if declared, known := source.ResourceByName(model.KindCluster, name); known {
		return declared, true
	}
	if name != model.DefaultCluster {
		return model.Resource{}, false
	}
	return model.DefaultClusterRecord(), true
}

// ClusterNames are those of all clusters, the default one among them, ascending.
func ClusterNames(facts Facts) []string {
	names := []string{model.DefaultCluster}
	for _, record := range facts.Resources(model.KindCluster) {
		names = append(names, record.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

type fleetMaker struct {
	facts      Facts
	cluster    string
	local      bool            // the cluster has local storage
	planner    string          // of VMs whose offer names none
	unbalanced map[string]bool // VMs that a group keeps balancing away from
}

// holder is the node of the cluster that holds a VM; nil: none does.
func (f *fleetMaker) holder(view *view.View, vm *model.VM) *view.NodeView {
	if node := view.Node(vm.Holder); node != nil && node.Node.ClusterName() == f.cluster {
		return node
	}
	return nil
}

func (f *fleetMaker) vm(record *model.VM, node *view.NodeView) balance.VM {
	vm := balance.VM{
		ID: record.ID, Name: record.Name, Node: node.Node.ID, NodeName: node.Node.Name,
		Busy: f.busy(record, node), Migration: record.Migration, MovedAt: record.MovedAt,
		Unbalanced: node.Node.Unbalanced || f.unbalanced[record.ID],
	}
	if customer, known := f.facts.Resource(record.Owner.Customer); known {
		vm.Owner = customer.Name
	}
	offer, _ := f.facts.Resource(record.Offer)
	by, _ := planner.ByName(cmp.Or(offer.Settings[model.SettingPlanner], f.planner))
	vm.Concentrated = by.Together
	size := record.SizeOn(domainOf(record.ID, node))
	vm.Memory, vm.VCPUs = size.Memory, size.VCPUs
	if domain := domainOf(record.ID, node); domain != nil && domain.CPU != nil {
		vm.CPU, vm.CPUKnown = *domain.CPU, true
	}
	return vm
}

// busy says why a VM cannot move now; empty: it can.
func (f *fleetMaker) busy(vm *model.VM, node *view.NodeView) string {
	domain, local := domainOf(vm.ID, node), f.localDisk(vm)
	switch {
	case f.local:
		return "its disk is on " + node.Node.Name + ": nothing moves in a cluster with local storage"
	case vm.Bound != "" && binding.Lacks(f.facts, vm, f.cluster) == "":
		return "a disk of it is on " + node.Node.Name + " alone, as far as is known"
	case local != "":
		return fmt.Sprintf("its disk %s of %s", local, node.Node.Name)
	case vm.Operation != "":
		return "an operation works on it"
	case node.Facts.Liveness != model.Up:
		return fmt.Sprintf("%s is %s: %s", node.Node.Name, node.Facts.Liveness, node.Facts.LivenessReason)
	case domain == nil && !node.Facts.DomainsKnown:
		return "" // the source's agent will look before it acts
	case domain == nil:
		return node.Node.Name + " does not show it"
	case domain.State != model.DomainRunning:
		return fmt.Sprintf("it is %s on %s (%s)", domain.State, node.Node.Name, domain.Reason)
	case len(domain.Bindings) == 0 && vm.Bound == "":
		return ""
	}
	if texts := binding.Texts(vm.Name, binding.Of(f.facts, vm, f.cluster, &node.Facts)); len(texts) > 0 {
		return "it " + strings.Join(texts, "; it ")
	}
	return ""
}

// localDisk is a disk of a VM that only its node has, and where it is, in words; empty: other nodes see all of them.
func (f *fleetMaker) localDisk(vm *model.VM) string {
	for _, id := range vm.Disks {
		disk, known := f.facts.Resource(id)
		if !known || disk.Volume == nil {
			continue
		}
		if pool, known := f.facts.Resource(disk.Volume.Pool); known && pool.Settings[model.SettingScope] == string(model.PoolLocal) {
			return fmt.Sprintf("%s is in the local pool %s", disk.Name, pool.Name)
		}
	}
	return ""
}

// ask is the request for a VM as large as it runs: its record may have been given another size for its next start.
func (f *fleetMaker) ask(view *view.View, id string, purpose placement.Purpose) (placement.Request, error) {
	vm := view.VM(id)
	if vm == nil || f.holder(view, vm) == nil {
		return placement.Request{}, fmt.Errorf("no node of the cluster holds a VM with ID %s", id)
	}
	resolved, err := Resolve(f.facts, *vm)
	if err != nil {
		return placement.Request{}, err
	}
	request := Request(resolved, *vm, purpose)
	node := view.Node(vm.Holder)
	size := vm.SizeOn(domainOf(id, node))
	request.Memory, request.VCPUs = size.Memory, size.VCPUs
	request.Apart = binding.Apart(f.facts, view.Apart(), vm, f.cluster)
	request.Bindings = binding.Texts(vm.Name, binding.Of(f.facts, vm, f.cluster, &node.Facts))
	return request, nil
}

// domainOf finds a VM among what its node shows; nil if it is not there.
func domainOf(id string, node *view.NodeView) *model.Domain {
	domains := node.Facts.Domains
	at, shown := slices.BinarySearchFunc(domains, id, func(d model.Domain, id string) int { return cmp.Compare(d.UUID, id) })
	if !shown {
		return nil
	}
	return &domains[at]
}
