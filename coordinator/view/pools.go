package view

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
	"berth/shared/units"
)

// PoolView is one storage pool of a View, with what is promised of it.
type PoolView struct {
	Record   model.Resource
	Settings model.PoolSettings
	Cluster  string      // name
	Shares   []PoolShare // one of a shared pool; of a local one, one for each node of the cluster, by node ID
}

// PoolShare is what of a pool is in one place.
type PoolShare struct {
	Nodes   []string    // IDs of the nodes that have it in use now, ascending
	Missing []PoolLacks // the others of its cluster, by node ID
	// Capacity and Available are what its nodes show, the least of them where they differ; zero where no node shows it.
	Capacity, Available units.Bytes
	Promised            units.Bytes // sizes of its disks and images, and of those that live operations make there
	Limit               units.Bytes // of what may be promised: its capacity times the over-provisioning
	Disks, Images       int
}

// PoolLacks says why a node has no use of a pool.
type PoolLacks struct {
	Node string // ID
	Has  Has    // not HasIt
}

// String says why in words.
func (l PoolLacks) String() string {
	switch l.Has {
	case HasNot:
		return "the node has no such pool"
	case HasInactive:
		return "the pool is not active there"
	default:
		return "the node's pools could not be listed"
	}
}

// storage is what a view knows of volumes.
type storage struct {
	clusters map[string]string // names by ID; of no ID, the default cluster
	pools    []model.Resource
	disks    []model.Resource       // and images
	making   []model.Reservation    // that make volumes
	owners   map[string]model.Owner // of disks, by ID
	anchored map[string]bool        // VMs with a disk in a local pool, or in one that is another on some nodes, by ID
	apart    model.PoolsApart
}

func newStorage(records *Records, vms VMs) *storage {
	s := &storage{pools: records.Pools, disks: records.Disks, apart: records.Apart, making: makingOf(records.Reservations)}
	if len(s.pools) == 0 {
		return s
	}
	s.clusters = map[string]string{"": model.DefaultCluster, model.DefaultCluster: model.DefaultCluster}
	for i := range records.Clusters {
		s.clusters[records.Clusters[i].ID] = records.Clusters[i].Name
	}
	s.own(vms)
	return s
}

func makingOf(reservations []model.Reservation) []model.Reservation {
	var making []model.Reservation
	for i := range reservations {
		if len(reservations[i].Volumes) > 0 {
			making = append(making, reservations[i])
		}
	}
	return making
}

// own notes which VMs the disks belong to.
func (s *storage) own(vms VMs) {
	local := make(map[string]bool)
	for i := range s.disks {
		volume := s.disks[i].Volume
		local[s.disks[i].ID] = volume != nil && (len(volume.Nodes) > 0 || s.apart[volume.Pool] != nil)
	}
	s.owners, s.anchored = make(map[string]model.Owner), make(map[string]bool)
	for vm := range vms.All() {
		for _, disk := range vm.Disks {
			s.owners[disk] = vm.Owner
			if local[disk] {
				s.anchored[vm.ID] = true
			}
		}
	}
}

// Apart are the pools that are declared as shared and proven to be another one on some nodes.
func (v *View) Apart() model.PoolsApart { return v.origin().storage.apart }

// Anchored tells whether a VM has a disk in a local pool, which moves only if somebody lets it be copied along, or in one that is another
// on some nodes.
func (v *View) Anchored(vm string) bool { return v.origin().storage.anchored[vm] }

// Pools are the storage pools, by cluster and name. Nobody changes them.
func (v *View) Pools() []PoolView {
	if v.base != nil {
		return v.base.Pools()
	}
	v.gathered.pooling.Do(func() { v.gathered.pools = v.pools() })
	return v.gathered.pools
}

