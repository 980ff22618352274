package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	berthv1 "berth/shared/gen/berth/v1"
)

func (a *app) nodeCommand() *cobra.Command {
	return noun("node COMMAND", "See and set up the nodes that carry VMs", `
A node is a hypervisor host with an agent. 'berth token create --for agent' prints the line that makes a host one.`,
		a.nodeListCommand(), a.nodeShowCommand(), a.nodeSetCommand(), a.nodeMaintenanceCommand(), a.nodeDrainCommand(),
		a.nodeUndrainCommand(), a.nodeFenceCommand(), a.nodeRemoveCommand())
}

func (a *app) nodeListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List nodes", Args: arguments(0),
		Long: `List nodes. MEM-PROMISED is what all domains of the node and everything on its way there were promised, of what may be
promised. MEM-FREE is what is physically free. AGE is that of the node's last telemetry.`,
		Example: `  berth node list
  berth node list -o wide`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := askAll(cmd.Context(), s, client.ListNodes, &berthv1.ListNodesRequest{}, everything)
			if err != nil {
				return err
			}
			a.nothing(cmd, len(answer.GetNodes()), "no nodes yet: 'berth token create --for agent' prints the line that makes a host one")
			return a.print(cmd, result{
				message: answer,
				names:   prefixed("node/", answer.GetNodes(), (*berthv1.Node).GetName),
				text:    func(p *page, wide bool) { nodeTable(p, answer.GetNodes(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func nodeTable(p *page, nodes []*berthv1.Node, wide bool) {
	headings := []string{"NAME", "STATE", "VMS", "MEM-PROMISED", "MEM-FREE", "VCPUS", "LOAD", "AGE"}
	if wide {
		headings = append(headings, "RAM-RATIO", "CPU-RATIO", "OVERHEAD", "LABELS", "LIBVIRT", "AGENT", "ID", "REASON")
	}
	rows := make([][]string, 0, len(nodes))
	for _, node := range nodes {
		promised, vcpus, vms := none, none, none
		ledgers := node.GetLedgers()
		free := (*int64)(nil)
		if ledgers != nil {
			promised = size(ledgers.GetPromisedUsedBytes()) + "/" + size(ledgers.GetPromisedLimitBytes())
			vcpus = fmt.Sprintf("%d/%d", ledgers.GetVcpusUsed(), ledgers.GetVcpusLimit())
			vms = strconv.FormatInt(ledgers.GetVms(), 10)
			free = ledgers.PhysicalFreeBytes
		}
		row := []string{
			node.GetName(), nodeState(node), vms, promised, optionalSize(free), vcpus, load(node), optionalAge(node.TelemetryAgeSeconds),
		}
		if wide {
			settings, inventory := node.GetSettings(), node.GetInventory()
			row = append(row, number(settings.GetRamRatio()), number(settings.GetCpuRatio()), size(settings.GetOverheadBytes()),
				or(strings.Join(node.GetLabels(), ","), none), or(inventory.GetLibvirtVersion(), none), or(inventory.GetAgentVersion(), none), node.GetId(), or(reasons(node), none))
		}
		rows = append(rows, row)
	}
	p.table(headings, rows)
}

func nodeState(node *berthv1.Node) string {
	state := enum(node.GetState(), "NODE_STATE_")
	switch {
	case node.GetPlanId() != "":
		state += ",draining"
	case node.GetMaintenance():
		state += ",maintenance"
	}
	return state
}

func load(node *berthv1.Node) string {
	if node.GetTelemetry() == nil {
		return none
	}
	return optionalNumber(node.GetTelemetry().Load1)
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
	return strings.Join(parts, "; ")
}

func (a *app) nodeMaintenanceCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "maintenance NODE on|off", Short: "Take a node out of placement, or back in", Args: arguments(2, "NODE", "on|off"),
		Long: `Take a node out of placement, or back in. In maintenance it gets no further VMs; those that it runs stay. 'berth node
drain' moves them away as well.`,
		Example: `  berth node maintenance node2 on --reason "new memory on Tuesday"
  berth node maintenance node2 off`,
		RunE: func(cmd *cobra.Command, args []string) error {
			on := args[1] == "on"
			switch {
			case !on && args[1] != "off":
				return Usagef(cmd, "maintenance %q: want on or off", args[1])
			case !on && reason != "":
				return Usagef(cmd, "--reason is for maintenance on")
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.SetNodeMaintenance, &berthv1.SetNodeMaintenanceRequest{
				Node: args[0], On: on, Reason: reason, RequestId: requestID(),
			})
			if err != nil {
				return err
			}
			said := "is out of maintenance and gets VMs again"
			if on {
				said = fmt.Sprintf("is in maintenance and gets no further VMs; it runs %s", count(len(answer.GetNode().GetVms()), "VM"))
			}
			return a.print(cmd, result{
				message: answer, names: []string{"node/" + answer.GetNode().GetName()},
				text: func(p *page, _ bool) { p.line("node/%s %s", answer.GetNode().GetName(), said) },
			})
		},
		ValidArgsFunction: a.maintenanceWords(),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that others see")
	complete(cmd, "reason", cobra.NoFileCompletions)
	return cmd
}

func (a *app) maintenanceWords() cobra.CompletionFunc {
	nodes, words := a.nodeNames(), fixed("on", "off")
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

func (a *app) nodeRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove NODE", Short: "Forget a node that holds no VM, and refuse its agent from then on", Args: arguments(1, "NODE"),
		Long: `Forget a node that holds no VM, and refuse its agent from then on. The host and what runs on it are not touched. With a
new token the host can join again, as a new node.`,
		Example: `  berth node remove node3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.RemoveNode,
				&berthv1.RemoveNodeRequest{Node: args[0], RequestId: requestID()})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer, names: []string{"node/" + args[0]},
				text: func(p *page, _ bool) { p.line("node/%s removed; its agent is refused from now on", args[0]) },
			})
		},
		ValidArgsFunction: first(a.nodeNames()),
	}
}
