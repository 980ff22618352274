package schema

import "berth/coordinator/model"

// groupForm is an affinity group (oVirt, "Affinity groups" and "Soft host to VM affinity support"). Its names are as all
// names here, shorter than oVirt's 255 characters.
var groupForm = Form{
	Kind: model.KindGroup, Plural: "groups",
	Doc: "an affinity group: VMs of one cluster, nodes of it, and what is wanted of them",
	Links: []Link{{
		Name: LinkCluster, To: model.KindCluster, Fixed: true, Doc: "whose VMs and nodes it is about; the default cluster if left out",
	}},
	Settings: []Setting{
		{
			Name: model.SettingVMsRule, Doc: "positive: its VMs on one node; negative: on different ones; or disabled",
			Default: string(model.Disabled), Words: polarities,
		},
		{Name: model.SettingVMsEnforcing, Doc: "true: the rule among VMs is hard; false: it weighs", Default: "false", Words: truth},
		{
			Name: model.SettingNodesRule, Doc: "positive: its VMs on its nodes; negative: not on them; or disabled",
			Default: string(model.Disabled), Words: polarities,
		},
		{Name: model.SettingNodesEnforcing, Doc: "true: the rule about nodes is hard; false: it weighs", Default: "false", Words: truth},
		{Name: model.SettingPriority, Doc: "of its soft rules among those of other groups; higher counts more", Default: "1", check: priority},
		{Name: model.SettingUnbalanced, Doc: "true: balancing leaves its VMs where they are", Default: "false", Words: truth},
	},
	Members: []MemberList{
		{Name: model.MembersVMs, To: model.KindVM, Doc: "names of VMs"},
		{Name: model.MembersNodes, To: model.KindNode, Doc: "names of nodes"},
	},
	Lists: []List{
		{Name: model.ListVMLabels, Doc: "every VM of the cluster with one of these labels is a member too", check: model.ValidateLabel},
		{Name: model.ListNodeLabels, Doc: "every node of the cluster with one of these labels is a member too", check: model.ValidateLabel},
	},
}

var polarities = []string{string(model.Positive), string(model.Negative), string(model.Disabled)}
