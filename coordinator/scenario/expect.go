package scenario

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/placement"
)

// tolerance is how far a score may be from the expected one: people write two digits after the point.
const tolerance = 0.005

// comparison collects the differences between what was expected of a step and what came of it.
type comparison struct {
	line  int
	found []Difference
}

func (c *comparison) differ(of, expected, found string) {
	if expected == "" {
		expected = "none"
	}
	if found == "" {
		found = "none"
	}
	c.found = append(c.found, Difference{Line: c.line, Of: of, Expected: expected, Found: found})
}

func (c *comparison) same(of, expected, found string) {
	if expected != found {
		c.differ(of, expected, found)
	}
}

func (c *comparison) oneOf(of string, expected []string, found string) {
	if len(expected) > 0 && !slices.Contains(expected, found) {
		c.differ(of, strings.Join(expected, " or "), found)
	}
}

func (e *Expectation) compare(w *world, report *StepReport) []Difference {
	c := &comparison{line: e.Line}
	switch {
	case report.passed:
		e.compareRun(c, w, report)
	case report.Capacity != nil:
		e.compareCapacity(c, report.Capacity)
	case report.drained:
		e.compareDrain(c, report)
	case len(report.Decisions) > 0:
		e.compareDecision(c, &report.Decisions[len(report.Decisions)-1]) // those before are of the time until the step
	}
	return c.found
}

func (e *Expectation) compareDecision(c *comparison, d *placement.Decision) {
	if e.outcome != "" {
		c.same("outcome", e.outcome, string(d.Outcome))
	}
	c.oneOf("node", e.nodes, d.WinnerName)
	if e.phase != "" {
		c.same("phase", e.phase, string(d.FailedPhase))
	}
	if e.round != nil {
		c.same("round", strconv.Itoa(*e.round), strconv.Itoa(d.Round))
	}
	node := func(name string) *placement.NodeResult {
		at := slices.IndexFunc(d.Nodes, func(n placement.NodeResult) bool { return n.Name == name })
		if at < 0 {
			return nil
		}
		return &d.Nodes[at]
	}
	for _, expected := range e.refused {
		of, want := expected.node+" refused by", strings.Join(expected.constraints, " and ")
		found := node(expected.node)
		if found == nil {
			c.differ(of, want, "no such node")
			continue
		}
		refusing := refusing(found)
		for _, name := range expected.constraints {
			if !slices.Contains(refusing, name) {
				c.differ(of, want, strings.Join(refusing, " and "))
				break
			}
		}
	}
	for _, expected := range e.scores {
		found := node(expected.node)
		if found == nil {
			c.differ("scores of "+expected.node, "some", "no such node")
			continue
		}
		if !found.Admitted {
			c.differ("scores of "+expected.node, "some", "refused by "+strings.Join(refusing(found), " and "))
			continue
		}
		c.score("system score of "+expected.node, expected.system, found.SystemScore)
		c.score("customer score of "+expected.node, expected.customer, found.CustomerScore)
	}
}

func refusing(node *placement.NodeResult) []string {
	var names []string
	for _, one := range node.Constraints {
		if !one.Passed {
			names = append(names, one.Constraint)
		}
	}
	return names
}

func (c *comparison) score(of string, expected *float64, found float64) {
	if expected != nil && !(math.Abs(*expected-found) <= tolerance) {
		c.differ(of, figure(*expected), figure(found))
	}
}

func (e *Expectation) compareDrain(c *comparison, report *StepReport) {
	moved := make(map[string]string)
	for i := range report.Decisions {
		if d := &report.Decisions[i]; d.Outcome == placement.Placed {
			moved[d.Request.VMName] = d.WinnerName
		}
	}
	for _, one := range e.moved {
		c.oneOf(one.vm+" moved to", one.nodes, moved[one.vm])
	}
	if !e.leftGiven {
		return
	}
	left := make([]string, 0, len(report.Left))
	for _, one := range report.Left {
		left = append(left, one.Name)
	}
	expected := slices.Sorted(slices.Values(e.left))
	slices.Sort(left)
	if !slices.Equal(expected, left) {
		c.differ("left", strings.Join(expected, ", "), strings.Join(left, ", "))
	}
}

// compareRun looks at how things are when time has passed.
func (e *Expectation) compareRun(c *comparison, w *world, report *StepReport) {
	if e.moves != nil {
		c.same("moves", strconv.Itoa(*e.moves), strconv.Itoa(report.Moves))
	}
	for _, one := range e.where {
		found := "no such VM"
		if vm, err := w.vm(one.vm); err == nil {
			found = w.nodeName(vm.Holder)
		}
		c.oneOf(one.vm+" on", one.nodes, cmp.Or(found, "none"))
	}
	proposed := make(map[string]string)
	for i := range w.plans {
		for _, move := range w.plans[i].Moves {
			if w.plans[i].State == model.PlanProposed {
				proposed[move.VMName] = move.TargetName
			}
		}
	}
	for _, one := range e.proposed {
		c.oneOf(one.vm+" proposed for", one.nodes, proposed[one.vm])
	}
	if e.idle != "" {
		reasons := slices.Sorted(maps.Values(w.resting))
		if !slices.ContainsFunc(reasons, func(why string) bool { return strings.Contains(why, e.idle) }) {
			c.differ("idle", e.idle, strings.Join(reasons, "; "))
		}
	}
	e.compareGroups(c, w)
}

// compareGroups looks at which groups hold.
func (e *Expectation) compareGroups(c *comparison, w *world) {
	broken := w.broken()
	for _, name := range slices.Concat(e.holds, e.broken) {
		if _, known := w.state.ResourceByName(model.KindGroup, name); !known {
			c.differ("group "+name, "some", "no such group")
			continue
		}
		switch why := broken[name]; {
		case slices.Contains(e.holds, name) && why != "":
			c.differ("group "+name, "that it holds", why)
		case slices.Contains(e.broken, name) && why == "":
			c.differ("group "+name, "that it is broken", "that it holds")
		}
	}
}

func (e *Expectation) compareCapacity(c *comparison, found *placement.Capacity) {
	if e.more != nil {
		c.same("more", strconv.Itoa(*e.more), strconv.Itoa(found.Count))
	}
	for _, one := range e.perNode {
		at := slices.IndexFunc(found.Nodes, func(n placement.NodeCapacity) bool { return n.Name == one.node })
		if at < 0 {
			c.differ("more on "+one.node, strconv.Itoa(one.more), "no such node")
			continue
		}
		c.same("more on "+one.node, strconv.Itoa(one.more), strconv.Itoa(found.Nodes[at].Count))
	}
	if e.runsOut != "" {
		c.same("runs_out_first", e.runsOut, found.RunsOut)
	}
}
