package estate

import (
	"strings"

	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/placement"
)

// BuiltinPolicies are the policies that are there without being declared, as records, by name. Nobody changes or deletes
// them, and no other policy has their names.
func BuiltinPolicies() []cluster.Resource {
	return []cluster.Resource{{ID: cluster.BuiltIn + "affinity", Kind: cluster.KindPolicy, Name: "affinity"}}
}

// Builtin is the resource of a kind that is there without being declared, by name: a built-in policy.
func Builtin(kind cluster.Kind, name string) (cluster.Resource, bool) {
	if kind != cluster.KindPolicy {
		return cluster.Resource{}, false
	}
	return BuiltinByID(cluster.BuiltIn + name)
}

// BuiltinByID is the built-in policy with this ID.
func BuiltinByID(id string) (cluster.Resource, bool) {
	if !strings.HasPrefix(id, cluster.BuiltIn) {
		return cluster.Resource{}, false
	}
	policies := BuiltinPolicies()
	return first(policies, func(r *cluster.Resource) bool { return r.ID == id })
}

// PolicyOf is how a cluster places VMs and evens itself out: the policy that its record links to, affinity if none, with the
// cluster's own settings filled in.
func PolicyOf(source Source, record cluster.Resource) (placement.Policy, balance.Chosen, error) {
	return placement.PolicyFor(cluster.SettingsOf(&record)), balance.Chosen{}, nil
}
