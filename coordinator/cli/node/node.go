package node

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/cli/weekly"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Command is the noun node.
func Command(a *term.App) *cobra.Command {
	return term.Noun("node COMMAND", "See and set up the nodes that carry VMs", `
A node is a hypervisor host with an agent. 'berth node add' makes hosts nodes over ssh.`,
		listCommand(a), addCommand(a), showCommand(a), setCommand(a), maintenanceCommand(a), drainCommand(a),
		undrainCommand(a), fenceCommand(a), removeCommand(a), weekly.NodeCommand(a))
}

func listCommand(a *term.App) *cobra.Command {
	list := &term.Lister[*berthv1.Node]{
		What: "node", Empty: "no nodes yet: 'berth node add HOST...' makes hosts nodes over ssh", Ask: term.AskNodes,
		Last: term.LastNodes, Table: table,
		Name: func(node *berthv1.Node) string { return "node/" + node.GetName() },
		State: func(node *berthv1.Node) string {
			ledgers := node.GetLedgers()
			return fmt.Sprint(state(node), reasons(node), ledgers.GetVms(), ledgers.GetPromisedUsedBytes(), node.GetRevision())
		},
	}
	cmd := list.Command(a, &cobra.Command{
		Use: "list", Short: "List nodes",
		Long: `List nodes. MEM-PROMISED is what all domains of the node and everything on its way there were promised, of what may be
promised. MEM-FREE is what is physically free. AGE is that of the node's last telemetry.

Without a leader the list is what one coordinator last knew, and says as of when. The exit code is 5 then, and what
nodes measure is not shown.`,
		Example: `  berth node list
  berth node list -o wide
  berth node list --state maintenance,draining --label rack-7`,
	})
	list.StateFlags(cmd, a, "nodes", "up", "suspect", "unreachable", "degraded", "fenced", "maintenance", "draining")
	list.Flag(cmd,
		term.ByText("name", (*berthv1.Node).GetName),
		term.ByMost("memory", func(node *berthv1.Node) int64 { return node.GetLedgers().GetPromisedUsedBytes() }),
		term.ByText("state", state),
		term.ByMost("age", func(node *berthv1.Node) int64 { return -node.GetEnrolledAt().AsTime().UnixNano() }),
	)
	return cmd
}

func table(p *term.Page, nodes []*berthv1.Node, wide bool) {
	headings := []string{"NAME", "STATE", "VMS", "MEM-PROMISED", "MEM-FREE", "VCPUS", "LOAD", "AGE"}
	if wide {
		headings = append(headings, "RAM-RATIO", "CPU-RATIO", "OVERHEAD", "LABELS", "LIBVIRT", "AGENT", "ID", "REASON")
	}
	rows := make([][]string, 0, len(nodes))
	for _, node := range nodes {
		promised, vcpus, vms := term.None, term.None, term.None
		ledgers := node.GetLedgers()
		free := (*int64)(nil)
		if ledgers != nil {
			promised = term.Size(ledgers.GetPromisedUsedBytes()) + "/" + term.Size(ledgers.GetPromisedLimitBytes())
			vcpus = fmt.Sprintf("%d/%d", ledgers.GetVcpusUsed(), ledgers.GetVcpusLimit())
			vms = strconv.FormatInt(ledgers.GetVms(), 10)
			free = ledgers.PhysicalFreeBytes
		}
		row := []string{
			node.GetName(), state(node), vms, promised, term.OptionalSize(free), vcpus, load(node), term.OptionalAge(node.TelemetryAgeSeconds),
		}
		if wide {
			settings, inventory := node.GetSettings(), node.GetInventory()
			row = append(row, units.Figure(settings.GetRamRatio()), units.Figure(settings.GetCpuRatio()), term.Size(settings.GetOverheadBytes()),
				cmp.Or(strings.Join(node.GetLabels(), ","), term.None), cmp.Or(inventory.GetLibvirtVersion(), term.None),
				cmp.Or(inventory.GetAgentVersion(), term.None), node.GetId(), cmp.Or(reasons(node), term.None))
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}

func state(node *berthv1.Node) string {
	state := term.Enum(node.GetState(), "NODE_STATE_")
	switch {
	case node.GetPlanId() != "":
		state += ",draining"
	case node.GetMaintenance():
		state += ",maintenance"
	case node.GetUnanswered() != "":
		state += ",unanswering"
	}
	return state
}

func load(node *berthv1.Node) string {
	if node.GetTelemetry() == nil {
		return term.None
	}
	return term.OptionalNumber(node.GetTelemetry().Load1)
}

// reasons says why a node is not simply up.
func reasons(node *berthv1.Node) string {
	var parts []string
	if node.GetStateReason() != "" {
		parts = append(parts, node.GetStateReason())
	}
	if node.GetMaintenanceReason() != "" {
		parts = append(parts, "maintenance: "+node.GetMaintenanceReason())
	}
	if node.GetUnanswered() != "" {
		parts = append(parts, node.GetUnanswered())
	}
	return strings.Join(parts, "; ")
}

func maintenanceCommand(a *term.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "maintenance NODE on|off", Short: "Take a node out of placement, or back in", Args: term.Arguments(2, "NODE", "on|off"),
		Long: `Take a node out of placement, or back in. In maintenance it gets no further VMs; those that it runs stay. 'berth node
drain' moves them away as well.`,
		Example: `  berth node maintenance node2 on --reason "new memory on Tuesday"
  berth node maintenance node2 off`,
		RunE: func(cmd *cobra.Command, args []string) error {
			on := args[1] == "on"
			switch {
			case !on && args[1] != "off":
				return term.Usagef(cmd, "maintenance %q: want on or off", args[1])
			case !on && reason != "":
				return term.Usagef(cmd, "--reason is for maintenance on")
			}
			answer, err := term.AskOnce(a, cmd, term.Client.SetNodeMaintenance, &berthv1.SetNodeMaintenanceRequest{
				Node: args[0], On: on, Reason: reason, RequestId: term.RequestID(),
			})
			if err != nil {
				return err
			}
			said := "is out of maintenance and gets VMs again"
			if on {
				said = fmt.Sprintf("is in maintenance and gets no further VMs; it runs %s", term.Count(len(answer.GetNode().GetVms()), "VM"))
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"node/" + answer.GetNode().GetName()},
				Text: func(p *term.Page, _ bool) { p.Line("node/%s %s", answer.GetNode().GetName(), said) },
			})
		},
		ValidArgsFunction: maintenanceWords(a),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that others see")
	term.Complete(cmd, "reason", cobra.NoFileCompletions)
	return cmd
}

func maintenanceWords(a *term.App) cobra.CompletionFunc {
	nodes, words := a.NodeNames(), term.CompleteFixed("on", "off")
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return nodes(cmd, args, toComplete)
		case 1:
			return words(cmd, args, toComplete)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}
