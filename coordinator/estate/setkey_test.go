package estate

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

func TestSetAndUnsetKeys(t *testing.T) {
	k := func(class model.KeyClass, name string, value, weight float64) model.Key {
		return model.Key{Class: class, Name: name, Value: value, Weight: weight}
	}
	keys := []model.Key{k(model.CustomerKey, "K", 1, 1), k(model.SystemKey, "K", 2, 2)}
	set, err := SetKey(model.KindVM, keys, k(model.SystemKey, "K", 3, 0))
	if diff := cmp.Diff([]model.Key{keys[0], k(model.SystemKey, "K", 3, 0)}, set); err != nil || diff != "" {
		t.Error(err, diff)
	}
	set, err = SetKey(model.KindVM, keys, k(model.BillingEntityKey, "Z", 1, 1))
	if diff := cmp.Diff([]model.Key{k(model.BillingEntityKey, "Z", 1, 1), keys[0], keys[1]}, set); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if _, err := SetKey(model.KindVDC, keys, k(model.CustomerKey, "K", 1, 1)); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a customer key on a VDC: %v", err)
	}
	full := make([]model.Key, model.MaxKeys)
	for i := range full {
		full[i] = k(model.SystemKey, "K"+schema.Figure(float64(i)), 1, 1)
	}
	if _, err := SetKey(
		model.KindVDC, full, k(model.SystemKey, "K", 1, 1),
	); err == nil || err.Error() != "key K as one more is not valid: want at most 64 keys on one vdc" {
		t.Errorf("one key too many: %v", err)
	}
	if _, err := SetKey(model.KindVDC, full, k(model.SystemKey, "K1", 5, 1)); err != nil {
		t.Errorf("another value: %v", err)
	}
	rest, had := UnsetKey(keys, model.CustomerKey, "K")
	if diff := cmp.Diff(keys[1:], rest); !had || diff != "" || len(keys) != 2 || keys[0].Class != model.CustomerKey {
		t.Error(had, diff, keys)
	}
	if _, had := UnsetKey(keys, model.BillingEntityKey, "K"); had {
		t.Error("a key that is not there was unset")
	}
}

func TestNodeKeys(t *testing.T) {
	now := site(t)
	record, _ := now.ResourceByName(model.KindCluster, "default")
	declared, err := SetNodeKey(record, model.NodeKey{Name: "Rack", Default: 1})
	if _, has := declared.NodeKey("Rack"); err != nil || !has || len(declared.NodeKeys) != 4 || len(record.NodeKeys) != 3 {
		t.Errorf("%+v, %v", declared.NodeKeys, err)
	}
	again, err := SetNodeKey(declared, model.NodeKey{Name: "Rack", Sticky: true, Weight: 5})
	if key, _ := again.NodeKey("Rack"); err != nil || !key.Sticky || len(again.NodeKeys) != 4 {
		t.Errorf("%+v, %v", again.NodeKeys, err)
	}
	offer, _ := now.ResourceByName(model.KindOffer, "gold")
	for want, try := range map[string]func() error{
		"node key K on an offer is not valid: want a cluster: its nodes all have the key": func() error {
			_, err := SetNodeKey(offer, model.NodeKey{Name: "K"})
			return err
		},
		"node key K weight 5 is not valid: want none: only a sticky node key has a weight, the VM's own keys weigh the others": func() error {
			_, err := SetNodeKey(record, model.NodeKey{Name: "K", Weight: 5})
			return err
		},
		"node key K of node/hv1 is not valid: want a key that cluster/default declares for all its nodes; " +
			"it declares DS, Premium and _ssd": func() error {
			_, err := SetNodeKeyValue(record, now.Nodes[0], "K", nil)
			return err
		},
		"key DS value 2e+09 is not valid: want a finite number from -1e9 to 1e9": func() error {
			value := 2e9
			_, err := SetNodeKeyValue(record, now.Nodes[0], "DS", &value)
			return err
		},
		"key K as one more is not valid: want at most 64 keys on one cluster": func() error {
			full := record
			full.NodeKeys = nil
			for i := range model.MaxKeys {
				full.NodeKeys = append(full.NodeKeys, model.NodeKey{Name: "K" + schema.Figure(float64(i))})
			}
			_, err := SetNodeKey(full, model.NodeKey{Name: "K"})
			return err
		},
	} {
		if err := try(); err == nil || err.Error() != want || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("got %v, want %s", err, want)
		}
	}

	value := 7.0
	node, err := SetNodeKeyValue(record, now.Nodes[0], "DS", &value)
	if err != nil || !cmp.Equal(node.Keys, map[string]float64{"Premium": 1, "DS": 7}) || len(now.Nodes[0].Keys) != 1 {
		t.Errorf("%v, %v", node.Keys, err)
	}
	if node, err = SetNodeKeyValue(record, now.Nodes[0], "Premium", nil); err != nil || node.Keys != nil {
		t.Errorf("%v, %v", node.Keys, err)
	}
	dropped, nodes, had := UnsetNodeKey(now, record, "Premium")
	if !had || len(dropped.NodeKeys) != 2 || len(nodes) != 1 || nodes[0].Name != "hv1" || nodes[0].Keys != nil || now.Nodes[0].Keys == nil {
		t.Errorf("%v %+v %+v", had, dropped.NodeKeys, nodes)
	}
	if _, _, had := UnsetNodeKey(now, record, "Rack"); had {
		t.Error("a node key that is not there was dropped")
	}
}
