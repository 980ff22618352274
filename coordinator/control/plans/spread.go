package plans

import (
	"cmp"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// Spread says how a customer's VMs are spread, and names nothing.
type Spread struct {
	VMs                          int // running and on their way
	Zones, Pods, Clusters, Nodes SpreadLevel
}

// SpreadLevel is how VMs are spread over things of one kind.
type SpreadLevel struct {
	Used, Total int // those with a VM of the customer; all that its VMs may go to
	Most, Least int // VMs on one of them
}

// Spread counts how the VMs of a customer, given by ID or name, are spread over what its VDCs may use, and over all else that its VMs
// are in. A cluster in no pod counts as a pod of its own. The error is of type *lead.Error.
func (p *Plans) Spread(ref string) (Spread, error) {
	snapshot := p.Store.Snapshot()
	customer, known := snapshot.Resource(ref)
	if !known {
		customer, known = snapshot.ResourceByName(model.KindCustomer, ref)
	}
	if !known || customer.Kind != model.KindCustomer {
		return Spread{}, &lead.Error{
			Code: lead.NotFound, Subject: "customer/" + ref, Message: fmt.Sprintf("there is no customer %q", ref),
			NextStep: "see 'berth customer list'",
		}
	}
	counted := p.Inventory.View(snapshot, p.Now()).AccountVMs(customer.ID)
	open := estate.OpenTo(snapshot, customer.ID)
	zones, pods, clusters, nodes := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, name := range estate.ClusterNames(snapshot) {
		record, _ := estate.ClusterNamed(snapshot, name)
		pod, _ := snapshot.Resource(record.Links[schema.LinkPod])
		zone := pod.Links[schema.LinkZone]
		vms := counted.Clusters[name]
		if vms == 0 && !open[name] {
			continue
		}
		clusters[name] = vms
		pods[cmp.Or(pod.ID, name)] += vms
		if zone != "" {
			zones[zone] += vms
		}
	}
	for _, node := range snapshot.Nodes() {
		vms := counted.Nodes[node.ID]
		if _, within := clusters[node.ClusterName()]; vms > 0 || within && !node.Maintenance {
			nodes[node.ID] = vms
		}
	}
	return Spread{VMs: counted.Total, Zones: levelOf(zones), Pods: levelOf(pods), Clusters: levelOf(clusters), Nodes: levelOf(nodes)}, nil
}

// levelOf is how VMs are spread over things of one kind.
func levelOf(counts map[string]int) SpreadLevel {
	level := SpreadLevel{Total: len(counts)}
	first := true
	for _, vms := range counts {
		if vms > 0 {
			level.Used++
		}
		level.Most = max(level.Most, vms)
		if first || vms < level.Least {
			level.Least, first = vms, false
		}
	}
	return level
}
