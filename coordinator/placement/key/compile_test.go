package key

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
)

func system(name string, value, weight float64) model.Key {
	return model.Key{Class: model.SystemKey, Name: name, Value: value, Weight: weight}
}

func customer(name string, value, weight float64) model.Key {
	return model.Key{Class: model.CustomerKey, Name: name, Value: value, Weight: weight}
}

func reseller(name string, value, weight float64) model.Key {
	return model.Key{Class: model.BillingEntityKey, Name: name, Value: value, Weight: weight}
}

func layer(level Level, keys ...model.Key) Layer {
	return Layer{Level: level, Resource: "at/" + level.String(), Keys: keys}
}

func TestCompile(t *testing.T) {
	won := func(key model.Key, level Level, overrode ...Overridden) Compiled {
		return Compiled{
			Weighted: Weighted{Name: key.Name, Value: key.Value, Weight: key.Weight, Class: key.Class, Level: level.String()},
			From:     "at/" + level.String(), Overrode: overrode,
		}
	}
	lost := func(key model.Key, level Level) Overridden {
		return Overridden{Class: key.Class, Value: key.Value, Weight: key.Weight, Level: level.String(), From: "at/" + level.String()}
	}
	copied := layer(LevelServer, system("K", 7, 30))
	copied.Sticky = true
	stuck := won(system("K", 7, 30), LevelServer, lost(system("K", 1, 1), LevelCluster))
	stuck.Sticky = true

	for name, c := range map[string]struct {
		layers           []Layer
		system, customer []Compiled
	}{
		"nothing": {},
		"the lowest level wins, and the nearest it won over comes first": {
			layers: []Layer{
				layer(LevelVDC, system("K", 2, 10)), layer(LevelServerOffer, system("K", 3, 11)), layer(LevelCluster, system("K", 1, 12)),
			},
			system: []Compiled{won(system("K", 3, 11), LevelServerOffer,
				lost(system("K", 2, 10), LevelVDC), lost(system("K", 1, 12), LevelCluster))},
		},
		"value and weight come together": {
			layers: []Layer{layer(LevelCluster, system("#LOAD", 0, 30)), layer(LevelServer, system("#LOAD", 0, 90))},
			system: []Compiled{won(system("#LOAD", 0, 90), LevelServer, lost(system("#LOAD", 0, 30), LevelCluster))},
		},
		"a key without weight neither counts nor masks": {
			layers: []Layer{layer(LevelCluster, system("K", 1, 30)), layer(LevelServer, system("K", 5, 0), customer("L", 1, 0))},
			system: []Compiled{won(system("K", 1, 30), LevelCluster)},
		},
		"the two sets are apart, each by name": {
			layers: []Layer{
				layer(LevelCluster, system("Z", 1, 1), system("G", 1, 10)), layer(LevelServer, customer("G", 7, 80), customer("A", 1, -1)),
			},
			system:   []Compiled{won(system("G", 1, 10), LevelCluster), won(system("Z", 1, 1), LevelCluster)},
			customer: []Compiled{won(customer("A", 1, -1), LevelServer), won(customer("G", 7, 80), LevelServer)},
		},
		"a billing entity's key joins the customer's, and loses on one level": {
			layers: []Layer{layer(LevelServer, reseller("G", 1, 1), customer("G", 2, 2)), layer(LevelCustomer, reseller("T", 2, 5))},
			customer: []Compiled{
				won(customer("G", 2, 2), LevelServer, lost(reseller("G", 1, 1), LevelServer)), won(reseller("T", 2, 5), LevelCustomer),
			},
		},
		"a billing entity's key wins from below": {
			layers:   []Layer{layer(LevelServer, customer("G", 2, 2)), layer(LevelFirstNIC, reseller("G", 1, 1))},
			customer: []Compiled{won(reseller("G", 1, 1), LevelFirstNIC, lost(customer("G", 2, 2), LevelServer))},
		},
		"a copy wins over what is above the VM": {
			layers: []Layer{copied, layer(LevelCluster, system("K", 1, 1))},
			system: []Compiled{stuck},
		},
		"a copy loses against the VM's own key": {
			layers: []Layer{copied, layer(LevelServer, system("K", 1, 1))},
			system: []Compiled{won(system("K", 1, 1), LevelServer, lost(system("K", 7, 30), LevelServer))},
		},
		"a copy loses against what is below the VM": {
			layers: []Layer{copied, layer(LevelFirstDiskOffer, system("K", 1, 1)), layer(LevelServerOffer, system("K", 2, 2))},
			system: []Compiled{won(system("K", 1, 1), LevelFirstDiskOffer,
				lost(system("K", 7, 30), LevelServer), lost(system("K", 2, 2), LevelServerOffer))},
		},
		"a copy is not masked by a key without weight": {
			layers: []Layer{copied, layer(LevelServer, system("K", 1, 0)), layer(LevelCluster, system("K", 1, 1))},
			system: []Compiled{stuck},
		},
		"a copy of a reserved key loses against a billing entity's on the VM": {
			layers: []Layer{
				{Level: LevelServer, Resource: "at/vm", Keys: []model.Key{customer("_P", 3, 7)}, Sticky: true},
				layer(LevelServer, reseller("_P", 1, 5)),
			},
			customer: []Compiled{won(reseller("_P", 1, 5), LevelServer, lost(customer("_P", 3, 7), LevelServer))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			gotSystem, gotCustomer := Compile(c.layers)
			if diff := cmp.Diff(c.system, gotSystem); diff != "" {
				t.Error("system set:", diff)
			}
			if diff := cmp.Diff(c.customer, gotCustomer); diff != "" {
				t.Error("customer set:", diff)
			}
		})
	}
}

