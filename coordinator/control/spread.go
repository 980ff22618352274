package control

import (
	"cmp"
	"fmt"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
)

// Spread tells how the VMs of a customer, by ID or name, are spread, without a name of anything: over what its VDCs may use,
// and whatever else its VMs are in. A cluster in no pod counts as a pod of its own. The error is of type *Error.
func (c *Control) Spread(ref string) (Spread, error) {
	snapshot := c.Store.Snapshot()
	customer, known := snapshot.Resource(ref)
	if !known {
		customer, known = snapshot.ResourceByName(cluster.KindCustomer, ref)
	}
	if !known || customer.Kind != cluster.KindCustomer {
		return Spread{}, &Error{
			Code: NotFound, Subject: "customer/" + ref, Message: fmt.Sprintf("there is no customer %q", ref), NextStep: "see 'berth customer list'",
		}
	}
	counted := c.Inventory.View(snapshot, c.Now()).AccountVMs(customer.ID)
	open := estate.OpenTo(snapshot, customer.ID)
	zones, pods, clusters, nodes := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, name := range clusterNames(snapshot) {
		record, _ := clusterNamed(snapshot, name)
		pod, _ := snapshot.Resource(record.Links[estate.LinkPod])
		zone := pod.Links[estate.LinkZone]
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
		if _, within := clusters[clusterOf(&node)]; vms > 0 || within && !node.Maintenance {
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
