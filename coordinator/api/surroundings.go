package api

import (
	"slices"
	"strings"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
)

// surroundings gather the part of the estate that the rules read to judge one VM.
type surroundings struct {
	*picture
	now   estate.State
	taken map[string]bool // resources, nodes and VMs, by ID
}

// around is what the rules read to judge a VM with new links: what it links to or is to link to with everything above that,
// the VMs that have its disks and NICs already, the nodes that it is on or prefers, and the VM itself if it is there. The whole
// estate would have to be read for every VM that is made; it is for one that groups look at. More is what else is named, as
// kind/name.
func (p *picture) around(vm cluster.VM, links estate.VMLinks, more ...string) estate.State {
	if p.inGroups(vm) {
		return p.declared()
	}
	s := &surroundings{picture: p, taken: make(map[string]bool)}
	s.named(cluster.KindCluster, new(cluster.DefaultCluster))
	s.linksOf(vm)
	s.named(cluster.KindVDC, links.VDC)
	s.named(cluster.KindOffer, links.Offer)
	s.named(cluster.KindImage, links.Image)
	s.attached(cluster.KindDisk, vm.ID, links.Disks)
	s.attached(cluster.KindNIC, vm.ID, links.NICs)
	if links.Within != nil {
		more = append(more, *links.Within)
	}
	for _, ref := range more {
		kind, name, _ := strings.Cut(ref, "/")
		s.named(cluster.Kind(kind), &name)
	}
	s.places()
	nodes := slices.Concat([]string{vm.Holder, vm.Home}, vm.Preferred)
	if links.Preferred != nil {
		nodes = append(nodes, *links.Preferred...)
	}
	for _, ref := range nodes {
		if node, known := p.NodeByRef(ref); known && !s.taken[node.ID] {
			s.taken[node.ID] = true
			s.now.Nodes = append(s.now.Nodes, node)
		}
	}
	if there, known := p.VM(vm.ID); known {
		s.now.VMs = append(s.now.VMs, there) // the last one: of two with one disk it is the one to be told
	}
	return s.now
}

// inGroups tells whether a group may have a VM among its members: by name, or by a label. Clusters need not be looked at: a
// VM may be about to change its own.
func (p *picture) inGroups(vm cluster.VM) bool {
	return slices.ContainsFunc(p.Groups(), func(r cluster.Resource) bool {
		group := cluster.GroupOf(&r, "")
		return group.HasVM(&vm)
	})
}

// places takes all clusters once a zone or a pod is taken: VMs may be placed in any of its clusters.
func (s *surroundings) places() {
	if !slices.ContainsFunc(s.now.Resources, func(r cluster.Resource) bool { return r.Kind == cluster.KindZone || r.Kind == cluster.KindPod }) {
		return
	}
	for _, kind := range []cluster.Kind{cluster.KindPod, cluster.KindCluster} {
		for _, record := range s.Resources(kind) {
			s.take(record.ID)
		}
	}
}

// take takes a resource and what is above it.
func (s *surroundings) take(id string) {
	found, known := s.Resource(id)
	if !known || s.taken[id] {
		return
	}
	s.taken[id] = true
	s.now.Resources = append(s.now.Resources, found)
	for _, above := range linksOf(found) {
		s.take(above)
	}
	for volume := range found.Volumes() {
		s.take(volume.Pool)
	}
}

func (s *surroundings) linksOf(vm cluster.VM) {
	for _, id := range slices.Concat([]string{vm.VDC, vm.Within, vm.Offer, vm.Image}, vm.Disks, vm.NICs) {
		s.take(id)
	}
}

func (s *surroundings) named(kind cluster.Kind, name *string) {
	if name != nil {
		found, _ := s.ResourceByName(kind, *name)
		s.take(found.ID)
	}
}

// attached takes disks or NICs, and the other VMs that have them.
func (s *surroundings) attached(kind cluster.Kind, vm string, names *[]string) {
	if names == nil {
		return
	}
	for _, name := range *names {
		s.named(kind, &name)
		found, _ := s.ResourceByName(kind, name)
		for _, user := range s.VMsLinkedTo(found.ID) {
			if user.ID != vm && !s.taken[user.ID] {
				s.taken[user.ID] = true
				s.now.VMs = append(s.now.VMs, user)
				s.linksOf(user)
			}
		}
	}
}
