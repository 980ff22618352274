package conformance

import (
	"encoding/json"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
)

// runVCPUs places a VM on nodes that have promised vCPUs, and looks at what is told of the winner.
func runVCPUs(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts []struct {
			Name       string
			CPUs, Used int
		}
		Ratio   float64 `json:"cpu_ratio"`
		VCPUs   int
		Policy  string
		Promise bool `json:"promise_vcpus"`
	}](c, given)
	want := decode[struct {
		selection
		Warnings optional[[]string]
	}](c, expect)
	w := newWorld(c)
	for _, host := range g.Hosts {
		w.node(host.Name).Settings.CPURatio = &g.Ratio
		w.change(host.Name, func(f *model.NodeFacts) { f.CPUs = host.CPUs })
		w.holds(host.Name, model.VM{Spec: model.VMSpec{VCPUs: host.Used}})
	}
	w.vm.Spec.VCPUs = g.VCPUs
	if g.Promise {
		w.setting(model.SettingPromiseVCPUs, "true")
	}
	w.policy = func(p *policies.Policy) { *p = declared(w, g.Policy, optional[string]{}, optional[bool]{}) }
	d := w.decide(placement.ForStart)
	c.selected(d, want.selection)
	if !want.Warnings.given {
		return
	}
	var told []string
	for _, warning := range d.decision.Warnings {
		_, what, _ := strings.Cut(warning, ": ")
		told = append(told, what)
	}
	c.sameSet("what is told", told, want.Warnings.value)
}
