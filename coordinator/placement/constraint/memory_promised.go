package constraint

import (
	"math"
	"strconv"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
	"berth/shared/units"
)

// memoryPromised is FCO's uncontended free RAM: physical memory times the RAM contention ratio, less the full size of
// every VM, has to exceed the VM plus the overhead.
var memoryPromised = Constraint{
	Name: "memory-promised",
	Doc: "Physical memory times the RAM contention ratio, less the full size of every VM on the node or on its way, " +
		"exceeds the VM plus the overhead.",
	Check: func(in *rule.Input, node *cluster.NodeView) rule.Verdict {
		if !node.Facts.Inventory || node.Facts.Memory <= 0 {
			return rule.Refuse(unknown)
		}
		return exceed(node.PromisedFree(), needed(in, node)).AtAge(in.At.Sub(node.Facts.InventoryAt))
	},
	Say: func(in *rule.Input, node *cluster.NodeView, refusal rule.Verdict) string {
		if refusal.Code == unknown {
			return "the node's memory is not known"
		}
		return short(refusal, "are left to promise", in, node)
	},
	Relax: func(in *rule.Input, node *cluster.NodeView, refusal rule.Verdict) (rule.Relaxation, bool) {
		if refusal.Code == unknown {
			return rule.Relaxation{}, false
		}
		ratio, possible := enoughRatio(node, needed(in, node))
		if !possible {
			return rule.Relaxation{}, false
		}
		return rule.Relaxation{
			Text: "with ram_ratio " + strconv.FormatFloat(ratio, 'g', -1, 64) + ", " + nameOf(node) + " would take it",
			Cost: ratio - node.Settings.RAMRatio,
		}, true
	},
}

// enoughRatio is the smallest RAM contention ratio, in hundredths, that leaves more to promise than is needed.
func enoughRatio(node *cluster.NodeView, needed units.Bytes) (float64, bool) {
	wanted := float64(node.PromisedUsed) + float64(needed)
	hundredths := math.Ceil(wanted / float64(node.Facts.Memory) * 100)
	for ; hundredths/100 <= cluster.MaxRAMRatio; hundredths++ {
		if math.Floor(float64(node.Facts.Memory)*(hundredths/100)) > wanted {
			return hundredths / 100, true
		}
	}
	return 0, false
}
