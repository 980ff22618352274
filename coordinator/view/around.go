package view

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Needs is what a request asks for that most columns do without, because no other request looks at it.
type Needs struct {
	Customer string   // ID: whose VMs are counted by node, and volumes by pool; empty: nobody's
	Pools    bool     // storage pools
	Networks []string // libvirt networks, or bridge:NAME
	CPU      string   // a CPU model; empty: any
	HostCPU  bool     // what CPU the host has
}

// Any tells whether anything is asked for.
func (n *Needs) Any() bool {
	return n.Customer != "" || n.Pools || len(n.Networks) > 0 || n.CPU != "" || n.HostCPU
}

// Has is whether a node has something.
type Has uint8

// The answers. The zero value stands for a node that has told nothing of it.
const (
	HasUnknown Has = iota
	HasNot
	HasInactive // it is there and not in use
	HasIt
)

// NetworkColumn is one network that a request needs.
type NetworkColumn struct {
	Name string `json:"name"` // of a libvirt network, or bridge:NAME
	Has  []Has  `json:"has"`  // by node
}

// CPUColumn is what a request asks of the nodes' CPUs.
type CPUColumn struct {
	Model string   `json:"model,omitempty"`
	Has   []Has    `json:"has,omitempty"`   // by node: whether guests there can have the model
	Hosts []string `json:"hosts,omitempty"` // by node: its own CPU (NodeFacts.HostCPU); empty: not known
}

// BridgePrefix begins the name of a network that is a bridge of the host and none of libvirt's.
const BridgePrefix = "bridge:"

// around is what columns get for requests with needs. What is worked out once stays: nothing that is charged changes it.
type around struct {
	view    *View
	cluster string
	nodes   NodeList // by index into the columns

	mu sync.Mutex
	told
	pools []PoolColumn
}

// told are lists by node of what nodes tell, as far as somebody has asked for them. Lists are shared with later views; nobody changes them.
type told struct {
	networks map[string][]Has // by name
	models   map[string][]Has // by CPU model
	hosts    []string
}

// mostTold is how many networks and how many models a later view takes over. Of more it takes none: few of them are asked for again.
const mostTold = 64

// kept are the lists that there are now.
func (a *around) kept() told {
	a.mu.Lock()
	defer a.mu.Unlock()
	return told{networks: maps.Clone(a.networks), models: maps.Clone(a.models), hosts: a.hosts}
}

// revised are the lists of a later view, in which some rows differ.
func (t told) revised(rows []int, nodes []*NodeView) told {
	all := func(lists map[string][]Has, of func(*NodeView, string) Has) map[string][]Has {
		if len(lists) > mostTold {
			return nil
		}
		lists = maps.Clone(lists)
		for name, list := range lists {
			reviseSlice(&list, rows, nodes, func(n *NodeView) Has { return of(n, name) })
			lists[name] = list
		}
		return lists
	}
	t.networks, t.models = all(t.networks, networkOf), all(t.models, modelOf)
	if t.hosts != nil {
		reviseSlice(&t.hosts, rows, nodes, hostCPUOf)
	}
	return t
}

// Around are the columns with what a request needs in addition. They share everything else, so that charging them is charging
// these. Columns that are not of a view, as those that a decision kept, are given back as they are.
func (c *Columns) Around(needs Needs) *Columns {
	if c.around == nil || !needs.Any() {
		return c
	}
	with, a := *c, c.around
	a.mu.Lock()
	defer a.mu.Unlock()
	with.Networks, with.Models, with.Pools = nil, nil, nil
	for _, name := range needs.Networks {
		with.Networks = append(with.Networks, NetworkColumn{Name: name, Has: a.asked(&a.networks, name, networkOf)})
	}
	if needs.CPU != "" || needs.HostCPU {
		with.Models = &CPUColumn{Model: needs.CPU}
		if needs.CPU != "" {
			with.Models.Has = a.asked(&a.models, needs.CPU, modelOf)
		}
		if needs.HostCPU {
			with.Models.Hosts = a.hostCPUs()
		}
	}
	if needs.Pools {
		with.Pools = a.poolsOf(needs.Customer)
	}
	with.AccountVMs = c.Accounts.VMs(needs.Customer)
	return &with
}

// asked is one of the lists, made now if nobody has asked for it before.
func (a *around) asked(lists *map[string][]Has, name string, of func(*NodeView, string) Has) []Has {
	if list, there := (*lists)[name]; there {
		return list
	}
	if *lists == nil {
		*lists = make(map[string][]Has)
	}
	(*lists)[name] = valuesOf(a.nodes.Slice(), func(n *NodeView) Has { return of(n, name) })
	return (*lists)[name]
}

// networkOf tells whether a node has a network. What could not be listed is not known.
func networkOf(node *NodeView, name string) Has {
	facts := &node.Facts
	bridge, isBridge := strings.CutPrefix(name, BridgePrefix)
	switch {
	case !facts.Inventory || !facts.NetworksKnown:
		return HasUnknown
	case isBridge && slices.Contains(facts.Bridges, bridge), !isBridge && slices.Contains(facts.Networks, name):
		return HasIt
	default:
		return HasNot
	}
}

// modelOf tells whether guests on a node can have a CPU model.
func modelOf(node *NodeView, name string) Has {
	switch facts := &node.Facts; {
	case !facts.Inventory || len(facts.CPUModels) == 0:
		return HasUnknown
	case slices.Contains(facts.CPUModels, name):
		return HasIt
	default:
		return HasNot
	}
}

func (a *around) hostCPUs() []string {
	if a.hosts == nil {
		a.hosts = valuesOf(a.nodes.Slice(), hostCPUOf)
	}
	return a.hosts
}

func hostCPUOf(node *NodeView) string {
	if !node.Facts.Inventory {
		return ""
	}
	return node.Facts.HostCPU
}

// selectAround copies the columns of needs for some nodes.
func (f *Figures) selectAround(picked *Figures, nodes []int) {
	for _, network := range f.Networks {
		picked.Networks = append(picked.Networks, NetworkColumn{Name: network.Name, Has: pick(network.Has, nodes)})
	}
	if f.Models != nil {
		picked.Models = &CPUColumn{
			Model: f.Models.Model, Has: pickGiven(f.Models.Has, nodes), Hosts: pickGiven(f.Models.Hosts, nodes),
		}
	}
	for i := range f.Pools {
		picked.Pools = append(picked.Pools, f.Pools[i].of(nodes))
	}
}

// cloneAround copies the columns of needs.
func (f *Figures) cloneAround(copied *Figures) {
	copied.Pools, copied.Networks = slices.Clone(f.Pools), slices.Clone(f.Networks)
	for i := range copied.Pools {
		copied.Pools[i].Has, copied.Pools[i].Shares = slices.Clone(copied.Pools[i].Has), slices.Clone(copied.Pools[i].Shares)
	}
	for i := range copied.Networks {
		copied.Networks[i].Has = slices.Clone(copied.Networks[i].Has)
	}
	if f.Models != nil {
		models := *f.Models
		models.Has, models.Hosts = slices.Clone(models.Has), slices.Clone(models.Hosts)
		copied.Models = &models
	}
}
