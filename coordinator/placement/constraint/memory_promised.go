package constraint

import (
	"math"
	"strconv"

	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
	"berth/shared/units"
)

// memoryPromised is FCO's uncontended free RAM: physical memory times the RAM contention ratio, less the full size of
// every VM, has to exceed the VM plus the overhead.
var memoryPromised = Constraint{
	Name: "memory-promised",
	Doc: "Physical memory times the RAM contention ratio, less the full size of every VM on the node or on its way, " +
		"exceeds the VM plus the overhead.",
	InRoom: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if in.Columns.Known[node]&view.KnowsInventory == 0 {
			return rule.Refuse(unknown)
		}
		return in.AsTold(node, exceed(in.Columns.PromisedFree(node), needed(in, node)))
	},
	Say: func(in *rule.Input, node int, refusal rule.Verdict) string {
		if refusal.Code == unknown {
			return "the node's memory is not known"
		}
		return short(refusal, "are left to promise", in, node)
	},
	Relax: func(in *rule.Input, node int, refusal rule.Verdict) (rule.Relaxation, bool) {
		if refusal.Code == unknown {
			return rule.Relaxation{}, false
		}
		ratio, possible := enoughRatio(in.Columns, node, needed(in, node))
		if !possible {
			return rule.Relaxation{}, false
		}
		return rule.Relaxation{
			Text: "with ram_ratio " + strconv.FormatFloat(ratio, 'g', -1, 64) + ", " + in.Name(node) + " would take it",
			Cost: ratio - in.Columns.RAMRatio[node],
			Apply: func(figures *view.Figures, _ *rule.Input) {
				figures.RAMRatio[0], figures.Promised[0] = ratio, units.Bytes(float64(figures.Memory[0])*ratio)
			},
		}, true
	},
}

// enoughRatio is the smallest RAM contention ratio, in hundredths, that leaves more to promise than is needed.
func enoughRatio(c *view.Columns, node int, needed units.Bytes) (float64, bool) {
	wanted := float64(c.Used.At(node)) + float64(needed)
	hundredths := math.Ceil(wanted / float64(c.Memory[node]) * 100)
	for ; hundredths/100 <= model.MaxRAMRatio; hundredths++ {
		if math.Floor(float64(c.Memory[node])*(hundredths/100)) > wanted {
			return hundredths / 100, true
		}
	}
	return 0, false
}
