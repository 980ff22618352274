package estate

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

func TestNodeKeys(t *testing.T) {
	now := site(t)
	record, _ := now.ResourceByName(model.KindCluster, "default")
	declared, err := schema.SetNodeKey(record, model.NodeKey{Name: "Rack", Default: 1})
	if _, has := declared.NodeKey("Rack"); err != nil || !has || len(declared.NodeKeys) != 4 || len(record.NodeKeys) != 3 {
		t.Errorf("%+v, %v", declared.NodeKeys, err)
	}
	again, err := schema.SetNodeKey(declared, model.NodeKey{Name: "Rack", Sticky: true, Weight: 5})
	if key, _ := again.NodeKey("Rack"); err != nil || !key.Sticky || len(again.NodeKeys) != 4 {
		t.Errorf("%+v, %v", again.NodeKeys, err)
	}
	offer, _ := now.ResourceByName(model.KindOffer, "gold")
	for want, try := range map[string]func() error{
		"node key K on an offer is not valid: want a cluster: its nodes all have the key": func() error {
			_, err := schema.SetNodeKey(offer, model.NodeKey{Name: "K"})
			return err
		},
		"node key K weight 5 is not valid: want none: only a sticky node key has a weight, the VM's own keys weigh the others": func() error {
			_, err := schema.SetNodeKey(record, model.NodeKey{Name: "K", Weight: 5})
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
			_, err := schema.SetNodeKey(full, model.NodeKey{Name: "K"})
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
