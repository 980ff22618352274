package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/connected"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/scenario/format"
	"berth/coordinator/schema"
	"berth/coordinator/strictyaml"
	"berth/coordinator/view"
	"berth/shared/units"
)

// around is what a node has around its VMs. What was not given is left alone.
type around struct {
	pools         []model.PoolFacts
	poolsGiven    bool
	networks      []string // libvirt's, or bridge:NAME
	networksGiven bool
	models        []string
	modelsGiven   bool
	hostCPU       string
}

// around reads the fields of it.
func aroundOf(m *strictyaml.Mapping) around {
	a := around{
		poolsGiven: m.Has("pools"), networks: m.Texts("networks"), networksGiven: m.Has("networks"),
		models: m.Texts("cpu_models"), modelsGiven: m.Has("cpu_models"), hostCPU: m.Text("host_cpu"),
	}
	for _, node := range m.List("pools") {
		p := m.Mapping(node, "a pool of "+m.What)
		pool := model.PoolFacts{Name: p.Name("name", "give libvirt's name of the pool"), Active: true}
		if inactive, given := p.Flag("inactive"); given {
			pool.Active = !inactive
		}
		if size := p.Size("capacity"); size != nil {
			pool.Capacity, pool.Available = *size, *size
		} else {
			m.Refuse(node, "give its size, for instance capacity: 500G", "pool %s has no capacity", pool.Name)
		}
		if size := p.Size("available"); size != nil {
			pool.Available = *size
		}
		p.Close()
		a.pools = append(a.pools, pool)
	}
	slices.SortFunc(a.pools, func(a, b model.PoolFacts) int { return cmp.Compare(a.Name, b.Name) })
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
		if bridge, is := strings.CutPrefix(name, view.BridgePrefix); is {
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
		if one := &state.Resources[i]; one.Kind == model.KindNetwork {
			names = append(names, one.Settings[schema.SettingSource])
		}
	}
	for i := range state.VMs {
		vm := &state.VMs[i]
		names = append(append(names, connected.AtStart(vm, vm.Spec.Networks)...), connected.Running(vm, nil)...)
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
	m := r.Mapping(node, "a volume")
	entry := volumeEntry{
		line: node.Line, of: m.Text("of"), pool: m.Name(
			"pool", "name the pool that it is in",
		), nodes: m.Texts("nodes"), capacity: m.Size("capacity"),
	}
	m.Close()
	if entry.capacity == nil {
		r.Refuse(node, "give its size as the guest sees it, for instance capacity: 20G", "the volume of %s has no capacity", entry.of)
	}
	return entry
}

// imagine has the images that are volumes before the estate is judged: it refuses disks that are copies of nothing.
func (b *builder) imagine(s *Scenario) {
	for i := range s.volumes {
		entry := &s.volumes[i]
		name, is := strings.CutPrefix(entry.of, string(model.KindImage)+"/")
		id := b.idOf(model.KindImage, name, format.MadeID(model.KindImage, name))
		known := slices.ContainsFunc(b.state.Resources, func(r model.Resource) bool { return r.ID == id })
		if !is || known || !s.document.Declares(model.KindImage, name) {
			continue
		}
		b.state.Resources = append(b.state.Resources, model.Resource{
			ID: id, Kind: model.KindImage, Name: name, CreatedAt: b.at,
			Volume: &model.Volume{
				Pool: b.idOf(model.KindPool, entry.pool, format.MadeID(model.KindPool, entry.pool)), Format: "qcow2", Capacity: *entry.capacity,
			},
		})
	}
}

// addVolume makes a disk or an image the volume that it is.
func (b *builder) addVolume(entry *volumeEntry) {
	kind, name, _ := strings.Cut(entry.of, "/")
	at := slices.IndexFunc(b.state.Resources, func(r model.Resource) bool { return string(r.Kind) == kind && r.Name == name })
	if at < 0 || kind != string(model.KindDisk) && kind != string(model.KindImage) {
		b.RefuseLine(entry.line, "write disk/NAME or image/NAME of one in the estate", "there is no %q to be a volume", entry.of)
		return
	}
	pool, known := b.state.ResourceByName(model.KindPool, entry.pool)
	if !known {
		b.RefuseLine(entry.line, "name a pool of the estate", "there is no pool %q for %s", entry.pool, entry.of)
		return
	}
	record := &b.state.Resources[at]
	volume := &model.Volume{Pool: pool.ID, Name: model.VolumeName(record.ID, "qcow2"), Format: "qcow2", Capacity: *entry.capacity}
	for _, name := range entry.nodes {
		node, _, err := b.node(name)
		if err != nil {
			b.RefuseLine(entry.line, "name nodes of the scenario", "%s: %v", entry.of, err)
			return
		}
		volume.Nodes = append(volume.Nodes, node.ID)
	}
	slices.Sort(volume.Nodes)
	if local := model.PoolSettingsOf(&pool).Scope == model.PoolLocal; local != (len(volume.Nodes) > 0) {
		b.RefuseLine(
			entry.line, "name the nodes that have a volume of a local pool, and none of a shared one", "%s is in the pool %s", entry.of,
			pool.Name,
		)
		return
	}
	switch there := record.VolumeIn(pool.ID); {
	case record.Volume == nil:
		record.Volume = volume
	case there != nil || record.Kind != model.KindImage:
		b.RefuseLine(entry.line, "write each place of an image once, and one of a disk", "%s is a volume already", entry.of)
	default:
		record.Copies = append(record.Copies, *volume)
	}
}

// makeVolumes keeps what a start has made: the volumes of the VM's disks.
func (s *site) makeVolumes(vm *model.VM, decision *placement.Decision) error {
	made, _, err := estate.VolumesOf(&s.state, *vm, decision.Pools)
	if err != nil {
		return fmt.Errorf("VM %q: %w", vm.Name, err)
	}
	for i := range made {
		order := &made[i]
		at := slices.IndexFunc(s.state.Resources, func(r model.Resource) bool { return r.ID == order.Disk })
		if order.Disk == "" || at < 0 {
			continue // the seed of cloud-init, which no record has
		}
		volume := &model.Volume{Pool: order.Pool, Name: order.Name, Format: order.Format, Capacity: order.Capacity, Backing: order.BackedIn}
		if !order.Shared {
			volume.Nodes = []string{decision.Winner}
		}
		s.state.Resources[at].Volume = volume
	}
	return nil
}
