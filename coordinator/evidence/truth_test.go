package evidence

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/model"
)

// truth is an estate with the machines under it: what is really so, what the nodes tell of it, and what a leader keeps.
type truth struct {
	*estate

	follower Follower
	machines map[string]*machine
	trace    []string
}

// machine is one node as it is.
type machine struct {
	on, heard, watching bool
	boot                int
	runs                bool
	ranSince            time.Time // of the agent's watch
	whole               bool
	ending              *model.Ending
}

func newTruth() *truth {
	w := &truth{estate: running(), machines: map[string]*machine{}}
	for i := range w.nodes {
		id := w.nodes[i].ID
		w.machines[id] = &machine{on: true, heard: true, watching: true, runs: id == "n1", ranSince: w.vm.StartedAt, whole: true}
		w.facts[id] = model.NodeFacts{}
		w.report(id)
	}
	w.vm.Whereabouts.Boot = w.facts["n1"].Boot
	return w
}

func (w *truth) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%s: ", w.at.Format("15:04:05"))+fmt.Sprintf(format, args...))
}

// report has a node tell what it has, if it is heard.
func (w *truth) report(id string) {
	m := w.machines[id]
	if !m.on || !m.heard {
		return
	}
	was := w.facts[id]
	facts := model.NodeFacts{
		Liveness: model.Up, HeardAt: w.at, Boot: fmt.Sprintf("%s-%d", id, m.boot), Inventory: true, DomainsKnown: true, InventoryAt: w.at,
		Before: was.Before,
	}
	if was.Boot != "" && was.Boot != facts.Boot && was.DomainsKnown {
		facts.Before = model.BootFacts{Boot: was.Boot, Domains: was.Domains}
	}
	if m.runs {
		facts.Domains = []model.Domain{{UUID: vmID, Name: "db", State: model.DomainRunning, Managed: true, Epoch: w.vm.Epoch}}
	} else if m.ending != nil {
		facts.Endings = map[string]model.Ending{vmID: *m.ending}
	}
	w.facts[id] = facts
}

func (w *truth) place() string {
	for id, m := range w.machines {
		if m.runs {
			return id
		}
	}
	return ""
}

// look is what the loops of a leader do: it follows, lets the VMs of nodes go that are off, and writes down what it has seen.
func (w *truth) look() {
	for range 2 {
		w.at = w.at.Add(5 * time.Second)
		for id := range w.machines {
			w.report(id)
		}
		for i := range w.nodes {
			node := &w.nodes[i]
			if facts := w.facts[node.ID]; node.Fenced() && BootedAnew(facts, node, node.Fencing.Boot) {
				node.Fencing = model.Fencing{}
			} else if w.vm.Holder == node.ID && w.proof.Off(w.survey().Moment, node) {
				if after, can := w.survey().Released(w.vm); can {
					w.vm = after
					w.note("released: %+v", after.Whereabouts)
				}
			}
		}
		survey := w.survey()
		for _, seen := range seenOf(survey) {
			w.vm = seen
		}
		for _, found := range w.follower.looked(survey) {
			w.settle(found)
		}
	}
}

func (w *truth) settle(found Found) {
	switch found.Verdict {
	case StoppedHere:
		w.vm.Holder, w.vm.Whereabouts = "", model.Whereabouts{}
	case OutOfBand, Undecided:
		if found.Missing && w.vm.Whereabouts.Missing.IsZero() {
			w.vm.Whereabouts.Missing = w.at
		}
	case MovedAway, CameBack:
		w.vm.Holder, w.vm.LastNode, w.vm.MovedAt = found.Node, found.Node, w.at
		w.vm.Whereabouts = model.Whereabouts{Boot: w.facts[found.Node].Boot}
		w.vm.Epoch++
	default:
		return
	}
	w.note("%s: holder %q, %+v", found.Verdict, w.vm.Holder, w.vm.Whereabouts)
}

// came tells the agent of a machine that the VM has come to it.
func (m *machine) came(at time.Time) {
	m.runs, m.ranSince, m.whole, m.ending = true, at, m.watching, nil
}

// left is a migration that somebody has begun; died is the guest's end.
func (m *machine) left() { m.runs, m.ending = false, nil }

func (m *machine) died(at time.Time) {
	if m.runs && m.watching {
		m.ending = &model.Ending{At: at, RanSince: m.ranSince, Whole: m.whole}
	}
	m.runs = false
}

