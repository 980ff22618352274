package cluster

import (
	"cmp"
	"slices"
	"sort"
)

// Residents index the customer keys of the VMs on the nodes of a cluster, so that a decision reads only those that the
// VM to be placed can meet and that are near enough to count.
type Residents struct {
	lists map[residentList][]Posting // by value
}

// residentList names one list: the keys of one name that one owner's VMs show.
type residentList struct {
	class KeyClass // CustomerKey, BillingEntityKey; empty: both
	of    Kind     // whose: KindCustomer, KindBillingEntity; KindCluster: everybody's
	owner string
	name  string
}

// Posting is one value of a key and where it is found.
type Posting struct {
	Value  float64 `json:"value"`
	Nodes  []int32 `json:"nodes"`  // indexes into the columns, ascending
	Counts []int32 `json:"counts"` // how many VMs there show it
}

// NewResidents is an index without any VM.
func NewResidents() *Residents { return &Residents{lists: make(map[residentList][]Posting)} }

// Add records what one VM on a node shows.
func (r *Residents) Add(node int, owner Owner, keys []ResidentKey) {
	for _, key := range keys {
		r.add(residentList{class: key.Class, of: KindCustomer, owner: owner.Customer, name: key.Name}, node, key.Value)
		r.add(residentList{of: KindCluster, name: key.Name}, node, key.Value)
		if key.Class == BillingEntityKey {
			r.add(residentList{class: key.Class, of: KindBillingEntity, owner: owner.BillingEntity, name: key.Name}, node, key.Value)
		}
	}
}

func (r *Residents) add(list residentList, node int, value float64) {
	postings := r.lists[list]
	at, found := slices.BinarySearchFunc(postings, value, func(p Posting, v float64) int { return cmp.Compare(p.Value, v) })
	if !found {
		postings = slices.Insert(postings, at, Posting{Value: value})
		r.lists[list] = postings
	}
	p := &postings[at]
	n := int32(node)
	last := len(p.Nodes) - 1
	if last >= 0 && p.Nodes[last] < n || last < 0 { // nodes come in order when columns are gathered
		p.Nodes, p.Counts = append(p.Nodes, n), append(p.Counts, 1)
		return
	}
	i, there := slices.BinarySearch(p.Nodes, n)
	if there {
		p.Counts[i]++
		return
	}
	p.Nodes, p.Counts = slices.Insert(p.Nodes, i, n), slices.Insert(p.Counts, i, 1)
}

// Match calls visit with every posting that a key of this class, name and owner meets and that is less than 1 away from
// value, in a fixed order. The same VM is never met twice.
//
// A customer key meets every customer and billing-entity key of its own customer's VMs; a billing-entity key meets, beside
// its customer's own keys, the billing-entity keys of all customers of the billing entity. Strangers are never met, so they
// can neither be detected nor repelled. With ScopeCluster all meet.
func (r *Residents) Match(scope KeyScope, class KeyClass, owner Owner, name string, value float64, visit func(Posting)) {
	if r == nil {
		return
	}
	if scope == ScopeCluster {
		r.near(residentList{of: KindCluster, name: name}, value, visit)
		return
	}
	r.near(residentList{class: CustomerKey, of: KindCustomer, owner: owner.Customer, name: name}, value, visit)
	if class == BillingEntityKey {
		r.near(residentList{class: BillingEntityKey, of: KindBillingEntity, owner: owner.BillingEntity, name: name}, value, visit)
		return
	}
	r.near(residentList{class: BillingEntityKey, of: KindCustomer, owner: owner.Customer, name: name}, value, visit)
}

func (r *Residents) near(list residentList, value float64, visit func(Posting)) {
	postings := r.lists[list]
	first := sort.Search(len(postings), func(i int) bool { return postings[i].Value > value-1 })
	for _, p := range postings[first:] {
		if p.Value >= value+1 {
			return
		}
		visit(p)
	}
}

// clone copies the index deeply.
func (r *Residents) clone() *Residents {
	if r == nil {
		return nil
	}
	copied := &Residents{lists: make(map[residentList][]Posting, len(r.lists))}
	for list, postings := range r.lists {
		postings = slices.Clone(postings)
		for i := range postings {
			postings[i].Nodes, postings[i].Counts = slices.Clone(postings[i].Nodes), slices.Clone(postings[i].Counts)
		}
		copied.lists[list] = postings
	}
	return copied
}

// Clone copies the columns so that charging the copy changes nothing for others.
func (c *Columns) Clone() *Columns {
	copied := *c
	copied.Used, copied.Free, copied.VCPUs = slices.Clone(c.Used), slices.Clone(c.Free), slices.Clone(c.VCPUs)
	copied.Room, copied.RAM, copied.CPU = slices.Clone(c.Room), slices.Clone(c.RAM), slices.Clone(c.CPU)
	copied.Busy, copied.Residents = slices.Clone(c.Busy), c.Residents.clone()
	return &copied
}
