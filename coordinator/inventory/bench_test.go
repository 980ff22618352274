package inventory

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// What a decision pays for its view when something has changed since the last one: 10 VMs a node. Made anew, as after a change of a
// cluster; of the last one, after a report; and the same with the columns that a decision reads.
func BenchmarkView(b *testing.B) {
	for _, nodes := range []int{100, 1000, 10000} {
		records := state.NewStore()
		at := time.Now() // it stands still, so that no node falls silent
		store := New(func() time.Time { return at }, hclog.NewNullLogger())
		agents := make([]*agent, nodes)
		for n := range nodes {
			node := fmt.Sprintf("n%05d", n)
			apply(b, records, enrol(node))
			var shown []*berthv1.Domain
			command := state.Command{Key: "vms of " + node, Kind: "setup", At: time.Now()}
			for v := range 10 {
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
			agents[n] = connect(b, store, node)
			agents[n].inventory(shown...)
		}
		reported := 0 // nobody says twice what is so already
		report := func() {
			reported++
			available := int64(1<<36 + reported)
			agents[reported%nodes].telemetry(&berthv1.NodeTelemetry{MemoryAvailableBytes: &available})
		}
		b.Run(fmt.Sprintf("anew/%d_nodes", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				store.views.made = nil
				store.View(records.Snapshot(), at)
			}
		})
		for _, columns := range []bool{false, true} {
			b.Run(fmt.Sprintf("later_with_columns=%t/%d_nodes", columns, nodes), func(b *testing.B) {
				store.View(records.Snapshot(), at).Columns(model.DefaultCluster)
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					report()
					b.StartTimer()
					if view := store.View(records.Snapshot(), at); columns {
						view.Columns(model.DefaultCluster)
					}
				}
			})
		}
	}
}
