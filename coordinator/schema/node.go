package schema

import "berth/coordinator/model"

// Node has what people declare of a node, in the order of documents.
var Node = []Field[model.Node]{
	{
		Name: "cluster", Doc: "where it is; the default cluster if left out",
		At: func(n *model.Node) any { return &n.Cluster },
	},
	{
		Name: model.SettingRAMRatio, Unset: asItsCluster, Doc: "RAM contention ratio, instead of its cluster's",
		At: func(n *model.Node) any { return &n.Settings.RAMRatio },
	},
	{
		Name: model.SettingCPURatio, Unset: asItsCluster, Doc: "CPU contention ratio, instead of its cluster's",
		At: func(n *model.Node) any { return &n.Settings.CPURatio },
	},
	{
		Name: model.SettingOverhead, Unset: asItsCluster, Doc: "memory kept free, instead of its cluster's",
		At: func(n *model.Node) any { return &n.Settings.Overhead },
	},
	{
		Name: "keys", Unset: "not set",
		Doc: "values of keys that its cluster declares: {NAME: NUMBER}; others have the cluster's default",
		At:  func(n *model.Node) any { return &n.Keys },
	},
	{
		Name: "labels", Doc: "by which groups take it in", Check: model.ValidateLabels,
		Flag: "label", Help: "`LABELS` by which groups take it in; repeat for more", Title: "labels",
		At: func(n *model.Node) any { return &n.Labels },
	},
	{
		Name: "management",
		Doc:  "true of one that also runs the site's management: even distribution by VM count leaves it fewer VMs",
		Help: "it carries the site's management: even distribution by number leaves it some VMs short",
		At:   func(n *model.Node) any { return &n.Management },
	},
	{
		Name: "unbalanced", Doc: "true keeps balancing away from it",
		Help: "balancing leaves it alone",
		At:   func(n *model.Node) any { return &n.Unbalanced },
	},
}

const asItsCluster = "as its cluster"
