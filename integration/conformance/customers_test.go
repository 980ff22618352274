package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
)

// shown puts keys that VMs show on a node, each by a VM of its own, and keys with a leading underscore as the node's.
func (w *world) shown(node string, instances []entry) {
	w.Helper()
	w.node(node)
	for _, one := range instances {
		if model.IsReservedKey(one.Name) && one.VM == "" {
			w.give(node, one)
			continue
		}
		vm := model.VM{Resident: []model.ResidentKey{one.resident()}, Owner: w.owner(one.Owner)}
		if one.VM == w.vm.Name {
			w.vm.Resident, w.vm.Owner, w.vm.Holder = append(w.vm.Resident, vm.Resident...), vm.Owner, node
			continue
		}
		w.holds(node, vm)
	}
}

// scope sets whose VMs customer keys can meet.
func (w *world) scope(name optional[string]) {
	if name.given {
		w.setting(model.SettingKeyScope, name.value)
	}
}

// runCustomerRound lets customer keys decide among nodes.
func runCustomerRound(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		VM             []entry            `json:"vm_customer_keys"`
		Nodes          map[string][]entry `json:"node_customer_keys"`
		System         map[string]float64 `json:"system_scores"`
		Owner          optional[string]   `json:"vm_owner"`
		Scope          optional[string]   `json:"customer_key_scope"`
		Initial, Final optional[float64]
		Steps          optional[count]
	}](c, given)
	want := decode[struct {
		scored
		Customer map[string]float64 `json:"customer_scores"`
	}](c, expect)
	w := newWorld(c)
	w.rounds(g.Initial, g.Final, g.Steps)
	w.scope(g.Scope)
	w.resource("customer").Name = g.Owner.or("own")
	w.set("server", model.CustomerKey, g.VM...)
	w.systemScores(g.System)
	for node, instances := range g.Nodes {
		w.shown(node, instances)
	}
	d := w.decide(placement.ForStart)
	c.sameScores("the customer score", d.customer, want.Customer)
	c.scored(d, want.scored)
}

// runMigrateBestNode looks for a better node for a running VM, with and without the choice to stay.
func runMigrateBestNode(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		VM             string
		Keys           []entry            `json:"vm_customer_keys"`
		Current        string             `json:"current_node"`
		Instances      map[string][]entry `json:"node_customer_instances"`
		System         map[string]float64 `json:"system_scores"`
		Owner          optional[string]   `json:"vm_owner"`
		Scope          optional[string]   `json:"customer_key_scope"`
		IfBetter       float64            `json:"if_better"`
		Initial, Final optional[float64]
		Steps          optional[count]
	}](c, given)
	want := decode[struct {
		scored
		Customer map[string]float64 `json:"customer_scores"`
		Allowed  optional[[]string] `json:"winners_if_current_allowed"`
		Excluded optional[[]string] `json:"winners_if_current_excluded"`
	}](c, expect)
	w := newWorld(c)
	w.rounds(g.Initial, g.Final, g.Steps)
	w.scope(g.Scope)
	w.resource("customer").Name = g.Owner.or("own")
	w.vm.ID, w.vm.Name, w.vm.Desired, w.vm.StartedAt = g.VM, g.VM, model.Running, noon
	w.set("server", model.CustomerKey, g.Keys...)
	w.systemScores(g.System)
	for node, instances := range g.Instances {
		w.shown(node, instances)
	}
	if w.vm.Holder != "" && w.vm.Holder != g.Current {
		c.Fatalf("%s is on %s and on %s", g.VM, w.vm.Holder, g.Current)
	}
	w.node(g.Current)
	w.vm.Holder = g.Current
	request := w.request(placement.ForMigrate)
	request.IfBetter = g.IfBetter
	d := w.decideOn(w.view(), request)
	c.sameScores("the customer score", d.customer, want.Customer)
	c.scored(d, want.scored)
	if want.Allowed.given {
		c.won(d, want.Allowed.value)
	}
	if want.Excluded.given {
		request.Excluded, request.IfBetter = []string{g.Current}, 0
		c.won(w.decideOn(w.view(), request), want.Excluded.value)
	}
}

