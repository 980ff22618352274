package group

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// flags describe a group. They have the words of estates: rules and marks as they are there, lists in the singular,
// once for each member or with commas.
type flags struct {
	vms, nodes, vmLabels, nodeLabels         []string
	vmsRule, nodesRule                       term.StringFlag
	vmsEnforcing, nodesEnforcing, unbalanced bool
	priority                                 float64
}

var (
	polarities = []string{string(model.Positive), string(model.Negative), string(model.Disabled)}
	lists      = []string{"vm", "node", "vm-label", "node-label"}
	settings   = []string{"vms-rule", "vms-enforcing", "nodes-rule", "nodes-enforcing", "priority", "unbalanced"}
)

func (f *flags) flags(a *term.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.vmsRule.Word, f.nodesRule.Word = "RULE", "RULE"
	flags.StringSliceVar(&f.vms, "vm", nil, "`VMS` that are members; repeat for more")
	flags.StringSliceVar(&f.vmLabels, "vm-label", nil, "`LABELS` whose VMs are members; repeat for more")
	flags.Var(&f.vmsRule, "vms-rule", "positive: its VMs run on one node, negative: on different ones; or disabled")
	flags.BoolVar(&f.vmsEnforcing, "vms-enforcing", false, "the VM rule is hard: it leaves no choice")
	flags.StringSliceVar(&f.nodes, "node", nil, "`NODES` that are members; repeat for more")
	flags.StringSliceVar(&f.nodeLabels, "node-label", nil, "`LABELS` whose nodes are members; repeat for more")
	flags.Var(&f.nodesRule, "nodes-rule", "positive: its VMs run on its nodes, negative: off them; or disabled")
	flags.BoolVar(&f.nodesEnforcing, "nodes-enforcing", false, "the node rule is hard: it leaves no choice")
	flags.Float64Var(&f.priority, "priority", model.DefaultPriority, "`NUMBER`: soft rules of a higher one are kept first")
	flags.BoolVar(&f.unbalanced, "unbalanced", false, "balancing leaves its VMs where they are")
	term.Complete(cmd, "vm", a.VMNames())
	term.Complete(cmd, "node", a.NodeNames())
	term.Complete(cmd, "vms-rule", term.CompleteFixed(polarities...))
	term.Complete(cmd, "nodes-rule", term.CompleteFixed(polarities...))
	for _, flag := range []string{"vm-label", "node-label", "priority"} {
		term.Complete(cmd, flag, cobra.NoFileCompletions)
	}
}

// check refuses what cannot be meant; the coordinator knows who the members are.
func (f *flags) check(cmd *cobra.Command) error {
	for _, list := range []struct {
		flag  string
		names []string
	}{{"vm", f.vms}, {"node", f.nodes}, {"vm-label", f.vmLabels}, {"node-label", f.nodeLabels}} {
		if err := term.CheckNames(cmd, list.flag, list.names); err != nil {
			return err
		}
	}
	for _, rule := range []struct {
		flag string
		text string
	}{{"vms-rule", f.vmsRule.Text}, {"nodes-rule", f.nodesRule.Text}} {
		if cmd.Flags().Changed(rule.flag) && !slices.Contains(polarities, rule.text) {
			return term.Usagef(cmd, "--%s %s: use %s", rule.flag, rule.text, strings.Join(polarities, ", "))
		}
	}
	if !(f.priority > 0 && f.priority <= model.MaxPriority) { // false for a NaN
		return term.Usagef(cmd, "--priority %s: want more than 0, at most %s", term.Exact(f.priority), term.Exact(model.MaxPriority))
	}
	return nil
}

// rule is what the line says of one of the two rules, nil if nothing.
func rule(cmd *cobra.Command, of string, polarity term.StringFlag, enforcing bool) *berthv1.AffinityRule {
	wanted, hardened := cmd.Flags().Changed(of+"-rule"), cmd.Flags().Changed(of+"-enforcing")
	if !wanted && !hardened {
		return nil
	}
	said := &berthv1.AffinityRule{}
	if wanted {
		said.Enabled = proto.Bool(polarity.Text != string(model.Disabled))
	}
	if said.GetEnabled() {
		said.Positive = proto.Bool(polarity.Text == string(model.Positive))
	}
	if hardened {
		said.Enforcing = &enforcing
	}
	return said
}