// The order in which layers and keys are given is of no account, and every key that has a weight is told of once.
func TestCompileDoesNotDependOnOrder(t *testing.T) {
	classes := []model.KeyClass{model.SystemKey, model.BillingEntityKey, model.CustomerKey}
	rapid.Check(t, func(t *rapid.T) {
		var layers []Layer
		weighted := 0
		for level := range Level(Levels) {
			one := layer(level)
			for _, class := range classes {
				for _, name := range []string{"K", "L"} {
					if rapid.Bool().Draw(t, "set") {
						weight := rapid.SampledFrom([]float64{0, 5, -5}).Draw(t, "weight")
						one.Keys = append(one.Keys, model.Key{Class: class, Name: name, Value: float64(level), Weight: weight})
						if weight != 0 {
							weighted++
						}
					}
				}
			}
			layers = append(layers, one)
		}
		firstSystem, firstCustomer := Compile(layers)
		told := 0
		for _, compiled := range [][]Compiled{firstSystem, firstCustomer} {
			for _, one := range compiled {
				told += 1 + len(one.Overrode)
				for _, lower := range one.Overrode {
					if lower.Value > one.Value {
						t.Fatalf("%s of level %v won over level %v", one.Name, one.Value, lower.Value)
					}
				}
			}
		}
		if told != weighted {
			t.Fatalf("%d keys are told of, %d have a weight", told, weighted)
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		random.Shuffle(len(layers), func(i, j int) { layers[i], layers[j] = layers[j], layers[i] })
		for _, one := range layers {
			random.Shuffle(len(one.Keys), func(i, j int) { one.Keys[i], one.Keys[j] = one.Keys[j], one.Keys[i] })
		}
		secondSystem, secondCustomer := Compile(layers)
		if diff := cmp.Diff([][]Compiled{firstSystem, firstCustomer}, [][]Compiled{secondSystem, secondCustomer}); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestLevelsHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for level := range Level(Levels) {
		seen[level.String()] = true
	}
	if len(seen) != Levels || seen[""] {
		t.Errorf("levels are called %v, want %d names", seen, Levels)
	}
}

func TestResidentsShowNoWeights(t *testing.T) {
	_, compiled := Compile([]Layer{layer(LevelServer, customer("G", 7, -80)), layer(LevelVDC, reseller("T", 2, 5))})
	got := ResidentsOf(WeightedOf(compiled))
	want := []model.ResidentKey{{Class: model.CustomerKey, Name: "G", Value: 7}, {Class: model.BillingEntityKey, Name: "T", Value: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