// runNodeCompile compares what a node offers to system keys and to customer keys with two lists. The engine is asked for
// each name and value in turn: its score counts all instances of the name that are near enough.
func runNodeCompile(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Node    []entry            `json:"node_keys"`
		Special map[string]float64 `json:"special_keys"`
		VMs     [][]entry          `json:"running_vm_customer_keys"`
	}](c, given)
	want := decode[struct {
		Customer    optional[[]entry] `json:"customer_list"`
		System      optional[[]entry] `json:"system_list"`
		Significant bool              `json:"order_significant"`
	}](c, expect)
	if want.Significant {
		c.Fatal("the keys of a node have no order")
	}
	w := newWorld(c)
	w.node("n")
	keys := slices.Clone(g.Node)
	for name, value := range g.Special {
		keys = append(keys, entry{Name: name, Value: value})
	}
	w.give("n", keys...)
	for i, own := range g.VMs {
		vm := newWorld(c) // compiled as it was when the VM was started
		vm.set("server", model.CustomerKey, own...)
		resolved := vm.resolve()
		w.holds("n", model.VM{
			ID: fmt.Sprintf("resident-%d", i), Owner: resolved.Owner, Resident: key.ResidentsOf(key.WeightedOf(resolved.Customer)),
		})
	}
	asked := append(slices.Clone(keys), slices.Concat(g.VMs...)...)
	asked = append(append(asked, want.Customer.value...), want.System.value...)
	probe := func(class model.KeyClass, one entry) (system, customer float64) {
		p := *w
		p.vm.Keys = []model.Key{{Class: class, Name: one.Name, Value: one.Value, Weight: 1}}
		d := p.decide(placement.ForStart)
		return d.system["n"], d.customer["n"]
	}
	done := map[string]bool{}
	for _, one := range asked {
		if done[one.String()] {
			continue
		}
		done[one.String()] = true
		if want.System.given {
			system, _ := probe(model.SystemKey, one)
			c.near("the score of a system key "+one.String(), system, scoreOf(one, want.System.value))
		}
		if want.Customer.given {
			_, customer := probe(model.CustomerKey, one)
			c.near("the score of a customer key "+one.String(), customer, scoreOf(one, want.Customer.value))
		}
	}
}

// scoreOf is what a list gives a key of weight 1.
func scoreOf(one entry, instances []entry) float64 {
	score := 0.0
	for _, instance := range instances {
		if instance.Name == one.Name {
			score += key.Proximity(one.Value, instance.Value)
		}
	}
	return score
}

// runLifecycle starts, stops and changes VMs, and reads in between what they show on the nodes.
func runLifecycle(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Steps []struct {
			Op   string
			VM   string
			Node string
			Keys optional[[]entry] `json:"customer_keys"`
		}
	}](c, given)
	want := decode[struct{ Reads [][]entry }](c, expect)
	w := newWorld(c)
	for _, step := range g.Steps {
		if step.Node != "" {
			w.node(step.Node)
		}
	}
	w.lead(func(l *leader) {
		reads := 0
		for i, step := range g.Steps {
			if step.VM != "" && step.Keys.given {
				l.edit(step.VM, step.Keys.value)
			}
			switch step.Op {
			case "start":
				l.start(step.VM, step.Node)
			case "stop":
				l.stop(step.VM)
			case "restart":
				l.stop(step.VM)
				l.start(step.VM, step.Node)
			case "migrate":
				l.migrate(step.VM, step.Node)
			case "edit":
				if !step.Keys.given {
					c.Fatalf("step %d edits nothing", i+1)
				}
			case "read":
				if reads < len(want.Reads) {
					l.sameSet(fmt.Sprintf("what step %d reads on %s", i+1, step.Node), l.shown(step.Node), texts(want.Reads[reads]))
				}
				reads++
			default:
				c.Fatalf("step %d: there is no op %q", i+1, step.Op)
			}
		}
		l.same("the number of reads", reads, len(want.Reads))
	})
}

