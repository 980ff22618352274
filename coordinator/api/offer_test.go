package api

import (
	"testing"

	"berth/coordinator/model"
)

// Who reads an offer learns which planner orders its VMs, although the offer itself names none.
func TestAnOfferTellsItsPlanner(t *testing.T) {
	type pairs = map[string]string
	d := newDeclarer(t)
	shown := func(name string) string {
		offer := d.get("offer", name)
		return offer.GetEffectiveSettings()[model.SettingPlanner] + " from " + offer.GetEffectiveFrom()[model.SettingPlanner]
	}
	d.add("offer", "plain", nil, pairs{"for": "vm"})
	d.add("offer", "spread", nil, pairs{"for": "vm", "planner": "UserDispersingPlanner"})
	d.add("offer", "disks", nil, pairs{"for": "disk"})
	d.add("zone", "home", nil, pairs{"planner": "UserConcentratedPodPlanner"})
	d.add("pod", "rack", pairs{"zone": "home"}, nil)
	if got := shown("plain"); got != "first-fit from policy/affinity" {
		t.Error(got)
	}
	d.add("cluster", "east", pairs{"pod": "rack"}, nil)
	for name, want := range map[string]string{
		"plain": "first-fit, user-concentrated from policy/affinity, zone/home", "spread": "user-dispersing from offer/spread", "disks": " from ",
	} {
		if got := shown(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
