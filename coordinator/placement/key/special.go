package key

import (
	"math"

	"berth/coordinator/cluster"
)

// The special keys. A node has them by itself, always with a value between 0 (idle) and 1 (full).
const (
	RAM  = "#RAM"  // allocated memory by promised limit
	CPU  = "#CPU"  // allocated vCPUs by their limit
	Load = "#LOAD" // how busy the node is
)

// SpecialKeys is how many there are.
const SpecialKeys = 3

// Special is one special key of a node. Known is false when it could not be measured.
type Special struct {
	Value
	Known bool
}

// ClusterDefaults are the special keys that every cluster starts with: no contention and no load are the target. The
// design gives no default weights; with these an idle node scores 100 and a node with up to 20 % average contention
// still falls in the first band.
func ClusterDefaults() []Weighted {
	return []Weighted{{Name: RAM, Weight: 40}, {Name: CPU, Weight: 30}, {Name: Load, Weight: 30}}
}

// SpecialsOf measures a node's special keys from its accounting, before the VM to be placed is added.
func SpecialsOf(node *cluster.NodeView) [SpecialKeys]Special {
	ram, ramKnown := share(float64(node.PromisedUsed), float64(node.PromisedLimit))
	cpu, cpuKnown := share(float64(node.VCPUsUsed), node.VCPULimit)
	load, loadKnown := LoadOf(&node.Facts)
	return [SpecialKeys]Special{
		{Value{RAM, ram}, ramKnown},
		{Value{CPU, cpu}, cpuKnown},
		{Value{Load, load}, loadKnown},
	}
}

// LoadOf is how busy a node is, 0 to 1: its load average over one minute by its CPUs, or the busy share of its CPUs where
// no load average could be read. It is false when neither is known.
func LoadOf(facts *cluster.NodeFacts) (float64, bool) {
	switch {
	case !facts.Telemetry:
		return 0, false
	case facts.Load1 != nil && facts.Inventory && facts.CPUs > 0:
		return share(*facts.Load1, float64(facts.CPUs))
	case facts.CPUBusy != nil:
		return share(*facts.CPUBusy, 1)
	default:
		return 0, false
	}
}

// share is used by limit, clamped to 0 to 1.
func share(used, limit float64) (float64, bool) {
	if math.IsNaN(used) || math.IsNaN(limit) || limit <= 0 {
		return 0, false
	}
	return min(max(used/limit, 0), 1), true
}
