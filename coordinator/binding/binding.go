// Package binding tells what keeps a running VM on its node. libvirt does not migrate everything, and what only one node has is not there
// on another. It is pure: records and reports go in, and bindings come out.
package binding

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// Records are where pools are looked up.
type Records interface {
	Resource(id string) (model.Resource, bool)
	Resources(kind model.Kind) []model.Resource
}

// SharedPools are the pools that all nodes of a cluster see, by libvirt's name: those that are declared so.
func SharedPools(records Records, cluster string) map[string]bool {
	shared, pools := map[string]bool{}, records.Resources(model.KindPool)
	for i := range pools {
		settings := model.PoolSettingsOf(&pools[i])
		if settings.Scope == model.PoolShared && clusterOf(records, &pools[i]) == cluster {
			shared[settings.Source] = true
		}
	}
	return shared
}

// clusterOf is the name of a pool's cluster.
func clusterOf(records Records, pool *model.Resource) string {
	inside, _ := records.Resource(pool.Links[schema.LinkCluster])
	return cmp.Or(inside.Name, model.DefaultCluster)
}

// InShared tells whether a source is a volume of a shared pool, or a file in the folder that a node has such a pool in.
func InShared(shared map[string]bool, source model.DiskSource, facts *model.NodeFacts) bool {
	if source.Path == "" {
		return shared[source.Pool]
	}
	return slices.ContainsFunc(facts.Pools, func(p model.PoolFacts) bool {
		return shared[p.Name] && inFolder(source.Path, p.Path)
	})
}

// inFolder tells whether a file is in a pool's folder; no pool has the empty one.
func inFolder(file, folder string) bool {
	return folder != "" && strings.HasPrefix(path.Clean(file), strings.TrimSuffix(folder, "/")+"/")
}

// Lacks are the permissions that a VM needs and that its cluster does not give, with commas between: its document is given to no other
// node.
func Lacks(records Records, vm *model.VM, cluster string) string {
	if vm.Needs == "" && vm.Drift == nil {
		return ""
	}
	clusters := records.Resources(model.KindCluster)
	at := slices.IndexFunc(clusters, func(r model.Resource) bool { return r.Name == cluster })
	if at < 0 {
		return vm.Lacks(nil)
	}
	return vm.Lacks(&clusters[at])
}

// Of are the bindings of a running VM as its node shows it; none: nothing keeps it, or its agent does not tell. Media that all nodes of the
// cluster see bind it to none, and while an operation works on the VM its migration is Berth's.
func Of(records Records, vm *model.VM, cluster string, node *model.NodeFacts) []model.Binding {
	domain := node.Domain(vm.ID)
	if domain == nil || vm.Holder == "" || domain.State == model.DomainShutoff || domain.Epoch != vm.Epoch {
		return nil
	}
	lacks := Lacks(records, vm, cluster)
	stands := domain.State == model.DomainPaused && vm.Operation == ""
	if len(domain.Bindings) == 0 && !stands && lacks == "" {
		return nil
	}
	var shared map[string]bool
	seed := model.VolumeName(model.SeedID(vm.ID), model.SeedSuffix) // it is where the VM's disks are, and goes where they go
	all := slices.Clone(domain.Bindings)
	if lacks != "" {
		all = slices.Insert(all, 0, model.Binding{Kind: model.BoundByPermission, What: lacks, Name: cluster})
	}
	if stands {
		all = append(all, model.Binding{Kind: model.BoundByPause, What: domain.Reason})
	}
	return slices.DeleteFunc(all, func(b model.Binding) bool {
		if b.Kind == model.BoundByMedia {
			if b.Source.Volume == seed || path.Base(b.Source.Path) == seed {
				return true
			}
			if shared == nil {
				shared = SharedPools(records, cluster)
			}
			return InShared(shared, b.Source, node)
		}
		return b.Kind == model.BoundByJob && b.What == model.MigrationJob && vm.Operation != ""
	})
}

// Texts are what keeps a VM on its node with what lets it go, for people.
func Texts(vm string, bindings []model.Binding) []string {
	const most = 8
	texts := make([]string, 0, min(len(bindings), most))
	for i := range bindings[:min(len(bindings), most)] {
		texts = append(texts, bindings[i].Text()+": "+bindings[i].WayOut(vm))
	}
	return texts
}

// Jobs are those of somebody else that a running VM has, as its node shows it: they do not outlive the guest.
func Jobs(vm *model.VM, node *model.NodeFacts) (jobs []model.Binding) {
	if domain := node.Domain(vm.ID); domain != nil && vm.Holder != "" && vm.Operation == "" && domain.Epoch == vm.Epoch {
		for _, one := range domain.Bindings {
			if one.IsJob() {
				jobs = append(jobs, one)
			}
		}
	}
	return jobs
}
