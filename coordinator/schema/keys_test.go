package schema

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
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
		full[i] = k(model.SystemKey, "K"+Figure(float64(i)), 1, 1)
	}
	if _, err := SetKey(
		model.KindVDC, full, k(model.SystemKey, "K", 1, 1),
	); err == nil || err.Error() != "key K as one more is not valid: want at most 64 keys on one vdc" {
		t.Errorf("one key too many: %v", err)
	}
	if _, err := SetKey(model.KindVDC, full, k(model.SystemKey, "K1", 5, 1)); err != nil {
		t.Errorf("another value: %v", err)
	}
	rest, had := UnsetKey(model.KindVM, keys, model.CustomerKey, "K")
	if diff := cmp.Diff(keys[1:], rest); !had || diff != "" || len(keys) != 2 || keys[0].Class != model.CustomerKey {
		t.Error(had, diff, keys)
	}
	if _, had := UnsetKey(model.KindVM, keys, model.BillingEntityKey, "K"); had {
		t.Error("a key that is not there was unset")
	}
}

// A cluster never loses a special key: load would stop counting, and nobody would have said so.
func TestAClusterKeepsItsSpecialKeys(t *testing.T) {
	own := []model.Key{{Class: model.SystemKey, Name: "#LOAD", Weight: 5}, {Class: model.SystemKey, Name: "TIER", Value: 2, Weight: 5}}
	want := []model.Key{
		{Class: model.SystemKey, Name: "#CPU", Weight: 30}, own[0], {Class: model.SystemKey, Name: "#RAM", Weight: 40}, own[1],
	}
	declared := WithSpecialKeys(own)
	if diff := cmp.Diff(want, declared); diff != "" || len(own) != 2 {
		t.Error(diff)
	}
	if diff := cmp.Diff(model.SpecialKeyDefaults(), WithSpecialKeys(nil)); diff != "" {
		t.Error(diff)
	}
	left, had := UnsetKey(model.KindCluster, declared, model.SystemKey, "#RAM")
	want[2].Weight = 0
	if diff := cmp.Diff(want, left); !had || diff != "" || declared[2].Weight != 40 {
		t.Error(had, diff, declared)
	}
	if left, had := UnsetKey(model.KindCluster, declared, model.SystemKey, "TIER"); !had || len(left) != 3 {
		t.Error(had, left)
	}
	want[0].Weight = 0
	if diff := cmp.Diff(want, SpelledOut(model.KindCluster, own)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(own, SpelledOut(model.KindVM, own)); diff != "" {
		t.Error(diff)
	}
}
