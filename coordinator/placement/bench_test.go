package placement

import (
	"fmt"
	"testing"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/rule"
	"berth/shared/units"
)

// crowd is a cluster of n nodes with ten VMs each; one node in eight is full.
func crowd(n int) *cluster.View {
	var nodes []cluster.Node
	var vms []cluster.VM
	facts := make(map[string]cluster.NodeFacts, n)
	for i := range n {
		id := fmt.Sprintf("n%06d", i)
		nodes = append(nodes, cluster.Node{ID: id, Name: id})
		size := 8 * units.GiB
		if i%8 == 0 {
			size = 52 * units.GiB
		}
		for v := range 10 {
			vms = append(vms, cluster.VM{
				ID: fmt.Sprintf("%s-%d", id, v), Holder: id, StartedAt: noon.Add(-time.Hour),
				Spec: cluster.VMSpec{Memory: size, VCPUs: 1 + (i+v)%8},
			})
		}
		facts[id] = cluster.NodeFacts{
			Liveness: cluster.Up, Inventory: true, InventoryAt: noon, DomainsKnown: true, Memory: 512 * units.GiB, CPUs: 64,
			Telemetry: true, TelemetryAt: noon, Available: ptr(300 * units.GiB), Load1: ptr(float64(i%640) / 10),
		}
	}
	return cluster.NewView(noon, 1, cluster.Records{Nodes: nodes, VMs: vms}, facts)
}

var sizes = []int{10, 100, 1000, 10000}

// BenchmarkPlace is a whole decision with its record for people.
func BenchmarkPlace(b *testing.B) {
	for _, n := range sizes {
		view := crowd(n)
		request := Request{Purpose: ForStart, VM: "new", VMName: "new", Memory: 4 * units.GiB, VCPUs: 2}
		for name, policy := range policies() {
			b.Run(fmt.Sprintf("%s/nodes=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if Place(view, request, policy, 1).Outcome != Placed {
						b.Fatal("no node fits")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
			})
		}
	}
}

// BenchmarkDecide is the same without the record: Filter to Select.
func BenchmarkDecide(b *testing.B) {
	for _, n := range sizes {
		view := crowd(n)
		for name, policy := range policies() {
			engine, err := policy.compile()
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/nodes=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r := &run{engine: engine, view: view, seed: 1, input: rule.Input{
						At: view.At, Memory: 4 * units.GiB, VCPUs: 2, SystemKeys: key.ClusterDefaults(),
					}}
					r.filter()
					r.candidates = engine.choose(&r.input, view.Nodes, r.admitted, r.seed)
					if !r.placed() {
						b.Fatal("no node fits")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
			})
		}
	}
}

func policies() map[string]Policy {
	bands := Affinity()
	bands.Gate = Bands()
	return map[string]Policy{"best": Affinity(), "bands": bands}
}