func texts(entries []entry) []string {
	all := make([]string, 0, len(entries))
	for _, one := range entries {
		all = append(all, one.String())
	}
	return all
}

// gains are sticky keys that a VM has from its first start: one, or a list.
type gains []entry

func (g *gains) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		return strictly(raw, (*[]entry)(g))
	}
	var one entry
	if string(raw) == "null" {
		return nil
	}
	err := strictly(raw, &one)
	*g = gains{one}
	return err
}

// runSticky starts a VM, stops it, and asks where it would start next.
func runSticky(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		System   []entry `json:"vm_system_keys_before"`
		Customer []entry `json:"vm_customer_keys_before"`
		Nodes    map[string]struct {
			Keys   []entry
			Sticky []entry
		}
		First   string `json:"first_start_on"`
		Migrate string `json:"migrates_to"` // after the start
	}](c, given)
	want := decode[struct {
		Gains optional[gains] `json:"vm_gains"`
		Keeps optional[gains] `json:"vm_keeps_after_migration"`
		Next  *struct {
			scored
			Customer map[string]float64 `json:"customer_scores"`
		} `json:"next_start"`
	}](c, expect)
	w := newWorld(c)
	w.set("server", model.SystemKey, g.System...)
	w.set("server", model.CustomerKey, g.Customer...)
	for _, name := range slices.Sorted(maps.Keys(g.Nodes)) {
		w.node(name)
		w.give(name, g.Nodes[name].Keys...)
		for _, one := range g.Nodes[name].Sticky {
			w.sticky(one)
		}
	}
	w.lead(func(l *leader) {
		l.start(w.vm.Name, g.First)
		vm := l.vm(w.vm.Name)
		if want.Gains.given {
			l.gained(vm, want.Gains.value)
		}
		if g.Migrate != "" {
			l.migrate(w.vm.Name, g.Migrate)
			if want.Keeps.given {
				l.gained(l.vm(w.vm.Name), want.Keeps.value)
			}
		}
		l.stop(w.vm.Name)
		if want.Next == nil {
			return
		}
		d := l.next(w.vm.Name)
		l.sameScores("the customer score", d.customer, want.Next.Customer)
		l.scored(d, want.Next.scored)
	})
}

// sticky makes a node key of the cluster one that VMs take along.
func (w *world) sticky(one entry) {
	w.Helper()
	record := w.resource("cluster")
	at := slices.IndexFunc(record.NodeKeys, func(k model.NodeKey) bool { return k.Name == one.Name })
	if at < 0 {
		w.Fatalf("no node has the sticky key %s", one.Name)
	}
	record.NodeKeys[at].Sticky, record.NodeKeys[at].Weight = true, one.Weight
}

// gained compares the sticky copies of a VM with what is expected of all of them.
func (l *leader) gained(vm model.VM, want gains) {
	l.Helper()
	l.same("the number of sticky keys", len(vm.Sticky), len(want))
	for _, expected := range want {
		at := slices.IndexFunc(vm.Sticky, func(k model.Key) bool { return k.Name == expected.Name })
		if at < 0 {
			l.Errorf("the VM has no sticky key %s", expected.Name)
			continue
		}
		got := vm.Sticky[at]
		l.near("the value of "+expected.Name, got.Value, expected.Value)
		l.near("the weight of "+expected.Name, got.Weight, expected.Weight)
		if expected.Class != "" {
			l.same("the class of "+expected.Name, got.Class, classOf(expected.Class))
		}
		if expected.Level != "" {
			l.same("the level of "+expected.Name, l.levelOf(vm, expected.Name), l.level(expected.Level).String())
		}
	}
}
