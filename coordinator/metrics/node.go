package metrics

import (
	"cmp"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/shared/exposition"
	"berth/shared/units"
)

// nodeFigure is one figure of every node that is known.
type nodeFigure struct {
	family exposition.Family
	of     func(n *view.NodeView, at time.Time) (value float64, known bool)
}

var (
	nodeInfo = gauge("berth_node_info", "1; what a node is", "node", "cluster", "node_id", "release", "liveness")
	// nodePressure is apart because a node has a sample for each resource.
	nodePressure = gauge("berth_node_pressure_ratio",
		"Share of the last ten seconds in which work on the node waited for a CPU, for memory or for disks (PSI, some)",
		"node", "cluster", "resource")
)

// nodeFigures are in the order of the page: contention first.
var nodeFigures = []nodeFigure{
	measured("berth_node_vcpu_delay_ratio", "Share of the time in which vCPUs of the node waited for a CPU, on average over all of them",
		func(n *view.NodeView) (float64, bool) { return part(n.Facts.VCPUDelay) }),
	measured("berth_node_cpu_steal_ratio", "Share of the node's CPU time that a hypervisor below it has taken",
		func(n *view.NodeView) (float64, bool) { return shown(n.Facts.CPUSteal) }),
	figure("berth_node_up", "Whether the node is heard and in order (1) or not (0)",
		func(n *view.NodeView) (float64, bool) { return oneIf(n.Facts.Liveness == model.Up), true }),
	figure("berth_node_maintenance", "1 while the node takes no VMs because somebody has said so, else 0",
		func(n *view.NodeView) (float64, bool) { return oneIf(n.Node.Maintenance), true }),
	figure("berth_node_fenced", "1 while the node is proven to be off, else 0",
		func(n *view.NodeView) (float64, bool) { return oneIf(n.Node.Fenced()), true }),
	figure("berth_node_unanswering", "1 while the node gets no starts because it answers none, else 0",
		func(n *view.NodeView) (float64, bool) { return oneIf(n.Node.Unanswered.Holds()), true }),
	{
		gauge("berth_node_report_age_seconds", "Age of the node's figures", "node", "cluster"),
		func(n *view.NodeView, at time.Time) (float64, bool) {
			return max(at.Sub(n.Facts.TelemetryAt), 0).Seconds(), n.Facts.Telemetry
		},
	},
	{
		gauge("berth_node_inventory_age_seconds", "Age of the node's list of domains", "node", "cluster"),
		func(n *view.NodeView, at time.Time) (float64, bool) {
			return max(at.Sub(n.Facts.InventoryAt), 0).Seconds(), n.Facts.Inventory
		},
	},
	figure("berth_node_memory_bytes", "Physical memory of the node",
		func(n *view.NodeView) (float64, bool) { return float64(n.Facts.Memory), n.Facts.Inventory }),
	measured("berth_node_memory_used_bytes", "Memory of the node that is in use: all but what is free or could be at once",
		func(n *view.NodeView) (float64, bool) {
			if n.Facts.Available == nil || !n.Facts.Inventory {
				return 0, false
			}
			return float64(max(n.Facts.Memory-*n.Facts.Available, 0)), true
		}),
	figure("berth_node_memory_promised_bytes", "Memory that all domains of the node and what is on its way there were promised",
		func(n *view.NodeView) (float64, bool) { return float64(n.PromisedUsed), n.Facts.Inventory }),
	figure("berth_node_memory_promise_limit_bytes", "Memory that may be promised on the node",
		func(n *view.NodeView) (float64, bool) { return float64(n.PromisedLimit), n.Facts.Inventory }),
	measured("berth_node_memory_placeable_bytes",
		"Memory that is really free for VMs: without what is on its way there, and what KSM and balloons save now",
		func(n *view.NodeView) (float64, bool) { return float64(n.PhysicalFree), n.PhysicalKnown }),
	measured("berth_node_memory_ksm_saved_bytes", "Memory that KSM saves on the node now",
		func(n *view.NodeView) (float64, bool) { return amount(n.Facts.KSMSaved) }),
	figure("berth_node_cpus", "CPUs of the node",
		func(n *view.NodeView) (float64, bool) { return float64(n.Facts.CPUs), n.Facts.Inventory }),
	measured("berth_node_cpu_busy_ratio", "Share of the node's CPU time that was used",
		func(n *view.NodeView) (float64, bool) { return shown(n.Facts.CPUBusy) }),
	figure("berth_node_vcpus_promised", "vCPUs of all domains of the node and of what is on its way there",
		func(n *view.NodeView) (float64, bool) { return float64(n.VCPUsUsed), n.Facts.Inventory }),
	figure("berth_node_vcpus_promise_limit", "vCPUs that may be promised on the node",
		func(n *view.NodeView) (float64, bool) { return n.VCPULimit, n.Facts.Inventory }),
	measured("berth_node_load1", "Load average of the node over one minute",
		func(n *view.NodeView) (float64, bool) { return shown(n.Facts.Load1) }),
	figure("berth_node_domains", "Domains that have memory on the node, Berth's own or not",
		func(n *view.NodeView) (float64, bool) {
			held := 0
			for i := range n.Facts.Domains {
				if n.Facts.Domains[i].State.Holds() {
					held++
				}
			}
			return float64(held), n.Facts.DomainsKnown
		}),
}

func figure(name, help string, of func(*view.NodeView) (float64, bool)) nodeFigure {
	return nodeFigure{
		gauge(name, help, "node", "cluster"),
		func(n *view.NodeView, _ time.Time) (float64, bool) { return of(n) },
	}
}

// measured is a figure that an agent has measured. Of a node that is silent there is none: the last one would read as of now.
func measured(name, help string, of func(*view.NodeView) (float64, bool)) nodeFigure {
	return figure(name, help, func(n *view.NodeView) (float64, bool) {
		if !tells(n) {
			return 0, false
		}
		return of(n)
	})
}

func tells(n *view.NodeView) bool { return n.Facts.Telemetry && n.Facts.Liveness != model.Unreachable }

func writeNodes(page *exposition.Page, v *view.View) {
	for _, n := range v.Nodes.All() {
		page.Sample(&nodeInfo, 1, n.Node.Name, clusterOf(n), n.Node.ID, n.Facts.Release, string(n.Facts.Liveness))
	}
	for _, n := range v.Nodes.All() {
		for _, one := range [...]struct {
			resource string
			percent  *float64
		}{
			{"cpu", n.Facts.CPUPressure}, {"memory", n.Facts.MemoryPressure}, {"io", n.Facts.IOPressure},
		} {
			if value, known := part(one.percent); known && tells(n) {
				page.Sample(&nodePressure, value, n.Node.Name, clusterOf(n), one.resource)
			}
		}
	}
	for i := range nodeFigures {
		one := &nodeFigures[i]
		for _, n := range v.Nodes.All() {
			if value, known := one.of(n, v.At); known {
				page.Sample(&one.family, value, n.Node.Name, clusterOf(n))
			}
		}
	}
}

func clusterOf(n *view.NodeView) string { return cmp.Or(n.Node.Cluster, model.DefaultCluster) }

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func shown(value *float64) (float64, bool) {
	if value == nil {
		return 0, false
	}
	return *value, true
}

// part is a percentage as a share.
func part(percent *float64) (float64, bool) {
	value, known := shown(percent)
	return value / 100, known
}

func amount(known *units.Bytes) (float64, bool) {
	if known == nil {
		return 0, false
	}
	return float64(*known), true
}
