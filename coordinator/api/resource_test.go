package api

import (
	"context"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/api/answer"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// declarer declares and looks at resources through the API, as operator/alice.
type declarer struct {
	t      *testing.T
	m      *coordinator
	client berthv1connect.BerthServiceClient
}

func newDeclarer(t *testing.T) *declarer {
	t.Helper()
	m := newCloud(t, 1).members[0]
	return &declarer{t: t, m: m, client: m.operator()}
}

func (d *declarer) try(kind, name string, links, settings map[string]string) (*berthv1.Resource, error) {
	answer, err := d.client.AddResource(d.t.Context(), connect.NewRequest(&berthv1.AddResourceRequest{
		Kind: kind, Name: name, Links: links, Settings: settings,
	}))
	if err != nil {
		return nil, err
	}
	return answer.Msg.GetResource(), nil
}

// add declares a resource.
func (d *declarer) add(kind, name string, links, settings map[string]string) *berthv1.Resource {
	d.t.Helper()
	made, err := d.try(kind, name, links, settings)
	if err != nil {
		d.t.Fatal(err)
	}
	return made
}

func (d *declarer) get(kind, name string) *berthv1.Resource {
	d.t.Helper()
	answer, err := d.client.GetResource(d.t.Context(), connect.NewRequest(&berthv1.GetResourceRequest{Kind: kind, Name: name}))
	if err != nil {
		d.t.Fatal(err)
	}
	return answer.Msg.GetResource()
}

func (d *declarer) change(request *berthv1.ChangeResourceRequest) (*berthv1.Resource, error) {
	answer, err := d.client.ChangeResource(d.t.Context(), connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	return answer.Msg.GetResource(), nil
}

func (d *declarer) delete(kind, name, request string) error {
	_, err := d.client.DeleteResource(d.t.Context(), connect.NewRequest(&berthv1.DeleteResourceRequest{
		Kind: kind, Name: name, RequestId: request,
	}))
	return err
}

// index tells whether anything was written meanwhile. It counts the history, which every change by the API adds to: what the
// harness proposes again on a slow machine moves the state's own index.
func (d *declarer) index() int { return len(d.m.store.Snapshot().Events(0)) }

// history are the kinds and subjects of all events.
func (d *declarer) history() string {
	var told []string
	for _, event := range d.m.store.Snapshot().Events(0) {
		told = append(told, event.Kind+" "+event.Subject+" by "+event.Caller+": "+event.Message)
	}
	return strings.Join(told, "\n")
}

// racing lets something else be committed just before the next command.
type racing struct {
	answer.Consensus
	before func()
}

func (r *racing) Propose(ctx context.Context, command state.Command) (state.Result, error) {
	if before := r.before; before != nil {
		r.before = nil
		before()
	}
	return r.Consensus.Propose(ctx, command)
}

func TestResources(t *testing.T) {
	d := newDeclarer(t)
	type pairs = map[string]string

	t.Run("are declared, shown and listed", func(t *testing.T) {
		d.add("billing-entity", "mbe", nil, pairs{"master": "true"})
		d.add("customer", "acme", pairs{"billing_entity": "mbe"}, nil)
		made := d.add("vdc", "prod", pairs{"customer": "acme"}, nil)
		if made.GetId() == "" || made.GetRevision() == 0 || made.GetCreatedAt() == nil || made.GetLinks()["customer"] != "acme" {
			t.Errorf("made %v", made)
		}
		shown := d.get("customer", "acme")
		if diff := cmp.Diff([]string{"vdc/prod"}, shown.GetUsedBy()); diff != "" || shown.GetLinks()["billing_entity"] != "mbe" {
			t.Errorf("shown %v: %s", shown, diff)
		}
		if byID := d.get("customer", shown.GetId()); byID.GetName() != "acme" {
			t.Errorf("by ID: %v", byID)
		}
		list, err := d.client.ListResources(t.Context(), connect.NewRequest(&berthv1.ListResourcesRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range list.Msg.GetResources() {
			if !r.GetBuiltIn() {
				names = append(names, r.GetKind()+"/"+r.GetName())
			}
		}
		if diff := cmp.Diff([]string{"cluster/default", "billing-entity/mbe", "customer/acme", "vdc/prod"}, names); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("of one kind are listed by name", func(t *testing.T) {
		d.add("cluster", "west", nil, pairs{"storage": "local"})
		d.add("cluster", "autumn", nil, nil)
		list, err := d.client.ListResources(t.Context(), connect.NewRequest(&berthv1.ListResourcesRequest{Kind: "cluster"}))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range list.Msg.GetResources() {
			names = append(names, r.GetName())
		}
		if diff := cmp.Diff([]string{"autumn", "default", "west"}, names); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("include the default cluster before it is declared", func(t *testing.T) {
		shown := d.get("cluster", "default")
		if shown.GetRevision() != 0 || shown.GetCreatedAt() != nil || len(shown.GetKeys()) != 3 ||
			shown.GetEffectiveSettings()["msav_steps"] != "10" {
			t.Fatalf("shown %v", shown)
		}
		wantRefusal(t, d.delete("cluster", "default", "x"), rpc.Conflict, "cluster/default")
		_, err := d.try("cluster", "default", nil, nil)
		wantRefusal(t, err, rpc.Exists, "cluster/default")
		changed, err := d.change(&berthv1.ChangeResourceRequest{Kind: "cluster", Name: "default", Settings: pairs{"ram_ratio": "1.50"}})
		if err != nil {
			t.Fatal(err)
		}
		if changed.GetRevision() == 0 || changed.GetCreatedAt() == nil || changed.GetSettings()["ram_ratio"] != "1.5" ||
			len(changed.GetKeys()) != 3 {
			t.Errorf("changed to %v", changed)
		}
	})

	t.Run("change only where they are told to", func(t *testing.T) {
		d.add("customer", "beta", nil, nil)
		changed, err := d.change(&berthv1.ChangeResourceRequest{Kind: "vdc", Name: "prod", Links: pairs{"customer": "beta", "cluster": "autumn"}})
		if err != nil || changed.GetLinks()["customer"] != "beta" || changed.GetLinks()["cluster"] != "autumn" {
			t.Fatalf("changed to %v, %v", changed, err)
		}
		changed, err = d.change(&berthv1.ChangeResourceRequest{Kind: "vdc", Name: "prod", Unset: []string{"cluster"}})
		if err != nil || changed.GetLinks()["cluster"] != "" || changed.GetLinks()["customer"] != "beta" {
			t.Fatalf("changed to %v, %v", changed, err)
		}
		before := d.index()
		if _, err := d.change(&berthv1.ChangeResourceRequest{Kind: "vdc", Name: "prod", Links: pairs{"customer": "beta"}}); err != nil {
			t.Fatal(err)
		}
		if d.index() != before {
			t.Error("a change that changes nothing was written")
		}
	})

	for name, request := range map[string]*berthv1.AddResourceRequest{
		"no such kind":      {Kind: "pool", Name: "x"},
		"a node":            {Kind: "node", Name: "x"},
		"no name":           {Kind: "customer"},
		"a name for IDs":    {Kind: "customer", Name: "6c8d5f52-1111-4222-8333-444455556666"},
		"no such link":      {Kind: "customer", Name: "x", Links: pairs{"vdc": "prod"}},
		"a dangling link":   {Kind: "vdc", Name: "x", Links: pairs{"customer": "nobody"}},
		"a missing link":    {Kind: "vdc", Name: "x"},
		"no such setting":   {Kind: "customer", Name: "x", Settings: pairs{"colour": "red"}},
		"a bad setting":     {Kind: "cluster", Name: "x", Settings: pairs{"ram_ratio": "NaN"}},
		"a second master":   {Kind: "billing-entity", Name: "x", Settings: pairs{"master": "true"}},
		"final above first": {Kind: "cluster", Name: "x", Settings: pairs{"initial_msav": "1", "final_msav": "2"}},
	} {
		t.Run("refuse "+name, func(t *testing.T) {
			before := d.index()
			_, err := d.try(request.GetKind(), request.GetName(), request.GetLinks(), request.GetSettings())
			wantRefusal(t, err, rpc.Invalid, "")
			if d.index() != before {
				t.Error("something was written all the same")
			}
		})
	}

	t.Run("refuse to be changed into what may not be", func(t *testing.T) {
		d.add("offer", "small", nil, pairs{"for": "vm"})
		_, err := d.change(&berthv1.ChangeResourceRequest{Kind: "offer", Name: "small", Settings: pairs{"for": "disk"}})
		wantRefusal(t, err, rpc.Invalid, "offer/small")
		_, err = d.change(&berthv1.ChangeResourceRequest{Kind: "vdc", Name: "prod", Links: pairs{"offer": "small"}})
		wantRefusal(t, err, rpc.Invalid, "vdc/prod")
		if problems := rpc.Detail(err).GetProblems(); len(problems) != 1 || problems[0].GetSubject() != "vdc/prod" {
			t.Errorf("problems %v", problems)
		}
		_, err = d.change(&berthv1.ChangeResourceRequest{Kind: "vdc", Name: "none"})
		wantRefusal(t, err, rpc.NotFound, "vdc/none")
	})

	t.Run("are deleted when nothing uses them", func(t *testing.T) {
		err := d.delete("customer", "beta", "r1")
		wantRefusal(t, err, rpc.Conflict, "customer/beta")
		if !strings.Contains(err.Error(), "vdc/prod") {
			t.Errorf("the refusal does not say by what: %v", err)
		}
		if err := d.delete("vdc", "prod", "r2"); err != nil {
			t.Fatal(err)
		}
		if err := d.delete("vdc", "prod", "r2"); err != nil {
			t.Errorf("the same request again: %v", err)
		}
		wantRefusal(t, d.delete("vdc", "prod", "r3"), rpc.NotFound, "vdc/prod")
		if err := d.delete("customer", "beta", "r4"); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("are added once by one request", func(t *testing.T) {
		add := func() error {
			_, err := d.client.AddResource(t.Context(), connect.NewRequest(&berthv1.AddResourceRequest{
				Kind: "customer", Name: "once", RequestId: "same",
			}))
			return err
		}
		if err := add(); err != nil {
			t.Fatal(err)
		}
		if err := add(); err != nil {
			t.Errorf("the same request again: %v", err)
		}
		_, err := d.try("customer", "once", nil, nil)
		wantRefusal(t, err, rpc.Exists, "customer/once")
	})

	t.Run("are judged again when something changed meanwhile", func(t *testing.T) {
		acme, _ := d.m.store.Snapshot().ResourceByName(model.KindCustomer, "acme")
		race := &racing{Consensus: d.m.api.source.Consensus, before: func() {
			d.m.propose(state.Command{
				Kind: "test", Expect: []state.Expectation{answer.ExpectResource(acme)},
				Delete: []state.Record{{Table: state.Resources, ID: acme.ID}},
			})
		}}
		d.m.api.source.Consensus = race
		defer func() { d.m.api.source.Consensus = race.Consensus }()
		_, err := d.try("vdc", "late", map[string]string{"customer": "acme"}, nil)
		wantRefusal(t, err, rpc.Invalid, "vdc/late")
		if race.before != nil {
			t.Error("nothing was proposed")
		}

		beta := d.add("customer", "gamma", nil, nil)
		race.before = func() {
			record, _ := d.m.store.Snapshot().Resource(beta.GetId())
			record.Keys = []model.Key{{Class: model.SystemKey, Name: "X", Value: 1, Weight: 1}}
			d.m.propose(state.Command{
				Kind: "test", Expect: []state.Expectation{answer.ExpectResource(record)}, Resources: []model.Resource{record},
			})
		}
		if made, err := d.try("vdc", "later", map[string]string{"customer": "gamma"}, nil); err != nil || made.GetLinks()["customer"] != "gamma" {
			t.Errorf("a change of what it links to: %v, %v", made, err)
		}
	})

	t.Run("leave a history", func(t *testing.T) {
		history := d.history()
		for _, want := range []string{
			"resource.created vdc/prod by operator/alice: created: customer: acme",
			"resource.changed cluster/default by operator/alice: ram_ratio: 1 (default) → 1.5",
			"resource.deleted vdc/prod by operator/alice: forgotten",
		} {
			if !slices.Contains(strings.Split(history, "\n"), want) {
				t.Errorf("the history lacks %q:\n%s", want, history)
			}
		}
	})
}

// Another word for what is set already is a change: an export writes it as it was given last.
func TestAPlannerIsExportedAsItWasGiven(t *testing.T) {
	d := newDeclarer(t)
	d.add("zone", "fra", nil, map[string]string{"planner": "first-fit"})
	for _, word := range []string{"FirstFitPlanner", "first-fit"} {
		changed, err := d.change(&berthv1.ChangeResourceRequest{Kind: "zone", Name: "fra", Settings: map[string]string{"planner": word}})
		if err != nil || changed.GetSettings()["planner"] != "first-fit" {
			t.Errorf("%s: shown is %v, %v", word, changed, err)
		}
		answer, err := d.client.ExportEstate(t.Context(), connect.NewRequest(&berthv1.ExportEstateRequest{}))
		if err != nil || !strings.Contains(string(answer.Msg.GetDocument()), "planner: "+word+"\n") {
			t.Errorf("%s: exported is %v, %s", word, err, answer.Msg.GetDocument())
		}
	}
}
