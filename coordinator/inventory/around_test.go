package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// What could not be read of a node is not known, whatever the list of it has.
func TestSurroundingsAreKnownIfTheyCouldBeRead(t *testing.T) {
	node := func(failed ...string) *berthv1.NodeInventory {
		inventory := &berthv1.NodeInventory{
			MemoryBytes: 1, HostCpu: "abc", CpuModels: []string{"Nehalem", "486", "486"}, Bridges: []string{"br1", "br0"},
			StoragePools: []*berthv1.StoragePool{{Name: "b", CapacityBytes: -1}, {Name: "a", Active: true, CapacityBytes: 9, AvailableBytes: 4}},
			Networks:     []*berthv1.Network{{Name: "off"}, {Name: "lan", Active: true}},
		}
		for _, reading := range failed {
			inventory.Errors = append(inventory.Errors, &berthv1.ReadingError{Reading: reading})
		}
		return inventory
	}
	var facts model.NodeFacts
	s := surroundingsOf(node())
	s.tell(&facts)
	want := model.NodeFacts{
		Pools:      []model.PoolFacts{{Name: "a", Active: true, Capacity: 9 * units.Bytes(1), Available: 4}, {Name: "b"}},
		PoolsKnown: true, Networks: []string{"lan"}, Bridges: []string{"br0", "br1"}, NetworksKnown: true,
		CPUModels: []string{"486", "Nehalem"}, HostCPU: "abc",
	}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Error(diff)
	}
	blind := node()
	blind.MemoryBytes = 0
	for name, c := range map[string]struct {
		node            *berthv1.NodeInventory
		pools, networks bool
	}{
		"pools failed":    {node("storage_pools"), false, true},
		"networks failed": {node("networks"), true, false},
		"bridges failed":  {node("bridges"), true, false},
		"something else":  {node("psi"), true, true},
		"no host":         {blind, false, false},
	} {
		if got := surroundingsOf(c.node); got.poolsKnown != c.pools || got.networksKnown != c.networks {
			t.Errorf("%s: pools known %t, networks known %t", name, got.poolsKnown, got.networksKnown)
		}
	}
}
