package model

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth/shared/units"
)

func TestSettingsOfACluster(t *testing.T) {
	defaults := Settings{
		Storage: SharedStorage, Nodes: EffectiveSettings{RAMRatio: 1, CPURatio: 8, Overhead: units.GiB},
		InitialMSAV: 80, FinalMSAV: -10, MSAVSteps: 10, KeyScope: ScopeCustomer, PhysicalLedger: Pessimistic,
		Enforcement: Automatic, Balancing: Manual, Cooldown: 30 * time.Minute, ParallelMoves: 2,
		ParallelStarts: 5, FenceAfter: time.Minute, Restart: RestartAlways,
	}
	nightly, err := ParseWindow("22:00-06:00")
	if err != nil {
		t.Fatal(err)
	}
	record := func(settings map[string]string) *Resource { return &Resource{Kind: KindCluster, Settings: settings} }
	for name, c := range map[string]struct {
		record *Resource
		want   Settings
	}{
		"no record":  {nil, defaults},
		"no setting": {record(nil), defaults},
		"what cannot be read": {record(map[string]string{
			"storage": "both", "ram_ratio": "x", "cpu_ratio": "", "overhead": "much", "initial_msav": "-", "final_msav": "?",
			"msav_steps": "2.5", "customer_key_scope": "all", "physical_ledger": "", "fence_after": "soon", "restart": "no", "colour": "red",
			"fence_sick_after": "never",
		}), defaults},
		"every setting": {
			record(map[string]string{
				"storage": "local", "ram_ratio": "1.5", "cpu_ratio": "16", "overhead": "1536", "initial_msav": "100", "final_msav": "0.5",
				"msav_steps": "3", "customer_key_scope": "cluster", "physical_ledger": "optimistic",
				"enforcement": "off", "balancing": "automatic", "balance_window": "22:00-06:00", "cooldown": "1h", "parallel_moves": "4",
				"parallel_starts": "7",
				"fence_after":     "5m", "restart": "ha",
			}),
			Settings{
				Storage: LocalStorage, Nodes: EffectiveSettings{RAMRatio: 1.5, CPURatio: 16, Overhead: 1536},
				InitialMSAV: 100, FinalMSAV: 0.5, MSAVSteps: 3, KeyScope: ScopeCluster, PhysicalLedger: Optimistic,
				Enforcement: Off, Balancing: Automatic, BalanceWindow: nightly, Cooldown: time.Hour, ParallelMoves: 4,
				ParallelStarts: 7, FenceAfter: 5 * time.Minute, Restart: RestartHA,
			},
		},
	} {
		if diff := cmp.Diff(c.want, SettingsOf(c.record), cmpopts.EquateComparable(Window{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A node is as its cluster says where it does not say otherwise itself.
func TestNodesInheritTheirClustersSettings(t *testing.T) {
	defaults := EffectiveSettings{RAMRatio: 1.5, CPURatio: 4, Overhead: 2 * units.GiB}
	if got := (NodeSettings{}).Over(defaults); got != defaults {
		t.Errorf("without settings %+v, want %+v", got, defaults)
	}
	own := NodeSettings{RAMRatio: new(2.0), Overhead: new(units.Bytes(0))}
	if got, want := own.Over(defaults), (EffectiveSettings{RAMRatio: 2, CPURatio: 4}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The cluster that nobody declared can be declared as it is: its keys keep the rules.
func TestTheDefaultClusterKeepsTheRules(t *testing.T) {
	record := DefaultClusterRecord()
	weights := 0.0
	for i, key := range record.Keys {
		if err := ValidateKey(KindCluster, key); err != nil || !IsSpecialKey(key.Name) || key.Value != 0 {
			t.Errorf("%+v: %v, want a special key of value 0", key, err)
		}
		if i > 0 && record.Keys[i-1].Name >= key.Name {
			t.Errorf("%s stands behind %s, want them by name", key.Name, record.Keys[i-1].Name)
		}
		weights += key.Weight
	}
	if weights != 100 || len(record.Keys) != 3 || record.ID != DefaultCluster || record.Name != DefaultCluster {
		t.Errorf("%+v, want three keys of weight 100 together", record)
	}
}
