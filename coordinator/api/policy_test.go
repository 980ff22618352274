package api

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func (d *declarer) addPolicy(request *berthv1.AddResourceRequest) (*berthv1.Resource, error) {
	request.Kind = "policy"
	answer, err := d.client.AddResource(d.t.Context(), connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	return answer.Msg.GetResource(), nil
}

func words(items ...string) map[string]*berthv1.Names {
	lists := make(map[string]*berthv1.Names)
	for _, item := range items {
		list, word, _ := strings.Cut(item, ":")
		if lists[list] == nil {
			lists[list] = &berthv1.Names{}
		}
		if word != "" {
			lists[list].Names = append(lists[list].Names, word)
		}
	}
	return lists
}

func TestPolicies(t *testing.T) {
	d := newDeclarer(t)
	type pairs = map[string]string

	t.Run("that are built in are there, and stay as they are", func(t *testing.T) {
		list, err := d.client.ListResources(t.Context(), connect.NewRequest(&berthv1.ListResourcesRequest{Kind: "policy"}))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range list.Msg.GetResources() {
			if names = append(names, r.GetName()); !r.GetBuiltIn() || r.GetRevision() != 0 || len(r.GetEffectiveSettings()) == 0 {
				t.Errorf("listed %v", r)
			}
		}
		var want []string
		for _, r := range estate.BuiltinPolicies() {
			want = append(want, r.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" || !slices.Contains(names, "affinity") {
			t.Errorf("%s: %v", diff, names)
		}
		if byID := d.get("policy", model.BuiltIn+"affinity"); byID.GetName() != "affinity" {
			t.Errorf("by ID %v", byID)
		}
		before := d.index()
		_, err = d.addPolicy(&berthv1.AddResourceRequest{Name: "affinity"})
		wantRefusal(t, err, rpc.Exists, "policy/affinity")
		_, err = d.change(&berthv1.ChangeResourceRequest{Kind: "policy", Name: "affinity", Settings: pairs{"gate": "off"}})
		wantRefusal(t, err, rpc.Invalid, "policy/affinity")
		wantRefusal(t, d.delete("policy", "affinity", "x"), rpc.Conflict, "policy/affinity")
		if d.index() != before {
			t.Error("something was written all the same")
		}
	})

	t.Run("are made with lists, and tell what they come to", func(t *testing.T) {
		made, err := d.addPolicy(&berthv1.AddResourceRequest{
			Name: "mine", Settings: pairs{"gate": "off", "balancer": "even-vm-count"}, Lists: words(
				"weighers:customer-keys=2", "parameters:HighVMCount=7",
			),
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"customer-keys=2"}, made.GetLists()["weighers"].GetItems()); diff != "" || made.GetBuiltIn() {
			t.Errorf("made %v: %s", made, diff)
		}
		if made.GetLists()["constraints"] != nil || len(
			made.GetEffectiveLists()["constraints"].GetItems(),
		) == 0 || made.GetEffectiveSettings()["selector"] != "rank" {
			t.Errorf("what was left out: %v", made)
		}
	})

	t.Run("change as they are told to", func(t *testing.T) {
		changed, err := d.change(&berthv1.ChangeResourceRequest{
			Kind: "policy", Name: "mine", Lists: words("parameters:HighVMCount=9", "parameters:MigrationThreshold=3"),
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"HighVMCount=9", "MigrationThreshold=3"}, changed.GetLists()["parameters"].GetItems()); diff != "" ||
			len(changed.GetLists()["weighers"].GetItems()) != 1 {
			t.Errorf("changed to %v: %s", changed, diff)
		}
		before := d.index()
		if _, err = d.change(&berthv1.ChangeResourceRequest{
			Kind: "policy", Name: "mine", Lists: words("parameters:MigrationThreshold=3", "parameters:HighVMCount=9"),
		}); err != nil || d.index() != before {
			t.Errorf("the same again was written: %v", err)
		}
		changed, err = d.change(&berthv1.ChangeResourceRequest{Kind: "policy", Name: "mine", Unset: []string{"parameters"}})
		if err != nil || changed.GetLists()["parameters"] != nil {
			t.Errorf("unset: %v, %v", changed, err)
		}
	})

	for name, refused := range map[string]struct {
		request *berthv1.AddResourceRequest
		named   []string
	}{
		"an unknown weigher":    {&berthv1.AddResourceRequest{Lists: words("weighers:cutest=1")}, []string{"cutest", "customer-keys"}},
		"an unknown constraint": {&berthv1.AddResourceRequest{Lists: words("constraints:luck")}, []string{"luck"}},
		"a constraint too few":  {&berthv1.AddResourceRequest{Lists: words("constraints:running")}, []string{"cannot be left out"}},
		"a factor of NaN":       {&berthv1.AddResourceRequest{Lists: words("weighers:customer-keys=NaN")}, []string{"customer-keys"}},
		"a factor that is none": {&berthv1.AddResourceRequest{Lists: words("weighers:customer-keys")}, []string{"customer-keys"}},
		"an unknown selector":   {&berthv1.AddResourceRequest{Settings: pairs{"selector": "dice"}}, []string{"dice", "rank"}},
		"an unknown balancer":   {&berthv1.AddResourceRequest{Settings: pairs{"balancer": "juggler"}}, []string{"juggler", "even-vm-count"}},
		"an unknown parameter": {
			&berthv1.AddResourceRequest{Settings: pairs{"balancer": "even-vm-count"}, Lists: words("parameters:Speed=1")},
			[]string{"Speed", "HighVMCount"},
		},
		"a parameter of nothing": {&berthv1.AddResourceRequest{Lists: words("parameters:HighVMCount=1")}, []string{"HighVMCount"}},
		"a threshold of 1": {
			&berthv1.AddResourceRequest{Settings: pairs{"balancer": "even-vm-count"}, Lists: words("parameters:MigrationThreshold=1")},
			[]string{"MigrationThreshold", "2"},
		},
		"an unknown list":    {&berthv1.AddResourceRequest{Lists: words("wishes:peace")}, []string{"wishes"}},
		"an unknown setting": {&berthv1.AddResourceRequest{Settings: pairs{"colour": "red"}}, []string{"colour"}},
		"lists of something else": {
			&berthv1.AddResourceRequest{Kind: "customer", Lists: words("weighers:customer-keys=1")}, []string{"weighers"},
		},
	} {
		t.Run("refuse "+name, func(t *testing.T) {
			before := d.index()
			kind := refused.request.GetKind()
			refused.request.Name = "x"
			var err error
			if kind == "" {
				kind = "policy"
				_, err = d.addPolicy(refused.request)
			} else {
				_, err = d.client.AddResource(t.Context(), connect.NewRequest(refused.request))
			}
			wantRefusal(t, err, rpc.Invalid, kind+"/x")
			for _, thing := range refused.named {
				if text := err.Error() + rpc.Detail(err).GetNextStep(); !strings.Contains(text, thing) {
					t.Errorf("%q is not named: %s", thing, text)
				}
			}
			if d.index() != before {
				t.Error("something was written all the same")
			}
		})
	}

	t.Run("are used by clusters, by name", func(t *testing.T) {
		if diff := cmp.Diff([]string{"cluster/default"}, d.get("policy", "affinity").GetUsedBy()); diff != "" {
			t.Errorf("what a cluster has by default: %s", diff)
		}
		changed, err := d.change(&berthv1.ChangeResourceRequest{Kind: "cluster", Name: "default", Links: pairs{"policy": "mine"}})
		if err != nil || changed.GetLinks()["policy"] != "mine" {
			t.Fatalf("changed to %v, %v", changed, err)
		}
		if used := d.get("policy", "mine").GetUsedBy(); !slices.Contains(used, "cluster/default") {
			t.Errorf("used by %v", used)
		}
		if used := d.get("policy", "affinity").GetUsedBy(); len(used) > 0 {
			t.Errorf("affinity is used by %v", used)
		}
		err = d.delete("policy", "mine", "y")
		wantRefusal(t, err, rpc.Conflict, "policy/mine")
		if !strings.Contains(err.Error(), "cluster/default") {
			t.Errorf("the refusal does not say by what: %v", err)
		}
		changed, err = d.change(&berthv1.ChangeResourceRequest{Kind: "cluster", Name: "default", Links: pairs{"policy": "affinity"}})
		if err != nil || changed.GetLinks()["policy"] != "affinity" {
			t.Fatalf("changed to %v, %v", changed, err)
		}
		if err := d.delete("policy", "mine", "z"); err != nil {
			t.Error(err)
		}
		_, err = d.change(&berthv1.ChangeResourceRequest{Kind: "cluster", Name: "default", Links: pairs{"policy": "mine"}})
		wantRefusal(t, err, rpc.Invalid, "cluster/default")
	})
}
