package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// seedsByDefault are as many as take a few seconds. 'make sim' tries more, and SEED repeats one.
const seedsByDefault = 500

// Whole clusters of random nodes, VMs, groups, policies and settings, started where they break rules, are run until nothing
// moves any more. Whatever Berth moves breaks no hard rule and promises no memory twice, comes at its time, and comes to an
// end.
func TestRandomSites(t *testing.T) {
	first, count := uint64(1), uint64(seedsByDefault)
	if testing.Short() {
		count /= 5
	}
	if text := os.Getenv("SEED"); text != "" {
		first, count = number(t, text), 1
	} else if text := os.Getenv("SEEDS"); text != "" {
		count = number(t, text)
	}
	var repairs, evened, dispersed atomic.Int64
	t.Cleanup(func() {
		t.Logf(
			"%d sites: %d moves repaired rules, %d evened clusters out, %d of them spread customers' VMs", count, repairs.Load(),
			evened.Load(), dispersed.Load(),
		)
		if count >= seedsByDefault && (repairs.Load() < 100 || evened.Load()-dispersed.Load() < 100 || dispersed.Load() < 100) {
			t.Error("hardly anything moved: the sites prove nothing")
		}
	})
	const shards = 8
	for shard := range uint64(shards) {
		t.Run(strconv.FormatUint(shard, 10), func(t *testing.T) {
			t.Parallel()
			for seed := first + shard; seed < first+count; seed += shards {
				w, text, err := watchSite(seed)
				if err != nil {
					t.Errorf("SEED=%d: %v\n\n%s", seed, err, text)
					continue
				}
				repairs.Add(int64(w.moved[model.PlanRepair]))
				evened.Add(int64(w.moved[model.PlanBalance]))
				dispersed.Add(int64(w.dispersed))
			}
		})
	}
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%q is no number", text)
	}
	return n
}

// watchSite runs the site of a seed. The error says what was not as it has to be.
func watchSite(seed uint64) (w *watched, text string, err error) {
	s, text, err := parseSite(seed)
	if err != nil {
		return nil, text, err
	}
	w = &watched{world: s.checked, last: make(map[string]leg), moved: make(map[model.PlanKind]int)}
	w.disperses = strings.Contains(text, "policy: own") && strings.Contains(text, "disperse_accounts: true")
	w.facts = estate.Indexed(&w.state)
	w.groups = estate.GroupsOf(w.facts, model.DefaultCluster)
	w.now = w.shape()
	w.seen = map[string]bool{w.now: true}
	w.broken = w.hardBroken(w.where())
	return w, text, w.run()
}

// parseSite leaves groups out until none contradicts another.
func parseSite(seed uint64) (*Scenario, string, error) {
	_, groups := siteOf(seed, 0)
	for {
		text, _ := siteOf(seed, groups)
		s, problems := Parse("site.yaml", []byte(text))
		err := schema.Problems(problems)
		if err == nil {
			return s, text, nil
		}
		if groups--; groups < 0 {
			return nil, text, err
		}
	}
}

// watched is a world whose every move is looked at.
type watched struct {
	*world
	facts  estate.Facts
	groups []model.Group
	seen   map[string]bool // placements of all VMs that were there
	now    string          // the last of them
	order  []string        // the VMs that have moved, one after the other
	last   map[string]leg  // the last move of each VM
	broken map[string]int  // hard rules when nothing was on its way last
	moved  map[model.PlanKind]int

	disperses bool // customers' VMs are kept spread
	dispersed int  // moves for that
}

// leg is a move of a VM: what kind of plan made it, from which node, and how many moves were before it.
type leg struct {
	kind, from string
	turn       int
}

// How long a site is watched: until an hour has passed without a move, and then an hour more. Back-off may make a balancer
// wait for an hour, so that the first one has to be longer.
const (
	quietFor = 100 * time.Minute
	again    = time.Hour
	patience = 14 * 24 * time.Hour
)

func (w *watched) run() error {
	quiet := w.at
	for w.at.Sub(quiet) < quietFor {
		if w.at.Sub(w.began) > patience {
			return fmt.Errorf("after %v and %d moves it still goes on", patience, w.moves)
		}
		before := w.moves
		if err := w.moment(w.at.Add(again)); err != nil {
			return err
		}
		if w.moves > before || len(w.flights) > 0 {
			quiet = w.at
		}
	}
	before := w.moves
	for end := w.at.Add(again); w.at.Before(end); {
		if err := w.moment(end); err != nil {
			return err
		}
	}
	if w.moves > before {
		return errors.New("the second hour found something to move: " + w.tail())
	}
	return nil
}

