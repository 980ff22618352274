package view

import (
	"cmp"
	"slices"
	"sync"

	"berth/coordinator/cpumodel"
	"berth/coordinator/model"
)

// CPUBaseline is the CPU model that VMs of a cluster get when they ask for none: the cluster's own setting, or else the best
// one that every node of the cluster can run which has told what it can, so that each of them is a target for a migration.
// Empty: no node has told, or there is none that they have in common.
func (v *View) CPUBaseline(clusterName string) string {
	if record, _, known := v.Cluster(clusterName); known && record.Settings[model.SettingCPUModel] != "" {
		return record.Settings[model.SettingCPUModel]
	}
	o := v.origin()
	shared := o.gathered.baselines
	shared.once.Do(func() { shared.models = o.baselines() })
	return shared.models[clusterName]
}

// baselines are those of all clusters, as soon as somebody asks for one.
type baselines struct {
	once   sync.Once
	models map[string]string // by cluster
}

// sameModels tells whether a node says the same of CPU models in two accounts of it.
func sameModels(before, now *NodeView) bool {
	return before.Facts.Inventory == now.Facts.Inventory && before.Node.ClusterName() == now.Node.ClusterName() &&
		slices.Equal(before.Facts.CPUModels, now.Facts.CPUModels)
}

// baselines are those of all clusters.
func (v *View) baselines() map[string]string {
	common := make(map[string][]string)
	for _, node := range v.Nodes.All() {
		if !node.Facts.Inventory || len(node.Facts.CPUModels) == 0 {
			continue
		}
		name := cmp.Or(node.Node.Cluster, model.DefaultCluster)
		models, told := common[name]
		if !told {
			models = slices.Clone(node.Facts.CPUModels)
		}
		common[name] = slices.DeleteFunc(models, func(model string) bool {
			_, has := slices.BinarySearch(node.Facts.CPUModels, model)
			return !has
		})
	}
	best := make(map[string]string, len(common))
	for name, models := range common {
		best[name] = cpumodel.Best(models)
	}
	return best
}
