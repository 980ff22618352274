package estate

import (
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// ResourceFields are the fields that differ between two records of one resource, in words. A new one is compared with the
// zero record.
func ResourceFields(now State, before, after model.Resource) []FieldChange {
	return resourceFields(now.names(), &before, &after)
}

// NodeFields are the fields that differ between two records of one node, in words.
func NodeFields(before, after model.Node) []FieldChange {
	return recordFields(nil, schema.Node, &before, &after, false)
}

// VMFields are the fields that differ between two records of one VM, in words.
func VMFields(now State, before, after model.VM) []FieldChange {
	return vmFields(now.names(), &before, &after)
}

// names are those of everything, by ID.
func (s *State) names() map[string]string {
	names := make(map[string]string, len(s.Resources)+len(s.Nodes)+len(s.VMs)+1)
	names[model.DefaultCluster] = model.DefaultCluster
	for _, built := range BuiltinPolicies() {
		names[built.ID] = built.Name
	}
	for i := range s.Nodes {
		names[s.Nodes[i].ID] = s.Nodes[i].Name
	}
	for i := range s.VMs {
		names[s.VMs[i].ID] = s.VMs[i].Name
	}
	for i := range s.Resources {
		names[s.Resources[i].ID] = s.Resources[i].Name
	}
	return names
}