// moment lets time pass until something is due, and looks at the moves that begin then.
func (w *watched) moment(end time.Time) error {
	where, logged := w.where(), len(w.log)
	if err := w.until(w.nextMoment(end)); err != nil {
		return err
	}
	for i := range w.log[logged:] {
		e := &w.log[logged+i]
		kind := model.PlanKind(e.What)
		if kind != model.PlanRepair && kind != model.PlanBalance {
			continue
		}
		w.moved[kind]++
		vm, _ := w.vm(e.VM)
		source := where[vm.ID]
		where[vm.ID] = w.nodeID(e.To)
		if err := errors.Join(w.allowed(vm, where), w.rested(e, vm), w.forward(e, vm, source), w.better(e, source, where)); err != nil {
			return fmt.Errorf("%s: %w", e.Text(), err)
		}
	}
	return errors.Join(w.atRest(), w.promises())
}

func (w *watched) nodeID(name string) string {
	record, _ := w.state.Node(name)
	return record.ID
}

// allowed: the target keeps the hard rules of the VM about nodes, and has none of those that it is to be apart from.
func (w *watched) allowed(vm *model.VM, where map[string]string) error {
	target := where[vm.ID]
	for i := range w.groups {
		g := &w.groups[i]
		if !slices.Contains(g.VMs, vm.ID) {
			continue
		}
		if on := slices.Contains(g.Nodes, target); g.NodesRule.Hard() && len(g.Nodes) > 0 && on != (g.NodesRule.Polarity == model.Positive) {
			return fmt.Errorf("group %s forbids %s there", g.Name, vm.Name)
		}
		if !g.VMsRule.Hard() || g.VMsRule.Polarity != model.Negative {
			continue
		}
		for _, other := range g.VMs {
			if other != vm.ID && where[other] == target {
				return fmt.Errorf("group %s keeps %s apart from %s", g.Name, vm.Name, w.nameOf(other))
			}
		}
	}
	return nil
}

// hardBroken is by how much the hard rules are broken: of each group and rule, how many VMs are where they must not be.
func (w *watched) hardBroken(where map[string]string) map[string]int {
	broken := make(map[string]int)
	for i := range w.groups {
		g := &w.groups[i]
		on := make(map[string]int)
		for _, vm := range g.VMs {
			node, runs := where[vm]
			if !runs {
				continue
			}
			on[node]++
			if g.NodesRule.Hard() && len(g.Nodes) > 0 && slices.Contains(g.Nodes, node) != (g.NodesRule.Polarity == model.Positive) {
				broken[g.Name+" nodes"]++
			}
		}
		for _, n := range on {
			if g.VMsRule.Hard() && g.VMsRule.Polarity == model.Negative {
				broken[g.Name+" apart"] += n - 1
			}
		}
		if g.VMsRule.Hard() && g.VMsRule.Polarity == model.Positive {
			broken[g.Name+" together"] = max(len(on)-1, 0)
		}
	}
	return broken
}

// atRest: no hard rule is broken that held before, and the VMs are not all again where they have been. VMs that have to be
// together may follow each other: what counts is how things are when nothing is on its way.
func (w *watched) atRest() error {
	if len(w.pursuits)+len(w.flights) > 0 {
		return nil
	}
	shape := w.shape()
	if w.seen[shape] && shape != w.now {
		return errors.New("all VMs are where they have been before: " + w.tail())
	}
	w.seen[shape], w.now = true, shape
	broken := w.hardBroken(w.where())
	for rule, now := range broken {
		if now > 0 && w.broken[rule] == 0 {
			return fmt.Errorf("hard rule %s held and is broken now: %s", rule, w.tail())
		}
	}
	w.broken = broken
	return nil
}

// rested: no VM is moved again within its cool-down, but to repair a hard rule that was broken after its last move.
func (w *watched) rested(e *Entry, vm *model.VM) error {
	settings := w.settings()
	if vm.MovedAt.IsZero() || w.at.Sub(vm.MovedAt) >= settings.Cooldown {
		return nil
	}
	if plan := w.plan(e.Plan); plan.Kind == model.PlanRepair {
		if group, known := w.state.Resource(plan.Group); known && group.BrokenSince.After(vm.MovedAt) {
			return nil
		}
	}
	return fmt.Errorf("it has moved %v ago, and the cool-down is %v", w.at.Sub(vm.MovedAt), settings.Cooldown)
}