func (v *View) pools() []PoolView {
	if len(v.storage.pools) == 0 {
		return nil
	}
	members := make(map[string][]*NodeView)
	for _, node := range v.Nodes.All() {
		name := cmp.Or(node.Node.Cluster, model.DefaultCluster)
		members[name] = append(members[name], node)
	}
	all := make([]PoolView, 0, len(v.storage.pools))
	for i := range v.storage.pools {
		record := v.storage.pools[i]
		one := PoolView{
			Record: record, Settings: model.PoolSettingsOf(&record),
			Cluster: cmp.Or(v.storage.clusters[record.Links[model.LinkCluster]], model.DefaultCluster),
		}
		one.look(members[one.Cluster])
		one.promise(v.storage)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b PoolView) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Record.Name, b.Record.Name))
	})
	return all
}

// look finds the pool on the nodes of its cluster.
func (p *PoolView) look(nodes []*NodeView) {
	shared := p.Settings.Scope == model.PoolShared
	if shared {
		p.Shares = make([]PoolShare, 1)
	}
	for _, node := range nodes {
		if !shared {
			p.Shares = append(p.Shares, PoolShare{})
		}
		share := &p.Shares[len(p.Shares)-1]
		has, facts := poolOn(node, p.Settings.Source)
		if has != HasIt {
			share.Missing = append(share.Missing, PoolLacks{Node: node.Node.ID, Has: has})
			continue
		}
		if len(share.Nodes) == 0 {
			share.Capacity, share.Available = facts.Capacity, facts.Available
		}
		share.Nodes = append(share.Nodes, node.Node.ID)
		share.Capacity, share.Available = min(share.Capacity, facts.Capacity), min(share.Available, facts.Available)
	}
	for i := range p.Shares {
		p.Shares[i].Limit = scale(p.Shares[i].Capacity, p.Settings.OverProvisioning)
	}
}

// poolOn is what a node shows of libvirt's pool of a name.
func poolOn(node *NodeView, source string) (Has, model.PoolFacts) {
	if !node.Facts.Inventory || !node.Facts.PoolsKnown {
		return HasUnknown, model.PoolFacts{}
	}
	for _, one := range node.Facts.Pools {
		switch {
		case one.Name != source:
		case one.Active:
			return HasIt, one
		default:
			return HasInactive, model.PoolFacts{}
		}
	}
	return HasNot, model.PoolFacts{}
}

// promise adds up what is in the pool and what is being made there.
func (p *PoolView) promise(s *storage) {
	for i := range s.disks {
		disk := &s.disks[i]
		volume := disk.VolumeIn(p.Record.ID)
		if volume == nil {
			continue
		}
		for at := range p.Shares {
			share := &p.Shares[at]
			if !p.in(share, volume.Nodes) {
				continue
			}
			share.Promised = add(share.Promised, volume.Capacity)
			if disk.Kind == model.KindImage {
				share.Images++
			} else {
				share.Disks++
			}
		}
	}
	for i := range s.making {
		for _, volume := range s.making[i].Volumes {
			for at := range p.Shares {
				if share := &p.Shares[at]; volume.Pool == p.Record.ID && p.in(share, []string{s.making[i].Node}) {
					share.Promised = add(share.Promised, volume.Capacity)
				}
			}
		}
	}
}

// in tells whether a volume that is on some nodes is in a share of the pool.
func (p *PoolView) in(share *PoolShare, nodes []string) bool {
	return p.Settings.Scope == model.PoolShared || slices.ContainsFunc(nodes, share.of)
}

// of tells whether the share is a node's.
func (s *PoolShare) of(node string) bool {
	return slices.Contains(s.Nodes, node) || slices.ContainsFunc(s.Missing, func(l PoolLacks) bool { return l.Node == node })
}

// Share is the share of the pool that a node, given by ID, has: of a shared pool the one that there is. False: the node is not
// of the pool's cluster.
func (p *PoolView) Share(node string) (*PoolShare, bool) {
	for i := range p.Shares {
		if share := &p.Shares[i]; p.Settings.Scope == model.PoolShared || share.of(node) {
			return share, true
		}
	}
	return nil, false
}

// figures are those of the share that a node of the pool's cluster has.
func (p *PoolView) figures(node string) PoolFigures {
	share, _ := p.Share(node)
	return PoolFigures{Capacity: share.Capacity, Available: share.Available, Promised: share.Promised, Limit: share.Limit}
}

