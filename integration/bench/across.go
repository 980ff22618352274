package main

import (
	"context"
	"fmt"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// The estate that placements over clusters are measured on: 12 pods of 5 clusters of 20 nodes, each with 10 VMs of some
// hundred customers.
const (
	acrossPods, acrossClusters, acrossNodes, acrossVMs = 12, 5, 20, 10
	acrossCustomers                                    = 100
)

// acrossSite makes the records, the facts and what is searched.
func acrossSite(planner, level string) (cluster.Records, map[string]cluster.NodeFacts, placement.Search) {
	var records cluster.Records
	facts := make(map[string]cluster.NodeFacts)
	search := placement.Search{Planner: planner, Level: level, Weight: 1, Capacity: cluster.CapacityCPU}
	started := decidedAt.Add(-time.Hour)
	available, load := 200*units.GiB, 4.0
	for pod := range acrossPods {
		for c := range acrossClusters {
			name := fmt.Sprintf("p%02d-c%d", pod, c)
			record := cluster.DefaultClusterRecord()
			record.ID, record.Name = name, name
			records.Clusters = append(records.Clusters, record)
			search.Options = append(search.Options, placement.Option{
				Cluster: name, Pod: fmt.Sprint("p", pod), Policy: placement.Affinity(), Threshold: cluster.DefaultCapacityThreshold,
			})
			for n := range acrossNodes {
				id := fmt.Sprintf("%s-n%02d", name, n)
				records.Nodes = append(records.Nodes, cluster.Node{ID: id, Name: id, Cluster: name})
				facts[id] = cluster.NodeFacts{
					Liveness: cluster.Up, Inventory: true, InventoryAt: decidedAt, DomainsKnown: true, Memory: 256 * units.GiB, CPUs: 64,
					Telemetry: true, TelemetryAt: decidedAt, Available: &available, Load1: &load,
				}
				for v := range acrossVMs {
					number := len(records.VMs)
					records.VMs = append(records.VMs, cluster.VM{
						ID: fmt.Sprintf("vm-%06d", number), Holder: id, StartedAt: started, Desired: cluster.Running,
						Spec:  cluster.VMSpec{Memory: 2 * units.GiB, VCPUs: 1 + v%4},
						Owner: cluster.Owner{Customer: fmt.Sprint("customer-", number*7%acrossCustomers)},
					})
				}
			}
		}
	}
	for i := range search.Options {
		one := newcomer()
		one.Cluster, one.Planner, one.Owner = search.Options[i].Cluster, planner, cluster.Owner{Customer: "customer-1"}
		search.Options[i].Request = one
	}
	return records, facts, search
}

// measureAcross is C1: placements over sixty clusters, each with its record, on a view that is there and on one that has to be
// made first, as it has after every change.
func measureAcross(ctx context.Context, b *bench) (rows []row, err error) {
	defer alone()()
	for _, one := range []struct{ planner, level string }{
		{"first-fit", cluster.LevelCluster}, {"user-dispersing", cluster.LevelCluster}, {"user-dispersing", cluster.LevelPod},
	} {
		records, facts, search := acrossSite(one.planner, one.level)
		view := cluster.NewView(decidedAt, 1, records, facts)
		var there, anew figures
		for seed := range uint64(b.rounds(20, 300)) {
			if err := ctx.Err(); err != nil {
				return rows, err
			}
			begun := time.Now()
			decision := placement.PlaceAcross(view, search, seed)
			there.add(time.Since(begun))
			if decision.Outcome != placement.Placed {
				return rows, fmt.Errorf("%w: %s", errNoNode, decision.Reason)
			}
			begun = time.Now()
			placement.PlaceAcross(cluster.NewView(decidedAt, 1, records, facts), search, seed)
			anew.add(time.Since(begun))
		}
		rows = append(rows, row{
			goal: "C1",
			what: fmt.Sprintf("%d clusters, %d nodes, %d VMs: a placement by %s at %s level, with its record",
				len(search.Options), len(records.Nodes), len(records.VMs), one.planner, one.level),
			measured: fmt.Sprintf("%s, %s a second; with the view made anew %s, %s a second",
				there.latency(), digits(1/there.median()), anew.latency(), digits(1/anew.median())),
			against: "the goal's own limit", wanted: ">= 20 a second with the view made anew", verdict: judge(20, 1/anew.median()),
		})
	}
	return rows, nil
}
