package estates

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"berth/coordinator/api/refusal"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// newGroup is what a request for a new group asks for.
func newGroup(message *berthv1.Group) estate.Wanted {
	wanted := estate.Wanted{
		Settings: groupSettings(
			model.Group{Priority: model.DefaultPriority},
			wire.VMsRuleFrom(message.GetVmsRule(), message.Positive, message.Enforcing, model.Rule{}),
			wire.RuleFrom(message.GetHostsRule(), model.Rule{}), message.Priority, new(message.GetUnbalanced()),
		),
		Members: map[string][]string{model.MembersVMs: message.GetVms(), model.MembersNodes: message.GetHosts()},
		Lists:   map[string][]string{model.ListVMLabels: message.GetVmLabels(), model.ListNodeLabels: message.GetHostLabels()},
	}
	if message.GetCluster() != "" {
		wanted.Links = map[string]string{schema.LinkCluster: message.GetCluster()}
	}
	return wanted
}

// groupSettings are those that differ from what the group has.
func groupSettings(was model.Group, vms, nodes model.Rule, priority *float64, unbalanced *bool) map[string]string {
	settings := make(map[string]string)
	rule := func(polarity, enforcing string, was, is model.Rule) {
		if is.Enabled() != was.Enabled() || is.Enabled() && is.Polarity != was.Polarity {
			settings[polarity] = string(is.Polarity)
		}
		if is.Enforcing != was.Enforcing {
			settings[enforcing] = strconv.FormatBool(is.Enforcing)
		}
	}
	rule(model.SettingVMsRule, model.SettingVMsEnforcing, was.VMsRule, vms)
	rule(model.SettingNodesRule, model.SettingNodesEnforcing, was.NodesRule, nodes)
	if priority != nil && *priority != was.Priority {
		settings[model.SettingPriority] = strconv.FormatFloat(*priority, 'g', -1, 64)
	}
	if unbalanced != nil && *unbalanced != was.Unbalanced {
		settings[model.SettingUnbalanced] = strconv.FormatBool(*unbalanced)
	}
	return settings
}

// groupEdit is what a request changes of a group.
func (p groupFacts) groupEdit(was model.Group, message *berthv1.ChangeGroupRequest) (estate.Wanted, error) {
	wanted := estate.Wanted{
		Settings: groupSettings(was, wire.VMsRuleFrom(message.GetVmsRule(), message.Positive, message.Enforcing, was.VMsRule),
			wire.RuleFrom(message.GetHostsRule(), was.NodesRule), message.Priority, message.Unbalanced),
		Members: make(map[string][]string), Lists: make(map[string][]string),
	}
	for name, list := range map[string]*berthv1.Names{
		model.ListVMLabels: message.GetVmLabels(), model.ListNodeLabels: message.GetHostLabels(),
	} {
		if list != nil {
			wanted.Lists[name] = list.GetNames()
		}
	}
	findVM := func(ref string) string { vm, _ := p.VMByRef(ref); return cmp.Or(vm.ID, ref) }
	findNode := func(ref string) string { node, _ := p.NodeByRef(ref); return cmp.Or(node.ID, ref) }
	for _, edit := range []memberEdit{
		{"VM", model.MembersVMs, was.VMs, findVM, message.GetVms(), message.GetAddVms(), message.GetRemoveVms()},
		{"node", model.MembersNodes, was.Nodes, findNode, message.GetHosts(), message.GetAddHosts(), message.GetRemoveHosts()},
	} {
		members, said, err := edit.apply(was.Name)
		if err != nil {
			return wanted, err
		}
		if said {
			wanted.Members[edit.list] = members
		}
	}
	return wanted, nil
}

// memberEdit is what a request says of one list of members: all of them, or which come and go.
type memberEdit struct {
	noun, list  string
	was         []string                // IDs
	find        func(ref string) string // the ID of what a request names; what is not there as it is, for the rules of the estate to refuse
	all         *berthv1.Names
	add, remove []string
}

// apply tells the members afterwards, and whether the request says anything of them.
func (e memberEdit) apply(group string) (members []string, said bool, err error) {
	single := len(e.add)+len(e.remove) > 0
	switch {
	case e.all != nil && single:
		return nil, false, refusal.New(rpc.Invalid, "group/"+group, "give the whole list, or what comes and goes",
			"all %ss of group %q are given, and single ones too", e.noun, group)
	case e.all != nil:
		return e.all.GetNames(), true, nil
	case !single:
		return nil, false, nil
	}
	members = slices.Clone(e.was)
	for _, ref := range e.remove {
		at := slices.Index(members, e.find(ref))
		if at < 0 {
			return nil, false, refusal.New(rpc.NotFound, "group/"+group,
				fmt.Sprintf("see 'berth group show %s': what a label takes in leaves with the label", group),
				"%s %q is not on the list of group %q", e.noun, ref, group)
		}
		members = slices.Delete(members, at, at+1)
	}
	for _, ref := range e.add {
		if id := e.find(ref); !slices.Contains(members, id) {
			members = append(members, id)
		}
	}
	return members, true, nil
}
