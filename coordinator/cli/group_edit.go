package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
)

// groupFlags describe a group. They have the words of estates: rules and marks as they are there, lists in the singular,
// once for each member or with commas.
type groupFlags struct {
	vms, nodes, vmLabels, nodeLabels         []string
	vmsRule, nodesRule                       worded
	vmsEnforcing, nodesEnforcing, unbalanced bool
	priority                                 float64
}

var (
	polarities    = []string{string(cluster.Positive), string(cluster.Negative), string(cluster.Disabled)}
	groupLists    = []string{"vm", "node", "vm-label", "node-label"}
	groupSettings = []string{"vms-rule", "vms-enforcing", "nodes-rule", "nodes-enforcing", "priority", "unbalanced"}
)

func (f *groupFlags) flags(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.vmsRule.word, f.nodesRule.word = "RULE", "RULE"
	flags.StringSliceVar(&f.vms, "vm", nil, "`VMS` that are members; repeat for more")
	flags.StringSliceVar(&f.vmLabels, "vm-label", nil, "`LABELS` whose VMs are members; repeat for more")
	flags.Var(&f.vmsRule, "vms-rule", "positive: its VMs run on one node, negative: on different ones; or disabled")
	flags.BoolVar(&f.vmsEnforcing, "vms-enforcing", false, "the VM rule is hard: it leaves no choice")
	flags.StringSliceVar(&f.nodes, "node", nil, "`NODES` that are members; repeat for more")
	flags.StringSliceVar(&f.nodeLabels, "node-label", nil, "`LABELS` whose nodes are members; repeat for more")
	flags.Var(&f.nodesRule, "nodes-rule", "positive: its VMs run on its nodes, negative: off them; or disabled")
	flags.BoolVar(&f.nodesEnforcing, "nodes-enforcing", false, "the node rule is hard: it leaves no choice")
	flags.Float64Var(&f.priority, "priority", cluster.DefaultPriority, "`NUMBER`: soft rules of a higher one are kept first")
	flags.BoolVar(&f.unbalanced, "unbalanced", false, "balancing leaves its VMs where they are")
	complete(cmd, "vm", a.vmNames())
	complete(cmd, "node", a.nodeNames())
	complete(cmd, "vms-rule", fixed(polarities...))
	complete(cmd, "nodes-rule", fixed(polarities...))
	for _, flag := range []string{"vm-label", "node-label", "priority"} {
		complete(cmd, flag, cobra.NoFileCompletions)
	}
}

// check refuses what cannot be meant; the coordinator knows who the members are.
func (f *groupFlags) check(cmd *cobra.Command) error {
	for _, list := range []struct {
		flag  string
		names []string
	}{{"vm", f.vms}, {"node", f.nodes}, {"vm-label", f.vmLabels}, {"node-label", f.nodeLabels}} {
		if err := checkNames(cmd, list.flag, list.names); err != nil {
			return err
		}
	}
	for _, rule := range []struct {
		flag string
		text string
	}{{"vms-rule", f.vmsRule.text}, {"nodes-rule", f.nodesRule.text}} {
		if cmd.Flags().Changed(rule.flag) && !slices.Contains(polarities, rule.text) {
			return Usagef(cmd, "--%s %s: use %s", rule.flag, rule.text, strings.Join(polarities, ", "))
		}
	}
	if !(f.priority > 0 && f.priority <= cluster.MaxPriority) { // false for a NaN
		return Usagef(cmd, "--priority %s: want more than 0, at most %s", exact(f.priority), exact(cluster.MaxPriority))
	}
	return nil
}

// checkNames refuses lists with empty names, and names that are there twice.
func checkNames(cmd *cobra.Command, flag string, names []string) error {
	if cmd.Flags().Changed(flag) && len(names) == 0 {
		return Usagef(cmd, "--%s: a name is missing", flag)
	}
	for i, name := range names {
		switch {
		case strings.TrimSpace(name) == "":
			return Usagef(cmd, "--%s: a name is empty", flag)
		case slices.Contains(names[:i], name):
			return Usagef(cmd, "--%s %s: it is there twice", flag, name)
		}
	}
	return nil
}

// rule is what the line says of one of the two rules, nil if nothing.
func rule(cmd *cobra.Command, of string, polarity worded, enforcing bool) *berthv1.AffinityRule {
	wanted, hardened := cmd.Flags().Changed(of+"-rule"), cmd.Flags().Changed(of+"-enforcing")
	if !wanted && !hardened {
		return nil
	}
	said := &berthv1.AffinityRule{}
	if wanted {
		said.Enabled = proto.Bool(polarity.text != string(cluster.Disabled))
	}
	if said.GetEnabled() {
		said.Positive = proto.Bool(polarity.text == string(cluster.Positive))
	}
	if hardened {
		said.Enforcing = &enforcing
	}
	return said
}

func (f *groupFlags) rules(cmd *cobra.Command) (vms, nodes *berthv1.AffinityRule) {
	return rule(cmd, "vms", f.vmsRule, f.vmsEnforcing), rule(cmd, "nodes", f.nodesRule, f.nodesEnforcing)
}

