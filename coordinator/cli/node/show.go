package node

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/fieldform"
	"berth/coordinator/cli/term"
	"berth/coordinator/schema"
	"berth/shared/capability"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

func showCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show NODE", Short: "Show a node: its memory, CPUs, load, and everything that libvirt runs there", Args: term.Arguments(1, "NODE"),
		Long: `Show a node: its two memory ledgers, its CPUs and load, its storage and networks, and everything that libvirt runs
there, whether Berth placed it or not. What could not be read is named, and never shown as zero. -o wide adds versions,
identities and pressure.`,
		Example: `  berth node show node1
  berth node show node1 -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetNode, &berthv1.GetNodeRequest{Node: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   []string{"node/" + answer.GetNode().GetName()},
				Text:    func(p *term.Page, wide bool) { text(a, p, answer, wide) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.NodeNames()),
	}
}

func text(a *term.App, p *term.Page, answer *berthv1.GetNodeResponse, wide bool) {
	node := answer.GetNode()
	p.Line("node/%s", node.GetName())
	rows := [][2]string{
		{"state", state(node)},
		{"reason", reasons(node)},
		{"cluster", node.GetCluster()},
		{"settings", settingsPhrase(node)},
		{"keys", keyPhrase(node)},
	}
	rows = append(rows, fieldform.Rows(schema.Node, node)...)
	rows = append(rows, [][2]string{
		{"balancing", balancingPhrase(node)},
		{"drain", drainPhrase(node)},
		{"fenced by", fencePhrase(node.GetFence())},
		{"fence check", node.GetFenceIdentity()},
		{"fencing", fencingPhrase(a, node.GetFencing())},
		{"machine", machinePhrase(node)},
		{"held", node.GetHeld()},
		{"agent", agentPhrase(node)},
	}...)
	rows = append(rows, ledgerRows(node)...)
	for _, warning := range node.GetWarnings() {
		rows = append(rows, [2]string{"warning", warning})
	}
	rows = append(rows, telemetryRows(node)...)
	rows = append(rows, [2]string{"VMs", cmp.Or(strings.Join(node.GetVms(), ", "), "none")})
	if wide {
		rows = append(rows, machineRows(a, node)...)
	}
	p.Fields("  ", rows...)
	for _, failed := range node.GetInventory().GetErrors() {
		p.Line("  could not read %s: %s", failed.GetReading(), failed.GetMessage())
	}
	for _, failed := range node.GetTelemetry().GetErrors() {
		p.Line("  could not read %s: %s", failed.GetReading(), failed.GetMessage())
	}
	storage(p, node.GetInventory())
	domains(p, answer.GetDomains(), wide)
}

// balancingPhrase says what part a node takes in balancing, where that is not the usual one.
func balancingPhrase(node *berthv1.Node) string {
	var parts []string
	if node.GetManagement() {
		parts = append(parts, "it carries the site's management: even distribution by number leaves it some VMs short")
	}
	if node.GetUnbalanced() {
		parts = append(parts, "it is left alone")
	}
	return strings.Join(parts, "; ")
}

// drainPhrase names the drain of a node that runs.
func drainPhrase(node *berthv1.Node) string {
	if node.GetPlanId() == "" {
		return ""
	}
	return fmt.Sprintf("runs; 'berth plan watch %s' follows it", node.GetPlanId())
}

// ledgerRows are the two memory ledgers and the vCPUs.
func ledgerRows(node *berthv1.Node) [][2]string {
	ledgers := node.GetLedgers()
	if ledgers == nil {
		return [][2]string{{"memory", "unknown: the node has not told this leader"}}
	}
	return [][2]string{
		{"promised", fmt.Sprintf("%v of %v memory, %v left", units.Bytes(ledgers.GetPromisedUsedBytes()),
			units.Bytes(ledgers.GetPromisedLimitBytes()), units.Bytes(ledgers.GetPromisedFreeBytes()))},
		{"", fmt.Sprintf("%d of %d vCPUs, to %s", ledgers.GetVcpusUsed(), ledgers.GetVcpusLimit(), term.Count(int(ledgers.GetVms()), "domain"))},
		{"really free", term.Known(ledgers.PhysicalFreeBytes) + borrowed(ledgers)},
	}
}

// borrowed is what KSM and ballooning save now, which counts as lost.
func borrowed(ledgers *berthv1.NodeLedgers) string {
	if ledgers.GetBorrowedBytes() == 0 {
		return ""
	}
	return fmt.Sprintf(", with %v that KSM and ballooning save taken as lost", units.Bytes(ledgers.GetBorrowedBytes()))
}

func telemetryRows(node *berthv1.Node) [][2]string {
	telemetry := node.GetTelemetry()
	if telemetry == nil {
		return [][2]string{{"telemetry", "none yet"}}
	}
	rows := [][2]string{
		{"host memory", fmt.Sprintf("total %s, free %s, available %s",
			term.Known(telemetry.MemoryTotalBytes), term.Known(telemetry.MemoryFreeBytes), term.Known(telemetry.MemoryAvailableBytes))},
	}
	if telemetry.GetKsmSavedBytes() > 0 {
		rows = append(rows, [2]string{"KSM saves", term.Known(telemetry.KsmSavedBytes)})
	}
	if telemetry.Load1 != nil {
		rows = append(rows, [2]string{"load", fmt.Sprintf("%s over 1 min, %s over 5, %s over 15",
			term.OptionalNumber(telemetry.Load1), term.OptionalNumber(telemetry.Load5), term.OptionalNumber(telemetry.Load15))})
	}
	if telemetry.CpuBusyRatio != nil {
		rows = append(
			rows, [2]string{"CPU", fmt.Sprintf("busy %s, steal %s", term.Percent(telemetry.CpuBusyRatio), term.Percent(telemetry.CpuStealRatio))},
		)
	}
	for _, pressure := range []struct {
		name  string
		value *berthv1.Pressure
	}{
		{"CPU pressure", telemetry.GetCpuPressure()},
		{"memory pressure", telemetry.GetMemoryPressure()},
		{"I/O pressure", telemetry.GetIoPressure()},
	} {
		if pressure.value != nil {
			rows = append(rows, [2]string{pressure.name, term.Pressure(pressure.value.GetSomeAvg10(), pressure.value.GetFullAvg10())})
		}
	}
	return append(rows, [2]string{"telemetry", term.OptionalAge(node.TelemetryAgeSeconds) + " old"})
}

// machineRows are what the host is.
func machineRows(a *term.App, node *berthv1.Node) [][2]string {
	inventory := node.GetInventory()
	return [][2]string{
		{"ID", node.GetId()},
		{"enrolled", a.At(node.GetEnrolledAt())},
		{"host", inventory.GetHostName()},
		{"host UUID", inventory.GetHostUuid()},
		{"CPUs", fmt.Sprintf("%d (%s of %s of %s), %s", inventory.GetCpus(), term.Count(int(inventory.GetSockets()), "socket"),
			term.Count(int(inventory.GetCoresPerSocket()), "core"), term.Count(int(inventory.GetThreadsPerCore()), "thread"),
			term.Count(int(inventory.GetNumaCells()), "NUMA cell"))},
		{"CPU model", strings.TrimSpace(inventory.GetCpuVendor() + " " + inventory.GetCpuModel() + " " + inventory.GetArch())},
		{"runs", strings.Join(inventory.GetDomainTypes(), ", ")},
		{"versions", fmt.Sprintf("agent %s, libvirt %s, hypervisor %s", cmp.Or(inventory.GetAgentVersion(), term.None),
			cmp.Or(inventory.GetLibvirtVersion(), term.None), cmp.Or(inventory.GetHypervisorVersion(), term.None))},
		{"migration", inventory.GetMigrationUri()},
		{"inventory", a.Since(inventory.GetCollectedAt()) + " old"},
	}
}

func storage(p *term.Page, inventory *berthv1.NodeInventory) {
	var rows [][]string
	for _, pool := range inventory.GetStoragePools() {
		rows = append(rows, []string{
			"pool", pool.GetName(), activity(pool.GetActive()), cmp.Or(pool.GetType(), term.None),
			fmt.Sprintf("%s of %s free", term.Size(pool.GetAvailableBytes()), term.Size(pool.GetCapacityBytes())),
		})
	}
	for _, network := range inventory.GetNetworks() {
		rows = append(rows, []string{
			"network", network.GetName(), activity(network.GetActive()),
			cmp.Or(network.GetForwardMode(), term.None), "bridge " + cmp.Or(network.GetBridge(), term.None),
		})
	}
	if len(rows) > 0 {
		p.Blank()
		p.Table(nil, rows)
	}
}

func activity(active bool) string {
	if active {
		return "active"
	}
	return "inactive"
}

func domains(p *term.Page, domains []*berthv1.Domain, wide bool) {
	if len(domains) == 0 {
		return
	}
	headings := []string{"DOMAIN", "STATE", "BY", "MEMORY", "VCPUS"}
	if wide {
		headings = append(headings, "EPOCH", "OPERATION", "UUID")
	}
	rows := make([][]string, 0, len(domains))
	for _, domain := range domains {
		by := "others"
		if domain.GetManaged() {
			by = "berth"
		}
		row := []string{
			domain.GetName(), term.Enum(domain.GetState(), "DOMAIN_STATE_"), by, term.Size(domain.GetMemoryBytes()),
			strconv.Itoa(int(domain.GetVcpus())),
		}
		if wide {
			row = append(row, strconv.FormatUint(domain.GetEpoch(), 10), cmp.Or(domain.GetOperationId(), term.None), domain.GetUuid())
		}
		rows = append(rows, row)
	}
	p.Blank()
	p.Table(headings, rows)
}

// agentPhrase says of which release the node's agent is, and what that lacks; empty: not heard.
func agentPhrase(node *berthv1.Node) string {
	if node.GetAgentRelease() == "" && len(node.GetAgentLacks()) == 0 {
		return ""
	}
	release := "release " + cmp.Or(node.GetAgentRelease(), "unknown")
	if len(node.GetAgentLacks()) == 0 {
		return release
	}
	return fmt.Sprintf("%s, is given no orders that it would obey in part only: it lacks %s; update it there with %s",
		release, strings.Join(node.GetAgentLacks(), "; "), capability.Update)
}

// machinePhrase says which machine the node is; empty: not known.
func machinePhrase(node *berthv1.Node) string {
	if node.GetHardware() == "" {
		return ""
	}
	return node.GetHardwareSource() + " " + node.GetHardware()
}
