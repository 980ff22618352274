package answer

import (
	"slices"
	"strings"

	"berth/coordinator/estate"
	"berth/coordinator/model"
)

// surroundings gather the part of the estate that the rules read to judge one VM.
type surroundings struct {
	*Moment
	now   estate.State
	taken map[string]bool // resources, nodes and VMs, by ID
}

// Around is what the rules read to judge a VM with new links, which a record has by name: what it links to or is to link to
// with everything above that, the VMs that have its disks and NICs already, the nodes that it is on or prefers, and the VM
// itself if it is there. The whole estate would have to be read for every VM that is made; it is for one that groups look at.
// More is what else is named, as kind/name.
func (p *Moment) Around(vm model.VM, links model.VM, more ...string) estate.State {
	labelled := vm
	if labelled.Labels = slices.Concat(vm.Labels, links.Labels); p.inGroups(labelled) {
		return p.Declared()
	}
	s := &surroundings{Moment: p, taken: make(map[string]bool)}
	s.named(model.KindCluster, model.DefaultCluster)
	s.linksOf(vm)
	s.named(model.KindVDC, links.VDC)
	s.named(model.KindOffer, links.Offer)
	s.named(model.KindImage, links.Image)
	s.attached(model.KindDisk, vm.ID, links.Disks)
	s.attached(model.KindNIC, vm.ID, links.NICs)
	for _, ref := range append(more, links.Within) {
		kind, name, _ := strings.Cut(ref, "/")
		s.named(model.Kind(kind), name)
	}
	s.places()
	for _, ref := range slices.Concat([]string{vm.Holder, vm.Home, vm.Bound}, vm.Preferred, links.Preferred) {
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
func (p *Moment) inGroups(vm model.VM) bool {
	return slices.ContainsFunc(p.Groups(), func(r model.Resource) bool {
		group := model.GroupOf(&r, "")
		return group.HasVM(&vm)
	})
}

// places takes all clusters once a zone or a pod is taken: VMs may be placed in any of its clusters.
func (s *surroundings) places() {
	if !slices.ContainsFunc(s.now.Resources, func(r model.Resource) bool { return r.Kind == model.KindZone || r.Kind == model.KindPod }) {
		return
	}
	for _, kind := range []model.Kind{model.KindPod, model.KindCluster} {
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
	for _, above := range LinksOf(found) {
		s.take(above)
	}
	for volume := range found.Volumes() {
		s.take(volume.Pool)
	}
}

func (s *surroundings) linksOf(vm model.VM) {
	for _, id := range slices.Concat([]string{vm.VDC, vm.Within, vm.Offer, vm.Image}, vm.Disks, vm.NICs) {
		s.take(id)
	}
}

func (s *surroundings) named(kind model.Kind, name string) {
	found, _ := s.ResourceByName(kind, name)
	s.take(found.ID)
}

// attached takes disks or NICs, and the other VMs that have them.
func (s *surroundings) attached(kind model.Kind, vm string, names []string) {
	for _, name := range names {
		s.named(kind, name)
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
