package estate

import (
	"cmp"
	"fmt"
	"slices"

	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/placement"
	"berth/coordinator/placement/planner"
	"berth/shared/units"
)

// FleetOf is one cluster as balancing, repairs and drains look at it: the records of the facts joined with the view. Recent
// are its plans, newest first. Seed and History are the caller's to add. The error says what of the estate does not hold
// together.
func FleetOf(facts Facts, view *cluster.View, clusterName string, recent []cluster.Plan) (*balance.Fleet, error) {
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
	settings := cluster.SettingsOf(&record)
	fleet := &balance.Fleet{
		At: view.At, Cluster: clusterName, View: view, Settings: settings, Policy: policy, Balancer: balancer,
		Groups: GroupsOf(facts, clusterName), Recent: recent,
		DrainIgnoresVMRules: Effective(&linked, policyForm.setting(SettingDrainIgnores)) == "true",
		DisperseAccounts:    Effective(&linked, policyForm.setting(SettingDisperse)) == "true",
	}
	f := &fleetMaker{facts: facts, local: settings.Storage == cluster.LocalStorage, records: make(map[string]*cluster.VM)}
	f.planner = cmp.Or(w.plannerOf(cluster.Resource{}, record), policy.Planner)
	if w.err != nil {
		return nil, w.err
	}
	f.unbalanced = make(map[string]bool)
	for i := range fleet.Groups {
		if group := &fleet.Groups[i]; group.Unbalanced {
			for _, vm := range group.VMs {
				f.unbalanced[vm] = true
			}
		}
	}
	vms := facts.VMs()
	for i := range vms {
		vm := &vms[i]
		if node := view.Node(vm.Holder); node != nil && cmp.Or(node.Node.Cluster, cluster.DefaultCluster) == clusterName {
			f.records[vm.ID] = vm
			fleet.VMs = append(fleet.VMs, f.vm(vm, node))
		}
	}
	slices.SortFunc(fleet.VMs, func(a, b balance.VM) int { return cmp.Compare(a.ID, b.ID) })
	fleet.Ask = func(id string, purpose placement.Purpose) (placement.Request, error) { return f.ask(view, id, purpose) }
	return fleet, nil
}

// namedCluster is the record of a cluster by name. The default one is there without being declared.
func (w *walk) namedCluster(name string) cluster.Resource {
	if declared, ok := w.source.ResourceByName(cluster.KindCluster, name); ok {
		return declared
	}
	if name != cluster.DefaultCluster {
		w.err = fmt.Errorf("%s %w", ref(cluster.KindCluster, name), ErrDangling)
		return cluster.Resource{}
	}
	return cluster.DefaultClusterRecord()
}

type fleetMaker struct {
	facts      Facts
	local      bool   // the cluster has local storage
	planner    string // of VMs whose offer names none
	records    map[string]*cluster.VM
	unbalanced map[string]bool // VMs that a group keeps balancing away from
}

func (f *fleetMaker) vm(record *cluster.VM, node *cluster.NodeView) balance.VM {
	vm := balance.VM{
		ID: record.ID, Name: record.Name, Node: node.Node.ID, NodeName: node.Node.Name,
		Busy: f.busy(record, node), Migration: record.Migration, MovedAt: record.MovedAt,
		Unbalanced: node.Node.Unbalanced || f.unbalanced[record.ID],
	}
	if customer, known := f.facts.Resource(record.Owner.Customer); known {
		vm.Owner = customer.Name
	}
	offer, _ := f.facts.Resource(record.Offer)
	by, _ := planner.ByName(cmp.Or(offer.Settings[cluster.SettingPlanner], f.planner))
	vm.Concentrated = by.Together
	vm.Memory, vm.VCPUs = runningSize(record, node)
	if domain := domainOf(record.ID, node); domain != nil && domain.CPU != nil {
		vm.CPU, vm.CPUKnown = *domain.CPU, true
	}
	return vm
}

// busy says why a VM cannot move now; empty: it can.
func (f *fleetMaker) busy(vm *cluster.VM, node *cluster.NodeView) string {
	domain, local := domainOf(vm.ID, node), f.localDisk(vm)
	switch {
	case f.local:
		return "its disk is on " + node.Node.Name + ": nothing moves in a cluster with local storage"
	case local != "":
		return fmt.Sprintf("its disk %s of %s", local, node.Node.Name)
	case vm.Operation != "":
		return "an operation works on it"
	case node.Facts.Liveness != cluster.Up:
		return fmt.Sprintf("%s is %s: %s", node.Node.Name, node.Facts.Liveness, node.Facts.LivenessReason)
	case domain == nil && !node.Facts.DomainsKnown:
		return "" // the source's agent will look before it acts
	case domain == nil:
		return node.Node.Name + " does not show it"
	case domain.State != cluster.DomainRunning:
		return fmt.Sprintf("it is %s on %s (%s)", domain.State, node.Node.Name, domain.Reason)
	default:
		return ""
	}
}

// localDisk is a disk of a VM that only its node has, and where it is, in words; empty: other nodes see all of them.
func (f *fleetMaker) localDisk(vm *cluster.VM) string {
	for _, id := range vm.Disks {
		disk, known := f.facts.Resource(id)
		if !known || disk.Volume == nil {
			continue
		}
		if pool, known := f.facts.Resource(disk.Volume.Pool); known && pool.Settings[cluster.SettingScope] == string(cluster.PoolLocal) {
			return fmt.Sprintf("%s is in the local pool %s", disk.Name, pool.Name)
		}
	}
	return ""
}

// ask is the request for a VM as large as it runs: its record may have been given another size for its next start.
func (f *fleetMaker) ask(view *cluster.View, id string, purpose placement.Purpose) (placement.Request, error) {
	vm := f.records[id]
	if vm == nil {
		return placement.Request{}, fmt.Errorf("no node of the cluster holds a VM with ID %s", id)
	}
	resolved, err := Resolve(f.facts, *vm)
	if err != nil {
		return placement.Request{}, err
	}
	request := Request(resolved, *vm, purpose)
	request.Memory, request.VCPUs = runningSize(vm, view.Node(vm.Holder))
	return request, nil
}

// runningSize is the larger of what the record says and what the node shows, as in the ledgers.
func runningSize(vm *cluster.VM, node *cluster.NodeView) (memory units.Bytes, vcpus int) {
	memory, vcpus = vm.Spec.Memory, vm.Spec.VCPUs
	if domain := domainOf(vm.ID, node); domain != nil {
		memory, vcpus = max(memory, domain.Memory), max(vcpus, domain.VCPUs)
	}
	return memory, vcpus
}

// domainOf finds a VM among what its node shows; nil if it is not there.
func domainOf(id string, node *cluster.NodeView) *cluster.Domain {
	domains := node.Facts.Domains
	at, shown := slices.BinarySearchFunc(domains, id, func(d cluster.Domain, id string) int { return cmp.Compare(d.UUID, id) })
	if !shown {
		return nil
	}
	return &domains[at]
}
