package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// around is what a node has around its VMs. What was not given is left alone.
type around struct {
	pools         []cluster.PoolFacts
	poolsGiven    bool
	networks      []string // libvirt's, or bridge:NAME
	networksGiven bool
	models        []string
	modelsGiven   bool
	hostCPU       string
}

// around reads the fields of it.
func (m *mapping) around() around {
	a := around{
		poolsGiven: m.has("pools"), networks: m.texts("networks"), networksGiven: m.has("networks"),
		models: m.texts("cpu_models"), modelsGiven: m.has("cpu_models"), hostCPU: m.text("host_cpu"),
	}
	for _, node := range m.list("pools") {
		p := m.mapping(node, "a pool of "+m.what)
		pool := cluster.PoolFacts{Name: p.name("name", "give libvirt's name of the pool"), Active: true}
		if inactive, given := p.flag("inactive"); given {
			pool.Active = !inactive
		}
		if size := p.size("capacity"); size != nil {
			pool.Capacity, pool.Available = *size, *size
		} else {
			m.refuse(node, "give its size, for instance capacity: 500G", "pool %s has no capacity", pool.Name)
		}
		if size := p.size("available"); size != nil {
			pool.Available = *size
		}
		p.close()
		a.pools = append(a.pools, pool)
	}
	slices.SortFunc(a.pools, func(a, b cluster.PoolFacts) int { return cmp.Compare(a.Name, b.Name) })
	return a
}

// surround takes over what a node has around its VMs.
func (n *node) surround(a *around) {
	facts := &n.facts
	if a.poolsGiven {
		facts.Pools, facts.PoolsKnown = a.pools, true
	}
	if a.networksGiven {
		n.anyNetwork, facts.NetworksKnown = false, true
		facts.Networks, facts.Bridges = networksOf(a.networks)
	}
	if a.modelsGiven {
		facts.CPUModels = slices.Sorted(slices.Values(a.models))
	}
	facts.HostCPU = cmp.Or(a.hostCPU, facts.HostCPU)
}

// networksOf parts the bridges of hosts from libvirt's networks, each ascending.
func networksOf(names []string) (networks, bridges []string) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if bridge, is := strings.CutPrefix(name, cluster.BridgePrefix); is {
			bridges = append(bridges, bridge)
		} else {
			networks = append(networks, name)
		}
	}
	return networks, bridges
}

// asked are the networks that anything of the estate asks for: a node whose networks nobody told has all of them.
func asked(state *estate.State) (networks, bridges []string) {
	var names []string
	for i := range state.Resources {
		if one := &state.Resources[i]; one.Kind == cluster.KindNetwork {
			names = append(names, one.Settings[estate.SettingSource])
		}
	}
	for i := range state.VMs {
		names = append(names, state.VMs[i].Spec.Networks...)
	}
	return networksOf(names)
}

// volumeEntry is the volume that a disk or an image is.
type volumeEntry struct {
	line     int
	of       string // disk/NAME or image/NAME
	pool     string
	nodes    []string // names; of a local pool
	capacity *units.Bytes
}

func (r *reader) volumeEntry(node *yaml.Node) volumeEntry {
	m := r.mapping(node, "a volume")
	entry := volumeEntry{
		line: node.Line, of: m.text("of"), pool: m.name("pool", "name the pool that it is in"), nodes: m.texts("nodes"), capacity: m.size("capacity"),
	}
	m.close()
	if entry.capacity == nil {
		r.refuse(node, "give its size as the guest sees it, for instance capacity: 20G", "the volume of %s has no capacity", entry.of)
	}
	return entry
}

// imagine has the images that are volumes before the estate is judged: it refuses disks that are copies of nothing.
func (b *builder) imagine(s *Scenario) {
	for i := range s.volumes {
		entry := &s.volumes[i]
		name, is := strings.CutPrefix(entry.of, string(cluster.KindImage)+"/")
		id := b.idOf(cluster.KindImage, name, madeID(cluster.KindImage, name))
		known := slices.ContainsFunc(b.state.Resources, func(r cluster.Resource) bool { return r.ID == id })
		if !is || known || !s.document.Declares(cluster.KindImage, name) {
			continue
		}
		b.state.Resources = append(b.state.Resources, cluster.Resource{
			ID: id, Kind: cluster.KindImage, Name: name, CreatedAt: b.at,
			Volume: &cluster.Volume{
				Pool: b.idOf(cluster.KindPool, entry.pool, madeID(cluster.KindPool, entry.pool)), Format: "qcow2", Capacity: *entry.capacity,
			},
		})
	}
}