func (f *flags) rules(cmd *cobra.Command) (vms, nodes *berthv1.AffinityRule) {
	return rule(cmd, "vms", f.vmsRule, f.vmsEnforcing), rule(cmd, "nodes", f.nodesRule, f.nodesEnforcing)
}

func createCommand(a *term.App) *cobra.Command {
	var (
		of     string
		given  flags
		dryRun bool
	)
	cmd := &cobra.Command{
		Use: "add NAME", Aliases: []string{"create"},
		Short: "Make a group", Args: term.Arguments(1, "NAME"),
		Long: `Make a group. A group that contradicts another one beyond repair is refused, naming both; what may be kept but is not
sound, or cannot hold on the nodes that there are, is warned of.`,
		Example: `  berth group add web --vm web-1,web-2 --vms-rule negative --vms-enforcing
  berth group add rack-7 --vm-label acme --node-label rack-7 --nodes-rule positive
  berth group add app --cluster prod --vm app,cache --vms-rule positive --node hv1 --nodes-rule negative --priority 2
  berth group add web --vm web-1,web-2 --vms-rule negative --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := model.ValidateName("group", args[0]); err != nil {
				return term.Usage(cmd, err)
			}
			if err := given.check(cmd); err != nil {
				return err
			}
			for _, of := range []string{"vms", "nodes"} {
				if cmd.Flags().Changed(of+"-enforcing") && !cmd.Flags().Changed(of+"-rule") {
					return term.Usagef(cmd, "--%[1]s-enforcing without --%[1]s-rule: say positive or negative", of)
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
			return create(a, cmd, &berthv1.CreateGroupRequest{Group: group, DryRun: dryRun, RequestId: term.RequestID()})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "`CLUSTER` of its members (default \""+model.DefaultCluster+"\")")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would come of it, make nothing")
	term.Complete(cmd, "cluster", a.ResourceNames(model.KindCluster))
	given.flags(a, cmd)
	return cmd
}

func create(a *term.App, cmd *cobra.Command, request *berthv1.CreateGroupRequest) error {
	answer, err := term.AskOnce(a, cmd, term.Client.CreateGroup, request)
	if err != nil {
		return err
	}
	group := answer.GetGroup()
	a.Warnings(cmd.ErrOrStderr(), answer.GetWarnings())
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{ref(group)},
		Text: func(p *term.Page, _ bool) {
			text := ref(group) + " created: " + phrase(group)
			if request.GetDryRun() {
				text = "dry run, nothing was changed: " + ref(group) + " would have " + phrase(group)
			}
			p.Line("%s", text)
			breaches(a, p, group.GetStatus())
		},
	})
}

// phrase is a group in one line.
func phrase(group *berthv1.Group) string {
	return fmt.Sprintf("%s (rule %s), %s (rule %s); %s", term.Count(len(group.GetMemberVms()), "VM"), ruleWords(group.GetVmsRule()),
		term.Count(len(group.GetMemberHosts()), "node"), ruleWords(group.GetHostsRule()), state(group.GetStatus()))
}

func editCommand(a *term.App) *cobra.Command {
	var (
		given   flags
		request berthv1.ChangeGroupRequest
		name    string
		unset   []string
	)
	cmd := &cobra.Command{
		Use: "set NAME", Aliases: []string{"edit"},
		Short: "Change a group: its members and its rules", Args: term.Arguments(1, "NAME"),
		Long: `Change a group: its members and its rules. What is not named stays as it is. --vm, --node and the labels replace all
that there were; --add-vm, --remove-vm, --add-node and --remove-node change only those that they name. Nothing moves
at once: a rule that does not hold then is repaired by the cluster's enforcement.`,
		Example: `  berth group set web --add-vm web-3
  berth group set web --vms-rule disabled
  berth group set rack-7 --nodes-enforcing=false --priority 5
  berth group set web --remove-vm web-1 --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Group, request.RequestId = args[0], term.RequestID()
			if err := given.check(cmd); err != nil {
				return err
			}
			if err := given.change(cmd, &request, unset); err != nil {
				return err
			}
			if cmd.Flags().Changed("name") {
				if err := model.ValidateName("group", name); err != nil {
					return term.Usage(cmd, err)
				}
				request.Name = &name
			}
			return edit(a, cmd, &request)
		},
		ValidArgsFunction: term.CompleteFirst(names(a)),
	}
	given.flags(a, cmd)
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "another `NAME`")
	flags.StringSliceVar(&request.AddVms, "add-vm", nil, "`VMS` that become members; repeat for more")
	flags.StringSliceVar(&request.RemoveVms, "remove-vm", nil, "`VMS` that are members no more; repeat for more")
	flags.StringSliceVar(&request.AddHosts, "add-node", nil, "`NODES` that become members; repeat for more")
	flags.StringSliceVar(&request.RemoveHosts, "remove-node", nil, "`NODES` that are members no more; repeat for more")
	flags.StringSliceVar(&unset, "unset", nil, "`LISTS` to empty: "+strings.Join(lists, ", "))
	flags.BoolVar(&request.DryRun, "dry-run", false, "show what would change, change nothing")
	for _, flag := range []string{"add-vm", "remove-vm"} {
		term.Complete(cmd, flag, a.VMNames())
	}
	for _, flag := range []string{"add-node", "remove-node"} {
		term.Complete(cmd, flag, a.NodeNames())
	}
	term.Complete(cmd, "unset", term.CompleteFixed(lists...))
	term.Complete(cmd, "name", cobra.NoFileCompletions)
	return cmd
}

// change puts what stands on the line into a request.
func (f *flags) change(cmd *cobra.Command, request *berthv1.ChangeGroupRequest, unset []string) error {
	steps := []string{"add-vm", "remove-vm", "add-node", "remove-node"}
	if len(term.ChangedFlags(cmd, slices.Concat(lists, settings, steps, []string{"name", "unset"}))) == 0 {
		return term.Usagef(cmd, "say what to change: --%s, --%s, --name or --unset", strings.Join(lists, ", --"), strings.Join(steps, ", --"))
	}
	for i, names := range [][]string{request.GetAddVms(), request.GetRemoveVms(), request.GetAddHosts(), request.GetRemoveHosts()} {
		flag := steps[i]
		_, list, _ := strings.Cut(flag, "-")
		if cmd.Flags().Changed(flag) && (cmd.Flags().Changed(list) || slices.Contains(unset, list)) {
			return term.Usagef(cmd, "--%s goes with neither --%s nor --unset %[2]s, which are about all of them", flag, list)
		}
		if err := term.CheckNames(cmd, flag, names); err != nil {
			return err
		}
	}
	if err := term.CheckUnset(cmd, unset, lists); err != nil {
		return err
	}
	for _, list := range []struct {
		flag  string
		names []string
		into  **berthv1.Names
	}{
		{"vm", f.vms, &request.Vms},
		{"node", f.nodes, &request.Hosts},
		{"vm-label", f.vmLabels, &request.VmLabels},
		{"node-label", f.nodeLabels, &request.HostLabels},
	} {
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

func edit(a *term.App, cmd *cobra.Command, request *berthv1.ChangeGroupRequest) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := keepEnabled(cmd, s, request); err != nil {
		return err
	}
	answer, err := term.Ask(cmd.Context(), s, term.Client.ChangeGroup, request)
	if err != nil {
		return err
	}
	group := answer.GetGroup()
	a.Warnings(cmd.ErrOrStderr(), answer.GetWarnings())
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{ref(group)},
		Text: func(p *term.Page, _ bool) {
			if len(answer.GetChanges()) == 0 {
				p.Line("%s: nothing to change", ref(group))
				return
			}
			text := "%s changed: %s"
			if request.GetDryRun() {
				text = "dry run, nothing was changed: %s would have %s"
			}
			p.Line(text, ref(group), phrase(group))
			term.FieldChanges(p, answer.GetChanges())
			breaches(a, p, group.GetStatus())
		},
	})
}

// keepEnabled lets a rule of which only the hardness is said stay as it is otherwise. The API would take it as one that is
// wanted, as clients of the published design expect.
func keepEnabled(cmd *cobra.Command, s *term.Session, request *berthv1.ChangeGroupRequest) error {
	vms, nodes := request.GetVmsRule(), request.GetHostsRule()
	if (vms == nil || vms.Enabled != nil) && (nodes == nil || nodes.Enabled != nil) {
		return nil
	}
	now, err := term.Ask(cmd.Context(), s, term.Client.GetGroup, &berthv1.GetGroupRequest{Group: request.GetGroup()})
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
