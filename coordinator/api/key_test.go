package api

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

func (d *declarer) setKey(kind, name string, key *berthv1.Key) ([]*berthv1.Key, error) {
	answer, err := d.client.SetKey(d.t.Context(), connect.NewRequest(&berthv1.SetKeyRequest{Kind: kind, Name: name, Key: key}))
	if err != nil {
		return nil, err
	}
	return answer.Msg.GetKeys(), nil
}

func (d *declarer) unsetKey(kind, name, class, key string) ([]*berthv1.Key, error) {
	answer, err := d.client.UnsetKey(d.t.Context(), connect.NewRequest(&berthv1.UnsetKeyRequest{
		Kind: kind, Name: name, Class: class, Key: key,
	}))
	if err != nil {
		return nil, err
	}
	return answer.Msg.GetKeys(), nil
}

// keyTexts are keys in short: class NAME=value@weight.
func keyTexts(keys []*berthv1.Key) []string {
	var texts []string
	for _, k := range keys {
		texts = append(texts, fmt.Sprintf("%s %s=%g@%g", k.GetClass(), k.GetName(), k.GetValue(), k.GetWeight()))
	}
	return texts
}

func TestKeys(t *testing.T) {
	d := newDeclarer(t)
	d.add("billing-entity", "mbe", nil, nil)
	d.add("customer", "acme", map[string]string{"billing_entity": "mbe"}, nil)
	prod := d.add("vdc", "prod", map[string]string{"customer": "acme"}, nil)
	d.m.addVM(model.VM{
		ID: "v1", Name: "web", VDC: prod.GetId(), Desired: model.Stopped, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
		Sticky: []model.Key{{Class: model.SystemKey, Name: "DS", Value: 2, Weight: 30}},
	})

	t.Run("are set, changed, listed and unset", func(t *testing.T) {
		if _, err := d.setKey("vdc", "prod", &berthv1.Key{Name: "TIER", Value: 1, Weight: 5}); err != nil {
			t.Fatal(err)
		}
		keys, err := d.setKey("vdc", "prod", &berthv1.Key{Class: "billing-entity", Name: "TIER", Value: 2, Weight: 6})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"billing-entity TIER=2@6", "system TIER=1@5"}, keyTexts(keys)); diff != "" {
			t.Error(diff)
		}
		if keys, err = d.setKey("vdc", "prod", &berthv1.Key{Class: "system", Name: "TIER", Value: 3, Weight: -5}); err != nil {
			t.Fatal(err)
		}
		list, err := d.client.ListKeys(t.Context(), connect.NewRequest(&berthv1.ListKeysRequest{Kind: "vdc", Name: "prod"}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(keyTexts(keys), keyTexts(list.Msg.GetKeys())); diff != "" || keyTexts(keys)[1] != "system TIER=3@-5" {
			t.Errorf("listed %v: %s", keyTexts(list.Msg.GetKeys()), diff)
		}
		_, err = d.unsetKey("vdc", "prod", "", "TIER")
		wantRefusal(t, err, rpc.Invalid, "key/TIER") // two have the name
		if keys, err = d.unsetKey("vdc", "prod", "system", "TIER"); err != nil || len(keys) != 1 {
			t.Errorf("after unsetting one: %v, %v", keys, err)
		}
		if keys, err = d.unsetKey("vdc", "prod", "", "TIER"); err != nil || len(keys) != 0 {
			t.Errorf("after unsetting the other: %v, %v", keys, err)
		}
		_, err = d.unsetKey("vdc", "prod", "", "TIER")
		wantRefusal(t, err, rpc.NotFound, "vdc/prod")
	})

	t.Run("stand on VMs too", func(t *testing.T) {
		keys, err := d.setKey("vm", "web", &berthv1.Key{Class: "customer", Name: "Group1", Value: 1, Weight: 100})
		if err != nil || len(keys) != 1 {
			t.Fatalf("set %v, %v", keys, err)
		}
		before := d.index()
		if _, err := d.setKey(
			"vm", "web", &berthv1.Key{Class: "customer", Name: "Group1", Value: 1, Weight: 100},
		); err != nil || d.index() != before {
			t.Errorf("the same key again was written again: %v", err)
		}
		list, err := d.client.ListKeys(t.Context(), connect.NewRequest(&berthv1.ListKeysRequest{Kind: "vm", Name: "web"}))
		if err != nil {
			t.Fatal(err)
		}
		got := append(keyTexts(list.Msg.GetKeys()), keyTexts(list.Msg.GetSticky())...)
		if diff := cmp.Diff([]string{"customer Group1=1@100", "system DS=2@30"}, got); diff != "" {
			t.Error(diff)
		}
		if keys, err := d.unsetKey("vm", "web", "", "Group1"); err != nil || len(keys) != 0 {
			t.Errorf("unset: %v, %v", keys, err)
		}
		_, err = d.setKey("vm", "mail", &berthv1.Key{Name: "X"})
		wantRefusal(t, err, rpc.NotFound, "vm/mail")
	})

	t.Run("copied from a node are unset where the VM has none of its own of the name", func(t *testing.T) {
		d.m.addVM(model.VM{
			ID: "v2", Name: "copy", Desired: model.Stopped, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
			Keys:   []model.Key{{Class: model.SystemKey, Name: "DS", Value: 1, Weight: 5}},
			Sticky: []model.Key{{Class: model.SystemKey, Name: "DS", Value: 2, Weight: 30}},
		})
		for _, left := range []string{"[] [system DS=2@30]", "[] []"} { // its own first
			if _, err := d.unsetKey("vm", "copy", "", "DS"); err != nil {
				t.Fatal(err)
			}
			list, err := d.client.ListKeys(t.Context(), connect.NewRequest(&berthv1.ListKeysRequest{Kind: "vm", Name: "copy"}))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(keyTexts(list.Msg.GetKeys()), keyTexts(list.Msg.GetSticky())); got != left {
				t.Errorf("%s is left, want %s", got, left)
			}
		}
		_, err := d.unsetKey("vm", "copy", "", "DS")
		wantRefusal(t, err, rpc.NotFound, "vm/copy")
	})

	t.Run("are taken away once by one request", func(t *testing.T) {
		for kind, name := range map[string]string{"vm": "web", "vdc": "prod"} {
			if _, err := d.setKey(kind, name, &berthv1.Key{Name: "ONCE", Value: 1, Weight: 1}); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time because the first answer was lost
				_, err := d.client.UnsetKey(t.Context(), connect.NewRequest(&berthv1.UnsetKeyRequest{
					Kind: kind, Name: name, Key: "ONCE", RequestId: "once-" + kind,
				}))
				if err != nil {
					t.Errorf("on a %s: %v", kind, err)
				}
			}
		}
	})

	for name, one := range map[string]struct {
		kind, of string
		key      *berthv1.Key
	}{
		"a customer key on a customer":     {"customer", "acme", &berthv1.Key{Class: "customer", Name: "X", Value: 1, Weight: 1}},
		"a reserved system key":            {"vdc", "prod", &berthv1.Key{Name: "_X", Value: 1, Weight: 1}},
		"an unknown special key":           {"cluster", "default", &berthv1.Key{Name: "#DISK", Value: 0, Weight: 1}},
		"a special key of a reseller":      {"vdc", "prod", &berthv1.Key{Class: "billing-entity", Name: "#RAM", Weight: 1}},
		"a value that is not a number":     {"vdc", "prod", &berthv1.Key{Name: "X", Value: math.NaN(), Weight: 1}},
		"an infinite weight":               {"vdc", "prod", &berthv1.Key{Name: "X", Weight: math.Inf(-1)}},
		"a class that is none":             {"vdc", "prod", &berthv1.Key{Class: "mine", Name: "X"}},
		"no key":                           {"vdc", "prod", nil},
		"a key on a node":                  {"node", "hv1", &berthv1.Key{Name: "X", Value: 1}},
		"a key on a thing that is none":    {"rack", "x", &berthv1.Key{Name: "X", Value: 1}},
		"a customer key of a VM, infinite": {"vm", "web", &berthv1.Key{Class: "customer", Name: "X", Value: math.Inf(1)}},
	} {
		t.Run("refuse "+name, func(t *testing.T) {
			before := d.index()
			_, err := d.setKey(one.kind, one.of, one.key)
			wantRefusal(t, err, rpc.Invalid, "")
			if d.index() != before {
				t.Error("something was written all the same")
			}
		})
	}

	t.Run("are compiled over all levels", func(t *testing.T) {
		for _, one := range []struct {
			kind, of string
			key      *berthv1.Key
		}{
			{"customer", "acme", &berthv1.Key{Name: "TIER", Value: 1, Weight: 5}},
			{"vm", "web", &berthv1.Key{Name: "TIER", Value: 2, Weight: 6}},
			{"vdc", "prod", &berthv1.Key{Class: "billing-entity", Name: "Group1", Value: 1, Weight: 7}},
		} {
			if _, err := d.setKey(one.kind, one.of, one.key); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := d.client.CompiledKeys(t.Context(), connect.NewRequest(&berthv1.CompiledKeysRequest{Vm: "web"}))
		if err != nil {
			t.Fatal(err)
		}
		compiled := answer.Msg
		if compiled.GetCluster() != "default" || compiled.GetCustomer() != "acme" || compiled.GetBillingEntity() != "mbe" {
			t.Errorf("stands in %v", compiled)
		}
		var texts []string
		for _, k := range append(compiled.GetSystem(), compiled.GetCustomerKeys()...) {
			text := fmt.Sprintf("%s=%g@%g %s %s sticky=%v", k.GetName(), k.GetValue(), k.GetWeight(), k.GetLevel(), k.GetFrom(), k.GetSticky())
			for _, o := range k.GetOverrode() {
				text += fmt.Sprintf(" over %g@%g %s", o.GetValue(), o.GetWeight(), o.GetFrom())
			}
			texts = append(texts, text)
		}
		if diff := cmp.Diff([]string{
			"#CPU=0@30 cluster cluster/default sticky=false", "#LOAD=0@30 cluster cluster/default sticky=false",
			"#RAM=0@40 cluster cluster/default sticky=false", "DS=2@30 vm vm/web sticky=true",
			"TIER=2@6 vm vm/web sticky=false over 1@5 customer/acme", "Group1=1@7 vdc vdc/prod sticky=false",
		}, texts); diff != "" {
			t.Error(diff)
		}
		_, err = d.client.CompiledKeys(t.Context(), connect.NewRequest(&berthv1.CompiledKeysRequest{Vm: "mail"}))
		wantRefusal(t, err, rpc.NotFound, "vm/mail")
	})

	t.Run("leave a history", func(t *testing.T) {
		for _, want := range []string{
			"key.set vdc/prod by operator/alice: key TIER: value 1, weight 5",
			"key.unset vm/web by operator/alice: key Group1 (customer) taken away",
		} {
			if history := d.history(); !strings.Contains(history, want) {
				t.Errorf("the history lacks %q:\n%s", want, history)
			}
		}
	})
}

