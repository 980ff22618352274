package inventory

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// surroundings are what a node has around its VMs, as its last inventory tells. They are read once and then shared.
type surroundings struct {
	pools             []model.PoolFacts
	networks, bridges []string
	models, machines  []string
	hostCPU           string

	poolsKnown, networksKnown bool
}

// The readings of an inventory that may fail.
const (
	readPools    = "storage_pools"
	readNetworks = "networks"
	readBridges  = "bridges"
)

// surroundingsOf reads an inventory. A list that could not be read is not known, and neither is any of one in which nothing
// could be read of the host.
func surroundingsOf(node *berthv1.NodeInventory) surroundings {
	read := func(readings ...string) bool {
		return node.GetMemoryBytes() > 0 && !slices.ContainsFunc(node.GetErrors(), func(e *berthv1.ReadingError) bool {
			return slices.Contains(readings, e.GetReading())
		})
	}
	s := surroundings{
		poolsKnown: read(readPools), networksKnown: read(readNetworks, readBridges), hostCPU: node.GetHostCpu(),
		bridges: ascending(node.GetBridges()), models: ascending(node.GetCpuModels()), machines: ascending(node.GetMachineTypes()),
	}
	for _, pool := range node.GetStoragePools() {
		s.pools = append(s.pools, model.PoolFacts{
			Name: pool.GetName(), Active: pool.GetActive(), Path: pool.GetPath(),
			Capacity: units.Bytes(max(pool.GetCapacityBytes(), 0)), Available: units.Bytes(max(pool.GetAvailableBytes(), 0)),
		})
	}
	slices.SortFunc(s.pools, func(a, b model.PoolFacts) int { return cmp.Compare(a.Name, b.Name) })
	var active []string
	for _, network := range node.GetNetworks() {
		if network.GetActive() {
			active = append(active, network.GetName())
		}
	}
	s.networks = ascending(active)
	return s
}

// ascending is a copy in order, each once.
func ascending(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// tell fills the facts in.
func (s *surroundings) tell(facts *model.NodeFacts) {
	facts.Pools, facts.PoolsKnown = s.pools, s.poolsKnown
	facts.Networks, facts.Bridges, facts.NetworksKnown = s.networks, s.bridges, s.networksKnown
	facts.CPUModels, facts.HostCPU, facts.MachineTypes = s.models, s.hostCPU, s.machines
}
