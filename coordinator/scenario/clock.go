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

// journal is what happened at a site while time passed.
type journal struct {
	site
	began   time.Time
	log     []Entry
	decided []placement.Decision // of the log, not yet explained
}

// traffic is the moves that are under way.
type traffic struct {
	journal
	flights  []flight                         // by when they end
	departed int                              // moves so far
	tried    map[string][]operation.Operation // by plan that runs: its moves that are over, newest first
}

// leader is what the leader remembers, and carries out.
type leader struct {
	traffic
	seed      uint64
	draws     int           // decisions that its loops have drawn a seed for
	interval  time.Duration // between two passes
	bandwidth units.Bytes   // of a migration whose plan does not say, a second
	nextPass  time.Time

	plans     []model.Plan // newest first
	made      int          // plans so far
	pursuits  []*pursuit   // of the plans that run, oldest first
	histories map[string]*balance.History
	resting   map[string]string // by cluster: why its last pass moved nothing
	passes    int
	moves     int                         // that began for a plan
	told      struct{ passes, moves int } // of these, those that a run has told of
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
	What  string        `json:"what"`         // a kind of plan for a move that begins; moved, broken, holds, both, idle, proposed ...
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
func (j *journal) note(e Entry) {
	e.At, e.After = j.at, j.at.Sub(j.began)
	j.log = append(j.log, e)
}

// noteDecided adds a line about a decision.
func (j *journal) noteDecided(e Entry, decision *placement.Decision) {
	j.decided = append(j.decided, *decision)
	e.Decision = len(j.decided)
	j.note(e)
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
func (t *traffic) depart(vm *model.VM, target, plan string, bandwidth units.Bytes) *operation.Operation {
	g, _ := t.guest(vm)
	t.departed++
	f := flight{id: fmt.Sprintf("move-%d", t.departed), vm: vm.ID, source: vm.Holder, target: target, plan: plan, began: t.at}
	begun := t.operationOf(&f)
	if t.still {
		t.arriveBy(&f)
		t.over(&f, operation.Done, "")
		return &begun
	}
	seconds := min(math.Ceil(float64(g.memory)/float64(bandwidth)), strictyaml.MaxTime.Seconds())
	f.ends = t.at.Add(time.Duration(max(seconds, 1)) * time.Second)
	vm.Operation = "move of " + vm.Name
	t.nodes[target].guests = append(t.nodes[target].guests, guest{
		vm: g.vm, name: g.name, memory: g.memory, vcpus: g.vcpus, inFlight: true, state: model.DomainAbsent,
	})
	at, _ := slices.BinarySearchFunc(t.flights, f, func(a, b flight) int {
		return cmp.Or(a.ends.Compare(b.ends), strings.Compare(a.vm, b.vm))
	})
	t.flights = slices.Insert(t.flights, at, f)
	return &begun
}

// land ends the moves whose time is up.
func (t *traffic) land() {
	for len(t.flights) > 0 && !t.flights[0].ends.After(t.at) {
		f := t.flights[0]
		t.flights = slices.Delete(t.flights, 0, 1)
		vm := t.vmByID(f.vm)
		t.forget(&f, vm)
		t.arriveBy(&f)
		t.over(&f, operation.Done, "")
		t.note(Entry{What: "moved", VM: vm.Name, From: t.nodeName(f.source), To: t.nodeName(f.target), Plan: f.plan})
	}
}

// arriveBy hands a VM over to the node that it was on its way to.
func (t *traffic) arriveBy(f *flight) {
	vm := t.vmByID(f.vm)
	t.arrive(f.target, t.leave(f.source, f.vm))
	vm.Holder, vm.LastNode, vm.MovedAt = f.target, f.target, t.at
}

// forget takes the reservation of a move from its target.
func (t *traffic) forget(f *flight, vm *model.VM) {
	target := t.nodes[f.target]
	target.guests = slices.DeleteFunc(slices.Clone(target.guests), func(g guest) bool { return g.vm == f.vm && g.inFlight })
	vm.Operation = ""
}

// interrupt ends the moves from and to a node that went down: the VMs are where they were.
func (t *traffic) interrupt(down string) {
	kept := t.flights[:0:0]
	for _, f := range t.flights {
		if f.source != down && f.target != down {
			kept = append(kept, f)
			continue
		}
		vm := t.vmByID(f.vm)
		t.forget(&f, vm)
		why := t.nodeName(down) + " went down while the VM was copied"
		t.over(&f, operation.Failed, why)
		t.note(Entry{What: "failed", VM: vm.Name, From: t.nodeName(f.source), To: t.nodeName(f.target), Plan: f.plan, Why: why})
	}
	t.flights = kept
}

// flightOf is the index of a VM's flight; -1: it is not on its way anywhere.
func (t *traffic) flightOf(vm string) int {
	return slices.IndexFunc(t.flights, func(f flight) bool { return f.vm == vm })
}

// draw is the seed of the next decision that nobody asked for.
func (l *leader) draw() uint64 {
	l.draws++
	return derive(^l.seed, l.draws)
}

func (s *site) vmByID(id string) *model.VM {
	at := slices.IndexFunc(s.state.VMs, func(vm model.VM) bool { return vm.ID == id })
	if at < 0 {
		return nil
	}
	return &s.state.VMs[at]
}
