package control

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/control/plans"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// What keeps a guest of a random drain on its node.
const (
	isFree          = "free"
	isBound         = "bound"           // libvirt would not migrate it
	isBoundMeantime = "bound meanwhile" // from a moment of the drain on
	isReleased      = "released"        // a backup that ends meanwhile
	hasLocalVolume  = "local volume"
	hasLocalFile    = "local file"
	isNever         = "never"
	isOnSide        = "side" // its disk is in a pool that only some of the other nodes have
	isShared        = "shared"
)

// boundGuest is one guest of a random drain.
type boundGuest struct {
	kind    string
	binding model.Binding
	at      time.Duration // of what happens meanwhile
	moment  model.VM
}

// drainOf is a random node with guests.
type drainOf struct {
	guests []boundGuest
	apart  []string // the other nodes that have another pool than the node which is drained
	full   string   // a node without room; empty: none is
}

func drawDrain(t *rapid.T) drainOf {
	var d drainOf
	kinds := []string{
		isFree, isBound, isBoundMeantime, isReleased, hasLocalVolume, hasLocalFile, isNever, isOnSide, isShared,
	}
	bindings := []model.Binding{
		virtiofs, backup, iso, {Kind: model.BoundByHostDevice, What: "pci", Name: "0000:01:00.0"}, {Kind: model.BoundBySnapshots, Name: "before"},
	}
	for range rapid.IntRange(1, 6).Draw(t, "guests") {
		d.guests = append(d.guests, boundGuest{
			kind: rapid.SampledFrom(kinds).Draw(t, "kind"), binding: rapid.SampledFrom(bindings).Draw(t, "binding"),
			at: time.Duration(rapid.IntRange(0, 30_000).Draw(t, "at")) * time.Millisecond,
		})
	}
	d.apart = [][]string{nil, {"n2"}, {"n3"}, {"n2", "n3"}}[rapid.IntRange(0, 3).Draw(t, "apart")]
	d.full = rapid.SampledFrom([]string{"", "", "n2", "n3"}).Draw(t, "full")
	return d
}