// addVolume makes a disk or an image the volume that it is.
func (b *builder) addVolume(entry *volumeEntry) {
	kind, name, _ := strings.Cut(entry.of, "/")
	at := slices.IndexFunc(b.state.Resources, func(r cluster.Resource) bool { return string(r.Kind) == kind && r.Name == name })
	if at < 0 || kind != string(cluster.KindDisk) && kind != string(cluster.KindImage) {
		b.refuseLine(entry.line, "write disk/NAME or image/NAME of one in the estate", "there is no %q to be a volume", entry.of)
		return
	}
	pool, known := b.state.ResourceByName(cluster.KindPool, entry.pool)
	if !known {
		b.refuseLine(entry.line, "name a pool of the estate", "there is no pool %q for %s", entry.pool, entry.of)
		return
	}
	record := &b.state.Resources[at]
	volume := &cluster.Volume{Pool: pool.ID, Name: cluster.VolumeName(record.ID, "qcow2"), Format: "qcow2", Capacity: *entry.capacity}
	for _, name := range entry.nodes {
		node, _, err := b.node(name)
		if err != nil {
			b.refuseLine(entry.line, "name nodes of the scenario", "%s: %v", entry.of, err)
			return
		}
		volume.Nodes = append(volume.Nodes, node.ID)
	}
	slices.Sort(volume.Nodes)
	if local := cluster.PoolSettingsOf(&pool).Scope == cluster.PoolLocal; local != (len(volume.Nodes) > 0) {
		b.refuseLine(entry.line, "name the nodes that have a volume of a local pool, and none of a shared one", "%s is in the pool %s", entry.of, pool.Name)
		return
	}
	switch there := record.VolumeIn(pool.ID); {
	case record.Volume == nil:
		record.Volume = volume
	case there != nil || record.Kind != cluster.KindImage:
		b.refuseLine(entry.line, "write each place of an image once, and one of a disk", "%s is a volume already", entry.of)
	default:
		record.Copies = append(record.Copies, *volume)
	}
}

// makeVolumes keeps what a start has made: the volumes of the VM's disks.
func (w *world) makeVolumes(vm *cluster.VM, decision *placement.Decision) error {
	made, _, err := estate.VolumesOf(&w.state, *vm, decision.Pools)
	if err != nil {
		return fmt.Errorf("VM %q: %w", vm.Name, err)
	}
	for i := range made {
		order := &made[i]
		at := slices.IndexFunc(w.state.Resources, func(r cluster.Resource) bool { return r.ID == order.Disk })
		if order.Disk == "" || at < 0 {
			continue // the seed of cloud-init, which no record has
		}
		volume := &cluster.Volume{Pool: order.Pool, Name: order.Name, Format: order.Format, Capacity: order.Capacity, Backing: order.BackedIn}
		if !order.Shared {
			volume.Nodes = []string{decision.Winner}
		}
		w.state.Resources[at].Volume = volume
	}
	return nil
}

// around writes what a node has around its VMs, and what of it is not known.
func (r *row) around(facts *cluster.NodeFacts) (unknown []string) {
	if !facts.Inventory {
		return nil
	}
	words := func(name string, list []string) {
		content := make([]*yaml.Node, len(list))
		for i := range list {
			content[i] = word(list[i])
		}
		r.node(name, &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: content})
	}
	if facts.PoolsKnown && len(facts.Pools) > 0 {
		pools := make([]*yaml.Node, len(facts.Pools))
		for i, pool := range facts.Pools {
			var one row
			one.put("name", pool.Name)
			one.size("capacity", &pool.Capacity)
			if pool.Available != pool.Capacity {
				one.size("available", &pool.Available)
			}
			one.flag("inactive", !pool.Active)
			pools[i] = one.flow()
		}
		r.node("pools", &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: pools})
	}
	if facts.NetworksKnown {
		names := slices.Clone(facts.Networks)
		for _, bridge := range facts.Bridges {
			names = append(names, cluster.BridgePrefix+bridge)
		}
		words("networks", names)
	}
	if len(facts.CPUModels) > 0 {
		words("cpu_models", facts.CPUModels)
	}
	r.text("host_cpu", facts.HostCPU)
	if !facts.PoolsKnown {
		unknown = append(unknown, "pools")
	}
	if !facts.NetworksKnown {
		unknown = append(unknown, "networks")
	}
	return unknown
}

// volumes are those of disks and images.
func (e *exporter) volumes() []*yaml.Node {
	var rows []*yaml.Node
	for i := range e.state.Resources {
		one := &e.state.Resources[i]
		for volume := range one.Volumes() {
			if volume.Doomed {
				continue
			}
			var r row
			r.put("of", string(one.Kind)+"/"+one.Name)
			r.put("pool", e.nameOf(volume.Pool))
			var nodes []*yaml.Node
			for _, id := range volume.Nodes {
				if node, there := e.state.Node(id); there {
					nodes = append(nodes, word(node.Name))
				}
			}
			r.list("nodes", nodes)
			r.size("capacity", &volume.Capacity)
			rows = append(rows, r.flow())
		}
	}
	return rows
}