func (w *watched) settings() model.Settings {
	record, _ := w.state.ResourceByName(model.KindCluster, model.DefaultCluster)
	return model.SettingsOf(&record)
}

// forward: what enforcement did balancing does not undo, nor the other way round, as long as the VMs of its groups are where
// they were.
func (w *watched) forward(e *Entry, vm *model.VM, source string) error {
	last := w.last[vm.ID]
	w.last[vm.ID] = leg{e.What, source, len(w.order)}
	w.order = append(w.order, vm.ID)
	if last.kind == "" || last.kind == e.What || last.from != w.nodeID(e.To) || w.mateMoved(vm.ID, last.turn) {
		return nil
	}
	return fmt.Errorf("a %s brought it from there: %s", last.kind, w.tail())
}

// mateMoved tells whether another VM of its groups has moved since.
func (w *watched) mateMoved(vm string, since int) bool {
	return slices.ContainsFunc(w.order[since:], func(other string) bool {
		return other != vm && slices.ContainsFunc(w.groups, func(g model.Group) bool {
			return slices.Contains(g.VMs, vm) && slices.Contains(g.VMs, other)
		})
	})
}

// shape is where all VMs are.
func (w *watched) shape() string {
	where := w.where()
	var b strings.Builder
	for i := range w.state.VMs {
		b.WriteString(where[w.state.VMs[i].ID] + " ")
	}
	return b.String()
}

// better: a balance move makes the cluster more even, by the balancer's figure, and by VM count also by the sum of squares.
func (w *watched) better(e *Entry, source string, where map[string]string) error {
	plan := w.plan(e.Plan)
	if plan.Kind != model.PlanBalance {
		return nil
	}
	if !(plan.Predicted < plan.Before) {
		return fmt.Errorf("%v before and %v predicted", plan.Before, plan.Predicted)
	}
	if err := w.spread(e, plan, source, where); err != nil {
		return err
	}
	record, _ := w.state.ResourceByName(model.KindCluster, model.DefaultCluster)
	_, chosen, err := estate.PolicyOf(w.facts, record)
	if plan.Unit == balance.DispersalUnit {
		return err
	}
	if err != nil || chosen.Balancer != "even-vm-count" {
		return err
	}
	grace, _ := chosen.Parameter(balance.SPMVMCountGrace)
	slots := func(id string) (n int) {
		for vm := range where {
			if where[vm] == id {
				n++
			}
		}
		if node, _ := w.state.Node(id); node.Management {
			n += int(grace)
		}
		return n
	}
	if from, to := slots(source), slots(w.nodeID(e.To)); from < to {
		return fmt.Errorf("%d VMs are left and %d are there: the squares have grown", from, to)
	}
	return nil
}

// spread: where customers' VMs are kept spread, no balance move makes those of one less evenly spread, and one that is to
// spread them makes them more so.
func (w *watched) spread(e *Entry, plan *model.Plan, source string, where map[string]string) error {
	if !w.disperses {
		return nil
	}
	vm, _ := w.vm(e.VM)
	customer := vm.Owner.Customer
	count := func(node string) (n int) {
		for i := range w.state.VMs {
			if other := &w.state.VMs[i]; customer != "" && other.Owner.Customer == customer && where[other.ID] == node {
				n++
			}
		}
		return n
	}
	left, there := count(source), count(w.nodeID(e.To))
	if customer != "" && there > left+1 || plan.Unit == balance.DispersalUnit && there > left {
		return fmt.Errorf("%s has %d VMs where it came from and %d where it goes", customer, left, there)
	}
	if plan.Unit == balance.DispersalUnit {
		w.dispersed++
	}
	return nil
}

// promises: what has come to a node, or is about to, has room on it. A node that had too much from the start may keep it.
func (w *watched) promises() error {
	for _, f := range w.flights {
		view := w.view()
		node := view.Node(f.target)
		overhead := node.Settings.Overhead
		if free := node.PromisedLimit - node.PromisedUsed; free <= overhead {
			return fmt.Errorf("%s has %v left to promise with %s on its way there", node.Node.Name, free, w.nameOf(f.vm))
		}
		if node.PhysicalFree <= overhead {
			return fmt.Errorf("%s has %v physically free with %s on its way there", node.Node.Name, node.PhysicalFree, w.nameOf(f.vm))
		}
	}
	return nil
}

// tail is the end of the log.
func (w *watched) tail() string {
	var b strings.Builder
	for i := max(0, len(w.log)-30); i < len(w.log); i++ {
		b.WriteString("\n  " + w.log[i].Text())
	}
	return cmp.Or(b.String(), "nothing was moved")
}