func TestNodeKeys(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")
	d.m.addNode("n2", "hv2")
	declare := func(cluster string, key *berthv1.NodeKey) (*berthv1.Resource, error) {
		answer, err := d.client.DeclareNodeKey(t.Context(), connect.NewRequest(&berthv1.DeclareNodeKeyRequest{Cluster: cluster, Key: key}))
		if err != nil {
			return nil, err
		}
		return answer.Msg.GetCluster(), nil
	}
	set := func(request *berthv1.SetNodeRequest) (*berthv1.Node, error) {
		answer, err := d.client.SetNode(t.Context(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg.GetNode(), nil
	}
	drop := func(cluster, key string) error {
		_, err := d.client.DropNodeKey(t.Context(), connect.NewRequest(&berthv1.DropNodeKeyRequest{Cluster: cluster, Key: key}))
		return err
	}

	t.Run("are declared for all nodes of a cluster", func(t *testing.T) {
		_, err := set(&berthv1.SetNodeRequest{Node: "hv1", Keys: map[string]float64{"Premium": 1}})
		wantRefusal(t, err, rpc.Invalid, "node/hv1")
		made, err := declare("default", &berthv1.NodeKey{Name: "Premium", Default: 0.5})
		if err != nil || made.GetNodeKeys()[0].GetDefault() != 0.5 || made.GetRevision() == 0 {
			t.Fatalf("declared %v, %v", made, err)
		}
		if made, err = declare("default", &berthv1.NodeKey{Name: "DS", Sticky: true, Weight: 30}); err != nil || len(made.GetNodeKeys()) != 2 {
			t.Fatalf("declared %v, %v", made, err)
		}
		node, err := set(&berthv1.SetNodeRequest{
			Node: "hv1", Keys: map[string]float64{"Premium": 1}, Settings: &berthv1.NodeSettings{RamRatio: new(2.0)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(
			map[string]float64{"Premium": 1, "DS": 0}, node.GetKeys(),
		); diff != "" || node.GetOwnKeys()[0] != "Premium" || node.GetSettings().GetRamRatio() != 2 {
			t.Errorf("node %v: %s", node, diff)
		}
		list, err := d.client.ListKeys(t.Context(), connect.NewRequest(&berthv1.ListKeysRequest{Kind: "node", Name: "hv2"}))
		if err != nil {
			t.Fatal(err)
		}
		if got := list.Msg; got.GetValues()["Premium"] != 0.5 || len(got.GetOwn()) != 0 || len(got.GetNodeKeys()) != 2 {
			t.Errorf("keys of hv2: %v", got)
		}
		if node, err = set(&berthv1.SetNodeRequest{
			Node: "hv1", UnsetKeys: []string{"Premium"},
		}); err != nil || node.GetKeys()["Premium"] != 0.5 || len(node.GetOwnKeys()) != 0 {
			t.Errorf("unset: %v, %v", node, err)
		}
	})

	for name, request := range map[string]*berthv1.SetNodeRequest{
		"a value that is no number": {Node: "hv1", Keys: map[string]float64{"Premium": math.NaN()}},
		"a special key":             {Node: "hv1", Keys: map[string]float64{"#RAM": 1}},
		"a key both set and unset":  {Node: "hv1", Keys: map[string]float64{"Premium": 1}, UnsetKeys: []string{"Premium"}},
	} {
		t.Run("refuse "+name, func(t *testing.T) {
			_, err := set(request)
			wantRefusal(t, err, rpc.Invalid, "node/hv1")
		})
	}
	for name, key := range map[string]*berthv1.NodeKey{
		"a weight on a plain key":     {Name: "X", Weight: 1},
		"a sticky key without weight": {Name: "X", Sticky: true},
		"a special key":               {Name: "#RAM"},
		"no key":                      nil,
	} {
		t.Run("refuse to declare "+name, func(t *testing.T) {
			_, err := declare("default", key)
			wantRefusal(t, err, rpc.Invalid, "cluster/default")
		})
	}

	t.Run("are dropped with the values of the nodes", func(t *testing.T) {
		if _, err := set(&berthv1.SetNodeRequest{Node: "hv1", Keys: map[string]float64{"Premium": 1, "DS": 2}}); err != nil {
			t.Fatal(err)
		}
		if err := drop("default", "Premium"); err != nil {
			t.Fatal(err)
		}
		node, _ := d.m.store.Snapshot().NodeByName("hv1")
		if diff := cmp.Diff(map[string]float64{"DS": 2}, node.Keys); diff != "" {
			t.Error(diff)
		}
		wantRefusal(t, drop("default", "Premium"), rpc.NotFound, "cluster/default")
		wantRefusal(t, drop("west", "Premium"), rpc.NotFound, "cluster/west")
	})

	t.Run("bind a node to clusters that declare them", func(t *testing.T) {
		d.add("cluster", "west", nil, nil)
		_, err := set(&berthv1.SetNodeRequest{Node: "hv1", Cluster: "west"})
		wantRefusal(t, err, rpc.Invalid, "node/hv1") // west declares no DS
		node, err := set(&berthv1.SetNodeRequest{Node: "hv1", Cluster: "west", UnsetKeys: []string{"DS"}})
		if err != nil || node.GetCluster() != "west" || len(node.GetKeys())+len(node.GetOwnKeys()) != 0 {
			t.Fatalf("moved: %v, %v", node, err)
		}
		if _, err := set(&berthv1.SetNodeRequest{Node: "hv1", Cluster: "default"}); err != nil {
			t.Fatal(err)
		}
		node, err = set(&berthv1.SetNodeRequest{Node: "hv2", Cluster: "west"})
		if err != nil || node.GetCluster() != "west" {
			t.Fatalf("moved: %v, %v", node, err)
		}
		_, err = set(&berthv1.SetNodeRequest{Node: "hv2", Cluster: "east"})
		wantRefusal(t, err, rpc.NotFound, "cluster/east")
		d.m.addVM(model.VM{
			ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 1, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
		})
		_, err = set(&berthv1.SetNodeRequest{Node: "hv1", Cluster: "west"})
		wantRefusal(t, err, rpc.Conflict, "node/hv1")
		wantRefusal(t, d.delete("cluster", "west", ""), rpc.Conflict, "cluster/west")
	})
}
