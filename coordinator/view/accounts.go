package view

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"berth/coordinator/model"
)

// Accounts count the VMs of customers on the nodes of a cluster: each VM on the node that it is on and on the one that it is
// on its way to. They are counted customer by customer as they are asked for. Asking is safe from several goroutines;
// charging the columns is not.
type Accounts struct {
	counted *counted
	changed map[string]map[int]int // by customer and node: what was charged since, less what was discharged
}

// counted is what nothing that is charged changes.
type counted struct {
	view  *View
	nodes NodeList // by index into the columns

	mu    sync.Mutex
	lists map[string][]int // by customer: VMs by node
}

func accountsOf(v *View, nodes NodeList) *Accounts {
	return &Accounts{counted: &counted{view: v, nodes: nodes, lists: make(map[string][]int)}}
}

// VMs are how many VMs of a customer, given by ID, count on each node. Nil: nobody has counted.
func (a *Accounts) VMs(customer string) []int {
	if a == nil || customer == "" {
		return nil
	}
	list := slices.Clone(a.counted.list(customer))
	for node, by := range a.changed[customer] {
		list[node] += by
	}
	return list
}

func (c *counted) list(customer string) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, there := c.lists[customer]
	if there {
		return list
	}
	list = make([]int, c.nodes.Len())
	for at, node := range bearing(c.view, ofCustomer(customer), c.nodes) {
		for i := range node.Allocations {
			if node.Allocations[i].Owner.Customer == customer {
				list[at]++
			}
		}
	}
	c.lists[customer] = list
	return list
}

// charge counts a customer's VM on a node, or with by -1 no longer.
func (a *Accounts) charge(node, by int, customer string) {
	if a == nil || customer == "" {
		return
	}
	if a.changed == nil {
		a.changed = make(map[string]map[int]int)
	}
	if a.changed[customer] == nil {
		a.changed[customer] = make(map[int]int)
	}
	a.changed[customer][node] += by
}

// without is a copy that counts one VM less on a node.
func (a *Accounts) without(node int, gone *Allocation) *Accounts {
	copied := a.clone()
	copied.charge(node, -1, gone.Owner.Customer)
	return copied
}

func (a *Accounts) clone() *Accounts {
	if a == nil {
		return nil
	}
	copied := &Accounts{counted: a.counted}
	if len(a.changed) > 0 {
		copied.changed = make(map[string]map[int]int, len(a.changed))
		for customer, nodes := range a.changed {
			copied.changed[customer] = maps.Clone(nodes)
		}
	}
	return copied
}

// AccountVMs is where the VMs of one customer are that run, start or migrate.
type AccountVMs struct {
	Total    int            // VMs, each once
	Clusters map[string]int // by cluster name, each VM once in every cluster that it is in or on its way to
	Nodes    map[string]int // by node ID, each VM once on every node that it is on or on its way to
}

// AccountVMs counts the VMs of a customer, given by ID. Nobody has none.
func (v *View) AccountVMs(customer string) AccountVMs {
	found, _ := v.countVMs(customer)
	return found
}

// countVMs is AccountVMs, and the IDs of the VMs that it counted.
func (v *View) countVMs(customer string) (found AccountVMs, counted map[string]bool) {
	found = AccountVMs{Clusters: make(map[string]int), Nodes: make(map[string]int)}
	if customer == "" {
		return found, nil
	}
	counted = make(map[string]bool)
	within := make(map[[2]string]bool)
	for _, node := range bearing(v, ofCustomer(customer), v.Nodes) {
		for i := range node.Allocations {
			one := &node.Allocations[i]
			if one.Owner.Customer != customer {
				continue
			}
			name := cmp.Or(node.Node.Cluster, model.DefaultCluster)
			found.Nodes[node.Node.ID]++
			if place := [2]string{name, one.VM}; !within[place] {
				within[place] = true
				found.Clusters[name]++
			}
			counted[one.VM] = true
		}
	}
	found.Total = len(counted)
	return found, counted
}

// KeptVMs is AccountVMs by cluster with the customer's stopped VMs in it: these count where they ran last.
func (v *View) KeptVMs(customer string) map[string]int {
	found, counted := v.countVMs(customer)
	if customer == "" {
		return found.Clusters
	}
	for vm := range v.origin().roster.all() {
		if vm.Owner.Customer != customer || counted[vm.ID] {
			continue
		}
		if node := v.Node(vm.LastNode); node != nil {
			found.Clusters[cmp.Or(node.Node.Cluster, model.DefaultCluster)]++
		}
	}
	return found.Clusters
}
