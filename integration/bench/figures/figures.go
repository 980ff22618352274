// Package figures measures what it costs to tell Prometheus of a large site.
package figures

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"berth/coordinator/metrics"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/view"
	"berth/integration/bench/report"
	"berth/shared/exposition"
	"berth/shared/units"
)

// The site of M1, and what a page of its figures may cost.
const (
	nodes       = 10_000
	vmsANode    = 5
	mostSeconds = 1.0
	mostGarbage = 50e6 // bytes
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// pageSize counts what is written.
type pageSize struct{ bytes int64 }

func (p *pageSize) Write(data []byte) (int, error) {
	p.bytes += int64(len(data))
	return len(data), nil
}

// Measure is M1: the page that Prometheus reads from the leader of a large site, written so many times.
func Measure(ctx context.Context, rounds int) ([]report.Row, error) {
	scrape := site()
	var size pageSize
	var took, garbage report.Figures
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		size = pageSize{}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		page := exposition.NewPage(&size)
		metrics.Write(page, scrape)
		if err := page.Flush(); err != nil {
			return nil, err
		}
		took.Add(time.Since(begun))
		runtime.ReadMemStats(&after)
		garbage = append(garbage, float64(after.TotalAlloc-before.TotalAlloc))
	}
	return []report.Row{{
		Goal: "M1", What: fmt.Sprintf("figures of %d nodes and %d VMs, written as Prometheus reads them", nodes, nodes*vmsANode),
		Measured: fmt.Sprintf("%s, %s of garbage, a page of %s", took.Latency(), garbage.Spread(report.Megabytes),
			report.Megabytes(float64(size.bytes))),
		Against: "the goal's own limits", Wanted: "<= 1 s, <= 50 MB of garbage",
		Verdict: report.Both(report.Judge(took.Median(), mostSeconds), report.Judge(garbage.Quantile(1), mostGarbage)),
	}}, nil
}

// site is a site in which every node tells everything.
func site() *metrics.Scrape {
	records, facts := view.Records{}, make(map[string]model.NodeFacts, nodes)
	var vms []model.VM
	for i := range nodes {
		id := fmt.Sprintf("4f1c9a60-0000-4000-8000-%012d", i)
		records.Nodes = append(records.Nodes, model.Node{
			ID: id, Name: fmt.Sprintf("hypervisor-%05d", i), Cluster: fmt.Sprintf("cluster-%d", i%50),
		})
		var domains []model.Domain
		for k := range vmsANode {
			uuid := fmt.Sprintf("7b2d%04d-0000-4000-8000-%012d", k, i)
			domains = append(domains, model.Domain{
				UUID: uuid, Name: "vm-" + uuid, State: model.DomainRunning, Memory: 8 * units.GiB, VCPUs: 4, Managed: true,
				Resident: new(6*units.GiB + units.Bytes(i)), CPU: new(0.5 + float64(k)/7), Delay: new(0.0123),
				Pressure: &model.DomainPressure{CPU: 1.25, IO: 0.37},
			})
			vms = append(vms, model.VM{ID: uuid, Name: "vm-" + uuid, Holder: id, Desired: model.Running})
		}
		facts[id] = model.NodeFacts{
			Liveness: model.Up, Inventory: true, InventoryAt: noon, Memory: 512 * units.GiB, CPUs: 64, Release: "0.1.0",
			Domains: domains, DomainsKnown: true, Telemetry: true, TelemetryAt: noon, Available: new(300*units.GiB + units.Bytes(i)),
			KSMSaved: new(units.GiB), Load1: new(4.25), CPUBusy: new(0.2523), CPUSteal: new(0.001), CPUPressure: new(12.5),
			MemoryPressure: new(0.51), IOPressure: new(3.07), VCPUDelay: new(2.3),
		}
	}
	return &metrics.Scrape{
		At: noon, Totals: metrics.NewTotals(noon), Member: metrics.Member{Name: "c1", Leads: true, LeaderKnown: true},
		Site: &metrics.Site{
			View: view.Over(noon, 1, records, view.List(vms), facts), States: []string{"running"},
			VMs: func(yield func(*model.VM) bool) {
				for i := range vms {
					if !yield(&vms[i]) {
						return
					}
				}
			},
			State: func(*model.VM) string { return "running" }, Operations: slices.Values([]*operation.Operation(nil)),
		},
	}
}
