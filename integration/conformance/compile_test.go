package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
)

// leveled are keys at levels, and the order that the case says the levels have.
type leveled struct {
	Keys   []entry
	Levels []string `json:"levels_top_to_bottom"`
}

// ordered compares the order of the levels with ours, where a case has one.
func (c *checker) ordered(given []string) {
	c.Helper()
	if given != nil && !slices.Equal(given, levels[:]) {
		c.Errorf("the levels are %v, ours %v", given, levels)
	}
}

// setAll sets keys that have levels.
func (w *world) setAll(class model.KeyClass, keys []entry) {
	w.Helper()
	for _, one := range keys {
		w.set(one.Level, class, one)
	}
}

// winner is what a case expects of a compiled key.
type winner struct {
	Value  optional[float64]
	Weight optional[float64]
	Level  optional[string]
	Class  optional[string]
}

// compiled compares a compiled set with what is expected of all of it.
func (c *checker) compiled(what string, got []key.Compiled, want map[string]winner) {
	c.Helper()
	c.same("the number of "+what+" keys", len(got), len(want))
	for _, one := range got {
		expected, wanted := want[one.Name]
		if !wanted {
			c.Errorf("%s key %s is compiled to %v from %s, want none", what, one.Name, one.Value, one.From)
			continue
		}
		subject := what + " key " + one.Name
		if expected.Value.given {
			c.near("the value of "+subject, one.Value, expected.Value.value)
		}
		if expected.Weight.given {
			c.near("the weight of "+subject, one.Weight, expected.Weight.value)
		}
		if expected.Level.given {
			c.same("the level of "+subject, one.Level, c.level(expected.Level.value).String())
		}
		if expected.Class.given {
			c.same("the class of "+subject, one.Class, classOf(expected.Class.value))
		}
	}
}

// level is ours of a case's name.
func (c *checker) level(name string) key.Level {
	c.Helper()
	at := slices.Index(levels[:], name)
	if at < 0 {
		c.Fatalf("there is no level %q", name)
	}
	return key.Level(at)
}

func runCompile(c *checker, given, expect json.RawMessage) {
	g := decode[leveled](c, given)
	want := decode[struct{ Compiled map[string]winner }](c, expect)
	c.ordered(g.Levels)
	w := newWorld(c)
	w.setAll(model.SystemKey, g.Keys)
	resolved := w.resolve()
	all := append(slices.Clone(resolved.System), resolved.Customer...) // the customer's, if the case says so with classes
	c.compiled("compiled", all, want.Compiled)
}

// runCompileLadder takes the winning level away again and again.
func runCompileLadder(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Levels []string `json:"levels_top_to_bottom"`
		Values map[string]float64
		Name   optional[string]
		Weight optional[float64]
		Class  optional[string]
	}](c, given)
	want := decode[struct {
		Values []*float64 `json:"values_after_each_removal"` // null: no key is left
	}](c, expect)
	c.ordered(g.Levels)
	name, class := g.Name.or("K"), classOf(g.Class.or("system"))
	if len(want.Values) > len(g.Values)+1 {
		c.Fatalf("%d values after removals of %d", len(want.Values), len(g.Values))
	}
	for removed, expected := range want.Values {
		w := newWorld(c)
		for level, value := range g.Values {
			w.set(level, class, entry{Name: name, Value: value, Weight: g.Weight.or(1)})
		}
		resolved := w.resolve()
		for range removed { // take the level away that wins
			compiled := append(resolved.System, resolved.Customer...)
			w.clear(levels[slices.IndexFunc(levels[:], func(l string) bool { return c.level(l).String() == compiled[0].Level })])
			resolved = w.resolve()
		}
		compiled := append(resolved.System, resolved.Customer...)
		if expected == nil {
			c.same(fmt.Sprintf("the number of keys after %d removals", removed), len(compiled), 0)
			continue
		}
		if len(compiled) != 1 {
			c.Fatalf("%d keys are compiled after %d removals", len(compiled), removed)
		}
		c.near(fmt.Sprintf("the value after %d removals", removed), compiled[0].Value, *expected)
	}
}

// clear takes all keys of a level away.
func (w *world) clear(level string) {
	w.Helper()
	if level == "server" {
		w.vm.Keys = nil
		return
	}
	w.resource(level).Keys = nil
}

func runCompileClasses(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		System   []entry  `json:"system_keys"`
		Customer []entry  `json:"customer_keys"`
		Billing  []entry  `json:"billing_entity_keys"`
		Levels   []string `json:"levels_top_to_bottom"`
	}](c, given)
	want := decode[struct {
		System   optional[map[string]winner]
		Customer optional[map[string]winner]
	}](c, expect)
	c.ordered(g.Levels)
	w := newWorld(c)
	w.setAll(model.SystemKey, g.System)
	w.setAll(model.BillingEntityKey, g.Billing)
	w.setAll(model.CustomerKey, g.Customer)
	resolved := w.resolve()
	if want.System.given {
		c.compiled("system", resolved.System, want.System.value)
	}
	if want.Customer.given {
		c.compiled("customer", resolved.Customer, want.Customer.value)
	}
}

// runLicensing places VMs among licensed and other nodes. Those whose name says that they are ordinary ones lack what the
// others are told apart by: the levels from the image down, or all below the cluster if nothing is set there.
func runLicensing(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		leveled
		Nodes map[string][]entry
	}](c, given)
	c.ordered(g.Levels)
	apart := key.LevelImageOffer
	if !slices.ContainsFunc(g.Keys, func(e entry) bool { return c.level(e.Level) >= apart }) {
		apart = key.LevelBillingEntity
	}
	for name, raw := range decode[map[string]json.RawMessage](c, expect) {
		want := decode[struct {
			scored
			Compiled optional[map[string]winner]
		}](c, raw)
		w := newWorld(c)
		for node, keys := range g.Nodes {
			w.give(node, keys...)
		}
		for _, one := range g.Keys {
			if !ordinary(name) || c.level(one.Level) < apart {
				w.set(one.Level, model.SystemKey, one)
			}
		}
		if want.Compiled.given {
			c.compiled(name, w.resolve().System, want.Compiled.value)
		}
		c.scored(w.decide(placement.ForStart), want.scored)
	}
}

func ordinary(name string) bool {
	return slices.ContainsFunc([]string{"other", "ordinary", "plain", "unlicensed", "linux"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}
