package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/strictyaml"
	"berth/shared/units"
)

// DefaultBandwidth is how much memory a migration copies in a second where nobody says otherwise.
const DefaultBandwidth = 128 * units.MiB

// course is what goes on in a world: what the leader remembers and what is under way.
type course struct {
	seed      uint64
	draws     int  // decisions that the leader's loops have drawn a seed for
	still     bool // no time passes: a move is over when it begins
	began     time.Time
	interval  time.Duration // between two passes
	bandwidth units.Bytes   // of a migration whose plan does not say, a second
	nextPass  time.Time

	flights   []flight                         // by when they end
	plans     []model.Plan                     // newest first
	made      int                              // plans so far
	pursuits  []*pursuit                       // of the plans that run, oldest first
	tried     map[string][]operation.Operation // by plan that runs: its moves that are over, newest first
	departed  int                              // moves so far
	histories map[string]*balance.History
	resting   map[string]string // by cluster: why its last pass moved nothing
	passes    int
	moves     int                         // that began for a plan
	told      struct{ passes, moves int } // of these, those that a run has told of
	log       []Entry
	decided   []placement.Decision // of the log, not yet explained
}

// flight is a VM on its way from one node to another.
type flight struct {
	id                 string // of the operation that a leader would have
	vm, source, target string // IDs
	began, ends        time.Time
	plan               string // ID; empty: somebody asked for this move alone
}

// Entry is one line of what happened while time passed.
type Entry struct {
	At    time.Time     `json:"at"`
	After time.Duration `json:"after_ns"`     // since the scenario began
	What  string        `json:"what"`         // a kind of plan for a move that begins; moved, broken, holds, idle, proposed ...
	Of    string        `json:"of,omitempty"` // what it is about, if that is no VM: group/web
	VM    string        `json:"vm,omitempty"`
	From  string        `json:"from,omitempty"`
	To    string        `json:"to,omitempty"`
	Plan  string        `json:"plan,omitempty"`
	Why   string        `json:"why,omitempty"`
	// Decision is which of the step's decisions chose the target, from 1; 0: none.
	Decision int `json:"decision,omitempty"`
}

// note adds a line to the log.
func (w *world) note(e Entry) {
	e.At, e.After = w.at, w.at.Sub(w.began)
	w.log = append(w.log, e)
}

// noteDecided adds a line about a decision.
func (w *world) noteDecided(e Entry, decision *placement.Decision) {
	w.decided = append(w.decided, *decision)
	e.Decision = len(w.decided)
	w.note(e)
}

// until lets time pass. What is due at the end is done.
func (w *world) until(end time.Time) error {
	for {
		w.passTo(w.nextMoment(end))
		w.land()
		if err := w.carry(); err != nil {
			return err
		}
		if !w.nextPass.After(w.at) {
			w.nextPass = w.nextPass.Add(w.interval)
			if err := w.lead(); err != nil {
				return err
			}
		}
		if !w.at.Before(end) {
			return nil
		}
	}
}

// nextMoment is when something is due next, at the latest the end.
func (w *world) nextMoment(end time.Time) time.Time {
	next := end
	if w.nextPass.Before(next) {
		next = w.nextPass
	}
	if len(w.flights) > 0 && w.flights[0].ends.Before(next) {
		next = w.flights[0].ends
	}
	for _, p := range w.pursuits {
		if p.next.Before(next) {
			next = p.next
		}
	}
	return next
}

// passTo sets the clock. The figures of nodes that answer keep their age: new ones come in all the time.
func (w *world) passTo(at time.Time) {
	by := at.Sub(w.at)
	w.at = at
	if by == 0 {
		return
	}
	for _, n := range w.nodes {
		if n.facts.Liveness != model.Up {
			continue
		}
		if n.facts.Inventory {
			n.facts.InventoryAt = n.facts.InventoryAt.Add(by)
		}
		if n.facts.Telemetry {
			n.facts.TelemetryAt = n.facts.TelemetryAt.Add(by)
			n.grow()
		}
	}
}

