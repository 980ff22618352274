package main

import (
	"context"
	"fmt"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/across"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
	"berth/integration/bench/report"
	"berth/shared/units"
)

// The estate that placements over clusters are measured on: 12 pods of 5 clusters of 20 nodes, each with 10 VMs of some
// hundred customers.
const (
	acrossPods, acrossClusters, acrossNodes, acrossVMs = 12, 5, 20, 10
	acrossCustomers                                    = 100
)

// acrossSite makes the records, the facts and what is searched.
func acrossSite(planner, level string) (view.Records, map[string]model.NodeFacts, across.Search) {
	var records view.Records
	facts := make(map[string]model.NodeFacts)
	search := across.Search{Planner: planner, Level: level, Weight: 1, Capacity: model.CapacityCPU}
	started := decidedAt.Add(-time.Hour)
	available, load := 200*units.GiB, 4.0
	for pod := range acrossPods {
		for c := range acrossClusters {
			name := fmt.Sprintf("p%02d-c%d", pod, c)
			record := model.DefaultClusterRecord()
			record.ID, record.Name = name, name
			records.Clusters = append(records.Clusters, record)
			search.Options = append(search.Options, across.Option{
				Cluster: name, Pod: fmt.Sprint("p", pod), Policy: policies.Default(), Threshold: model.DefaultCapacityThreshold,
			})
			for n := range acrossNodes {
				id := fmt.Sprintf("%s-n%02d", name, n)
				records.Nodes = append(records.Nodes, model.Node{ID: id, Name: id, Cluster: name})
				facts[id] = model.NodeFacts{
					Liveness: model.Up, Inventory: true, InventoryAt: decidedAt, DomainsKnown: true, Memory: 256 * units.GiB, CPUs: 64,
					Telemetry: true, TelemetryAt: decidedAt, Available: &available, Load1: &load,
				}
				for v := range acrossVMs {
					number := len(records.VMs)
					records.VMs = append(records.VMs, model.VM{
						ID: fmt.Sprintf("vm-%06d", number), Holder: id, StartedAt: started, Desired: model.Running,
						Spec:  model.VMSpec{Memory: 2 * units.GiB, VCPUs: 1 + v%4},
						Owner: model.Owner{Customer: fmt.Sprint("customer-", number*7%acrossCustomers)},
					})
				}
			}
		}
	}
	for i := range search.Options {
		one := newcomer()
		one.Cluster, one.Planner, one.Owner = search.Options[i].Cluster, planner, model.Owner{Customer: "customer-1"}
		search.Options[i].Request = one
	}
	return records, facts, search
}

// measureAcross is C1: placements over sixty clusters, each with its record, on a view that is there and on one that has to be
// made first, as it has after every change.
func measureAcross(ctx context.Context, b *bench) (rows []report.Row, err error) {
	defer alone()()
	for _, one := range []struct{ planner, level string }{
		{"first-fit", model.LevelCluster}, {"user-dispersing", model.LevelCluster}, {"user-dispersing", model.LevelPod},
	} {
		records, facts, search := acrossSite(one.planner, one.level)
		kept := view.New(decidedAt, 1, records, facts)
		var there, anew report.Figures
		for seed := range uint64(b.rounds(20, 300)) {
			if err := ctx.Err(); err != nil {
				return rows, err
			}
			begun := time.Now()
			decision := across.Place(kept, search, seed)
			there.Add(time.Since(begun))
			if decision.Outcome != placement.Placed {
				return rows, fmt.Errorf("%w: %s", errNoNode, decision.Reason)
			}
			begun = time.Now()
			across.Place(view.New(decidedAt, 1, records, facts), search, seed)
			anew.Add(time.Since(begun))
		}
		rows = append(rows, report.Row{
			Goal: "C1",
			What: fmt.Sprintf("%d clusters, %d nodes, %d VMs: a placement by %s at %s level, with its record",
				len(search.Options), len(records.Nodes), len(records.VMs), one.planner, one.level),
			Measured: fmt.Sprintf("%s, %s a second; with the view made anew %s, %s a second",
				there.Latency(), report.Digits(1/there.Median()), anew.Latency(), report.Digits(1/anew.Median())),
			Against: "the goal's own limit", Wanted: ">= 20 a second with the view made anew", Verdict: report.Judge(20, 1/anew.Median()),
		})
	}
	return rows, nil
}
