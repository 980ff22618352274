package balance

import (
	"math"
	"testing"
)

func TestABalancerIsValidatedStrictly(t *testing.T) {
	for _, test := range []struct {
		chosen Chosen
		want   string
	}{
		{Chosen{}, ""},
		{Chosen{Balancer: None}, ""},
		{Chosen{Balancer: "even-vm-count"}, ""},
		{Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{HighVMCount: 0, MigrationThreshold: 2, SPMVMCountGrace: 0}}, ""},
		{Chosen{Balancer: "even-load", Parameters: map[string]float64{HighCPU: 75.5, DurationMinutes: 0}}, ""},
		{
			Chosen{Balancer: "even"},
			`balancer is "even", want one of none, even-vm-count, even-load, imbalance, condense`,
		},
		{
			Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{MigrationThreshold: 1}},
			"MigrationThreshold is 1, want a whole number from 2 to 100000: with 1 two nodes would hand one VM back and forth for ever",
		},
		{
			Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{MigrationThreshold: 2.5}},
			"MigrationThreshold is 2.5, want a whole number from 2 to 100000",
		},
		{
			Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{HighVMCount: -1}},
			"HighVMCount is -1, want a whole number from 0 to 100000",
		},
		{
			Chosen{Balancer: "even-load", Parameters: map[string]float64{HighCPU: math.NaN()}},
			"HighCPU is NaN, want a number from 1 to 100",
		},
		{
			Chosen{Balancer: "even-load", Parameters: map[string]float64{HighMemory: math.Inf(1)}},
			"HighMemory is +Inf, want a number from 1 to 100",
		},
		{
			Chosen{Balancer: "even-load", Parameters: map[string]float64{HighVMCount: 10}},
			"HighVMCount is 10, want a parameter of even-load: HighCPU, HighMemory, DurationMinutes, MinimumGain, EvenEnough",
		},
		{
			Chosen{Parameters: map[string]float64{HighCPU: 10}},
			"HighCPU is 10, want nothing: without a balancer there are no parameters",
		},
	} {
		got := ""
		if err := Validate(test.chosen); err != nil {
			got = err.Error()
		}
		expect(t, "the verdict", got, test.want)
	}
}

func TestBalancersSayWhatTheyAre(t *testing.T) {
	for _, b := range Balancers() {
		if b.Name == "" || b.Doc == "" || b.Unit == "" || b.Propose == nil || b.Figure == nil {
			t.Errorf("%s lacks something", b.Name)
		}
		chosen := Chosen{Balancer: b.Name, Parameters: map[string]float64{}}
		for _, p := range b.Parameters {
			chosen.Parameters[p.Name] = p.Default
			if got, has := chosen.Parameter(p.Name); !has || got != p.Default || p.Doc == "" {
				t.Errorf("parameter %s of %s has no default, or no words", p.Name, b.Name)
			}
			if got, has := (Chosen{Balancer: b.Name}).Parameter(p.Name); !has || got != p.Default {
				t.Errorf("parameter %s of %s is %v if it is not set", p.Name, b.Name, got)
			}
		}
		if err := Validate(chosen); err != nil {
			t.Errorf("the defaults of %s: %v", b.Name, err)
		}
		if found, known := ByName(b.Name); !known || found.Name != b.Name {
			t.Errorf("%s is not found", b.Name)
		}
	}
	if _, known := ByName(None); known {
		t.Error("none is a balancer")
	}
	if _, has := (Chosen{Balancer: None}).Parameter(HighCPU); has {
		t.Error("none has a parameter")
	}
}
