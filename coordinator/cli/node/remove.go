package node

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func removeCommand(a *term.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NODE", Aliases: []string{"remove"},
		Short: "Forget a node that holds no VM, and refuse its agent from then on", Args: term.Arguments(1, "NODE"),
		Long: `Forget a node that holds no VM, and refuse its agent from then on. The host and what runs on it are not touched. With a
new token the host can join again, as a new node: what was set on it is lost. Before it does anything it asks, and says
which VMs the node holds and what is lost.`,
		Example: `  berth node delete node3
  berth node delete node3 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			err = term.ConfirmWhat(cmd, yes, func() (string, error) {
				known, err := term.Ask(cmd.Context(), s, term.Client.GetNode, &berthv1.GetNodeRequest{Node: args[0]})
				return removalQuestion(known.GetNode()), err
			})
			if err != nil {
				return err
			}
			answer, err := term.Ask(cmd.Context(), s, term.Client.RemoveNode,
				&berthv1.RemoveNodeRequest{Node: args[0], RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"node/" + args[0]},
				Text: func(p *term.Page, _ bool) { p.Line("node/%s removed; its agent is refused from now on", args[0]) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.NodeNames()),
	}
	term.ConfirmFlag(cmd, &yes)
	return cmd
}

// removalQuestion names the node, its VMs and what is lost with it.
func removalQuestion(node *berthv1.Node) string {
	question := fmt.Sprintf("Forget node/%s? %s Its agent is refused from then on; to come back, the host has to join again, as a new node.",
		node.GetName(), atStake(node))
	if lost := setOn(node); len(lost) > 0 {
		question += fmt.Sprintf(" What was set on it is lost: %s.", strings.Join(lost, ", "))
	}
	return question
}

// setOn is what people have set on a node, which goes with it.
func setOn(node *berthv1.Node) []string {
	var parts []string
	add := func(is bool, format string, a ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, a...))
		}
	}
	own := node.GetOwnSettings()
	add(own != nil && own.RamRatio != nil, "RAM ratio %g", own.GetRamRatio())
	add(own != nil && own.CpuRatio != nil, "CPU ratio %g", own.GetCpuRatio())
	add(own != nil && own.OverheadBytes != nil, "overhead %s", term.Size(own.GetOverheadBytes()))
	for _, key := range node.GetOwnKeys() {
		add(true, "key %s %g", key, node.GetKeys()[key])
	}
	for _, label := range node.GetLabels() {
		add(true, "label %s", label)
	}
	add(node.GetFence() != nil, "its fence device")
	add(node.GetManagement(), "that it carries the management")
	add(node.GetUnbalanced(), "that balancing leaves it alone")
	add(node.GetMaintenance(), "its maintenance")
	return parts
}
