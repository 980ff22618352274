package coordinator

import (
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// Command is the noun coordinator. Snapshot has further verbs of its noun snapshot.
func Command(a *term.App, snapshot []*cobra.Command) *cobra.Command {
	return term.Noun("coordinator COMMAND", "See, run and change the coordinators", `
The coordinators keep every hard fact in a replicated log and elect a leader. One, three or five of them make a cluster;
more than half have to run.`,
		listCommand(a), removeCommand(a), snapshotCommand(a, snapshot))
}

func listCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List coordinators", Args: term.Arguments(0),
		Example: `  berth coordinator list -o wide`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.ListMembers, &berthv1.ListMembersRequest{})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   term.Prefixed("coordinator/", answer.GetMembers(), (*berthv1.Member).GetName),
				Text:    func(p *term.Page, wide bool) { memberTable(p, answer.GetMembers(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func removeCommand(a *term.App) *cobra.Command {
	var force, yes bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Take a coordinator out of the cluster", Args: term.Arguments(1, "NAME"),
		Long: `Take a coordinator out of the cluster, for good: to come back it has to join again, with an empty data folder. It is
refused when those that remain and can be reached would be no majority; --force does it all the same.`,
		Example: `  berth coordinator remove coord3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := term.Confirm(cmd, yes, fmt.Sprintf("Remove coordinator/%s for good?", args[0])); err != nil {
				return err
			}
			answer, err := term.AskOnce(a, cmd, term.Client.RemoveMember,
				&berthv1.RemoveMemberRequest{Member: args[0], Force: force})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"coordinator/" + args[0]},
				Text: func(p *term.Page, _ bool) {
					p.Line("coordinator/%s removed; stop its service and empty its data folder", args[0])
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.MemberNames()),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when those that remain and can be reached are no majority")
	term.ConfirmFlag(cmd, &yes)
	return cmd
}
