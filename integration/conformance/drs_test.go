package conformance

import (
	"encoding/json"
	"fmt"
	"strings"

	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/shared/units"
)

// cloudStackRunners know the kinds of CloudStack's cases.
var cloudStackRunners = map[string]runner{
	"defaults":         runCloudStackDefaults,
	"drs_imbalance":    runDRSImbalance,
	"drs_metrics":      runDRSMetrics,
	"drs_needs":        runDRSNeeds,
	"drs_metric_value": runDRSMetricValue,
	"drs_both":         runDRSBoth,

	"disperse":          runDisperse,
	"disperse_no_owner": runDisperse,
	"count_states":      runCountStates,
	"pods":              runPods,
	"capacity_order":    runCapacityOrder,
	"combined_capacity": runCombinedCapacity,
	"implicit_tags":     runImplicitTags,
	"host_tag":          runHostTag,
	"cluster_threshold": runClusterThreshold,
	"threshold_binds":   runThresholdBinds,
	"host_order":        runHostOrder,
	"failover":          runFailover,
	"bypass":            runBypass,
	"sequence":          runSequence,
	"sequence_accounts": runSequenceAccounts,
	"user_concentrated": runUserConcentrated,
	"planner_choice":    runPlannerChoice,
}

// drsBalancers are ours of CloudStack's algorithms, and drsMetrics the value of the parameter that is ours of its metrics. One
// that is not there has a value that no balancer takes.
var (
	drsBalancers = map[string]string{"balanced": "imbalance", "condensed": "condense"}
	drsMetrics   = map[string]float64{"memory": 1, "cpu": 2, "both": 3}
)

// drsSite is a cluster that is balanced by what is promised of its hosts: MiB and vCPUs stand for a case's units.
type drsSite struct{ *evenSite }

func newDRSSite(c *checker, algorithm, metric string) *drsSite {
	c.Helper()
	d := &drsSite{newEvenSite(c, nil, nil)}
	d.resource("policy").Settings[schema.SettingBalancer] = drsBalancers[algorithm]
	d.parameters[balance.Metric] = drsMetrics[metric]
	return d
}

// host adds one that has so much, all of it in use by one VM.
func (d *drsSite) host(name string, cpu, memory float64) {
	d.node(name)
	d.guest(name, name+"-vm", cpu, memory)
}

// guest puts a VM on a host; none that has nothing.
func (d *drsSite) guest(host, name string, cpu, memory float64) {
	if cpu == 0 && memory == 0 {
		return
	}
	spec := model.VMSpec{Memory: units.Bytes(memory * float64(units.MiB)), VCPUs: int(cpu)}
	d.holds(host, model.VM{ID: name, Spec: spec})
}

// large gives a host so much.
func (d *drsSite) large(host string, cpu int, memory float64) {
	d.change(host, func(f *model.NodeFacts) { *f = idle(units.Bytes(memory*float64(units.MiB)), cpu) })
}

func (d *drsSite) hosts(cpu, memory []float64) {
	for i := range max(len(cpu), len(memory)) {
		var used [2]float64
		if i < len(cpu) {
			used[0] = cpu[i]
		}
		if i < len(memory) {
			used[1] = memory[i]
		}
		d.host(fmt.Sprintf("host%d", i+1), used[0], used[1])
	}
}

// balancer is the policy's, and what it sees.
func (d *drsSite) balancer() (balance.Balancer, *balance.Situation) {
	d.Helper()
	balancer, situation, err := d.fleet().Situation()
	d.must(err)
	return balancer, situation
}

// imbalance is the cluster's, whichever way it is wanted.
func (d *drsSite) imbalance() float64 {
	d.Helper()
	balancer, situation := d.balancer()
	figure := balancer.Figure(situation)
	if balancer.Name == "imbalance" {
		return figure
	}
	return 1 - figure
}

func runDRSImbalance(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct{ Lists [][]float64 }](c, rawGiven)
	expect := decode[struct {
		Imbalance []float64
		Tolerance float64
	}](c, rawExpect)
	c.tolerance = expect.Tolerance
	for i, list := range given.Lists {
		for metric, hosts := range map[string][2][]float64{"memory": {nil, list}, "cpu": {list, nil}} {
			d := newDRSSite(c, "balanced", metric)
			d.hosts(hosts[0], hosts[1])
			c.near(fmt.Sprintf("the imbalance of %s of %v", metric, list), d.imbalance(), expect.Imbalance[i])
		}
	}
}

