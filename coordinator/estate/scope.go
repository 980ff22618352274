package estate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// ErrNoCluster is wrapped by the error about a VM that no cluster may take.
var ErrNoCluster = errors.New("no cluster may take it")

// scope is where a VM may be placed by what its VDC and the VM itself say.
type scope struct {
	clusters []model.Resource // by name
	said     string           // what says so, in words: "vdc/web names pod/p1"
	unsaid   bool             // nothing does: it is the default cluster
}

func (s *scope) has(clusterName string) bool {
	return slices.ContainsFunc(s.clusters, func(r model.Resource) bool { return r.Name == clusterName })
}

// named is the cluster of the scope with this name.
func (s *scope) named(clusterName string) (model.Resource, bool) {
	return first(s.clusters, func(r *model.Resource) bool { return r.Name == clusterName })
}

// places are the links that say where VMs run, narrowest first.
var places = []schema.Link{
	{Name: schema.LinkCluster, To: model.KindCluster}, {Name: schema.LinkPod, To: model.KindPod}, {Name: schema.LinkZone, To: model.KindZone},
}

// scopes finds where VMs may be placed. It looks at all clusters once, and only for those that are bound to no single one.
type scopes struct {
	walk
	clusters []model.Resource // all, by name, once they are needed
	known    map[[2]string]scope
}

func scopesOf(source Source) *scopes { return &scopes{walk: walk{source: source}} }

// of is where a VM may be placed. The error wraps ErrDangling or ErrNoCluster.
func (s *scopes) of(vm *model.VM) (scope, error) {
	if found, known := s.known[[2]string{vm.VDC, vm.Within}]; known {
		return found, nil
	}
	s.err = nil
	subject := schema.Ref(model.KindVM, vm.Name)
	vdc := s.follow(subject, schema.LinkVDC, model.KindVDC, vm.VDC)
	var found scope
	switch {
	case vm.VDC != "" && vm.Within != "":
		found = s.narrowed(s.under(vdc), s.within(subject, vm.Within), schema.Ref(vdc.Kind, vdc.Name))
	case vm.Within != "":
		found = s.within(subject, vm.Within)
	default:
		found = s.under(vdc)
	}
	if s.err != nil {
		return scope{}, s.err
	}
	if s.known == nil {
		s.known = make(map[[2]string]scope)
	}
	s.known[[2]string{vm.VDC, vm.Within}] = found
	return found, nil
}

// under is where the VMs of a VDC may be placed, or of no VDC: that is the default cluster.
func (s *scopes) under(vdc model.Resource) scope {
	for _, link := range places {
		if id := vdc.Links[link.Name]; id != "" {
			return s.in(schema.Ref(vdc.Kind, vdc.Name), s.place(schema.Ref(vdc.Kind, vdc.Name), link.Name, link.To, id))
		}
	}
	said := "nothing names another cluster"
	if vdc.ID != "" {
		said = schema.Ref(vdc.Kind, vdc.Name) + " names no other cluster"
	}
	return scope{clusters: []model.Resource{s.namedCluster(model.DefaultCluster)}, said: said, unsaid: true}
}

// OpenTo are the clusters, by name, that VMs of a customer may go to by what its VDCs name. A VDC that names nothing is for the
// default cluster; of one whose place is not there any more, or has no cluster, nothing is open.
func OpenTo(source Source, customer string) map[string]bool {
	s := scopesOf(source)
	open := make(map[string]bool)
	for _, vdc := range allOf(source, model.KindVDC) {
		if vdc.Links[schema.LinkCustomer] != customer {
			continue
		}
		s.err = nil
		for _, record := range s.under(vdc).clusters {
			if s.err == nil {
				open[record.Name] = true
			}
		}
	}
	return open
}

// within is what a VM itself says.
func (s *scopes) within(subject, id string) scope {
	kind := model.KindCluster
	if found, ok := s.source.Resource(id); ok && (found.Kind == model.KindPod || found.Kind == model.KindZone) {
		kind = found.Kind
	}
	return s.in(subject, s.place(subject, string(kind), kind, id))
}

// place is the zone, pod or cluster that a link leads to. The default cluster is there without being declared.
func (s *scopes) place(subject, link string, kind model.Kind, id string) model.Resource {
	if kind == model.KindCluster && id == model.DefaultCluster {
		return s.namedCluster(model.DefaultCluster)
	}
	return s.follow(subject, link, kind, id)
}

