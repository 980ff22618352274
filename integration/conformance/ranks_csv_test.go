package conformance

import (
	"encoding/json"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/shared/units"
)

// runRankCSV places a VM by a policy and reads the table that the decision is told with. Of interest is which units it has, and
// what they gave each host.
func runRankCSV(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Policy    string
		Hosts     []string
		VMs       map[string]count `json:"vm_counts"`
		Preferred []string
	}](c, given)
	want := decode[struct {
		Rows   map[string]string // by unit: its line without its name and factor, nodes in the order of the decision
		Silent []string
		Lines  optional[count]
	}](c, expect)
	w := newWorld(c)
	for _, host := range g.Hosts {
		w.node(host)
		for range g.VMs[host] {
			w.holds(host, model.VM{Spec: model.VMSpec{Memory: units.MiB, VCPUs: 1}})
		}
	}
	policy, known := policies.Builtin(g.Policy, w.settings())
	if !known {
		c.Fatalf("there is no policy %q", g.Policy)
	}
	request := w.request(placement.ForStart)
	request.Preferred = g.Preferred
	decision := placement.Place(w.view(), request, policy, 1)
	var silent []string
	for _, row := range placement.RankTable(decision) {
		if row.Silent {
			silent = append(silent, row.Weigher)
		}
	}
	c.sameSet("the units to which all hosts are the same", silent, want.Silent)
	rows := map[string]string{}
	lines := strings.Split(strings.TrimSpace(placement.RankCSV(decision)), "\n")
	for _, line := range lines {
		fields := strings.SplitN(line, ";", 3)
		rows[fields[0]] = fields[len(fields)-1]
	}
	if want.Lines.given {
		c.same("how many lines there are", len(lines), int(want.Lines.value))
	}
	for unit, row := range want.Rows {
		c.same("the row of "+unit, rows[unit], row)
	}
	for _, factor := range policy.Weighers {
		_, there := rows[factor.Weigher]
		c.same("whether there is a row of "+factor.Weigher, there, len(lines) > 1)
	}
}