func runDRSNeeds(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Algorithm    string
		CPU, Memory  []float64
		DRSImbalance float64 `json:"drs_imbalance"`
		Metrics      []string
	}](c, rawGiven)
	expect := decode[struct {
		Threshold  float64
		Needed     []*bool
		ErrorForIt bool `json:"error_for_unknown"`
	}](c, rawExpect)
	c.near("the threshold", 1-given.DRSImbalance, expect.Threshold)
	for i, metric := range given.Metrics {
		d := newDRSSite(c, given.Algorithm, metric)
		d.parameters[balance.Imbalance] = given.DRSImbalance
		chosen := balance.Chosen{Balancer: drsBalancers[given.Algorithm], Parameters: d.parameters}
		if expect.Needed[i] == nil {
			c.same("that there is no metric "+metric, balance.Validate(chosen) != nil, expect.ErrorForIt)
			continue
		}
		c.must(balance.Validate(chosen))
		d.hosts(given.CPU, given.Memory)
		balancer, situation := d.balancer()
		why := balancer.Propose(situation, func(balance.Proposal) bool { return false })
		c.same("that something is to be moved by "+metric, !strings.Contains(why, "than 1 - "+balance.Imbalance), *expect.Needed[i])
	}
}

func runDRSMetrics(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Algorithm string
		CPU       []float64 `json:"host_cpu"`
		Memory    []float64 `json:"host_memory_mib"`
		VM        struct {
			CPU    float64
			Memory float64 `json:"memory_mib"`
		}
		From    string `json:"from_"`
		To      string
		Total   float64 `json:"dest_total_memory_mib"`
		Metrics []string
	}](c, rawGiven)
	expect := decode[struct {
		Before                   map[string]float64 `json:"imbalance_before"`
		After                    map[string]float64 `json:"imbalance_after"`
		Improvement              []float64
		Cost, Benefit, Tolerance float64
	}](c, rawExpect)
	c.tolerance = expect.Tolerance
	// site is the case before the move, or after it.
	site := func(metric, at string) *drsSite {
		d := newDRSSite(c, given.Algorithm, metric)
		for i := range given.CPU {
			name, cpu, memory := fmt.Sprintf("host%d", i+1), given.CPU[i], given.Memory[i]
			if name == given.From {
				cpu, memory = cpu-given.VM.CPU, memory-given.VM.Memory
			}
			d.host(name, cpu, memory)
			d.VMs[len(d.VMs)-1].Migration = model.MigrateNever
			d.large(name, whole, given.Total)
		}
		d.guest(at, "vm", given.VM.CPU, given.VM.Memory)
		d.parameters[balance.Absolute], d.parameters[balance.Imbalance] = 1, 1
		return d
	}
	improvement := map[string]float64{}
	for _, metric := range []string{"cpu", "memory"} {
		before, after := site(metric, given.From).imbalance(), site(metric, given.To).imbalance()
		c.near("the imbalance of "+metric, before, expect.Before[metric])
		c.near("the imbalance of "+metric+" after the move", after, expect.After[metric])
		improvement[metric] = before - after
		improvement["both"] += before - after // as the release of the test has it
	}
	for i, metric := range given.Metrics {
		c.near("the improvement by "+metric, improvement[metric], expect.Improvement[i])
		for least, offered := range map[float64]bool{
			0: expect.Improvement[i] > 0, 0.99 * expect.Benefit / expect.Cost: expect.Improvement[i] > 0, 1.01 * expect.Benefit / expect.Cost: false,
		} {
			d := site(metric, given.From)
			d.parameters[balance.MinimumBenefit] = least
			balancer, situation := d.balancer()
			moves := 0
			balancer.Propose(situation, func(balance.Proposal) bool { moves++; return false })
			c.same(fmt.Sprintf("that the move is offered by %s for a benefit of %v of its cost", metric, least), moves > 0, offered)
		}
	}
}

func runDRSMetricValue(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		Used, Free, Total float64
		Rows              [][2]any
	}](c, rawGiven)
	expect := decode[struct{ Values []float64 }](c, rawExpect)
	for i, row := range given.Rows {
		used, parameters := given.Used, map[string]float64{}
		if row[0] != nil && row[0] != "free" && row[0] != "used" {
			c.Fatalf("there is no type %v", row[0])
		}
		if row[1] == nil { // a share, as by default
			row[1] = true
		}
		if row[0] == "free" {
			used, parameters[balance.Free] = given.Total-given.Free, 1
		}
		other := 1000 * given.Total // of another host, which has all of it free, or in use
		if row[1] == false {
			parameters[balance.Absolute] = 1
		}
		d := newDRSSite(c, "balanced", "memory")
		for name, value := range parameters {
			d.parameters[name] = value
		}
		d.host("host1", 1, used)
		d.large("host1", whole, given.Total)
		d.host("host2", 1, other*(1-parameters[balance.Free]))
		d.large("host2", whole, other)
		if row[1] == true {
			other = 1
		} // else in the units of the case
		// Of two values a and b, a being less, the imbalance is (b-a)/(b+a).
		f := d.imbalance()
		c.near(fmt.Sprintf("the value of %v", row), other*(1-f)/(1+f), expect.Values[i])
	}
}

