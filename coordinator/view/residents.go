package view

import (
	"slices"
	"sort"
	"sync"

	"berth/coordinator/model"
)

// Residents index the customer keys of the VMs on the nodes of a cluster, so that a decision reads only those that the
// VM to be placed can meet and that are near enough to count. Those of a view are gathered list by list as they are asked
// for: a decision asks for a few of the thousands that there may be. Asking is safe from several goroutines; adding is not.
type Residents struct {
	view  *View      // tells which nodes may have VMs that show a key
	nodes NodeList   // by index into the columns: whose VMs are gathered; none: what was added is all there is
	base  *Residents // instead of nodes: these, but for the VM that left
	left  int        // its node
	gone  *Allocation

	mu    sync.Mutex
	lists map[residentList][]Posting // by value
}

// residentList names one list: the keys of one name that one owner's VMs show.
type residentList struct {
	class model.KeyClass // CustomerKey, BillingEntityKey; empty: both
	of    model.Kind     // whose: KindCustomer, KindBillingEntity; KindCluster: everybody's
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

// residentsOf are those of the VMs on some nodes of a view.
func residentsOf(v *View, nodes NodeList) *Residents {
	return &Residents{view: v, nodes: nodes, lists: make(map[residentList][]Posting)}
}

// without is the index but for one VM on a node.
func (r *Residents) without(node int, gone *Allocation) *Residents {
	return &Residents{base: r, left: node, gone: gone, lists: make(map[residentList][]Posting)}
}

// Add records what one VM on a node shows.
func (r *Residents) Add(node int, owner model.Owner, keys []model.ResidentKey) {
	for _, key := range keys {
		lists, n := listsOf(owner, key)
		for _, list := range lists[:n] {
			r.lists[list] = posted(r.list(list), node, key.Value)
		}
	}
}

// Remove takes what one VM on a node shows back.
func (r *Residents) Remove(node int, owner model.Owner, keys []model.ResidentKey) {
	for _, key := range keys {
		lists, n := listsOf(owner, key)
		for _, list := range lists[:n] {
			r.lists[list] = removed(r.list(list), node, key.Value)
		}
	}
}

// listsOf are the lists that a key of an owner's VM stands in, and how many these are.
func listsOf(owner model.Owner, key model.ResidentKey) (lists [3]residentList, n int) {
	lists = [3]residentList{
		{class: key.Class, of: model.KindCustomer, owner: owner.Customer, name: key.Name},
		{of: model.KindCluster, name: key.Name},
		{class: key.Class, of: model.KindBillingEntity, owner: owner.BillingEntity, name: key.Name},
	}
	if key.Class != model.BillingEntityKey {
		return lists, 2
	}
	return lists, 3
}

// list is one list, gathered now if nobody asked for it before.
func (r *Residents) list(list residentList) []Posting {
	r.mu.Lock()
	defer r.mu.Unlock()
	postings, there := r.lists[list]
	switch {
	case there:
		return postings
	case r.base != nil:
		postings = list.less(clonePostings(r.base.list(list)), r.left, r.gone)
	case r.nodes.Len() > 0:
		postings = r.gather(list)
	default:
		return nil
	}
	r.lists[list] = postings
	return postings
}

// gather picks a list out of what the VMs show that are on the nodes which have such a key.
func (r *Residents) gather(list residentList) []Posting {
	var postings []Posting
	for at, node := range bearing(r.view, list.word(), r.nodes) {
		for i := range node.Allocations {
			vm := &node.Allocations[i]
			if !list.owns(vm) {
				continue
			}
			for k := range vm.Resident {
				if key := &vm.Resident[k]; key.Name == list.name && list.has(key) {
					postings = posted(postings, at, key.Value)
				}
			}
		}
	}
	return postings
}

// less takes what one VM shows off the list, which nobody else has.
func (l *residentList) less(postings []Posting, node int, gone *Allocation) []Posting {
	for k := range gone.Resident {
		key := &gone.Resident[k]
		if key.Name == l.name && l.owns(gone) && l.has(key) {
			postings = removed(postings, node, key.Value)
		}
	}
	return postings
}

// removed is the list, which nobody else has, with one VM less that shows the value.
func removed(postings []Posting, node int, value float64) []Posting {
	at, found := searchPosting(postings, value)
	if !found {
		return postings
	}
	p := &postings[at]
	i, there := slices.BinarySearch(p.Nodes, int32(node))
	if !there {
		return postings
	}
	if p.Counts[i]--; p.Counts[i] > 0 {
		return postings
	}
	p.Nodes, p.Counts = slices.Delete(p.Nodes, i, i+1), slices.Delete(p.Counts, i, i+1)
	if len(p.Nodes) == 0 {
		postings = slices.Delete(postings, at, at+1)
	}
	return postings
}

// owns tells whether the list is of the VM's owner.
func (l *residentList) owns(vm *Allocation) bool {
	switch l.of {
	case model.KindCustomer:
		return vm.Owner.Customer == l.owner
	case model.KindBillingEntity:
		return vm.Owner.BillingEntity == l.owner
	default:
		return true
	}
}

// has tells whether a key of the list's name is of its class.
func (l *residentList) has(key *model.ResidentKey) bool { return l.class == "" || key.Class == l.class }

// searchPosting is where a value is in the list, or belongs. It is called for every VM: slices.BinarySearchFunc takes twice
// as long.
func searchPosting(postings []Posting, value float64) (at int, found bool) {
	end := len(postings)
	for at < end {
		if middle := (at + end) / 2; postings[middle].Value < value {
			at = middle + 1
		} else {
			end = middle
		}
	}
	return at, at < len(postings) && postings[at].Value == value
}

// posted is the list with one VM more that shows the value.
func posted(postings []Posting, node int, value float64) []Posting {
	at, found := searchPosting(postings, value)
	if !found {
		postings = slices.Insert(postings, at, Posting{Value: value})
	}
	p := &postings[at]
	n := int32(node)
	last := len(p.Nodes) - 1
	if last >= 0 && p.Nodes[last] < n || last < 0 { // nodes come in order when columns are gathered
		p.Nodes, p.Counts = append(p.Nodes, n), append(p.Counts, 1)
		return postings
	}
	i, there := last, last >= 0 && p.Nodes[last] == n
	if !there {
		i, there = slices.BinarySearch(p.Nodes, n)
	}
	if there {
		p.Counts[i]++
	} else {
		p.Nodes, p.Counts = slices.Insert(p.Nodes, i, n), slices.Insert(p.Counts, i, 1)
	}
	return postings
}

// Match calls visit with every posting that a key of this class, name and owner meets and that is less than 1 away from
// value, in a fixed order. The same VM is never met twice.
//
// A customer key meets every customer and billing-entity key of its own customer's VMs; a billing-entity key meets, besides
// its customer's own keys, the billing-entity keys of all customers of the billing entity. Strangers are never met, so they
// can neither be detected nor repelled. With ScopeCluster all meet.
func (r *Residents) Match(scope model.KeyScope, class model.KeyClass, owner model.Owner, name string, value float64, visit func(Posting)) {
	if r == nil {
		return
	}
	if scope == model.ScopeCluster {
		r.near(residentList{of: model.KindCluster, name: name}, value, visit)
		return
	}
	r.near(residentList{class: model.CustomerKey, of: model.KindCustomer, owner: owner.Customer, name: name}, value, visit)
	if class == model.BillingEntityKey {
		r.near(residentList{class: model.BillingEntityKey, of: model.KindBillingEntity, owner: owner.BillingEntity, name: name}, value, visit)
		return
	}
	r.near(residentList{class: model.BillingEntityKey, of: model.KindCustomer, owner: owner.Customer, name: name}, value, visit)
}

func (r *Residents) near(list residentList, value float64, visit func(Posting)) {
	postings := r.list(list)
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
	r.mu.Lock()
	defer r.mu.Unlock()
	copied := &Residents{
		view: r.view, nodes: r.nodes, base: r.base, left: r.left, gone: r.gone, lists: make(map[residentList][]Posting, len(r.lists)),
	}
	for list, postings := range r.lists {
		copied.lists[list] = clonePostings(postings)
	}
	return copied
}

func clonePostings(postings []Posting) []Posting {
	postings = slices.Clone(postings)
	for i := range postings {
		postings[i].Nodes, postings[i].Counts = slices.Clone(postings[i].Nodes), slices.Clone(postings[i].Counts)
	}
	return postings
}