func (a *app) groupCreateCommand() *cobra.Command {
	var (
		of     string
		given  groupFlags
		dryRun bool
	)
	cmd := &cobra.Command{
		Use: "create NAME", Aliases: []string{"add"}, Short: "Make a group", Args: arguments(1, "NAME"),
		Long: `Make a group. A group that contradicts another one beyond repair is refused, naming both; what may be kept but is not
sound, or cannot hold on the nodes that there are, is warned of.`,
		Example: `  berth group create web --vm web-1,web-2 --vms-rule negative --vms-enforcing
  berth group create rack-7 --vm-label acme --node-label rack-7 --nodes-rule positive
  berth group create app --cluster prod --vm app,cache --vms-rule positive --node hv1 --nodes-rule negative --priority 2
  berth group create web --vm web-1,web-2 --vms-rule negative --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cluster.ValidateName("group", args[0]); err != nil {
				return usage(cmd, err)
			}
			if err := given.check(cmd); err != nil {
				return err
			}
			for _, of := range []string{"vms", "nodes"} {
				if cmd.Flags().Changed(of+"-enforcing") && !cmd.Flags().Changed(of+"-rule") {
					return Usagef(cmd, "--%[1]s-enforcing without --%[1]s-rule: say positive or negative", of)
				}
			}
			group := &berthv1.Group{
				Name: args[0], Cluster: of, Vms: given.vms, Hosts: given.nodes, VmLabels: given.vmLabels, HostLabels: given.nodeLabels,
				Unbalanced: given.unbalanced,
			}
			group.VmsRule, group.HostsRule = given.rules(cmd)
			if cmd.Flags().Changed("priority") {
				group.Priority = &given.priority
			}
			return a.groupCreate(cmd, &berthv1.CreateGroupRequest{Group: group, DryRun: dryRun, RequestId: requestID()})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "`CLUSTER` of its members (default \""+cluster.DefaultCluster+"\")")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would come of it, make nothing")
	complete(cmd, "cluster", a.resourceNames(cluster.KindCluster))
	given.flags(a, cmd)
	return cmd
}

func (a *app) groupCreate(cmd *cobra.Command, request *berthv1.CreateGroupRequest) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := ask(cmd.Context(), s, repeatable, client.CreateGroup, request)
	if err != nil {
		return err
	}
	group := answer.GetGroup()
	a.warnings(cmd.ErrOrStderr(), answer.GetWarnings())
	return a.print(cmd, result{
		message: answer, names: []string{groupRef(group)},
		text: func(p *page, _ bool) {
			text := groupRef(group) + " created: " + groupPhrase(group)
			if request.GetDryRun() {
				text = "dry run, nothing was changed: " + groupRef(group) + " would have " + groupPhrase(group)
			}
			p.line("%s", text)
			a.breaches(p, group.GetStatus())
		},
	})
}

// groupPhrase is a group in one line.
func groupPhrase(group *berthv1.Group) string {
	return fmt.Sprintf("%s (rule %s), %s (rule %s); %s", count(len(group.GetMemberVms()), "VM"), ruleWords(group.GetVmsRule()),
		count(len(group.GetMemberHosts()), "node"), ruleWords(group.GetHostsRule()), groupState(group.GetStatus()))
}

// warnings are about what was done all the same. In JSON they stand in the answer.
func (a *app) warnings(w io.Writer, warnings []*berthv1.Conflict) {
	if !a.quiet && !a.format.structured() {
		conflictLines(&page{out: w}, "", warnings)
	}
}

func (a *app) groupEditCommand() *cobra.Command {
	var (
		given   groupFlags
		request berthv1.ChangeGroupRequest
		name    string
		unset   []string
	)
	cmd := &cobra.Command{
		Use: "edit NAME", Aliases: []string{"set"}, Short: "Change a group: its members and its rules", Args: arguments(1, "NAME"),
		Long: `Change a group: its members and its rules. What is not named stays as it is. --vm, --node and the labels replace all
that there were; --add-vm, --remove-vm, --add-node and --remove-node change only those that they name. Nothing moves
at once: a rule that does not hold then is repaired by the cluster's enforcement.`,
		Example: `  berth group edit web --add-vm web-3
  berth group edit web --vms-rule disabled
  berth group edit rack-7 --nodes-enforcing=false --priority 5
  berth group edit web --remove-vm web-1 --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Group, request.RequestId = args[0], requestID()
			if err := given.check(cmd); err != nil {
				return err
			}
			if err := given.change(cmd, &request, unset); err != nil {
				return err
			}
			if cmd.Flags().Changed("name") {
				if err := cluster.ValidateName("group", name); err != nil {
					return usage(cmd, err)
				}
				request.Name = &name
			}
			return a.groupEdit(cmd, &request)
		},
		ValidArgsFunction: first(a.groupNames()),
	}
	given.flags(a, cmd)
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "another `NAME`")
	flags.StringSliceVar(&request.AddVms, "add-vm", nil, "`VMS` that become members; repeat for more")
	flags.StringSliceVar(&request.RemoveVms, "remove-vm", nil, "`VMS` that are members no more; repeat for more")
	flags.StringSliceVar(&request.AddHosts, "add-node", nil, "`NODES` that become members; repeat for more")
	flags.StringSliceVar(&request.RemoveHosts, "remove-node", nil, "`NODES` that are members no more; repeat for more")
	flags.StringSliceVar(&unset, "unset", nil, "`LISTS` to empty: "+strings.Join(groupLists, ", "))
	flags.BoolVar(&request.DryRun, "dry-run", false, "show what would change, change nothing")
	for _, flag := range []string{"add-vm", "remove-vm"} {
		complete(cmd, flag, a.vmNames())
	}
	for _, flag := range []string{"add-node", "remove-node"} {
		complete(cmd, flag, a.nodeNames())
	}
	complete(cmd, "unset", fixed(groupLists...))
	complete(cmd, "name", cobra.NoFileCompletions)
	return cmd
}

// change puts what stands on the line into a request.
func (f *groupFlags) change(cmd *cobra.Command, request *berthv1.ChangeGroupRequest, unset []string) error {
	steps := []string{"add-vm", "remove-vm", "add-node", "remove-node"}
	if len(changed(cmd, slices.Concat(groupLists, groupSettings, steps, []string{"name", "unset"}))) == 0 {
		return Usagef(cmd, "say what to change: --%s, --%s, --name or --unset", strings.Join(groupLists, ", --"), strings.Join(steps, ", --"))
	}
	for i, names := range [][]string{request.GetAddVms(), request.GetRemoveVms(), request.GetAddHosts(), request.GetRemoveHosts()} {
		flag := steps[i]
		_, list, _ := strings.Cut(flag, "-")
		if cmd.Flags().Changed(flag) && (cmd.Flags().Changed(list) || slices.Contains(unset, list)) {
			return Usagef(cmd, "--%s goes with neither --%s nor --unset %[2]s, which are about all of them", flag, list)
		}
		if err := checkNames(cmd, flag, names); err != nil {
			return err
		}
	}
	if err := checkUnset(cmd, unset, groupLists); err != nil {
		return err
	}
	for _, list := range []struct {
		flag  string
		names []string
		into  **berthv1.Names
	}{{"vm", f.vms, &request.Vms}, {"node", f.nodes, &request.Hosts}, {"vm-label", f.vmLabels, &request.VmLabels}, {"node-label", f.nodeLabels, &request.HostLabels}} {
		if cmd.Flags().Changed(list.flag) || slices.Contains(unset, list.flag) {
			*list.into = &berthv1.Names{Names: list.names}
		}
	}
	request.VmsRule, request.HostsRule = f.rules(cmd)
	if cmd.Flags().Changed("priority") {
		request.Priority = &f.priority
	}
	if cmd.Flags().Changed("unbalanced") {
		request.Unbalanced = &f.unbalanced
	}
	return nil
}

func (a *app) groupEdit(cmd *cobra.Command, request *berthv1.ChangeGroupRequest) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	if err := keepEnabled(cmd, s, request); err != nil {
		return err
	}
	answer, err := ask(cmd.Context(), s, repeatable, client.ChangeGroup, request)
	if err != nil {
		return err
	}
	group := answer.GetGroup()
	a.warnings(cmd.ErrOrStderr(), answer.GetWarnings())
	return a.print(cmd, result{
		message: answer, names: []string{groupRef(group)},
		text: func(p *page, _ bool) {
			if len(answer.GetChanges()) == 0 {
				p.line("%s: nothing to change", groupRef(group))
				return
			}
			text := "%s changed: %s"
			if request.GetDryRun() {
				text = "dry run, nothing was changed: %s would have %s"
			}
			p.line(text, groupRef(group), groupPhrase(group))
			fieldChanges(p, answer.GetChanges())
			a.breaches(p, group.GetStatus())
		},
	})
}

// keepEnabled lets a rule of which only the hardness is said stay as it is otherwise. The API would take it as one that is
// wanted, as clients of the published design expect.
func keepEnabled(cmd *cobra.Command, s *session, request *berthv1.ChangeGroupRequest) error {
	vms, nodes := request.GetVmsRule(), request.GetHostsRule()
	if (vms == nil || vms.Enabled != nil) && (nodes == nil || nodes.Enabled != nil) {
		return nil
	}
	now, err := ask(cmd.Context(), s, repeatable, client.GetGroup, &berthv1.GetGroupRequest{Group: request.GetGroup()})
	if err != nil {
		return err
	}
	if vms != nil && vms.Enabled == nil {
		vms.Enabled = proto.Bool(now.GetGroup().GetVmsRule().GetEnabled())
	}
	if nodes != nil && nodes.Enabled == nil {
		nodes.Enabled = proto.Bool(now.GetGroup().GetHostsRule().GetEnabled())
	}
	return nil
}
