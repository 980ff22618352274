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
	known   *berthv1.LastKnown // as of when all that is, where the cluster has no leader; nil: now
}

// Command is the command inventory.
func Command(a *term.App) *cobra.Command {
	var ansible, prometheus, netbox bool
	cmd := &cobra.Command{
		Use: "inventory --ansible|--prometheus|--netbox", Short: "Tell other programs which nodes, coordinators and VMs there are",
		Args: term.Arguments(0),
		Long: `Tell other programs which nodes, coordinators and VMs there are, as JSON in the form that they read.
--ansible: an inventory of coordinators and nodes, with a group for each cluster and each label of nodes, and with
variables that begin with berth_. One that says how old it is has berth_as_of and berth_answered_by in the group berth.
--prometheus: whose figures other machines read, as file_sd_configs takes it; coordinators answer the same at /targets.
--netbox: VMs, as NetBox takes them at /api/virtualization/virtual-machines/; the serial number is the UUID. A VM whose
node is silent has no status.
Without a leader a coordinator tells what it last knew, and the standard error says who and as of when.`,
		Example: `  berth inventory --prometheus
  berth inventory --ansible
  berth inventory --netbox`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ask []func(context.Context, *term.Session, *site) (any, error)
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
			var found site
			told, err := ask[0](cmd.Context(), s, &found)
			if err != nil {
				return err
			}
			if asOf := term.AsOf(a, found.known); asOf != "" && !a.Quiet { // also beside JSON: most forms have no place for it
				fmt.Fprintln(cmd.ErrOrStderr(), "berth: "+asOf)
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

// readHosts reads nodes and coordinators: of the leader, or else what another coordinator last knew.
func (s *site) readHosts(ctx context.Context, session *term.Session) error {
	nodes, err := term.AskAll(ctx, session, term.Client.ListNodes, &berthv1.ListNodesRequest{}, term.Everything)
	if err == nil {
		var members *berthv1.ListMembersResponse
		if members, err = term.Ask(ctx, session, term.Client.ListMembers, &berthv1.ListMembersRequest{}); err == nil {
			s.nodes, s.members = nodes.GetNodes(), members.GetMembers()
			return nil
		}
	}
	if !term.Leaderless(err) {
		return err
	}
	last, lost := term.AskAll(ctx, session, term.Client.LastKnownNodes, &berthv1.ListNodesRequest{}, term.Everything)
	if lost != nil {
		return err
	}
	status, lost := term.Ask(ctx, session, term.Client.Status, &berthv1.StatusRequest{Stale: true})
	if lost != nil {
		return err
	}
	s.nodes, s.members, s.known = last.GetNodes(), status.GetMembers(), last.GetLastKnown()
	return nil
}

// readVMs reads VMs in the same way.
func (s *site) readVMs(ctx context.Context, session *term.Session) error {
	vms, err := term.AskAll(ctx, session, term.Client.ListVMs, &berthv1.ListVMsRequest{}, term.Everything)
	if term.Leaderless(err) {
		if last, lost := term.AskAll(ctx, session, term.Client.LastKnownVMs, &berthv1.ListVMsRequest{}, term.Everything); lost == nil {
			vms, err, s.known = last, nil, last.GetLastKnown()
		}
	}
	s.vms = vms.GetVms()
	return err
}
