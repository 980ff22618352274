package model

import (
	"reflect"
	"testing"
)

func TestStickyCopies(t *testing.T) {
	record := &Resource{Kind: KindCluster, Name: "c", NodeKeys: []NodeKey{
		{Name: "DS", Sticky: true, Weight: 30, Default: 1},
		{Name: "Premium", Default: 1},
		{Name: "Rack", Sticky: true, Weight: -5, Default: 7},
		{Name: "_Zone", Sticky: true, Weight: 2},
	}}
	node := &Node{Keys: map[string]float64{"DS": 0, "Premium": 3, "_Zone": 4}}
	want := []Key{
		{Class: CustomerKey, Name: "_Zone", Value: 4, Weight: 2},
		{Class: SystemKey, Name: "DS", Value: 0, Weight: 30}, // set to 0, which is not the default
		{Class: SystemKey, Name: "Rack", Value: 7, Weight: -5},
	}
	if got := StickyCopies(record, node); !reflect.DeepEqual(got, want) {
		t.Errorf("copies %+v, want %+v", got, want)
	}
	if got := StickyCopies(&Resource{}, node); got != nil {
		t.Errorf("copies %+v of a cluster without sticky keys", got)
	}
}
