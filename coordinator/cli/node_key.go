package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
)

func (a *app) nodeKeyCommand() *cobra.Command {
	return noun("node-key COMMAND", "Say what keys the nodes of a cluster have", `
All nodes of a cluster have the same keys, each with a value of its own: 'berth node set NODE --key NAME=VALUE' gives
it, and the default is that of the others. System keys of VMs meet them. Keys whose names begin with _ are met by
customer and billing-entity keys instead.

A sticky key is copied to each VM that starts on the node, with the weight that is declared for it, so that the VM
comes back to such nodes.`,
		a.nodeKeyDeclareCommand(), a.nodeKeyDropCommand())
}

func (a *app) nodeKeyDeclareCommand() *cobra.Command {
	var (
		value, weight string
		sticky        bool
	)
	cmd := &cobra.Command{
		Use: "declare CLUSTER NAME", Short: "Give all nodes of a cluster a key, or change it", Args: arguments(2, "CLUSTER", "NAME"),
		Long: `Give all nodes of a cluster a key, or change what is declared of it: what is not on the line is as by default. Values
that nodes set themselves stay.`,
		Example: `  berth cluster node-key declare default Premium
  berth cluster node-key declare default DS --sticky --weight 30
  berth cluster node-key declare prod _ssd --default 1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			key := cluster.NodeKey{Name: args[1], Sticky: sticky}
			var err error
			if key.Default, err = figure("node key "+key.Name+" default", value); err != nil {
				return usage(cmd, err)
			}
			if key.Weight, err = figure("node key "+key.Name+" weight", weight); err != nil {
				return usage(cmd, err)
			}
			if err := cluster.ValidateNodeKey(key); err != nil {
				return usage(cmd, err)
			}
			return a.nodeKeyDeclare(cmd, &berthv1.DeclareNodeKeyRequest{
				Cluster: args[0], RequestId: requestID(),
				Key: &berthv1.NodeKey{Name: key.Name, Default: key.Default, Sticky: key.Sticky, Weight: key.Weight},
			})
		},
		ValidArgsFunction: first(a.resourceNames(cluster.KindCluster)),
	}
	cmd.Flags().StringVar(&value, "default", "0", "`NUMBER` that nodes have which set none")
	cmd.Flags().BoolVar(&sticky, "sticky", false, "copy it to each VM that starts on the node")
	cmd.Flags().StringVar(&weight, "weight", "0", "`NUMBER` that the copy counts with")
	complete(cmd, "default", cobra.NoFileCompletions)
	complete(cmd, "weight", cobra.NoFileCompletions)
	return cmd
}

func (a *app) nodeKeyDeclare(cmd *cobra.Command, request *berthv1.DeclareNodeKeyRequest) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := ask(cmd.Context(), s, repeatable, client.DeclareNodeKey, request)
	if err != nil {
		return err
	}
	ref, key := resourceRef(answer.GetCluster()), request.GetKey()
	return a.print(cmd, result{
		message: answer, names: []string{ref},
		text: func(p *page, _ bool) {
			said := fmt.Sprintf("%s: all nodes have %s, %s unless they set it", ref, key.GetName(), exact(key.GetDefault()))
			if key.GetSticky() {
				said += "; VMs keep a copy of weight " + exact(key.GetWeight())
			}
			p.line("%s", said)
		},
	})
}

func (a *app) nodeKeyDropCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "drop CLUSTER NAME", Short: "Take a key away from all nodes of a cluster", Args: arguments(2, "CLUSTER", "NAME"),
		Long: `Take a key away from all nodes of a cluster, with the values that they set. Copies that VMs have stay until they start
again.`,
		Example: `  berth cluster node-key drop default Premium
  berth cluster node-key drop default Premium --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm(cmd, yes, fmt.Sprintf("Take %s away from all nodes of cluster/%s, with its values?", args[1], args[0])); err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.DropNodeKey,
				&berthv1.DropNodeKeyRequest{Cluster: args[0], Key: args[1], RequestId: requestID()})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer, names: []string{"cluster/" + args[0]},
				text: func(p *page, _ bool) { p.line("cluster/%s: no node has %s any more", args[0], args[1]) },
			})
		},
		ValidArgsFunction: first(a.resourceNames(cluster.KindCluster)),
	}
	confirmFlag(cmd, &yes)
	return cmd
}