func runDRSBoth(c *checker, rawGiven, rawExpect json.RawMessage) {
	given := decode[struct {
		CPU    []float64 `json:"cpu_used"`
		Memory []float64 `json:"memory_used"`
		Total  float64
	}](c, rawGiven)
	expect := decode[struct{ CPU, Memory, Balanced, Condensed, Tolerance float64 }](c, rawExpect)
	c.tolerance = expect.Tolerance
	of := func(algorithm, metric string) float64 {
		d := newDRSSite(c, algorithm, metric)
		d.hosts(given.CPU, given.Memory)
		for i := range given.CPU {
			d.large(fmt.Sprintf("host%d", i+1), int(given.Total), given.Total)
		}
		return d.imbalance()
	}
	c.near("the imbalance of CPU", of("balanced", "cpu"), expect.CPU)
	c.near("the imbalance of memory", of("balanced", "memory"), expect.Memory)
	c.near("the imbalance of both, balanced", of("balanced", "both"), expect.Balanced)
	c.near("the imbalance of both, condensed", of("condensed", "both"), expect.Condensed)
}

// cloudStackDefaults are ours of CloudStack's global settings, by their names there.
var cloudStackDefaults = map[string]func(c *checker) any{
	"drs.automatic.enable": func(*checker) any { return model.DefaultSettings().Balancing == model.Automatic },
	// There a plan of all moves is made every hour. Here one move is made in each pass, and the passes of an hour are enough
	// for as many.
	"drs.automatic.interval": func(c *checker) any {
		if 60/balance.Interval.Minutes() < drsDefault(c, balance.MostMoves) {
			return "the passes of an hour are too few"
		}
		return 60.0
	},
	"drs.max.migrations": func(c *checker) any { return drsDefault(c, balance.MostMoves) },
	"drs.algorithm":      func(*checker) any { return "balanced" }, // of the balancer that is called imbalance
	"drs.imbalance":      func(c *checker) any { return drsDefault(c, balance.Imbalance) },
	"drs.metric": func(c *checker) any {
		for name, value := range drsMetrics {
			if value == drsDefault(c, balance.Metric) {
				return name
			}
		}
		return nil
	},

	"vm.deployment.planner":                              func(*checker) any { return csPlannerDefault() },
	"deployment_planner default":                         func(*checker) any { return csPlannerDefault() },
	"vm.user.dispersion.weight":                          func(*checker) any { return model.ZoneSettingsOf(nil).Weight },
	"user.vm.dispersion.weight":                          func(*checker) any { return model.ZoneSettingsOf(nil).Weight },
	"apply.allocation.algorithm.to.pods":                 func(*checker) any { return model.ZoneSettingsOf(nil).Level == model.LevelPod },
	"apply.planner.heuristics.to":                        func(*checker) any { return model.ZoneSettingsOf(nil).Level },
	"vm.allocation.algorithm":                            csAllocation,
	"host.capacityType.to.order.clusters":                func(*checker) any { return strings.ToUpper(model.ZoneSettingsOf(nil).Capacity) },
	"cluster.cpu.allocated.capacity.disablethreshold":    func(*checker) any { return model.ZoneSettingsOf(nil).CapacityThreshold },
	"cluster.memory.allocated.capacity.disablethreshold": func(*checker) any { return model.ZoneSettingsOf(nil).CapacityThreshold },
	"implicit.host.tags":                                 csHostTags,
}

func csHostTags(*checker) any {
	return strings.ToUpper(strings.Join(model.ZoneSettingsOf(nil).Special, ","))
}

// drsDefault is the default of a parameter of imbalance.
func drsDefault(c *checker, parameter string) float64 {
	c.Helper()
	value, known := balance.Chosen{Balancer: drsBalancers["balanced"]}.Parameter(parameter)
	if !known {
		c.Fatalf("there is no parameter %q", parameter)
	}
	return value
}

// runCloudStackDefaults looks at what holds when nobody sets anything.
func runCloudStackDefaults(c *checker, rawGiven, rawExpect json.RawMessage) {
	decode[struct{}](c, rawGiven)
	expect := decode[struct {
		Keys      map[string]any
		Threshold string
		SeedNames map[string]any `json:"seed_names"`
	}](c, rawExpect)
	for _, keys := range []map[string]any{expect.Keys, expect.SeedNames} {
		for name, want := range keys {
			value, known := cloudStackDefaults[name]
			if !known {
				c.Errorf("there is nothing of ours for %q", name)
				continue
			}
			c.same(name, value(c), want)
		}
	}
	if expect.Threshold != "" { // how it is used, runDRSNeeds shows
		c.same("the threshold", expect.Threshold, "1 - drs.imbalance")
	}
}
