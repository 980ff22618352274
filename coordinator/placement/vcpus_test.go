package placement

import (
	"slices"
	"testing"

	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
)

// vCPUs are a promise by the policies that weigh, by the others where the cluster says so, and by none before all members know it.
func TestWhichPoliciesPromiseVCPUs(t *testing.T) {
	for name, weighs := range map[string]bool{
		policies.Affinity: false, policies.None: false, policies.EvenLoad: true, policies.EvenVMs: true,
	} {
		for _, set := range []bool{false, true} {
			settings := model.DefaultSettings()
			settings.PromiseVCPUs = set
			policy, _ := policies.Builtin(name, settings)
			if has := slices.Contains(policy.Constraints, policies.VCPUsPromised); has != (weighs || set) {
				t.Errorf("%s where the cluster says %v: %v", name, set, has)
			}
			if slices.Contains(policy.WithoutPrefer().Constraints, policies.VCPUsPromised) {
				t.Errorf("%s: a member that does not know the constraint is given it", name)
			}
		}
	}
}
