package keyform

import (
	"fmt"
	"strings"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// Classes are the classes of keys, as --class takes them.
var Classes = []string{string(model.SystemKey), string(model.BillingEntityKey), string(model.CustomerKey)}

// Parse reads NAME=VALUE and checks the key against the rules on who may set what where.
func Parse(kind, text, weight string, class model.KeyClass) (*berthv1.Key, error) {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return nil, fmt.Errorf("%q: want NAME=VALUE", text)
	}
	key := model.Key{Class: class, Name: name}
	var err error
	if key.Value, err = term.ParseFigure("key "+name+" value", value); err != nil {
		return nil, err
	}
	if key.Weight, err = term.ParseFigure("key "+name+" weight", weight); err != nil {
		return nil, err
	}
	if err := model.ValidateKey(model.Kind(kind), key); err != nil {
		return nil, err
	}
	return &berthv1.Key{Class: string(key.Class), Name: key.Name, Value: key.Value, Weight: key.Weight}, nil
}

// Table writes keys that were set, and copies of sticky keys.
func Table(p *term.Page, indent string, keys, sticky []*berthv1.Key) {
	var rows [][]string
	row := func(key *berthv1.Key, role string) {
		rows = append(rows, []string{key.GetName(), key.GetClass(), term.Exact(key.GetValue()), term.Exact(key.GetWeight()), role})
	}
	for _, key := range keys {
		row(key, keyRole(key))
	}
	for _, key := range sticky {
		row(key, "copied from the node of the last start")
	}
	p.Indented(indent, []string{"KEY", "CLASS", "VALUE", "WEIGHT", "ROLE"}, rows)
}

// keyRole says what a key does.
func keyRole(key *berthv1.Key) string {
	switch {
	case key.GetWeight() == 0:
		return "normal: takes no part in placement"
	case model.IsSpecialKey(key.GetName()):
		return "special: every node has it by itself"
	case model.IsReservedKey(key.GetName()):
		return "reserved: asks for a node's key"
	default:
		return "placement"
	}
}

// NodeTable writes the keys that a cluster declares for its nodes.
func NodeTable(p *term.Page, indent string, keys []*berthv1.NodeKey) {
	rows := make([][]string, 0, len(keys))
	for _, key := range keys {
		rows = append(rows, []string{key.GetName(), term.Exact(key.GetDefault()), Stickiness(key)})
	}
	p.Indented(indent, []string{"NODE-KEY", "DEFAULT", "STICKY"}, rows)
}

// Stickiness says with which weight a VM keeps a copy of the key.
func Stickiness(key *berthv1.NodeKey) string {
	if !key.GetSticky() {
		return term.None
	}
	return "weight " + term.Exact(key.GetWeight())
}
