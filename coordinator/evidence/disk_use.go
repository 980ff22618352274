package evidence

import (
	"fmt"
	"path"
	"slices"

	"berth/coordinator/model"
	"berth/shared/domxml"
)

// DiskUse is a domain that writes to a disk of a VM, and is not the VM. Two that write to one disk destroy what is on it.
type DiskUse struct {
	Node   string // name of the node that shows it
	Domain model.Domain
	Disk   model.DiskSource // as the domain names it
}

// Text says what is in the way of the VM, and Next what ends that.
func (u *DiskUse) Text(vm string) string {
	return fmt.Sprintf("domain %q on %s writes to disk %s of VM %q", u.Domain.Name, u.Node, u.Disk.Text(), vm)
}

// Next says what ends it.
func (u *DiskUse) Next() string {
	return fmt.Sprintf("end that domain ('virsh shutdown %s' on %s), or take the disk from it ('virsh detach-disk') or from the VM",
		u.Domain.Name, u.Node)
}

// disk is one that a VM is started with, and the nodes on which its name means that disk.
type disk struct {
	source model.DiskSource
	on     func(node *model.Node) bool
}

// UsedDisk is a domain that writes to a disk of a VM which is to start on a node; empty: where it was last. It knows only what nodes
// that are heard show, so that finding none proves nothing of the others.
func (s *Survey) UsedDisk(vm *model.VM, target string) (DiskUse, bool) {
	disks := s.disksOf(vm, target)
	if len(disks) == 0 {
		return DiskUse{}, false
	}
	for i := range s.nodes {
		one := &s.nodes[i]
		if one.worth != heard {
			continue
		}
		for _, domain := range one.facts.Domains {
			if domain.UUID == vm.ID || !domain.State.Holds() {
				continue
			}
			for _, source := range domain.Sources {
				same := func(d disk) bool {
					return base(d.source) == base(source) && d.on(&one.node) && inPool(d.source, &one.facts) == inPool(source, &one.facts)
				}
				if slices.ContainsFunc(disks, same) {
					return DiskUse{Node: one.node.Name, Domain: domain, Disk: source}, true
				}
			}
		}
	}
	return DiskUse{}, false
}

// base is the name that a source has in its folder or pool: that of another disk is mostly another one.
func base(source model.DiskSource) string {
	if source.Path == "" {
		return source.Volume
	}
	return path.Base(source.Path)
}

// inPool is a source as a volume, if it is a file in the folder of one of the node's pools: it can be named both ways.
func inPool(source model.DiskSource, facts *model.NodeFacts) model.DiskSource {
	if source.Path == "" {
		return source
	}
	for _, pool := range facts.Pools {
		if pool.Path != "" && path.Dir(source.Path) == path.Clean(pool.Path) {
			return model.DiskSource{Pool: pool.Name, Volume: path.Base(source.Path)}
		}
	}
	return model.DiskSource{Path: path.Clean(source.Path)}
}

// disksOf are those that a VM writes to when it is started on a node.
func (s *Survey) disksOf(vm *model.VM, target string) []disk {
	if target == "" {
		target = vm.LastNode
	}
	place, _ := s.Node(target)
	there := func(node *model.Node) bool { return node.ID == target }
	among := func(node *model.Node) bool { return node.ClusterName() == place.ClusterName() }
	files := among // as a cluster is that nobody has declared
	for _, cluster := range s.Clusters() {
		if cluster.Name == place.ClusterName() && model.SettingsOf(&cluster).Storage == model.LocalStorage {
			files = there
		}
	}
	var all []disk
	named := func(source model.DiskSource) {
		on := files
		if source.Pool != "" {
			on = there
			if pool, shared := s.poolNamed(source.Pool, place.ClusterName()); shared {
				on = s.nodesOf(&pool)
			}
		}
		all = append(all, disk{source, on})
	}
	for _, one := range vm.Spec.Disks {
		if !one.ReadOnly {
			named(model.DiskSource{Path: one.Path, Pool: one.Pool, Volume: one.Volume})
		}
	}
	attached, err := domxml.Disks(vm.Spec.XML)
	if vm.Spec.XML == "" || err != nil {
		attached = nil
	}
	for _, one := range attached {
		if !one.ReadOnly && one.Source != (domxml.Source{}) {
			named(model.DiskSource(one.Source))
		}
	}
	for _, id := range vm.Disks {
		record, _ := s.Resource(id)
		if record.Volume == nil {
			continue
		}
		pool, _ := s.Resource(record.Volume.Pool)
		on := s.nodesOf(&pool)
		if len(record.Volume.Nodes) > 0 {
			on = func(node *model.Node) bool { return slices.Contains(record.Volume.Nodes, node.ID) }
		}
		all = append(all, disk{model.DiskSource{Pool: model.PoolSettingsOf(&pool).Source, Volume: record.Volume.Name}, on})
	}
	return all
}

// poolNamed is the shared pool of a cluster that has this name on its nodes.
func (s *Survey) poolNamed(source, cluster string) (model.Resource, bool) {
	for _, pool := range s.Resources(model.KindPool) {
		settings := model.PoolSettingsOf(&pool)
		if settings.Source == source && settings.Scope == model.PoolShared && s.clusterOf(&pool) == cluster {
			return pool, true
		}
	}
	return model.Resource{}, false
}

// nodesOf are the nodes that see a shared pool: those of its cluster.
func (s *Survey) nodesOf(pool *model.Resource) func(*model.Node) bool {
	cluster := s.clusterOf(pool)
	return func(node *model.Node) bool { return node.ClusterName() == cluster }
}

// clusterOf is the name of the cluster that a record belongs to.
func (m Moment) clusterOf(record *model.Resource) string {
	if cluster, known := m.Resource(record.Links[model.LinkCluster]); known {
		return cluster.Name
	}
	return model.DefaultCluster
}
