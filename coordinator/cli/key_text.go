package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
)

// exact prints a value or a weight as it was set: comparing is what it is for.
func exact(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func keysText(p *page, kind string, answer *berthv1.ListKeysResponse) {
	if kind == string(cluster.KindNode) {
		nodeValues(p, answer)
		return
	}
	if len(answer.GetKeys())+len(answer.GetSticky()) > 0 {
		keyTable(p, "", answer.GetKeys(), answer.GetSticky())
	}
	if len(answer.GetNodeKeys()) > 0 {
		p.blank()
		nodeKeyTable(p, "", answer.GetNodeKeys())
	}
}

// keyTable writes keys that were set, and copies of sticky keys.
func keyTable(p *page, indent string, keys, sticky []*berthv1.Key) {
	var rows [][]string
	row := func(key *berthv1.Key, role string) {
		rows = append(rows, []string{key.GetName(), key.GetClass(), exact(key.GetValue()), exact(key.GetWeight()), role})
	}
	for _, key := range keys {
		row(key, keyRole(key))
	}
	for _, key := range sticky {
		row(key, "copied from the node of the last start")
	}
	p.indented(indent, []string{"KEY", "CLASS", "VALUE", "WEIGHT", "ROLE"}, rows)
}

// keyRole says what a key does.
func keyRole(key *berthv1.Key) string {
	switch {
	case key.GetWeight() == 0:
		return "normal: takes no part in placement"
	case cluster.IsSpecialKey(key.GetName()):
		return "special: every node has it by itself"
	case cluster.IsReservedKey(key.GetName()):
		return "reserved: asks for a node's key"
	default:
		return "placement"
	}
}

func nodeKeyTable(p *page, indent string, keys []*berthv1.NodeKey) {
	rows := make([][]string, 0, len(keys))
	for _, key := range keys {
		rows = append(rows, []string{key.GetName(), exact(key.GetDefault()), stickiness(key)})
	}
	p.indented(indent, []string{"NODE-KEY", "DEFAULT", "STICKY"}, rows)
}

func stickiness(key *berthv1.NodeKey) string {
	if !key.GetSticky() {
		return none
	}
	return "weight " + exact(key.GetWeight())
}

// nodeValues writes what a node's keys are, and which of them are the cluster's defaults.
func nodeValues(p *page, answer *berthv1.ListKeysResponse) {
	rows := make([][]string, 0, len(answer.GetNodeKeys()))
	for _, key := range answer.GetNodeKeys() {
		from := "default"
		if slices.Contains(answer.GetOwn(), key.GetName()) {
			from = "node"
		}
		value, known := answer.GetValues()[key.GetName()]
		if !known {
			value = key.GetDefault()
		}
		rows = append(rows, []string{key.GetName(), exact(value), from, stickiness(key)})
	}
	p.table([]string{"NODE-KEY", "VALUE", "FROM", "STICKY"}, rows)
}

func (a *app) keyCompiledCommand() *cobra.Command {
	return &cobra.Command{
		Use: "compiled VM", Short: "Show the keys that a VM is placed with, and where each came from", Args: arguments(1, "VM"),
		Long: `Show the keys that a VM would be placed with now: for each name its value and weight, the level and the resource that
it came from, and what it won over, the nearest level first, as VALUE@WEIGHT. What a decision was made with stands in
the decision: 'berth decision show ID --full'.`,
		Example: `  berth key compiled web-1
  berth key compiled web-1 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			vm := strings.TrimPrefix(args[0], "vm/")
			answer, err := ask(cmd.Context(), s, repeatable, client.CompiledKeys, &berthv1.CompiledKeysRequest{Vm: vm})
			if err != nil {
				return err
			}
			names := prefixed("", answer.GetSystem(), (*berthv1.CompiledKey).GetName)
			return a.print(cmd, result{
				message: answer,
				names:   append(names, prefixed("", answer.GetCustomerKeys(), (*berthv1.CompiledKey).GetName)...),
				text:    func(p *page, _ bool) { compiledText(p, answer) },
			})
		},
		ValidArgsFunction: first(a.vmNames()),
	}
}

func compiledText(p *page, answer *berthv1.CompiledKeysResponse) {
	p.line("vm/%s", answer.GetVm())
	p.fields("  ",
		[2]string{"cluster", answer.GetCluster()},
		[2]string{"customer", or(answer.GetCustomer(), none)},
		[2]string{"billing entity", or(answer.GetBillingEntity(), none)},
	)
	for _, set := range []struct {
		name string
		keys []*berthv1.CompiledKey
	}{
		{"system keys, which decide what nodes are good enough", answer.GetSystem()},
		{"customer keys, which decide among those", answer.GetCustomerKeys()},
	} {
		p.blank()
		if len(set.keys) == 0 {
			p.line("no %s", set.name)
			continue
		}
		p.line("%s", set.name)
		compiledTable(p, set.keys)
	}
}

func compiledTable(p *page, keys []*berthv1.CompiledKey) {
	var rows [][]string
	for _, key := range keys {
		level := key.GetLevel()
		if key.GetSticky() {
			level += ",sticky"
		}
		row := []string{key.GetName(), exact(key.GetValue()), exact(key.GetWeight()), key.GetClass(), level, or(key.GetFrom(), none)}
		if len(key.GetOverrode()) == 0 {
			rows = append(rows, append(row, none))
		}
		for _, lost := range key.GetOverrode() {
			rows = append(rows, append(row, exact(lost.GetValue())+"@"+exact(lost.GetWeight())+" of "+lost.GetFrom()))
			row = []string{"", "", "", "", "", ""} // said once
		}
	}
	p.indented("  ", []string{"KEY", "VALUE", "WEIGHT", "CLASS", "LEVEL", "FROM", "OVERRODE"}, rows)
}