// act lets one thing happen.
func (w *truth) act(t *rapid.T) {
	w.at = w.at.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "after")) * time.Second)
	ids := []string{"n1", "n2", "n3", "n4"}
	id := rapid.SampledFrom(ids).Draw(t, "node")
	m := w.machines[id]
	what := rapid.SampledFrom([]string{
		"virsh migrate", "virsh migrate", "crash", "silence", "silence", "power", "agent restarts", "fence", "another leader", "lists",
		"stop", "virsh start", "virsh start",
	}).Draw(t, "what")
	w.note("%s %s", what, id)
	switch here := w.place(); what {
	case "virsh migrate":
		// Two things are taken for granted: that nobody moves a VM off a machine that is silent, and then has that machine boot or switched
		// off; and that nobody moves one to a machine that was proven to be off, and was switched on without being heard.
		to, _ := w.Node(id)
		if here != "" && here != id && m.on && w.machines[here].heard && (!to.Fenced() || m.heard) {
			w.machines[here].left()
			m.came(w.at)
			w.report(here)
			w.report(id)
		}
	case "crash":
		if here != "" {
			w.machines[here].died(w.at)
			w.report(here)
		}
	case "silence":
		if m.heard = !m.heard; !m.heard {
			w.silent(id, 0)
		}
		w.report(id)
	case "power":
		if m.on = !m.on; m.on {
			m.boot, m.watching = m.boot+1, true
		} else {
			m.runs, m.ending = false, nil
			w.silent(id, 0)
		}
		w.report(id)
	case "agent restarts":
		m.ending = nil
		m.ranSince, m.whole = w.at, false
		w.report(id)
	case "fence":
		if facts := w.facts[id]; !m.on {
			at := slices.IndexFunc(w.nodes, func(n model.Node) bool { return n.ID == id })
			boot := fmt.Sprintf("%s-%d", id, m.boot)
			w.nodes[at].Fencing = model.Fencing{Phase: model.FencingProven, Boot: boot, EndedAt: w.at}
			if facts.Liveness == model.Up {
				w.silent(id, 0)
			}
			w.proof[id] = w.at
		}
	case "another leader":
		w.look() // what the last one saw it has written down
		w.follower, w.proof = Follower{}, Proofs{}
		for id := range w.machines {
			w.facts[id] = model.NodeFacts{Liveness: model.Unreachable}
			w.report(id)
		}
	case "lists":
		w.report(id)
	case "stop":
		if held := w.vm.Holder; held != "" && held == here && w.machines[held].heard {
			w.machines[held].died(w.at)
			w.vm.Holder, w.vm.Desired, w.vm.Whereabouts = "", model.Stopped, model.Whereabouts{}
			w.report(held)
		}
	case "virsh start":
		// It is taken for granted that nobody moves it on before a leader has looked.
		if to, _ := w.Node(id); here == "" && w.vm.Holder == "" && m.on && m.heard && !to.Fenced() {
			m.came(w.at)
			w.report(id)
			w.look()
		}
	}
	if rapid.Bool().Draw(t, "look") {
		w.look()
	}
}

// Whatever has happened: a VM that may be started runs nowhere.
func TestAVMThatMayBeStartedRunsNowhere(t *testing.T) {
	mays, starts := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newTruth()
		for range rapid.IntRange(1, 25).Draw(t, "acts") {
			w.act(t)
			answer := w.survey().Of(&w.vm)
			if !answer.May {
				continue
			}
			mays++
			if here := w.place(); here != "" {
				t.Fatalf("it may be started (%s), and runs on %s:\n%s\n%+v", answer.Proof, here, strings.Join(w.trace, "\n"), w.vm)
			}
			id := rapid.SampledFrom([]string{"n1", "n2", "n3", "n4"}).Draw(t, "start on")
			if m := w.machines[id]; m.on && m.heard {
				w.at = w.at.Add(time.Second)
				w.vm.Holder, w.vm.LastNode, w.vm.StartedAt, w.vm.Desired = id, id, w.at, model.Running
				w.vm.Epoch++
				m.came(w.at)
				w.at = w.at.Add(time.Second)
				w.report(id)
				w.vm.Whereabouts = model.Whereabouts{Boot: w.facts[id].Boot}
				w.note("starts on %s", id)
				starts++
			}
		}
	})
	if !testing.Short() && (mays < 10 || starts < 5) { // a hundred draws give about a hundred
		t.Errorf("it may have been started %d times, and was %d times: too few to show anything", mays, starts)
	}
}
