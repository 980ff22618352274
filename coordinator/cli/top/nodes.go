package top

import (
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func nodesCommand(a *term.App) *cobra.Command {
	list := &term.Lister[*berthv1.Node]{
		What: "node", Empty: "no node is there", Ask: term.AskNodes, Table: nodeTable,
		Name:     func(node *berthv1.Node) string { return "node/" + node.GetName() },
		Sorting:  term.Sorting[*berthv1.Node]{Default: "cpu"},
		Watching: term.Watching{Frames: true},
	}
	cmd := list.Command(a, &cobra.Command{
		Use: "nodes", Short: "Show what nodes use at the moment, the busiest first",
		Long: `Show what nodes use at the moment, the busiest first. MEM-USED is what the host uses of its memory, MEM-PROMISED what
all domains of the node and everything on its way there were promised, of what may be promised, and MEM-FREE what is
really free for VMs, which is the contended memory of a policy. DELAY is the share of the time in which vCPUs waited for
a CPU. WAITING is the largest of that and the shares in which work waited for a CPU or for memory: above the
contended_above of its policy a node is contended. AGE is that of the figures.`,
		Example: `  berth top nodes
  berth top nodes --sort memory --label rack-7
  berth top nodes --watch`,
	})
	list.StateFlags(cmd, a, "nodes", "up", "suspect", "unreachable", "degraded", "fenced", "maintenance", "draining")
	list.Flag(cmd,
		term.ByText("name", (*berthv1.Node).GetName),
		term.ByMost("cpu", func(node *berthv1.Node) int64 { return precise(measured(node).CpuBusyRatio) }),
		term.ByMost("memory", func(node *berthv1.Node) int64 { used, _ := memoryUsed(node); return used }),
		term.ByMost("promised", func(node *berthv1.Node) int64 { return node.GetLedgers().GetPromisedUsedBytes() }),
		term.ByMost("delay", func(node *berthv1.Node) int64 { return precise(node.VcpuDelayPercent) }),
		term.ByMost("waiting", func(node *berthv1.Node) int64 { return precise(waiting(node)) }),
		term.ByMost("load", func(node *berthv1.Node) int64 { return precise(measured(node).Load1) }),
	)
	return cmd
}

// measured is what a node's agent last measured; of one that never did nothing is known.
func measured(node *berthv1.Node) *berthv1.NodeTelemetry {
	if node.GetTelemetry() == nil {
		return &berthv1.NodeTelemetry{}
	}
	return node.GetTelemetry()
}

// memoryUsed is what a host uses of its memory: all but what is free or could be at once; -1 where that is not known.
func memoryUsed(node *berthv1.Node) (used int64, known bool) {
	telemetry := measured(node)
	if telemetry.MemoryTotalBytes == nil || telemetry.MemoryAvailableBytes == nil {
		return -1, false
	}
	return telemetry.GetMemoryTotalBytes() - telemetry.GetMemoryAvailableBytes(), true
}

// waiting is the largest percentage of the time in which something waits for a CPU or for memory; nil: nothing tells.
func waiting(node *berthv1.Node) *float64 {
	most := node.VcpuDelayPercent
	for _, pressure := range []*berthv1.Pressure{measured(node).GetCpuPressure(), measured(node).GetMemoryPressure()} {
		if pressure != nil && (most == nil || pressure.GetSomeAvg10() > *most) {
			most = new(pressure.GetSomeAvg10())
		}
	}
	return most
}

func nodeTable(p *term.Page, nodes []*berthv1.Node, wide bool) {
	headings := []string{"NAME", "STATE", "CPU", "MEM-USED", "MEM-PROMISED", "MEM-FREE", "VCPUS", "DELAY", "WAITING", "LOAD", "AGE"}
	if wide {
		headings = append(headings, "LOAD5", "LOAD15", "STEAL", "CPU-PRESSURE", "MEM-PRESSURE", "IO-PRESSURE", "KSM-SAVED")
	}
	rows := make([][]string, 0, len(nodes))
	for _, node := range nodes {
		telemetry, ledgers := measured(node), node.GetLedgers()
		used, promised, free, vcpus := term.None, term.None, term.None, term.None
		if bytes, known := memoryUsed(node); known {
			used = term.Size(bytes) + "/" + term.Size(telemetry.GetMemoryTotalBytes())
		}
		if ledgers != nil {
			promised = term.Size(ledgers.GetPromisedUsedBytes()) + "/" + term.Size(ledgers.GetPromisedLimitBytes())
			free = term.OptionalSize(ledgers.PhysicalFreeBytes)
			vcpus = fmt.Sprintf("%d/%d", ledgers.GetVcpusUsed(), ledgers.GetVcpusLimit())
		}
		row := []string{
			node.GetName(), term.Enum(node.GetState(), "NODE_STATE_"), term.Percent(telemetry.CpuBusyRatio), used, promised, free, vcpus,
			percentOf(node.VcpuDelayPercent), percentOf(waiting(node)), term.OptionalNumber(telemetry.Load1),
			term.OptionalAge(node.TelemetryAgeSeconds),
		}
		if wide {
			row = append(row, term.OptionalNumber(telemetry.Load5), term.OptionalNumber(telemetry.Load15), term.Percent(telemetry.CpuStealRatio),
				pressed(telemetry.GetCpuPressure()), pressed(telemetry.GetMemoryPressure()), pressed(telemetry.GetIoPressure()),
				term.OptionalSize(telemetry.KsmSavedBytes))
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}

// pressed prints the share of the last ten seconds in which something stood still for want of a thing.
func pressed(pressure *berthv1.Pressure) string {
	if pressure == nil {
		return term.None
	}
	return percentOf(new(pressure.GetSomeAvg10()))
}
