package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/affinity"
	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func (a *app) groupCommand() *cobra.Command {
	return noun("group COMMAND", "Say which VMs belong together or apart, and on which nodes", `
An affinity group has VMs, nodes, and two rules, each positive, negative or disabled. The VM rule keeps its VMs on one
node (positive) or on different ones (negative); the node rule keeps them on its nodes (positive) or off them
(negative). A rule that is enforcing is hard and leaves no choice: a VM that it does not let run anywhere is not
started. The others are soft: they are kept where that is possible, those of a higher priority first.

Members are named, or come in by a label that they carry. All of them are of one cluster. When a rule does not hold, for
instance because somebody moved a VM with virsh, the cluster's enforcement repairs it: 'berth cluster set NAME
--enforcement'. An estate has groups as well, in the same words: 'berth apply'.`,
		a.groupCreateCommand(), a.groupListCommand(), a.groupShowCommand(), a.groupEditCommand(), a.groupDeleteCommand(),
		a.groupCheckCommand())
}

func (a *app) groupListCommand() *cobra.Command {
	var (
		of     string
		broken bool
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List groups, and whether they hold", Args: arguments(0),
		Long: `List groups: their rules, how many VMs and nodes are members, those by label among them, whether the rules hold now, and
since when they do not.`,
		Example: `  berth group list
  berth group list --broken --cluster prod`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := askAll(cmd.Context(), s, client.ListGroups, &berthv1.ListGroupsRequest{Cluster: of, BrokenOnly: broken}, everything)
			if err != nil {
				return err
			}
			note := "no groups: 'berth group create --help' shows how to make one"
			if broken {
				note = "no group is broken"
			}
			a.nothing(cmd, len(answer.GetGroups()), note)
			return a.print(cmd, result{
				message: answer,
				names:   prefixed("group/", answer.GetGroups(), (*berthv1.Group).GetName),
				text:    func(p *page, wide bool) { a.groupTable(p, answer.GetGroups(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "only those of this `CLUSTER`")
	cmd.Flags().BoolVar(&broken, "broken", false, "only those that do not hold")
	complete(cmd, "cluster", a.resourceNames(cluster.KindCluster))
	return cmd
}

func (a *app) groupShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a group: its members, whether it holds, and what breaks it", Args: arguments(1, "NAME"),
		Long: `Show a group: its rules, its members and how each came in, whether it holds now, what breaks it and since when, why it
was not repaired, and what contradicts it.`,
		Example: `  berth group show web
  berth group show web -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.GetGroup, &berthv1.GetGroupRequest{Group: args[0]})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer, names: []string{groupRef(answer.GetGroup())},
				text: func(p *page, wide bool) { a.groupText(p, answer.GetGroup(), wide) },
			})
		},
		ValidArgsFunction: first(a.groupNames()),
	}
}

func groupRef(group *berthv1.Group) string { return "group/" + group.GetName() }

func (a *app) groupDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Forget a group; its VMs stay where they are", Args: arguments(1, "NAME"),
		Example: `  berth group delete web
  berth group delete web --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := confirm(cmd, yes, fmt.Sprintf("Forget group/%s and its rules? Its VMs stay where they are.", args[0])); err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.DeleteGroup,
				&berthv1.DeleteGroupRequest{Group: args[0], RequestId: requestID()})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer, names: []string{"group/" + args[0]},
				text: func(p *page, _ bool) { p.line("group/%s deleted; its VMs stay where they are", args[0]) },
			})
		},
		ValidArgsFunction: first(a.groupNames()),
	}
	confirmFlag(cmd, &yes)
	return cmd
}

func (a *app) groupCheckCommand() *cobra.Command {
	var of string
	cmd := &cobra.Command{
		Use: "check", Short: "Look for groups that contradict each other, or that the cluster cannot hold", Args: arguments(0),
		Long: `Look for groups that contradict each other, and for rules that the cluster cannot hold, now or once one more node has
failed. Stopped VMs count: they may be started. Whether the rules hold where the VMs run now says 'berth group list'.

The exit code is 0 when nothing is wrong or only warnings are found, and 1 when hard rules contradict each other or
cannot hold.`,
		Example: `  berth group check
  berth group check --cluster prod -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.CheckGroups, &berthv1.CheckGroupsRequest{Cluster: of})
			if err != nil {
				return err
			}
			return a.groupsChecked(cmd, answer)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "only the groups of this `CLUSTER`")
	complete(cmd, "cluster", a.resourceNames(cluster.KindCluster))
	return cmd
}

func (a *app) groupsChecked(cmd *cobra.Command, answer *berthv1.CheckGroupsResponse) error {
	severe := 0
	for _, conflict := range answer.GetConflicts() {
		if conflict.GetSeverity() == string(affinity.Error) {
			severe++
		}
	}
	err := a.print(cmd, result{
		message: answer,
		names:   prefixed("", answer.GetConflicts(), (*berthv1.Conflict).GetKind),
		text: func(p *page, _ bool) {
			conflictLines(p, "", answer.GetConflicts())
			p.line("%s looked at: %s, %s", count(int(answer.GetGroups()), "group"), count(severe, "error"),
				count(len(answer.GetConflicts())-severe, "warning"))
		},
	})
	if err != nil || severe == 0 {
		return err
	}
	return failf(rpc.Conflict, "do what each of them says; 'berth group edit' changes a group", "%s in groups", count(severe, "error"))
}

// conflictLines writes contradictions, each with what to do about it.
func conflictLines(p *page, indent string, conflicts []*berthv1.Conflict) {
	for _, conflict := range conflicts {
		p.line("%s%s: %s", indent, conflict.GetSeverity(), conflict.GetText())
		if conflict.GetNextStep() != "" {
			p.line("%s  next step: %s", indent, conflict.GetNextStep())
		}
	}
}

func (a *app) groupNames() cobra.CompletionFunc {
	return a.lookup(func(ctx context.Context, s *session) ([]string, error) {
		answer, err := askAll(ctx, s, client.ListGroups, &berthv1.ListGroupsRequest{}, everything)
		return prefixed("", answer.GetGroups(), (*berthv1.Group).GetName), err
	})
}
