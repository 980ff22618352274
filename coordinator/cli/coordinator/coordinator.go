package coordinator

import (
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
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
		Long:    `List coordinators. Without a leader it is what one of them knows by itself.`,
		Example: `  berth coordinator list -o wide`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := list(a, cmd)
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

// list asks the leader, and without one any coordinator: who is lost is looked for when there is no leader.
func list(a *term.App, cmd *cobra.Command) (*berthv1.ListMembersResponse, error) {
	s, err := a.Connect()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	answer, err := term.Ask(cmd.Context(), s, term.Client.ListMembers, &berthv1.ListMembersRequest{})
	if code := rpc.Detail(err).GetCode(); code != rpc.NoLeader && code != rpc.Unreachable {
		if err == nil {
			err = a.KeepCoordinators(s, answer.GetMembers())
		}
		return answer, err
	}
	known, staleErr := term.Ask(cmd.Context(), s, term.Client.Status, &berthv1.StatusRequest{Stale: true})
	if staleErr != nil {
		return nil, err
	}
	if !a.Quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "berth: the coordinators have no leader: this is what %s knows\n", term.Clean(known.GetAnsweredBy()))
	}
	return &berthv1.ListMembersResponse{SchemaVersion: known.GetSchemaVersion(), Members: known.GetMembers()}, nil
}

func removeCommand(a *term.App) *cobra.Command {
	var force, yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Aliases: []string{"remove"},
		Short: "Take a coordinator out of the cluster", Args: term.Arguments(1, "NAME"),
		Long: `Take a coordinator out of the cluster, for good: to come back it has to join again, with an empty data folder. It is
refused when those that remain and can be reached would be no majority; --force does it all the same.

It has the keys of the authorities. Whoever has a copy of them is root on every hypervisor until 'berth ca rotate',
'berth ca rotate libvirt' and 'berth ca rotate qemu' have replaced them.`,
		Example: `  berth coordinator delete coord3`,
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
					p.Line("it has the keys of the authorities: whoever has a copy is root on every hypervisor until they are replaced")
					p.Blank()
					p.Line("next:")
					p.Line("  berth ca rotate")
					p.Line("  berth ca rotate libvirt")
					p.Line("  berth ca rotate qemu")
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.MemberNames()),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also when those that remain and can be reached are no majority")
	term.ConfirmFlag(cmd, &yes)
	return cmd
}
