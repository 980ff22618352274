package model

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// allKinds are the kinds that can have keys, and whether customers may set some there.
var allKinds = map[Kind]bool{
	KindCluster: false, KindBillingEntity: false, KindOffer: false, KindCustomer: false, KindVDC: false,
	KindImage: true, KindNetwork: true, KindDisk: true, KindNIC: true, KindVM: true,
}

func TestWhoMaySetKeysWhere(t *testing.T) {
	for kind, customers := range allKinds {
		for class, allowed := range map[KeyClass]bool{SystemKey: true, BillingEntityKey: true, CustomerKey: customers} {
			for _, weight := range []float64{0, 5, -5} {
				err := ValidateKey(kind, Key{Class: class, Name: "K", Value: 1, Weight: weight})
				if (err == nil) != allowed {
					t.Errorf("a %s key on a %s: %v, want allowed %v", class, kind, err, allowed)
				}
			}
			err := ValidateKey(kind, Key{Class: class, Name: "_K", Value: 1, Weight: 5})
			if reserved := allowed && class != SystemKey; (err == nil) != reserved {
				t.Errorf("a reserved %s key on a %s: %v, want allowed %v", class, kind, err, reserved)
			}
			for _, name := range []string{SpecialRAM, SpecialCPU, SpecialLoad} {
				err := ValidateKey(kind, Key{Class: class, Name: name, Weight: 5})
				if special := class == SystemKey; (err == nil) != special {
					t.Errorf("%s as a %s key on a %s: %v, want allowed %v", name, class, kind, err, special)
				}
			}
		}
	}
}

func TestRefusedKeysNameTheKind(t *testing.T) {
	for kind, want := range map[Kind]string{KindOffer: "on an offer", KindVDC: "on a vdc"} {
		if err := ValidateKey(kind, Key{Class: CustomerKey, Name: "K"}); err == nil || !strings.Contains(err.Error(), want+" is not valid") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, good := range []Key{
		{Class: SystemKey, Name: "K"},
		{Class: SystemKey, Name: "Datacenter.Row-7/ü", Value: -1e9, Weight: 1e9},
		{Class: SystemKey, Name: strings.Repeat("k", 64), Value: 1e-300},
	} {
		if err := ValidateKey(KindCluster, good); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, bad := range map[string]Key{
		`key name "" is not valid`:                                 {Class: SystemKey},
		`key name "#" is not valid`:                                {Class: SystemKey, Name: "#"},
		`key name "_" is not valid`:                                {Class: CustomerKey, Name: "_"},
		`key name "a b" is not valid`:                              {Class: SystemKey, Name: "a b"},
		`key name "a=b" is not valid`:                              {Class: SystemKey, Name: "a=b"},
		`key name "a:b" is not valid`:                              {Class: SystemKey, Name: "a:b"},
		`key name "a#b" is not valid`:                              {Class: SystemKey, Name: "a#b"},
		`key name "a\nb" is not valid`:                             {Class: SystemKey, Name: "a\nb"},
		`key name "` + strings.Repeat("k", 64) + `"...`:            {Class: SystemKey, Name: strings.Repeat("k", 65)},
		"key K value NaN is not valid: want a finite number":       {Class: SystemKey, Name: "K", Value: math.NaN()},
		"key K value +Inf is not valid: want a finite number":      {Class: SystemKey, Name: "K", Value: math.Inf(1)},
		"key K value 1.0000001e+09 is not valid":                   {Class: SystemKey, Name: "K", Value: 1.0000001e9},
		"key K weight NaN is not valid: want a finite number":      {Class: SystemKey, Name: "K", Weight: math.NaN()},
		"key K weight -Inf is not valid: want a finite number":     {Class: SystemKey, Name: "K", Weight: math.Inf(-1)},
		"key #DISK as a special key is not valid: want one of":     {Class: SystemKey, Name: "#DISK"},
		"key #ram as a special key is not valid: want one of":      {Class: SystemKey, Name: "#ram"},
		`key K class "" is not valid: want system, billing-entity`: {Name: "K"},
		`key K class "mine" is not valid`:                          {Class: "mine", Name: "K"},
	} {
		err := ValidateKey(KindCluster, bad)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, ErrInvalid) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestNodeKeys(t *testing.T) {
	for _, good := range []NodeKey{
		{Name: "Premium"}, {Name: "_ssd", Default: 1}, {
			Name: "DS", Default: -2.5, Sticky: true, Weight: -30,
		}, {Name: "_DS", Sticky: true, Weight: 1},
	} {
		if err := ValidateNodeKey(good); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, bad := range map[string]NodeKey{
		`node key name "" is not valid`:                                     {},
		`node key name "a b" is not valid`:                                  {Name: "a b"},
		"node key #RAM with a leading # is not valid: want another name":    {Name: "#RAM"},
		"node key K default NaN is not valid: want a finite number":         {Name: "K", Default: math.NaN()},
		"node key K default -Inf is not valid: want a finite number":        {Name: "K", Default: math.Inf(-1)},
		"node key K weight +Inf is not valid: want a finite number":         {Name: "K", Sticky: true, Weight: math.Inf(1)},
		"node key K weight 5 is not valid: want none: only a sticky":        {Name: "K", Weight: 5},
		"node key K weight 0 is not valid: want a weight other than 0, for": {Name: "K", Sticky: true},
	} {
		err := ValidateNodeKey(bad)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, ErrInvalid) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	record := Resource{Kind: KindCluster, NodeKeys: []NodeKey{{Name: "A"}, {Name: "B", Default: 2}}}
	if key, found := record.NodeKey("B"); !found || key.Default != 2 {
		t.Errorf("B: %+v, %v", key, found)
	}
	if _, found := record.NodeKey("C"); found {
		t.Error("C is declared nowhere and found")
	}
}
