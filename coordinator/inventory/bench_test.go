package inventory

import (
	"fmt"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// What a decision pays for its view when something has changed since the last one: 20 VMs a node.
func BenchmarkView(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		records := state.NewStore()
		store := newStore()
		for n := range nodes {
			node := fmt.Sprintf("n%04d", n)
			apply(b, records, enrol(node))
			var shown []*berthv1.Domain
			command := state.Command{Key: "vms of " + node, Kind: "setup", At: time.Now()}
			for v := range 20 {
				id := fmt.Sprintf("%s-%02d", node, v)
				command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: id})
				command.VMs = append(command.VMs, model.VM{
					ID: id, Name: id, Desired: model.Running, Holder: node, Epoch: 1,
					Spec:     model.VMSpec{Memory: units.GiB, VCPUs: 1},
					Resident: []model.ResidentKey{{Class: model.CustomerKey, Name: "Group", Value: 1}},
				})
				shown = append(shown, running(id))
			}
			apply(b, records, command)
			connect(b, store, node).inventory(shown...)
		}
		b.Run(fmt.Sprintf("%d_nodes", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				store.last.Store(nil)
				store.View(records.Snapshot(), time.Now())
			}
		})
	}
}
