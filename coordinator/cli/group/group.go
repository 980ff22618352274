package group

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/affinity"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Command is the noun group.
func Command(a *term.App) *cobra.Command {
	return term.Noun("group COMMAND", "Say which VMs belong together or apart, and on which nodes", `
An affinity group has VMs, nodes, and two rules, each positive, negative or disabled. The VM rule keeps its VMs on one
node (positive) or on different ones (negative); the node rule keeps them on its nodes (positive) or off them
(negative). A rule that is enforcing is hard and leaves no choice: a VM that it does not let run anywhere is not
started. The others are soft: they are kept where that is possible, those of a higher priority first.

Members are named, or come in by a label that they carry. All of them are of one cluster. When a rule does not hold, for
instance because somebody moved a VM with virsh, the cluster's enforcement repairs it: 'berth cluster set NAME
--enforcement automatic'. An estate has groups as well, in the same words: 'berth apply'.`,
		createCommand(a), listCommand(a), showCommand(a), editCommand(a), deleteCommand(a),
		checkCommand(a))
}

func listCommand(a *term.App) *cobra.Command {
	var (
		of     string
		broken bool
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List groups, and whether they hold", Args: term.Arguments(0),
		Long: `List groups: their rules, how many VMs and nodes are members, those by label among them, whether the rules hold now, and
since when they do or do not.`,
		Example: `  berth group list
  berth group list --broken --cluster prod`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			request := &berthv1.ListGroupsRequest{Cluster: of, BrokenOnly: broken}
			answer, err := term.AskAllOnce(a, cmd, term.Client.ListGroups, request, term.Everything)
			if err != nil {
				return err
			}
			note := "no groups: 'berth group add --help' shows how to make one"
			if broken {
				note = "no group is broken"
			}
			a.NoteIfEmpty(cmd, len(answer.GetGroups()), note)
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   term.Prefixed("group/", answer.GetGroups(), (*berthv1.Group).GetName),
				Text:    func(p *term.Page, wide bool) { table(a, p, answer.GetGroups(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "only those of this `CLUSTER`")
	cmd.Flags().BoolVar(&broken, "broken", false, "only those that do not hold")
	term.Complete(cmd, "cluster", a.ResourceNames(model.KindCluster))
	return cmd
}

func showCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a group: its members, whether it holds, and what breaks it", Args: term.Arguments(1, "NAME"),
		Long: `Show a group: its rules, its members and how each came in, whether it holds now and since when, what breaks it, why it
was not repaired, and what contradicts it.`,
		Example: `  berth group show web
  berth group show web -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetGroup, &berthv1.GetGroupRequest{Group: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{ref(answer.GetGroup())},
				Text: func(p *term.Page, wide bool) { text(a, p, answer.GetGroup(), wide) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(names(a)),
	}
}

func ref(group *berthv1.Group) string { return "group/" + group.GetName() }

func deleteCommand(a *term.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Forget a group; its VMs stay where they are", Args: term.Arguments(1, "NAME"),
		Example: `  berth group delete web
  berth group delete web --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := term.Confirm(cmd, yes, fmt.Sprintf("Forget group/%s and its rules? Its VMs stay where they are.", args[0])); err != nil {
				return err
			}
			answer, err := term.AskOnce(a, cmd, term.Client.DeleteGroup,
				&berthv1.DeleteGroupRequest{Group: args[0], RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"group/" + args[0]},
				Text: func(p *term.Page, _ bool) { p.Line("group/%s deleted; its VMs stay where they are", args[0]) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(names(a)),
	}
	term.ConfirmFlag(cmd, &yes)
	return cmd
}

func checkCommand(a *term.App) *cobra.Command {
	var of string
	cmd := &cobra.Command{
		Use: "check", Short: "Look for groups that contradict each other, or that the cluster cannot hold", Args: term.Arguments(0),
		Long: `Look for groups that contradict each other, and for rules that the cluster cannot hold, now or once one more node has
failed. Stopped VMs count: they may be started. Whether the rules hold where the VMs run now says 'berth group list'.

The exit code is 0 when nothing is wrong or only warnings are found, and 1 when hard rules contradict each other or
cannot hold.`,
		Example: `  berth group check
  berth group check --cluster prod -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.CheckGroups, &berthv1.CheckGroupsRequest{Cluster: of})
			if err != nil {
				return err
			}
			return groupsChecked(a, cmd, answer)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "only the groups of this `CLUSTER`")
	term.Complete(cmd, "cluster", a.ResourceNames(model.KindCluster))
	return cmd
}

func groupsChecked(a *term.App, cmd *cobra.Command, answer *berthv1.CheckGroupsResponse) error {
	severe := 0
	for _, conflict := range answer.GetConflicts() {
		if conflict.GetSeverity() == string(affinity.Error) {
			severe++
		}
	}
	err := a.Print(cmd, term.Result{
		Message: answer,
		Names:   term.Prefixed("", answer.GetConflicts(), (*berthv1.Conflict).GetKind),
		Text: func(p *term.Page, _ bool) {
			term.ConflictLines(p, "", answer.GetConflicts())
			p.Line("%s looked at: %s, %s", term.Count(int(answer.GetGroups()), "group"), term.Count(severe, "error"),
				term.Count(len(answer.GetConflicts())-severe, "warning"))
		},
	})
	if err != nil || severe == 0 {
		return err
	}
	return term.Failf(
		rpc.Conflict, "do what each of them says; 'berth group set' changes a group", "%s in groups", term.Count(severe, "error"),
	)
}

func names(a *term.App) cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *term.Session) ([]string, error) {
		answer, err := term.AskAll(ctx, s, term.Client.ListGroups, &berthv1.ListGroupsRequest{}, term.Everything)
		return term.Prefixed("", answer.GetGroups(), (*berthv1.Group).GetName), err
	})
}
