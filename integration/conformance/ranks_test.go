package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/selector"
)

// weighed are the weights that units gave hosts, lower is better, ready for a selector.
type weighed struct {
	hosts   []string
	units   []string // in the order of the records
	factors []float64
	weights [][]float64 // by unit and host
}

// record is one weight of one unit for one host. A unit of null is one that the policy does not name.
type record struct {
	Unit   optional[string]
	Host   string
	Weight float64
}

// weigh adds up the records of each unit and host. A host without a record weighs 0, and a unit that the policy has no
// factor for has 1.
func (c *checker) weigh(hosts []string, factors map[string]float64, records []record) weighed {
	c.Helper()
	w := weighed{hosts: hosts}
	for _, one := range records {
		unit := one.Unit.or("")
		at := slices.Index(w.units, unit)
		if at < 0 {
			factor, known := factors[unit]
			if !known {
				factor = 1
			}
			at = len(w.units)
			w.units, w.factors = append(w.units, unit), append(w.factors, factor)
			w.weights = append(w.weights, make([]float64, len(hosts)))
		}
		host := slices.Index(hosts, one.Host)
		if host < 0 {
			c.Fatalf("there is no host %q", one.Host)
		}
		w.weights[at][host] += one.Weight
	}
	return w
}

// combined are what a selector makes of the weights.
type combined struct {
	shares map[string]map[string]float64 // by unit and host
	scores map[string]float64            // by host, higher is better
	best   []string
}

func (c *checker) combine(name string, w weighed, maxima [][]float64) combined {
	c.Helper()
	chosen, known := selector.ByName(name)
	if !known {
		c.Fatalf("there is no selector %q", name)
	}
	found := combined{shares: map[string]map[string]float64{}, scores: map[string]float64{}}
	for u, unit := range w.units {
		given := selector.Given{Scores: make([]float64, len(w.hosts)), Weight: true}
		for host, weight := range w.weights[u] {
			given.Scores[host] = -weight
		}
		if maxima != nil {
			given.Maximum = maxima[u]
		}
		shares := make([]float64, len(w.hosts))
		chosen.Share(&given, shares)
		found.shares[unit] = map[string]float64{}
		for host, share := range shares {
			found.shares[unit][w.hosts[host]] = share
			found.scores[w.hosts[host]] += chosen.Contribution(share, w.factors[u])
		}
	}
	for _, host := range w.hosts {
		score, scored := found.scores[host]
		switch {
		case !scored:
		case len(found.best) == 0 || score > found.scores[found.best[0]]:
			found.best = []string{host}
		case score == found.scores[found.best[0]]:
			found.best = append(found.best, host)
		}
	}
	return found
}

// runRankSelect ranks what units weigh. The lower-is-better form counts the hosts that are better instead of the others.
func runRankSelect(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts   []string
		Factors map[string]float64
		Records []record
	}](c, given)
	want := decode[struct {
		Units map[string]struct {
			Factor         optional[float64]
			Weights, Ranks map[string]float64
		}
		ScoresHigherBetter map[string]float64 `json:"scores_higher_better"`
		ScoresLowerBetter  map[string]float64 `json:"scores_lower_better"`
		Best               optional[[]string]
		PeerAsserts        struct{ Best optional[string] } `json:"peer_asserts"`
	}](c, expect)
	w := c.weigh(g.Hosts, g.Factors, g.Records)
	found := c.combine(placement.SelectRank, w, nil)
	lower := map[string]float64{}
	for u, unit := range w.units {
		for _, host := range g.Hosts {
			lower[host] += w.factors[u] * (float64(len(g.Hosts)-1) - found.shares[unit][host])
		}
	}
	for unit, one := range want.Units {
		if unit == "null" && !slices.Contains(w.units, unit) { // of records that name no unit
			unit = ""
		}
		at := slices.Index(w.units, unit)
		if at < 0 {
			c.Fatalf("unit %q gave no weight", unit)
		}
		if one.Factor.given {
			c.near("the factor of "+unit, w.factors[at], one.Factor.value)
		}
		for host, weight := range one.Weights {
			c.near("the weight of "+host+" by "+unit, w.weights[at][slices.Index(g.Hosts, host)], weight)
		}
		c.sameScores("the rank by "+unit, found.shares[unit], one.Ranks)
	}
	c.sameScores("the score", found.scores, want.ScoresHigherBetter)
	c.sameScores("the sum of better hosts", lower, want.ScoresLowerBetter)
	if want.Best.given {
		c.sameSet("the best", found.best, want.Best.value)
	}
	if want.PeerAsserts.Best.given {
		c.sameSet("the best by the peer", found.best, []string{want.PeerAsserts.Best.value})
	}
}

