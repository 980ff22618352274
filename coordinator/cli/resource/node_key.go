package resource

import (
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

func nodeKeyCommand(a *term.App) *cobra.Command {
	return term.Noun("node-key COMMAND", "Say what keys the nodes of a cluster have", `
All nodes of a cluster have the same keys, each with a value of its own: 'berth node set NODE --key NAME=VALUE' gives
it, and the default is that of the others. System keys of VMs meet them. Keys whose names begin with _ are met by
customer and billing-entity keys instead.

A sticky key is copied to each VM that starts on the node, with the weight that is declared for it, so that the VM
comes back to such nodes.`,
		nodeKeyDeclareCommand(a), nodeKeyDropCommand(a))
}

func nodeKeyDeclareCommand(a *term.App) *cobra.Command {
	var (
		value, weight string
		sticky        bool
	)
	cmd := &cobra.Command{
		Use: "declare CLUSTER NAME", Short: "Give all nodes of a cluster a key, or change it", Args: term.Arguments(2, "CLUSTER", "NAME"),
		Long: `Give all nodes of a cluster a key, or change what is declared of it: what is not on the line is as by default. Values
that nodes set themselves stay.`,
		Example: `  berth cluster node-key declare default Premium
  berth cluster node-key declare default DS --sticky --weight 30
  berth cluster node-key declare prod _ssd --default 1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			key := model.NodeKey{Name: args[1], Sticky: sticky}
			var err error
			if key.Default, err = term.ParseFigure("node key "+key.Name+" default", value); err != nil {
				return term.Usage(cmd, err)
			}
			if key.Weight, err = term.ParseFigure("node key "+key.Name+" weight", weight); err != nil {
				return term.Usage(cmd, err)
			}
			if err := model.ValidateNodeKey(key); err != nil {
				return term.Usage(cmd, err)
			}
			return nodeKeyDeclare(a, cmd, &berthv1.DeclareNodeKeyRequest{
				Cluster: args[0], RequestId: term.RequestID(),
				Key: &berthv1.NodeKey{Name: key.Name, Default: key.Default, Sticky: key.Sticky, Weight: key.Weight},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceNames(model.KindCluster)),
	}
	cmd.Flags().StringVar(&value, "default", "0", "`NUMBER` that nodes have which set none")
	cmd.Flags().BoolVar(&sticky, "sticky", false, "copy it to each VM that starts on the node")
	cmd.Flags().StringVar(&weight, "weight", "0", "`NUMBER` that the copy counts with")
	term.Complete(cmd, "default", cobra.NoFileCompletions)
	term.Complete(cmd, "weight", cobra.NoFileCompletions)
	return cmd
}

func nodeKeyDeclare(a *term.App, cmd *cobra.Command, request *berthv1.DeclareNodeKeyRequest) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := term.Ask(cmd.Context(), s, term.Client.DeclareNodeKey, request)
	if err != nil {
		return err
	}
	ref, key := term.ResourceRef(answer.GetCluster()), request.GetKey()
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{ref},
		Text: func(p *term.Page, _ bool) {
			said := fmt.Sprintf("%s: all nodes have %s, %s unless they set it", ref, key.GetName(), term.Exact(key.GetDefault()))
			if key.GetSticky() {
				said += "; VMs keep a copy of weight " + term.Exact(key.GetWeight())
			}
			p.Line("%s", said)
		},
	})
}

func nodeKeyDropCommand(a *term.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "drop CLUSTER NAME", Short: "Take a key away from all nodes of a cluster", Args: term.Arguments(2, "CLUSTER", "NAME"),
		Long: `Take a key away from all nodes of a cluster, with the values that they set. Copies that VMs have stay until they start
again.`,
		Example: `  berth cluster node-key drop default Premium
  berth cluster node-key drop default Premium --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := term.Confirm(
				cmd, yes, fmt.Sprintf("Take %s away from all nodes of cluster/%s, with its values?", args[1], args[0]),
			); err != nil {
				return err
			}
			answer, err := term.AskOnce(a, cmd, term.Client.DropNodeKey,
				&berthv1.DropNodeKeyRequest{Cluster: args[0], Key: args[1], RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"cluster/" + args[0]},
				Text: func(p *term.Page, _ bool) { p.Line("cluster/%s: no node has %s any more", args[0], args[1]) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceNames(model.KindCluster)),
	}
	term.ConfirmFlag(cmd, &yes)
	return cmd
}
