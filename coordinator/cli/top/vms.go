package top

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// live are the states of VMs that use something.
var live = []string{"running", "paused", "migrating", "starting", "stopping"}

func vmsCommand(a *term.App) *cobra.Command {
	list := &term.Lister[*berthv1.VM]{
		What: "VM", Empty: "no VM runs", Ask: term.AskVMs, Table: vmTable, States: live,
		Name:     func(vm *berthv1.VM) string { return "vm/" + vm.GetName() },
		Sorting:  term.Sorting[*berthv1.VM]{Default: "cpu"},
		Watching: term.Watching{Frames: true},
	}
	cmd := list.Command(a, &cobra.Command{
		Use: "vms", Short: "Show what the VMs that run use at the moment, the busiest first",
		Long: `Show what the VMs that run use at the moment, the busiest first. CPU is in percent of one CPU. DELAY is the share of the
time in which a vCPU waited for a CPU, on average over its vCPUs. RSS is the memory that the VM really uses on its node,
and MEMORY what it is promised.`,
		Example: `  berth top vms
  berth top vms --node node1 --sort delay
  berth top vms --customer acme --watch`,
	})
	list.VMFlags(cmd, a, "that are held by", "")
	list.StateFlags(cmd, a, "", append(slices.Clone(live), "unknown", "stopped", "lost")...)
	list.Flag(cmd,
		term.ByText("name", (*berthv1.VM).GetName),
		term.ByText("node", (*berthv1.VM).GetNode),
		term.ByMost("cpu", func(vm *berthv1.VM) int64 { return precise(used(vm).CpuRatio) }),
		term.ByMost("delay", func(vm *berthv1.VM) int64 { return precise(used(vm).VcpuDelayRatio) }),
		term.ByMost("memory", func(vm *berthv1.VM) int64 { return used(vm).GetRssBytes() }),
	)
	return cmd
}

// used is what was last measured of a VM; of one that was not nothing is known.
func used(vm *berthv1.VM) *berthv1.DomainTelemetry {
	if vm.GetTelemetry() == nil {
		return &berthv1.DomainTelemetry{}
	}
	return vm.GetTelemetry()
}

func vmTable(p *term.Page, vms []*berthv1.VM, wide bool) {
	headings := []string{"NAME", "NODE", "STATE", "CPU", "VCPUS", "DELAY", "RSS", "MEMORY"}
	if wide {
		headings = append(headings, "BALLOON", "CUSTOMER", "CLUSTER")
	}
	rows := make([][]string, 0, len(vms))
	for _, vm := range vms {
		memory, vcpus := vm.GetSpec().GetMemoryBytes(), vm.GetSpec().GetVcpus()
		if runs := vm.GetRunning(); runs != nil {
			memory, vcpus = runs.GetMemoryBytes(), runs.GetVcpus()
		}
		row := []string{
			vm.GetName(), cmp.Or(vm.GetNode(), term.None), term.Enum(vm.GetState(), "VM_STATE_"), term.Percent(used(vm).CpuRatio),
			strconv.Itoa(int(vcpus)), term.Percent(used(vm).VcpuDelayRatio), term.OptionalSize(used(vm).RssBytes), term.Size(memory),
		}
		if wide {
			row = append(row, term.OptionalSize(used(vm).BalloonBytes), cmp.Or(vm.GetCustomer(), term.None), cmp.Or(vm.GetCluster(), term.None))
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}