// in are the clusters of a zone, a pod or a cluster that somebody names.
func (s *scopes) in(subject string, place model.Resource) scope {
	if s.err != nil {
		return scope{}
	}
	found := scope{said: subject + " names " + schema.Ref(place.Kind, place.Name)}
	if place.Kind == model.KindCluster {
		found.clusters = []model.Resource{place}
		return found
	}
	pods := map[string]bool{place.ID: true}
	if place.Kind == model.KindZone {
		clear(pods)
		for _, pod := range allOf(s.source, model.KindPod) {
			pods[pod.ID] = pod.Links[schema.LinkZone] == place.ID
		}
	}
	for _, record := range s.all() {
		if pods[record.Links[schema.LinkPod]] {
			found.clusters = append(found.clusters, record)
		}
	}
	if len(found.clusters) == 0 {
		s.err = fmt.Errorf("%s has no clusters, and %s: %w: put one in with 'berth cluster set NAME --pod POD'",
			schema.Ref(place.Kind, place.Name), found.said, ErrNoCluster)
	}
	return found
}

// all are the clusters that are declared, by name.
func (s *scopes) all() []model.Resource {
	if s.clusters == nil {
		s.clusters = allOf(s.source, model.KindCluster)
		slices.SortFunc(s.clusters, func(a, b model.Resource) int { return cmp.Compare(a.Name, b.Name) })
	}
	return s.clusters
}

// record is the cluster that a VM is in: the one that it is bound to, else the first of those that may take it. A VM that
// runs, and that more than a cluster's name says where, is asked where it runs first: that needs no look at all clusters.
func (s *scopes) record(vm *model.VM) (model.Resource, error) {
	if node, held := s.source.Node(vm.Holder); held && vm.Holder != "" && s.wide(vm) {
		record := s.namedCluster(cmp.Or(node.Cluster, model.DefaultCluster))
		return record, s.err
	}
	found, err := s.of(vm)
	if err != nil {
		return model.Resource{}, err
	}
	name, _, err := s.settled(vm)
	if err != nil || name == "" {
		return found.clusters[0], err
	}
	if record, inside := found.named(name); inside {
		return record, nil
	}
	record := s.namedCluster(name)
	return record, s.err
}

// wide tells whether a VM may be placed in more than what its VDC alone names.
func (s *scopes) wide(vm *model.VM) bool {
	if vm.Within != "" {
		return true
	}
	vdc, _ := s.source.Resource(vm.VDC)
	return vdc.Links[schema.LinkPod] != "" || vdc.Links[schema.LinkZone] != ""
}

// narrowed is the part of what a VM says that is inside what its VDC says. All of it has to be.
func (s *scopes) narrowed(outer, inner scope, vdc string) scope {
	if s.err != nil {
		return scope{}
	}
	for i := range inner.clusters {
		if !outer.has(inner.clusters[i].Name) {
			s.err = fmt.Errorf("%s, but %s: %w: name a place inside that, or another VDC than %s", inner.said, outer.said, ErrNoCluster, vdc)
			return scope{}
		}
	}
	return inner
}

// settled is the one cluster that a VM is bound to, and why in words. No name: more than one may take it.
func (s *scopes) settled(vm *model.VM) (clusterName, why string, err error) {
	found, err := s.of(vm)
	if err != nil {
		return "", "", err
	}
	if len(found.clusters) == 1 {
		return found.clusters[0].Name, found.said, nil
	}
	subject := schema.Ref(model.KindVM, vm.Name)
	if node, held := s.source.Node(vm.Holder); held && vm.Holder != "" {
		return cmp.Or(node.Cluster, model.DefaultCluster), "it runs on " + schema.Ref(model.KindNode, node.Name), nil
	}
	for _, id := range vm.Disks {
		disk, pool := s.poolOf(subject, id)
		if s.err != nil {
			return "", "", s.err
		}
		if pool.ID == "" {
			continue
		}
		name, _ := clusterNamed(s.source, pool.Links[schema.LinkCluster])
		why := "is to be made in "
		if disk.Volume != nil {
			why = "is in "
		}
		return name, fmt.Sprintf("its disk %s %s%s in cluster %s", disk.Name, why, schema.Ref(pool.Kind, pool.Name), name), nil
	}
	if node, known := s.source.Node(vm.Home); known && vm.Home != "" {
		return cmp.Or(node.Cluster, model.DefaultCluster), "its disk is on " + schema.Ref(model.KindNode, node.Name), nil
	}
	return "", "", nil
}

// ClusterOf tells of VMs which cluster each is in, by name. A VM that more than one cluster may take is in none until it runs
// or one of its disks is made. What the function has learnt of the source it remembers.
func ClusterOf(source Source) func(vm *model.VM) string {
	s := scopesOf(source)
	return func(vm *model.VM) string {
		name, _, err := s.settled(vm)
		if err != nil {
			return ""
		}
		return name
	}
}

// poolOf is the pool that a disk is in or, as somebody wants it, is to be made in; none: any will do.
func (w *walk) poolOf(subject, id string) (disk, pool model.Resource) {
	disk = w.follow(subject, "disk", model.KindDisk, id)
	if disk.Volume != nil {
		return disk, w.follow(schema.Ref(disk.Kind, disk.Name), schema.LinkPool, model.KindPool, disk.Volume.Pool)
	}
	return disk, w.link(disk, schema.LinkPool, model.KindPool)
}