// grow lets what has just come into the node's figures.
func (n *node) grow() {
	for i := range n.guests {
		g := &n.guests[i]
		if !g.young {
			continue
		}
		if g.young = false; g.resident == nil {
			full := g.memory
			g.resident = &full
		}
		n.facts.Available = shifted(n.facts.Available, -*g.resident)
	}
}

// depart begins a move that was decided. While time stands still it is over at once.
func (w *world) depart(vm *model.VM, target, plan string, bandwidth units.Bytes) *operation.Operation {
	g, _ := w.guest(vm)
	w.departed++
	f := flight{id: fmt.Sprintf("move-%d", w.departed), vm: vm.ID, source: vm.Holder, target: target, plan: plan, began: w.at}
	begun := w.operationOf(&f)
	if w.still {
		w.arriveBy(&f)
		w.over(&f, operation.Done, "")
		return &begun
	}
	seconds := min(math.Ceil(float64(g.memory)/float64(bandwidth)), strictyaml.MaxTime.Seconds())
	f.ends = w.at.Add(time.Duration(max(seconds, 1)) * time.Second)
	vm.Operation = "move of " + vm.Name
	w.nodes[target].guests = append(w.nodes[target].guests, guest{
		vm: g.vm, name: g.name, memory: g.memory, vcpus: g.vcpus, inFlight: true, state: model.DomainAbsent,
	})
	at, _ := slices.BinarySearchFunc(w.flights, f, func(a, b flight) int {
		return cmp.Or(a.ends.Compare(b.ends), strings.Compare(a.vm, b.vm))
	})
	w.flights = slices.Insert(w.flights, at, f)
	return &begun
}

// land ends the moves whose time is up.
func (w *world) land() {
	for len(w.flights) > 0 && !w.flights[0].ends.After(w.at) {
		f := w.flights[0]
		w.flights = slices.Delete(w.flights, 0, 1)
		vm := w.vmByID(f.vm)
		w.forget(&f, vm)
		w.arriveBy(&f)
		w.over(&f, operation.Done, "")
		w.note(Entry{What: "moved", VM: vm.Name, From: w.nodeName(f.source), To: w.nodeName(f.target), Plan: f.plan})
	}
}

// arriveBy hands a VM over to the node that it was on its way to.
func (w *world) arriveBy(f *flight) {
	vm := w.vmByID(f.vm)
	w.arrive(f.target, w.leave(f.source, f.vm))
	vm.Holder, vm.LastNode, vm.MovedAt = f.target, f.target, w.at
}

// forget takes the reservation of a move from its target.
func (w *world) forget(f *flight, vm *model.VM) {
	target := w.nodes[f.target]
	target.guests = slices.DeleteFunc(slices.Clone(target.guests), func(g guest) bool { return g.vm == f.vm && g.inFlight })
	vm.Operation = ""
}

// interrupt ends the moves from and to a node that went down: the VMs are where they were.
func (w *world) interrupt(down string) {
	kept := w.flights[:0:0]
	for _, f := range w.flights {
		if f.source != down && f.target != down {
			kept = append(kept, f)
			continue
		}
		vm := w.vmByID(f.vm)
		w.forget(&f, vm)
		why := w.nodeName(down) + " went down while the VM was copied"
		w.over(&f, operation.Failed, why)
		w.note(Entry{What: "failed", VM: vm.Name, From: w.nodeName(f.source), To: w.nodeName(f.target), Plan: f.plan, Why: why})
	}
	w.flights = kept
}

// flightOf is the index of a VM's flight; -1: it is not on its way anywhere.
func (w *world) flightOf(vm string) int {
	return slices.IndexFunc(w.flights, func(f flight) bool { return f.vm == vm })
}

// draw is the seed of the next decision that nobody asked for.
func (w *world) draw() uint64 {
	w.draws++
	return derive(^w.seed, w.draws)
}

func (w *world) vmByID(id string) *model.VM {
	at := slices.IndexFunc(w.state.VMs, func(vm model.VM) bool { return vm.ID == id })
	if at < 0 {
		return nil
	}
	return &w.state.VMs[at]
}
