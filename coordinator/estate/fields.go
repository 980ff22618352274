package estate

import "berth/coordinator/cluster"

// ResourceFields are the fields that differ between two records of one resource, in words. A new one is compared with the
// zero record.
func ResourceFields(now State, before, after cluster.Resource) []FieldChange {
	return resourceFields(now.names(), &before, &after)
}

// VMFields are the fields that differ between two records of one VM, in words.
func VMFields(now State, before, after cluster.VM) []FieldChange {
	return vmFields(now.names(), &before, &after)
}

// names are those of all resources, by ID.
func (s *State) names() map[string]string {
	names := make(map[string]string, len(s.Resources)+1)
	names[cluster.DefaultCluster] = cluster.DefaultCluster
	for i := range s.Resources {
		names[s.Resources[i].ID] = s.Resources[i].Name
	}
	return names
}
