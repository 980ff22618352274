package faults

import (
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"berth/agent/hypervisor"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// World is one run.
type World struct {
	clockwork
	context context.Context
	mix     Mix
	hosts   []*host
	members []*member
	leader  *member // the one that can commit; nil: none
	term    uint64
	store   *state.Store
	log     [][]byte
	cuts    map[[2]string]int
	moves   []*move
	ids     int
	bug     Bug

	fencing   bool            // agents report, and nodes are fenced
	available map[string]bool // VMs that are to be highly available, by UUID
	stops     *Happening      // to the leader, at the next device that it asks; nil: nothing
	unheard   map[string]bool // nodes that were proven to be off when nobody had ever heard them
	jumped    bool            // a clock has

	void    map[[2]string]uint64 // by host and VM: the highest epoch that is known not to run there any more
	excused map[string]bool      // VMs whose guest a fault may have ended
	started time.Time            // of the quiet after the faults; zero: not yet

	hash   hash.Hash64
	trace  io.Writer // nil: nobody reads it
	result Result
}

// Breach is a broken invariant.
type Breach struct {
	At   time.Duration `json:"at"`
	Rule string        `json:"rule"` // I1 to I9 of FAULTS.md; lost, record, stuck, parked, refused, overload, key
	Text string        `json:"text"`
}

// Result is what a run came to.
type Result struct {
	Breaches   []Breach
	Events     uint64
	Lasted     time.Duration // virtual
	Operations int
	Proven     int    // nodes that were proven to be off
	Restarts   int    // of VMs that are to be highly available
	Hash       uint64 // of the trace
}

// Failed tells whether an invariant was broken.
func (r *Result) Failed() bool { return len(r.Breaches) > 0 }

const maxBreaches = 20

// broken notes a breach.
func (w *World) broken(rule, subject, format string, args ...any) {
	if len(w.result.Breaches) >= maxBreaches {
		return
	}
	breach := Breach{At: w.now.Sub(began), Rule: rule, Text: subject + ": " + fmt.Sprintf(format, args...)}
	w.result.Breaches = append(w.result.Breaches, breach)
	w.note("BROKEN "+rule, subject, "", breach.Text)
}

// note takes what happens into the trace.
func (w *World) note(what, where, subject, detail string) {
	var at [8]byte
	ns := uint64(w.now.Sub(began))
	for i := range at {
		at[i] = byte(ns >> (8 * i))
	}
	_, _ = w.hash.Write(at[:])
	for _, text := range [...]string{what, where, subject, detail} {
		_, _ = io.WriteString(w.hash, text)
		_, _ = w.hash.Write([]byte{0})
	}
	if w.trace != nil {
		_, _ = fmt.Fprintf(w.trace, "%12.6f %-18s %-6s %-12s %s\n", w.now.Sub(began).Seconds(), what, where, short(subject), detail)
	}
}

// short is the end of a UUID.
func short(id string) string {
	if len(id) == 36 {
		return "vm-" + id[32:]
	}
	return id
}

func (w *World) uuid(name string) string {
	var n int
	_, _ = fmt.Sscanf(name, "vm-%d", &n)
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
}

func newWorld(script Script, trace io.Writer, bug Bug) *World {
	store := state.NewStore()
	w := &World{
		clockwork: newClockwork(script.Seed), context: context.Background(), mix: script.Mix, store: store,
		cuts: map[[2]string]int{}, void: map[[2]string]uint64{}, excused: map[string]bool{}, hash: fnv.New64a(), trace: trace, bug: bug,
		fencing: len(script.Fences) > 0, available: map[string]bool{}, unheard: map[string]bool{},
	}
	for i := range script.HA {
		w.available[w.uuid(fmt.Sprintf("vm-%d", i))] = true
	}
	command := state.Command{Key: "setup", Kind: "setup", Caller: "sim", At: w.now}
	for i := range script.Hosts {
		id := fmt.Sprintf("n%d", i+1)
		h := &host{
			world: w, id: id, memory: script.HostMemory, on: true, up: true, moment: make(chan struct{}),
			domains: map[string]*domain{}, completed: map[string]hypervisor.Job{},
		}
		h.disk = &disk{world: w, host: h, buckets: map[string]map[string][]byte{}}
		w.hosts = append(w.hosts, h)
		node := model.Node{ID: id, Name: id, Cluster: model.DefaultCluster}
		h.dog.host = h
		if i < len(script.Fences) {
			node.Fence = fenceDevice(script.Fences[i])
			if script.Fences[i] == model.FenceWatchdog {
				h.dog.takes = time.Duration(10+w.random.IntN(50)) * time.Second
			}
		}
		command.Nodes = append(command.Nodes, node)
		command.Expect = append(command.Expect, state.Expectation{Table: state.Nodes, ID: id})
	}
	for i := range script.Members {
		w.members = append(w.members, &member{world: w, id: fmt.Sprintf("c%d", i+1), alive: true})
	}
	if result := w.apply(command); result.Refusal != nil {
		panic("the site is refused: " + result.Refusal.Message)
	}
	return w
}

func (w *World) host(id string) *host {
	for _, h := range w.hosts {
		if h.id == id {
			return h
		}
	}
	return nil
}

func pair(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

func (w *World) isCut(a, b string) bool { return w.cuts[pair(a, b)] > 0 }

func (w *World) movesOf(h *host) []*move {
	var all []*move
	for _, m := range w.moves {
		if m.source == h || m.target == h {
			all = append(all, m)
		}
	}
	return all
}

// forget drops a move that has ended, once its target's part is over, too.
func (w *World) forget(*move) {
	if len(w.moves) < 32 {
		return
	}
	w.moves = slices.DeleteFunc(w.moves, func(m *move) bool { return m.over && (m.in == nil || m.in.move != m) })
}

// apply puts a command into the log and compares what it changes with the rules.
func (w *World) apply(command state.Command) state.Result {
	before := w.store.Snapshot()
	w.guard(&command)
	data, err := command.Encode()
	if err != nil {
		panic(err)
	}
	w.log = append(w.log, data)
	result, ok := w.store.FSM().Apply(&raft.Log{Index: uint64(len(w.log)), Term: w.term, Data: data}).(state.Result)
	if !ok {
		panic("the state machine gave no result")
	}
	if result.Refusal != nil {
		w.note("refused", string(result.Refusal.Code), command.Key, result.Refusal.Message)
		return result
	}
	w.note("committed", command.Key, command.Kind, "")
	if result.Index == uint64(len(w.log)) { // not a repetition
		for i := range command.Operations {
			w.checkStep(before, &command.Operations[i])
		}
		w.checkNodes(before, &command)
	}
	return result
}

// inputOf is what the driver of an operation has to know.
func (m *member) inputOf(snapshot *state.Snapshot, op operation.Operation, vm model.VM) operation.Input {
	input := operation.Input{Operation: op, VM: vm}
	if op.Phase == operation.Queued {
		working, queue := snapshot.StartsOn(op.Target)
		working += m.startsUnderWay(snapshot, op.Target, operation.Dispatched) // control commits them one after the other
		input.Turn = operation.HasTurn(op.ID, working, queue, parallelStarts)
	}
	if !m.world.fencing {
		return input
	}
	now := m.moment(snapshot)
	for _, id := range []string{op.Source, op.Target} {
		if node, enrolled := snapshot.Node(id); enrolled && m.fencer.Off(now, &node) {
			input.Fenced = append(input.Fenced, id)
		}
	}
	return input
}

// sortedKeys are the keys of a map, ascending.
func sortedKeys[T any](of map[string]T) []string { return slices.Sorted(maps.Keys(of)) }
