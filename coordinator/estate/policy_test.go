package estate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth/coordinator/balance"
	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/schema"
)

// ownPolicy gives a site a policy of its own.
const ownPolicy = `
policies:
  - name: spread
    gate: off
    weighers: {customer-keys: 2.5}
    balancer: even-vm-count
    parameters: {HighVMCount: 8, SPMVMCountGrace: 3}
    drain_ignores_vm_rules: false
clusters: [{name: default, policy: spread, customer_key_scope: cluster, node_keys: [{name: Premium}]}]
`

func TestPolicyOf(t *testing.T) {
	now := carriedOut(t, site(t), head+ownPolicy, false)
	record, _ := now.ResourceByName(model.KindCluster, model.DefaultCluster)
	policy, chosen, err := PolicyOf(&now, record)
	if err != nil {
		t.Fatal(err)
	}
	want := policies.Policy{
		Name: "spread", Constraints: schema.Constraints(), Planner: "first-fit", Gate: policies.Gate{Kind: policies.GateOff},
		Selector:         placement.SelectRank,
		Weighers:         []policies.Factor{{Weigher: "customer-keys", Factor: 2.5}},
		CustomerKeyScope: model.ScopeCluster, ManagerGrace: 3, SoftRules: policies.BeforeBands, ContendedAbove: policies.DefaultContendedAbove,
	}
	if diff := cmp.Diff(want, policy); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(
		balance.Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{"HighVMCount": 8, "SPMVMCountGrace": 3}}, chosen,
	); diff != "" {
		t.Error(diff)
	}

	// Without a link it is affinity with the cluster's own thresholds.
	edge, _ := now.ResourceByName(model.KindCluster, "edge")
	policy, chosen, err = PolicyOf(&now, edge)
	if err != nil || policy.Name != policies.Affinity || policy.Gate.Initial != 100 || !chosen.Nothing() {
		t.Errorf("%+v, %+v, %v", policy, chosen, err)
	}
	edge.Links = map[string]string{schema.LinkPolicy: "gone"}
	if _, _, err := PolicyOf(&now, edge); !errors.Is(err, ErrDangling) {
		t.Errorf("a policy that is not there: %v", err)
	}
}

