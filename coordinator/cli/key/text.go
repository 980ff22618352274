package key

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/keyform"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

func keysText(p *term.Page, kind string, answer *berthv1.ListKeysResponse) {
	if kind == string(model.KindNode) {
		nodeValues(p, answer)
		return
	}
	if len(answer.GetKeys())+len(answer.GetSticky()) > 0 {
		keyform.Table(p, "", answer.GetKeys(), answer.GetSticky())
	}
	if len(answer.GetNodeKeys()) > 0 {
		p.Blank()
		keyform.NodeTable(p, "", answer.GetNodeKeys())
	}
}

// nodeValues writes what a node's keys are, and which of them are the cluster's defaults.
func nodeValues(p *term.Page, answer *berthv1.ListKeysResponse) {
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
		rows = append(rows, []string{key.GetName(), term.Exact(value), from, keyform.Stickiness(key)})
	}
	p.Table([]string{"NODE-KEY", "VALUE", "FROM", "STICKY"}, rows)
}

func compiledCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "compiled VM", Short: "Show the keys that a VM is placed with, and where each came from", Args: term.Arguments(1, "VM"),
		Long: `Show the keys that a VM would be placed with now: for each name its value and weight, the level and the resource that
it came from, and what it won over, the nearest level first, as VALUE@WEIGHT. What a decision was made with stands in
the decision: 'berth decision show ID --full'.`,
		Example: `  berth key compiled web-1
  berth key compiled web-1 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			vm := strings.TrimPrefix(args[0], "vm/")
			answer, err := term.Ask(cmd.Context(), s, term.Client.CompiledKeys, &berthv1.CompiledKeysRequest{Vm: vm})
			if err != nil {
				return err
			}
			names := term.Prefixed("", answer.GetSystem(), (*berthv1.CompiledKey).GetName)
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   append(names, term.Prefixed("", answer.GetCustomerKeys(), (*berthv1.CompiledKey).GetName)...),
				Text:    func(p *term.Page, _ bool) { compiledText(p, answer) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
}

func compiledText(p *term.Page, answer *berthv1.CompiledKeysResponse) {
	p.Line("vm/%s", answer.GetVm())
	p.Fields("  ",
		[2]string{"cluster", answer.GetCluster()},
		[2]string{"customer", cmp.Or(answer.GetCustomer(), term.None)},
		[2]string{"billing entity", cmp.Or(answer.GetBillingEntity(), term.None)},
	)
	for _, set := range []struct {
		name string
		keys []*berthv1.CompiledKey
	}{
		{"system keys, which decide what nodes are good enough", answer.GetSystem()},
		{"customer keys, which decide among those", answer.GetCustomerKeys()},
	} {
		p.Blank()
		if len(set.keys) == 0 {
			p.Line("no %s", set.name)
			continue
		}
		p.Line("%s", set.name)
		compiledTable(p, set.keys)
	}
}

func compiledTable(p *term.Page, keys []*berthv1.CompiledKey) {
	var rows [][]string
	for _, key := range keys {
		level := key.GetLevel()
		if key.GetSticky() {
			level += ",sticky"
		}
		row := []string{
			key.GetName(), term.Exact(key.GetValue()), term.Exact(key.GetWeight()), key.GetClass(), level, cmp.Or(key.GetFrom(), term.None),
		}
		if len(key.GetOverrode()) == 0 {
			rows = append(rows, append(row, term.None))
		}
		for _, lost := range key.GetOverrode() {
			rows = append(rows, append(row, term.Exact(lost.GetValue())+"@"+term.Exact(lost.GetWeight())+" of "+lost.GetFrom()))
			row = []string{"", "", "", "", "", ""} // said once
		}
	}
	p.Indented("  ", []string{"KEY", "VALUE", "WEIGHT", "CLASS", "LEVEL", "FROM", "OVERRODE"}, rows)
}
