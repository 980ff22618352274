package schema

import (
	"slices"
	"testing"
)

// Wherever a planner is named, its name of the designs is accepted for ours, which is what is stored.
func TestPlannersHaveTheirNamesOfTheDesigns(t *testing.T) {
	if len(plannerAliases) != len(Planners()) {
		t.Errorf("%d names for %d planners", len(plannerAliases), len(Planners()))
	}
	found := 0
	for _, form := range Forms() {
		at := slices.IndexFunc(form.Settings, func(s Setting) bool { return s.Name == SettingPlanner })
		if at < 0 {
			continue
		}
		found++
		for name, own := range plannerAliases {
			if got, err := form.Settings[at].Canonical(name); err != nil || got != own {
				t.Errorf("%s: planner %s is %q, %v, want %s", form.Kind, name, got, err, own)
			}
		}
		if _, err := form.Settings[at].Canonical("RandomPlanner"); err == nil {
			t.Errorf("%s: RandomPlanner is accepted", form.Kind)
		}
	}
	if found != 3 {
		t.Errorf("%d kinds name a planner, want offers, zones and policies", found)
	}
}
