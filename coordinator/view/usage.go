package view

import (
	"cmp"

	"berth/coordinator/model"
	"berth/shared/units"
)

// Usage is how much of a cluster is used, in flight included: of its nodes that stand well, because the others have nothing
// to offer.
type Usage struct {
	Nodes       int // that stand well
	VCPUs       int
	VCPULimit   float64 // CPUs times their contention ratio
	Memory      units.Bytes
	MemoryLimit units.Bytes // memory times its contention ratio
}

// Usage is that of each cluster, by name. A cluster without a node that stands well has none.
func (v *View) Usage() map[string]Usage {
	all := make(map[string]Usage)
	for _, node := range v.Nodes.All() {
		if standingOf(node) != Stands || !node.Facts.Inventory {
			continue
		}
		name := cmp.Or(node.Node.Cluster, model.DefaultCluster)
		one := all[name]
		one.Nodes++
		one.VCPUs, one.VCPULimit = one.VCPUs+node.VCPUsUsed, one.VCPULimit+node.VCPULimit
		one.Memory, one.MemoryLimit = add(one.Memory, node.PromisedUsed), add(one.MemoryLimit, node.PromisedLimit)
		all[name] = one
	}
	return all
}

// Add is what two clusters use together.
func (u Usage) Add(other Usage) Usage {
	return Usage{
		Nodes: u.Nodes + other.Nodes, VCPUs: u.VCPUs + other.VCPUs, VCPULimit: u.VCPULimit + other.VCPULimit,
		Memory: add(u.Memory, other.Memory), MemoryLimit: add(u.MemoryLimit, other.MemoryLimit),
	}
}

// CPUShare is the used share of the vCPUs, which may exceed 1; 1 where there are none at all.
func (u Usage) CPUShare() float64 {
	if u.VCPULimit <= 0 {
		return 1
	}
	return float64(u.VCPUs) / u.VCPULimit
}

// MemoryShare is the used share of the memory, which may exceed 1; 1 where there is none.
func (u Usage) MemoryShare() float64 {
	if u.MemoryLimit <= 0 {
		return 1
	}
	return float64(u.Memory) / float64(u.MemoryLimit)
}

// Share is the used share of one kind of capacity: CapacityCPU, CapacityRAM, or CapacityCombined, in which the CPU has a weight
// from 0 to 1 and the memory the rest.
func (u Usage) Share(capacity string, cpuWeight float64) float64 {
	switch capacity {
	case model.CapacityRAM:
		return u.MemoryShare()
	case model.CapacityCombined:
		return cpuWeight*u.CPUShare() + (1-cpuWeight)*u.MemoryShare()
	default:
		return u.CPUShare()
	}
}
