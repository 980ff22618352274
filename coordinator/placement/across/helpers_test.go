package across

import (
	"encoding/json"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func ptr[T any](value T) *T { return &value }

// specials are the compiled keys of a VM that has only what a cluster starts with.
func specials() []key.Weighted {
	system, _ := key.Compile([]key.Layer{{Level: key.LevelCluster, Keys: model.SpecialKeyDefaults()}})
	return key.WeightedOf(system)
}

// through is the decision as a record has it.
func through(t interface{ Fatal(...any) }, d placement.Decision) placement.Decision {
	encoded, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var back placement.Decision
	if err := json.Unmarshal(encoded, &back); err != nil {
		t.Fatal(err)
	}
	return back
}