// What is built in could have been declared: its record says what the engine does, and a copy of it is the same policy.
func TestACopyOfABuiltInPolicyIsTheSame(t *testing.T) {
	if len(BuiltinPolicies()) != len(policies.Builtins()) {
		t.Fatalf("%d records of %d policies", len(BuiltinPolicies()), len(policies.Builtins()))
	}
	for _, built := range BuiltinPolicies() {
		t.Run(built.Name, func(t *testing.T) {
			copied, err := NewResource(State{}, model.KindPolicy, "copy", Wanted{Settings: built.Settings, Lists: built.Lists}, "id", epoch)
			if err != nil {
				t.Fatal(err)
			}
			now := State{Resources: []model.Resource{copied}}
			record := model.Resource{
				ID: "c", Kind: model.KindCluster, Name: "c", Settings: map[string]string{model.SettingInitialMSAV: "50"},
				Links: map[string]string{schema.LinkPolicy: built.ID},
			}
			want, wantBalancer, err := PolicyOf(&now, record)
			if err != nil {
				t.Fatal(err)
			}
			record.Links[schema.LinkPolicy] = copied.ID
			got, balancer, err := PolicyOf(&now, record)
			if err != nil {
				t.Fatal(err)
			}
			byName := cmpopts.SortSlices(func(a, b policies.Factor) bool { return a.Weigher < b.Weigher })
			if got.Name = want.Name; !cmp.Equal(want, got, byName, cmpopts.EquateEmpty()) || !cmp.Equal(wantBalancer, balancer) {
				t.Errorf("%s %s", cmp.Diff(want, got, byName, cmpopts.EquateEmpty()), cmp.Diff(wantBalancer, balancer))
			}
			if err := placement.Validate(got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEffectiveLists(t *testing.T) {
	now := carriedOut(t, site(t), head+ownPolicy, false)
	spread, _ := now.ResourceByName(model.KindPolicy, "spread")
	effective := make(map[string][]string)
	for _, list := range schema.PolicyForm.Lists {
		effective[list.Name] = EffectiveList(&spread, list)
	}
	if !slices.Equal(effective[schema.ListConstraints], schema.Constraints()) ||
		!slices.Equal(effective[schema.ListWeighers], []string{"customer-keys=2.5"}) {
		t.Errorf("got %v", effective)
	}
	balancer, _ := balance.ByName("even-vm-count")
	if parameters := effective[schema.ListParameters]; len(parameters) != len(balancer.Parameters) ||
		!slices.Contains(parameters, "HighVMCount=8") || !slices.Contains(parameters, "MigrationThreshold=5") {
		t.Errorf("parameters %v, want all of them, those that are set and the defaults of the others", effective[schema.ListParameters])
	}
	if none, _ := Builtin(model.KindPolicy, "none"); EffectiveList(&none, schema.PolicyForm.Lists[2]) != nil {
		t.Error("without a balancer there are parameters")
	}
}

// Every word that the form knows, the engine knows.
func TestTheFormOfPoliciesKnowsWhatTheEngineKnows(t *testing.T) {
	for _, setting := range schema.PolicyForm.Settings {
		for _, word := range setting.Words {
			r := model.Resource{Kind: model.KindPolicy, Name: "p", Settings: map[string]string{setting.Name: word}}
			policy, chosen := readPolicy(&r, model.DefaultSettings())
			if err := errors.Join(placement.Validate(policy), balance.Validate(chosen)); err != nil {
				t.Errorf("%s %s: %v", setting.Name, word, err)
			}
		}
	}
}

func TestPolicyRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an unknown constraint": {
			"constraints: [disk]", `constraints "disk" is not valid: want ` + schema.AnyOf(schema.Constraints()),
		},
		"an unknown weigher": {
			"weighers: {colour: 2}", `weighers "colour" is not valid: want ` + schema.AnyOf(schema.Weighers()),
		},
		"an unknown selector": {"selector: best", `selector "best" is not valid: want rank, `},
		"an unknown balancer": {"balancer: magic", `balancer "magic" is not valid: want none, even-vm-count, even-load, imbalance or condense`},
		"an unknown gate":     {"gate: half", `gate "half" is not valid: want bands or off`},
		"a factor of NaN": {
			"weighers: {customer-keys: .nan}", "weighers customer-keys .nan is not valid: want a finite number from -1e9 to 1e9",
		},
		"an infinite factor": {
			"weighers: {customer-keys: .inf}", "weighers customer-keys .inf is not valid: want a finite number from -1e9 to 1e9",
		},
		"a weigher twice":    {"weighers: {customer-keys: 1, customer-keys: 2}", `"customer-keys" is there twice, first in line 2: keep one`},
		"a constraint twice": {"constraints: [running, running]", `constraints "running" is not valid: want each of them once`},
		"a threshold of 1": {
			"balancer: even-vm-count, parameters: {MigrationThreshold: 1}",
			"MigrationThreshold 1 of balancer even-vm-count is not valid: want a whole number from 2 to ",
		},
		"half a VM": {
			"balancer: even-vm-count, parameters: {HighVMCount: 1.5}",
			"HighVMCount 1.5 of balancer even-vm-count is not valid: want a whole number",
		},
		"another's parameter": {
			"balancer: even-vm-count, parameters: {DurationMinutes: 2}",
			"DurationMinutes 2 of balancer even-vm-count is not valid: want a parameter of even-vm-count: HighVMCount",
		},
		"parameters of none": {
			"parameters: {HighVMCount: 8}",
			"HighVMCount 8 of balancer none is not valid: want nothing: without a balancer there are no parameters",
		},
		"a parameter of NaN": {
			"balancer: even-load, parameters: {HighCPU: .nan}", "parameters HighCPU .nan is not valid: want a finite number",
		},
		"no mandatory one":     {"constraints: [running]", `cannot be left out: correct it, or leave it out`},
		"no maximum":           {"selector: percentage-fixed, weighers: {customer-keys: 1, cpu-load: 1}", `"customer-keys"`},
		"keys":                 {"keys: [{name: K, value: 1}]", `unknown field "keys": known are name, gate`},
		"words where pairs go": {"weighers: [customer-keys]", "want fields, found a list: write name: value, one a line"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, problems := document.Parse("e", []byte(head+"policies: [{name: p, "+c.text+"}]"))
			if len(problems) == 0 {
				_, problems = Diff(State{}, doc, false)
			}
			if got := lines(problems); !strings.HasPrefix(got, "e:2: policy/p: ") || !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestBuiltInPoliciesStayAsTheyAre(t *testing.T) {
	now := carriedOut(t, site(t), head+ownPolicy, false)
	built, _ := Builtin(model.KindPolicy, "none")
	spread, _ := now.ResourceByName(model.KindPolicy, "spread")
	record, _ := now.ResourceByName(model.KindCluster, model.DefaultCluster)
	for want, try := range map[string]func() error{
		"policy/none: it is built in and cannot change: copy it with 'berth policy copy none NAME', and change the copy": func() error {
			_, err := Edit(now, built, Wanted{Settings: map[string]string{schema.SettingGate: "bands"}})
			return err
		},
		"policy/affinity: a built-in one has the name: choose another name": func() error {
			_, err := NewResource(now, model.KindPolicy, "affinity", Wanted{}, "id", epoch)
			return err
		},
		"e:2: policy/affinity: a built-in one has the name: leave it out: it is there without being declared": func() error {
			doc, problems := document.Parse("e", []byte(head+"policies: [{name: affinity}]"))
			if len(problems) == 0 {
				_, problems = Diff(now, doc, false)
			}
			return schema.Problems(problems)
		},
		"policy/x: a built-in one has the name: choose another name": func() error {
			return schema.Problems(Check(State{Resources: []model.Resource{{ID: model.BuiltIn + "x", Kind: model.KindPolicy, Name: "x"}}}))
		},
		"policy/spread: it is in use by cluster/default and cannot be deleted: delete or relink what uses it first": func() error {
			return deletable(now, spread)
		},
		`cluster/default: the policy "magic" does not exist: add it first, or choose one of 'berth policy list'`: func() error {
			_, err := Edit(now, record, Wanted{Links: map[string]string{schema.LinkPolicy: "magic"}})
			return err
		},
	} {
		if err := try(); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}

	// Clusters link to them by name, and documents name them.
	changed, err := Edit(now, record, Wanted{Links: map[string]string{"policy": "none"}})
	if err != nil || changed.Links[schema.LinkPolicy] != built.ID {
		t.Fatalf("%+v, %v", changed, err)
	}
	after := now.withResource(changed)
	if text := export(t, after, false); !strings.Contains(text, "  - name: default\n    policy: none\n") {
		t.Errorf("the export does not name the policy:\n%s", text)
	}
	want := []FieldChange{{Field: schema.LinkPolicy, From: "spread", To: "none"}}
	if diff := cmp.Diff(want, ResourceFields(after, record, changed)); diff != "" {
		t.Error(diff)
	}
	if users := InUse(after, model.KindPolicy, built.ID); !slices.Equal(users, []string{"cluster/default"}) {
		t.Errorf("it is in use by %v", users)
	}
}
