package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
	"berth/coordinator/view"
	"berth/shared/units"
)

// decidedAt is when decisions are made, in the nodes' own time: their telemetry is fresh.
var decidedAt = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// crowdOwner is whose VMs show customer keys.
var crowdOwner = model.Owner{Customer: "customer", BillingEntity: "reseller"}

// newCrowd is a cluster of n nodes as the engine reads it: two memory ledgers, the three special keys and five keys of the
// operator. One node in eight is full.
func newCrowd(n int) *view.Columns {
	random := rand.New(rand.NewPCG(3, uint64(n)))
	c := &view.Columns{Figures: view.Figures{Cluster: model.DefaultCluster}, Residents: view.NewResidents()}
	for k := range keysANode - 3 {
		c.NodeKeys = append(c.NodeKeys, view.NodeKeyColumn{Name: keyName(k)})
	}
	const memory, cpus = 512 * units.GiB, 64
	now := decidedAt.UnixNano()
	reported, taken, free, vcpus, load := make([]int64, n), make([]units.Bytes, n), make([]units.Bytes, n), make([]int, n), make([]float64, n)
	keys := make([][]float64, len(c.NodeKeys))
	for i := range n {
		id := fmt.Sprintf("n%06d", i)
		c.IDs, c.Names = append(c.IDs, id), append(c.Names, id)
		c.Standing = append(c.Standing, view.Stands)
		c.Known = append(c.Known, view.KnowsInventory|view.KnowsDomains|view.KnowsTelemetry|view.KnowsFree|view.KnowsLoad)
		c.Memory, c.RAMRatio, c.Overhead = append(c.Memory, memory), append(c.RAMRatio, 1), append(c.Overhead, units.GiB)
		used := units.Bytes(random.Int64N(int64(memory) / 2))
		if i%8 == 0 {
			used = memory - units.GiB
		}
		c.Promised, c.VCPULimit = append(c.Promised, memory), append(c.VCPULimit, 8*cpus)
		reported[i], taken[i], free[i], vcpus[i], load[i] = now, used, memory-used, random.IntN(8*cpus), random.Float64()
		for k := range keys {
			keys[k] = append(keys[k], random.Float64()*1.5)
		}
	}
	c.InventoryAt, c.TelemetryAt = view.ColumnOf(reported...), view.ColumnOf(reported...)
	c.Used, c.Free, c.VCPUs, c.Load = view.ColumnOf(taken...), view.ColumnOf(free...), view.ColumnOf(vcpus...), view.ColumnOf(load...)
	for k := range keys {
		c.NodeKeys[k].Values = view.ColumnOf(keys[k]...)
	}
	c.Derive()
	return c
}

// newcomer asks for a VM with eight system keys that all nodes have, and with these customer keys.
func newcomer(customer ...key.Weighted) placement.Request {
	system := []key.Weighted{
		{Name: model.SpecialCPU, Weight: 30, Class: model.SystemKey},
		{Name: model.SpecialLoad, Weight: 30, Class: model.SystemKey},
		{Name: model.SpecialRAM, Weight: 40, Class: model.SystemKey},
	}
	for k := range keysANode - 3 {
		system = append(system, key.Weighted{Name: keyName(k), Value: float64(k % 2), Weight: float64(10 - 5*k), Class: model.SystemKey})
	}
	for i := range customer {
		customer[i].Class = model.CustomerKey
	}
	return placement.Request{
		Purpose: placement.ForStart, VM: "new", VMName: "new", Memory: 8 * units.GiB, VCPUs: 2,
		Cluster: model.DefaultCluster, SystemKeys: system, CustomerKeys: customer, Owner: crowdOwner,
	}
}

// group and shy are the customer keys of the goals: a VM that wants to be near those of its group, and far from its like.
var (
	group = key.Weighted{Name: "Group", Value: 1, Weight: 100}
	shy   = key.Weighted{Name: "Shy", Value: 1, Weight: -10}
)

// grouped lets a VM on every third node show a customer key.
func grouped(c *view.Columns) *view.Columns {
	for i := 1; i < c.Len(); i += 3 {
		c.Residents.Add(i, crowdOwner, []model.ResidentKey{{Class: model.CustomerKey, Name: group.Name, Value: 1}})
	}
	return c
}

// residentsANode is how many VMs of the customer are on each node for P7.
const residentsANode = 50

// many puts fifty VMs of one customer on each node, each with both customer keys. Values are whole numbers, as groups are
// numbered; spread makes them fifty different ones that are all near enough to count.
func many(c *view.Columns, spread bool) *view.Columns {
	for i := range c.Len() {
		for vm := range residentsANode {
			first, second := float64((i+vm)%10), float64((i+3*vm)%7)
			if spread {
				first = 0.5 + float64(vm)/residentsANode
				second = first
			}
			c.Residents.Add(i, crowdOwner, []model.ResidentKey{
				{Class: model.CustomerKey, Name: group.Name, Value: first},
				{Class: model.CustomerKey, Name: shy.Name, Value: second},
			})
		}
	}
	return c
}
