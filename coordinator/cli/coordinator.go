package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	berthv1 "berth/shared/gen/berth/v1"
)

func (a *app) coordinatorCommand(snapshot []*cobra.Command) *cobra.Command {
	return noun("coordinator COMMAND", "See, run and change the coordinators", `
The coordinators keep every hard fact in a replicated log and elect a leader. One, three or five of them make a cluster;
more than half have to run.`,
		a.coordinatorListCommand(), a.coordinatorRemoveCommand(), a.snapshotCommand(snapshot))
}

func (a *app) coordinatorListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List coordinators", Args: arguments(0),
		Example: `  berth coordinator list -o wide`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.ListMembers, &berthv1.ListMembersRequest{})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer,
				names:   prefixed("coordinator/", answer.GetMembers(), (*berthv1.Member).GetName),
				text:    func(p *page, wide bool) { memberTable(p, answer.GetMembers(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func (a *app) coordinatorRemoveCommand() *cobra.Command {
	var force, yes bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Take a coordinator out of the cluster", Args: arguments(1, "NAME"),
		Long: `Take a coordinator out of the cluster, for good: to come back it has to join again, with an empty data folder. It is
refused when those that remain and can be reached would be no majority; --force does it all the same.`,
		Example: `  berth coordinator remove coord3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm(cmd, yes, fmt.Sprintf("Remove coordinator/%s for good?", args[0])); err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, onlyOnce, client.RemoveMember,
				&berthv1.RemoveMemberRequest{Member: args[0], Force: force})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer, names: []string{"coordinator/" + args[0]},
				text: func(p *page, _ bool) {
					p.line("coordinator/%s removed; stop its service and empty its data folder", args[0])
				},
			})
		},
		ValidArgsFunction: first(a.memberNames()),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when those that remain and can be reached are no majority")
	confirmFlag(cmd, &yes)
	return cmd
}