// volumesOf counts a customer's volumes in a pool on a node; of a shared pool the node is none.
func (s *storage) volumesOf(customer string, pool *PoolView, node string) int {
	count := 0
	shared := pool.Settings.Scope == model.PoolShared
	for i := range s.disks {
		disk := &s.disks[i]
		if disk.Kind == model.KindDisk && disk.Volume != nil && disk.Volume.Pool == pool.Record.ID &&
			s.owners[disk.ID].Customer == customer && (shared || slices.Contains(disk.Volume.Nodes, node)) {
			count++
		}
	}
	for i := range s.making {
		for _, volume := range s.making[i].Volumes {
			if volume.Pool == pool.Record.ID && s.owners[volume.Disk].Customer == customer && (shared || s.making[i].Node == node) {
				count++
			}
		}
	}
	return count
}

// PoolColumn is one storage pool as placement scans it.
type PoolColumn struct {
	ID     string        `json:"id"`
	Name   string        `json:"name"`
	Shared bool          `json:"shared,omitempty"`
	Has    []Has         `json:"has"`    // by node
	Shares []PoolFigures `json:"shares"` // one of a shared pool; of a local one, one a node
}

// PoolFigures are those of one share of a pool.
type PoolFigures struct {
	Capacity  units.Bytes `json:"capacity"`
	Available units.Bytes `json:"available"`
	Promised  units.Bytes `json:"promised"`
	Limit     units.Bytes `json:"limit"`
	Volumes   int         `json:"volumes,omitempty"` // of the VM's customer, if somebody needs them
}

// On are the pool's figures as a node sees them.
func (p *PoolColumn) On(node int) *PoolFigures {
	if p.Shared {
		node = 0
	}
	return &p.Shares[node]
}

// of copies the column for some nodes.
func (p *PoolColumn) of(nodes []int) PoolColumn {
	picked := PoolColumn{ID: p.ID, Name: p.Name, Shared: p.Shared, Has: pick(p.Has, nodes)}
	if p.Shared {
		picked.Shares = slices.Clone(p.Shares)
	} else {
		picked.Shares = pick(p.Shares, nodes)
	}
	return picked
}

// poolsOf are the cluster's pools by ID, with the volumes of a customer counted if one is given.
func (a *around) poolsOf(customer string) []PoolColumn {
	if a.pools == nil {
		a.pools = a.lookAtPools()
	}
	if customer == "" {
		return a.pools
	}
	facts := a.view.origin().storage
	pools := a.view.Pools()
	columns := make([]PoolColumn, len(a.pools))
	for i := range a.pools {
		columns[i] = a.pools[i]
		columns[i].Shares = slices.Clone(columns[i].Shares)
		at := slices.IndexFunc(pools, func(p PoolView) bool { return p.Record.ID == columns[i].ID })
		for share := range columns[i].Shares {
			columns[i].Shares[share].Volumes = facts.volumesOf(customer, &pools[at], a.nodes.At(share).Node.ID)
		}
	}
	return columns
}

func (a *around) lookAtPools() []PoolColumn {
	columns := []PoolColumn{}
	for _, pool := range a.view.Pools() {
		if pool.Cluster != a.cluster || a.nodes.Len() == 0 {
			continue
		}
		one := PoolColumn{
			ID: pool.Record.ID, Name: pool.Record.Name, Shared: pool.Settings.Scope == model.PoolShared, Has: make([]Has, a.nodes.Len()),
		}
		for i, node := range a.nodes.All() {
			one.Has[i], _ = poolOn(node, pool.Settings.Source)
			if one.Shared && i > 0 {
				continue
			}
			one.Shares = append(one.Shares, pool.figures(node.Node.ID))
		}
		columns = append(columns, one)
	}
	slices.SortFunc(columns, func(a, b PoolColumn) int { return cmp.Compare(a.ID, b.ID) })
	return columns
}
