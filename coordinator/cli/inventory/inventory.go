package inventory

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// site is what is told others.
type site struct {
	nodes   []*berthv1.Node
	vms     []*berthv1.VM
	members []*berthv1.Member
}

// Command is the command inventory.
func Command(a *term.App) *cobra.Command {
	var ansible, prometheus, netbox bool
	cmd := &cobra.Command{
		Use: "inventory --ansible|--prometheus|--netbox", Short: "Tell other programs which nodes, coordinators and VMs there are",
		Args: term.Arguments(0),
		Long: `Tell other programs which nodes, coordinators and VMs there are, as JSON in the form that they read.
--ansible: an inventory of coordinators and nodes, with a group for each cluster and each label of nodes, and with
variables that begin with berth_.
--prometheus: whose figures other machines read, as file_sd_configs takes it; coordinators answer the same at /targets.
--netbox: VMs, as NetBox takes them at /api/virtualization/virtual-machines/; the serial number is the UUID. A VM whose
node is silent has no status.`,
		Example: `  berth inventory --prometheus
  berth inventory --ansible
  berth inventory --netbox`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ask []func(context.Context, *term.Session) (any, error)
			if ansible {
				ask = append(ask, ansibleInventory)
			}
			if prometheus {
				ask = append(ask, prometheusTargets)
			}
			if netbox {
				ask = append(ask, netboxMachines)
			}
			if len(ask) != 1 {
				return term.Usagef(cmd, "for whom? give one of --ansible, --prometheus and --netbox")
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			told, err := ask[0](cmd.Context(), s)
			if err != nil {
				return err
			}
			return write(a, cmd, told)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&ansible, "ansible", false, "coordinators and nodes, as Ansible reads them")
	cmd.Flags().BoolVar(&prometheus, "prometheus", false, "whose figures are read, as Prometheus reads it")
	cmd.Flags().BoolVar(&netbox, "netbox", false, "VMs, as NetBox takes them")
	return cmd
}

// write prints what is told as JSON, or as YAML if that was asked for: no program reads a table.
func write(a *term.App, cmd *cobra.Command, told any) error {
	compact, err := json.Marshal(told)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	format := a.Format
	if !format.Structured() {
		format = term.AsJSON
	}
	text, err := term.Indent(format, compact)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

func (s *site) readHosts(ctx context.Context, session *term.Session) error {
	nodes, err := term.AskAll(ctx, session, term.Client.ListNodes, &berthv1.ListNodesRequest{}, term.Everything)
	if err != nil {
		return err
	}
	members, err := term.Ask(ctx, session, term.Client.ListMembers, &berthv1.ListMembersRequest{})
	if err != nil {
		return err
	}
	s.nodes, s.members = nodes.GetNodes(), members.GetMembers()
	return nil
}

func (s *site) readVMs(ctx context.Context, session *term.Session) error {
	vms, err := term.AskAll(ctx, session, term.Client.ListVMs, &berthv1.ListVMsRequest{}, term.Everything)
	if err != nil {
		return err
	}
	s.vms = vms.GetVms()
	return nil
}