// play drains n1, and says what was tried that cannot be, and what was said of a guest that is not so; empty: all is well.
func (d drainOf) play(t *testing.T) (wrong string) {
	w := newWorld(t, obedient)
	defer func() { w.lose() }()
	w.put(pools()...)
	d.lay(w)
	var mu sync.Mutex // over wrong and began: the guests' operations note too
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if wrong == "" {
			wrong = fmt.Sprintf(format, args...)
		}
	}
	began, stuck := time.Now(), map[string]func(target string) bool{}
	since := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Since(began)
	}
	for i := range d.guests {
		one := &d.guests[i]
		stuck[one.moment.ID] = func(target string) bool { return d.keeps(one, target, since()) }
	}
	w.agents.mu.Lock()
	w.agents.script = func(order operation.Order) *operation.Answer {
		first := order.Action == operation.ActPrepare && order.Step == 1
		if is := stuck[order.VM]; first && is != nil && is(order.Node) {
			note("%s was to go to %s %s after the drain had begun, and cannot", order.VMName, order.Node, since())
		}
		return obedient(order)
	}
	w.agents.mu.Unlock()
	tried, err := w.DrainNode(t.Context(), plans.DrainNode{Node: "n1", DryRun: true, Caller: "operator/test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, move := range tried.Plan.Moves {
		if is := stuck[move.VM]; !move.Stays && is(move.Target) {
			note("the dry run promises %s %s", move.VMName, move.TargetName)
		}
		if move.Stays && move.Reason == "" {
			note("the dry run does not say why %s stays", move.VMName)
		}
	}
	plan := w.drain("n1")
	mu.Lock()
	began = time.Now()
	mu.Unlock()
	for i := range d.guests {
		one := &d.guests[i]
		time.AfterFunc(one.at, func() {
			switch {
			case w.guest(one.moment.ID).Holder != "n1":
			case one.kind == isBoundMeantime:
				w.bind(one.moment, one.binding)
			case one.kind == isReleased:
				w.bind(one.moment)
			}
		})
	}
	plan = w.ended(plan.ID, 15*time.Minute)
	for i := range d.guests {
		one := &d.guests[i]
		stays := !slices.ContainsFunc([]string{"n2", "n3"}, func(target string) bool {
			return target != d.full && !d.keeps(one, target, time.Hour) || target != d.full && !d.keeps(one, target, 0)
		})
		at := slices.IndexFunc(plan.Moves, func(m model.Move) bool { return m.VM == one.moment.ID })
		here := w.guest(one.moment.ID).Holder == "n1"
		if stays && !here || here && (at < 0 || plan.Moves[at].Result == model.MoveMoved || plan.Moves[at].Result == "") {
			note("%s, which is %s, is on n1: %t: %+v", one.moment.Name, one.kind, here, plan.Moves)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return wrong
}

// lay puts the guests on their node, with what keeps them there.
func (d drainOf) lay(w *world) {
	if len(d.apart) > 0 {
		sides := map[string]string{"n1": "n1", "n2": "n1", "n3": "n1"}
		for _, node := range d.apart {
			sides[node] = node
		}
		w.facts.SetApart(model.PoolsApart{"p-wide": {Name: "wide", Source: "wide", Sides: sides, Each: true}})
	}
	for i := range d.guests {
		one := &d.guests[i]
		name := fmt.Sprintf("web%d", i+1)
		vm := w.on("n1", name, 1)
		volume := func(pool string, nodes ...string) {
			w.put(model.Resource{
				Kind: model.KindDisk, ID: "d-" + name, Name: "d-" + name, Volume: &model.Volume{Pool: pool, Nodes: nodes, Name: name, Capacity: 1},
			})
			w.record(vm.ID, func(vm *model.VM) { vm.Disks = []string{"d-" + name} })
		}
		switch one.kind {
		case isBound, isReleased:
			w.bind(vm, one.binding)
		case hasLocalVolume:
			volume("p-fast", "n1")
		case isOnSide, isShared:
			volume("p-wide")
		case hasLocalFile:
			w.record(vm.ID, func(vm *model.VM) { vm.Bound = "n1" })
		case isNever:
			w.record(vm.ID, func(vm *model.VM) { vm.Migration = model.MigrateNever })
		}
		one.moment = w.guest(vm.ID)
	}
	if d.full != "" {
		w.facts.change(d.full, func(f *model.NodeFacts) { f.Memory = 1 })
	}
}

// keeps tells whether a guest cannot go to a node, so long after the drain has begun.
func (d drainOf) keeps(one *boundGuest, target string, after time.Duration) bool {
	switch one.kind {
	case isBound, hasLocalVolume, hasLocalFile, isNever:
		return true
	case isBoundMeantime:
		return after > one.at
	case isReleased:
		return after < one.at
	case isOnSide, isShared:
		return slices.Contains(d.apart, target)
	default:
		return false
	}
}

// Random drains of nodes with guests that cannot move, or not everywhere, or not yet, or not any more: no move is tried that cannot be, the
// dry run promises none, and what stays is said.
func TestRandomDrainsTryNothingThatCannotBe(t *testing.T) {
	enough := 1000
	switch {
	case raceDetected:
		enough = 20
	case testing.Short():
		enough = 100
	}
	drains, stayed := 0, 0
	for drains < enough { // rapid draws a hundred at a time
		rapid.Check(t, func(draw *rapid.T) {
			if drains >= enough {
				return
			}
			d := drawDrain(draw)
			wrong := ""
			synctest.Test(t, func(t *testing.T) { wrong = d.play(t) })
			if wrong != "" {
				draw.Fatal(wrong)
			}
			drains++
			for i := range d.guests {
				if !strings.Contains(isFree+isShared, d.guests[i].kind) {
					stayed++
				}
			}
		})
	}
	t.Logf("%d drains, %d guests that something kept, 0 moves tried that cannot be", drains, stayed)
}