// runRankEmpty places by a policy that weighs nothing: no host is better, and any may be taken.
func runRankEmpty(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts   []string
		Factors map[string]float64
		Records []record
	}](c, given)
	want := decode[struct {
		Best              optional[[]string]
		SchedulerFallback optional[string] `json:"scheduler_fallback"`
	}](c, expect)
	if want.Best.given {
		c.sameSet("the best", c.combine(placement.SelectRank, c.weigh(g.Hosts, g.Factors, g.Records), nil).best, want.Best.value)
	}
	if want.SchedulerFallback.given {
		d := unweighed(c, g.Hosts)
		c.sameSet("who can be taken", d.winners, g.Hosts)
		c.same("whether the fallback is among them", slices.Contains(d.winners, want.SchedulerFallback.value), true)
	}
}

// unweighed decides among idle hosts by the policy without weighers.
func unweighed(c *checker, hosts []string) decided {
	c.Helper()
	w := newWorld(c)
	for _, host := range hosts {
		w.node(host)
	}
	w.policy = func(policy *policies.Policy) { *policy, _ = policies.Builtin(policies.None, w.settings()) }
	return w.decide(placement.ForStart)
}

// runShortcut places where one host, or none, passes the constraints: whatever the weighers say, it comes out the same.
func runShortcut(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		RunnableHosts [][]string `json:"runnable_hosts"`
	}](c, given)
	want := decode[struct {
		Result     []optional[string]
		WeightsRun []bool `json:"weights_run"`
	}](c, expect)
	if len(want.Result) != len(g.RunnableHosts) || len(want.WeightsRun) != len(g.RunnableHosts) {
		c.Fatalf("%d runs, %d results, %d answers about weights", len(g.RunnableHosts), len(want.Result), len(want.WeightsRun))
	}
	for i, hosts := range g.RunnableHosts {
		outcomes := map[string]bool{}
		for _, name := range policies.Builtins() {
			w := newWorld(c)
			for _, host := range hosts {
				w.node(host)
			}
			w.policy = func(policy *policies.Policy) { *policy, _ = policies.Builtin(name, w.settings()) }
			outcomes[w.decide(placement.ForStart).decision.Winner] = true
		}
		c.same(fmt.Sprintf("whether weights had a part in run %d", i+1), len(outcomes) > 1, want.WeightsRun[i])
		c.same(fmt.Sprintf("whether run %d comes to %q", i+1, want.Result[i].or("")), outcomes[want.Result[i].or("")], true)
	}
}

// runListRanks ranks a sorted list by how many are before each.
func runListRanks(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Sorted []float64
		Order  string
	}](c, given)
	want := decode[struct{ Ranks []float64 }](c, expect)
	w := weighed{units: []string{""}, factors: []float64{1}, weights: [][]float64{make([]float64, len(g.Sorted))}}
	for i, item := range g.Sorted {
		if g.Order == "descending" { // the first is the best, so the highest weighs least
			item = -item
		} else if g.Order != "ascending" {
			c.Fatalf("there is no order %q", g.Order)
		}
		w.hosts, w.weights[0][i] = append(w.hosts, strconv.Itoa(i)), item
	}
	found := c.combine(placement.SelectRank, w, nil)
	if len(want.Ranks) != len(g.Sorted) {
		c.Fatalf("%d items and %d ranks", len(g.Sorted), len(want.Ranks))
	}
	for i, rank := range want.Ranks {
		c.near("the rank of item "+strconv.Itoa(i), float64(len(g.Sorted)-1)-found.shares[""][strconv.Itoa(i)], rank)
	}
}

// runListOrder orders lists as nodes are ordered by the priorities of the rules that they break. Each number of a list is a
// rule that the list's node breaks, of a priority by its place in the list first, so that the lists' own order decides.
func runListOrder(c *checker, given, expect json.RawMessage) {
	g := decode[struct{ Lists [][]int }](c, given)
	want := decode[struct{ Sorted [][]int }](c, expect)
	w := newWorld(c)
	const places, numbers = 100, 1000
	breaks := map[int][]string{} // nodes by priority
	for i, list := range g.Lists {
		node := "list" + strconv.Itoa(i)
		w.node(node)
		for at, number := range list {
			if at >= places || number < 0 || number >= numbers {
				c.Fatalf("%v is too long, or has too large a number", list)
			}
			priority := (places-at)*numbers + number
			breaks[priority] = append(breaks[priority], node)
		}
	}
	for priority, nodes := range breaks {
		w.group(model.Resource{
			Name:    "priority" + strconv.Itoa(priority),
			Members: map[string][]string{model.MembersVMs: {w.vm.ID}, model.MembersNodes: slices.Sorted(slices.Values(nodes))},
			Settings: map[string]string{
				model.SettingNodesRule: string(model.Negative), model.SettingPriority: strconv.Itoa(priority),
			},
		})
	}
	w.policy = func(policy *policies.Policy) {
		*policy = policy.WithoutPrefer() // of interest is what it weighs
		policy.Gate, policy.Weighers = policies.Gate{Kind: policies.GateOff}, []policies.Factor{{Weigher: "node-affinity", Factor: 1}}
	}
	var sorted [][]int
	var scores []float64
	for _, node := range w.decide(placement.ForStart).decision.Nodes {
		at, err := strconv.Atoi(node.Node[len("list"):])
		c.must(err)
		sorted, scores = append(sorted, g.Lists[at]), append(scores, node.Score)
	}
	for i := 1; i < len(scores); i++ {
		c.same(
			fmt.Sprintf("whether %v and %v weigh the same", sorted[i-1], sorted[i]), scores[i-1] == scores[i],
			slices.Equal(sorted[i-1], sorted[i]),
		)
	}
	c.same("the order", fmt.Sprint(sorted), fmt.Sprint(want.Sorted))
}

// runBasicSelect adds up weights times factors.
func runBasicSelect(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts   []string
		Factors map[string]float64
		Records []record
	}](c, given)
	want := decode[struct {
		TotalsLowerBetter map[string]float64 `json:"totals_lower_better"`
		Best              optional[[]string]
	}](c, expect)
	found := c.combine("sum", c.weigh(g.Hosts, g.Factors, g.Records), nil)
	totals := map[string]float64{}
	for host, score := range found.scores {
		totals[host] = -score
	}
	c.sameScores("the total", totals, want.TotalsLowerBetter)
	if want.Best.given {
		c.sameSet("the best", found.best, want.Best.value)
	}
}

// runAlternatives combines the same weights by both kinds of percentages.
func runAlternatives(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts []string
		Units []struct {
			Name        string
			Factor      float64
			Weights     map[string]float64
			HardMaximum float64 `json:"hard_maximum"`
		}
	}](c, given)
	want := decode[struct {
		HardMaximum    map[string]float64 `json:"hard_maximum"`
		DynamicMaximum map[string]float64 `json:"dynamic_maximum"`
		Best           optional[string]
	}](c, expect)
	w := weighed{hosts: g.Hosts}
	var maxima [][]float64
	for _, unit := range g.Units {
		weights := make([]float64, len(g.Hosts))
		for i, host := range g.Hosts {
			weights[i] = unit.Weights[host]
		}
		w.units, w.factors, w.weights = append(w.units, unit.Name), append(w.factors, unit.Factor), append(w.weights, weights)
		maxima = append(maxima, slices.Repeat([]float64{unit.HardMaximum}, len(g.Hosts)))
	}
	for name, sums := range map[string]map[string]float64{"percentage-fixed": want.HardMaximum, "percentage-dynamic": want.DynamicMaximum} {
		found := c.combine(name, w, maxima)
		lower := map[string]float64{}
		for host, score := range found.scores {
			lower[host] = -score
		}
		c.sameScores("the sum by "+name, lower, sums)
		if want.Best.given {
			c.sameSet("the best by "+name, found.best, []string{want.Best.value})
		}
	}
}

// runPreferredWeights places a VM with a preference by a policy that weighs only that, and a running one likewise. Beside it
// the number of VMs weighs, so that there is a table.
func runPreferredWeights(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts []string
		Runs  []struct {
			VMDown    bool `json:"vm_down"`
			Preferred []string
		}
	}](c, given)
	want := decode[struct{ Weights []map[string]float64 }](c, expect)
	if len(g.Runs) != len(want.Weights) {
		c.Fatalf("%d runs and %d tables", len(g.Runs), len(want.Weights))
	}
	for i, run := range g.Runs {
		w := newWorld(c)
		for _, host := range g.Hosts {
			w.node(host)
		}
		purpose := placement.ForStart
		if !run.VMDown {
			w.vm.Holder, purpose = g.Hosts[0], placement.ForMigrate
		}
		w.policy = func(policy *policies.Policy) {
			*policy, _ = policies.Builtin(policies.EvenVMs, w.settings())
			*policy = policy.WithoutPrefer() // of interest is what it weighs
		}
		request := w.request(purpose)
		request.Preferred = run.Preferred
		weights, silent := map[string]float64{}, true
		for _, row := range w.decideOn(w.view(), request).decision.Ranks {
			for _, cell := range row.Cells {
				if row.Weigher == "preferred-nodes" {
					weights[cell.Node], silent = cell.Weight, row.Silent
				}
			}
		}
		for host, weight := range want.Weights[i] { // a weigher that is silent gives all the same
			c.near(fmt.Sprintf("the weight of %s in run %d", host, i+1), weights[host], weight)
		}
		c.same(fmt.Sprintf("whether run %d sets no host apart", i+1), silent, len(slices.Compact(sortedValues(want.Weights[i]))) < 2)
	}
}

func sortedValues(of map[string]float64) []float64 {
	var values []float64
	for _, value := range of {
		values = append(values, value)
	}
	slices.Sort(values)
	return values
}
