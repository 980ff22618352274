package faults

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/backup"
	"berth/integration/faults/bound"
	"berth/integration/faults/byhand"
	"berth/integration/faults/drifted"
	"berth/integration/faults/killer"
	"berth/integration/faults/machine"
	"berth/integration/faults/plant"
	"berth/integration/faults/resized"
	"berth/integration/faults/script"
	"berth/integration/faults/setup"
	"berth/integration/faults/sized"
	"berth/integration/faults/stage"
)

// World is one run.
type World struct {
	*machine.Site
	hosts     []*host
	clones    []*host       // those that have one
	sickAfter time.Duration // that a host may say that it is of no use; 0: none says so
	removed   *host         // the machine of a node that was removed; nil: none speaks
	members   []*member
	rules     *rules
	bug       plant.Bug

	leader *member // the one that can commit; nil: none
	term   uint64
	store  *state.Store
	log    [][]byte
	ids    int

	fencing    bool              // agents report, and nodes are fenced
	available  map[string]bool   // VMs that are to be highly available, by UUID
	stops      *script.Happening // to the leader, at the next device that it asks; nil: nothing
	healed     bool              // nothing goes wrong any more
	byHand     byhand.Deeds
	killers    *killer.Killers
	drifted    *drifted.Guests
	sized      *sized.Guests
	resized    *resized.Disks
	rack       int               // how many of the hosts, the first ones, stand in one rack
	cause      string            // why guests end now; empty: nothing in particular
	disked     map[string]bool   // VMs that have a disk on their node, by UUID
	sourceDies *script.Happening // of the next migration with disks; nil: it does not

	shelf  backup.Shelf
	shares bool // VMs have disks that all hosts see

	result Result
}

// Result is what a run came to.
type Result = stage.Result

// uuidOf is the UUID of a VM.
func uuidOf(name string) string {
	var n int
	_, _ = fmt.Sscanf(name, "vm-%d", &n)
	return script.UUIDOf(n)
}

func vmName(number int) string { return fmt.Sprintf("vm-%d", number) }

func (w *World) newID(kind string) string {
	w.ids++
	return fmt.Sprintf("%s-%04d", kind, w.ids)
}

func (w *World) newKey() string {
	w.ids++
	return fmt.Sprintf("key-%06d", w.ids)
}

func newWorld(played script.Script, trace io.Writer, bug plant.Bug) *World {
	w := &World{
		Site: machine.NewSite(stage.New(played, trace)), store: state.NewStore(), bug: bug, fencing: len(played.Fences) > 0,
		available: map[string]bool{},
		disked:    map[string]bool{}, rack: played.Rack, sickAfter: played.SickAfter, shares: played.Draws(script.Restore),
	}
	w.killers = &killer.Killers{
		Site: w.Site, Term: func() uint64 { return w.term }, Fell: w.fell, Because: w.because,
		Records: func() *state.Snapshot { return w.store.Snapshot() },
	}
	w.drifted = drifted.New(w.Site)
	w.result.Back = map[string][]time.Duration{}
	w.rules = newRules(w)
	w.Witness = w.rules
	for i := range played.Disks {
		w.disked[uuidOf(fmt.Sprintf("vm-%d", i))] = true
	}
	for i := range played.HA {
		w.available[uuidOf(vmName(i))] = true
	}
	command := state.Command{Key: "setup", Kind: "setup", Caller: "sim", At: w.Now}
	setup.Sick(&played, &command)
	for i := range played.Hosts {
		node := setup.Node(&played, i)
		h := w.newHost(node.ID, played.HostMemory)
		w.hosts = append(w.hosts, h)
		if h.old = played.IsOld(i); h.old {
			w.Draw(script.OldAgent)
		}
		if node.Fence.Method == model.FenceWatchdog {
			h.Dog.Takes = time.Duration(10+w.Random.IntN(50)) * time.Second
			if !h.old && !w.hasWatchdog(&played, i) {
				h.Dog.Takes = 0
			}
		}
		command.Nodes = append(command.Nodes, node)
		command.Expect = append(command.Expect, state.Expectation{Table: state.Nodes, ID: node.ID})
	}
	w.resized = &resized.Disks{Site: w.Site, Machines: w.machines(), Has: w.disked, Blind: bug == plant.DiskSizeUnasked}
	w.resized.Happens = slices.ContainsFunc(script.Resizes, played.Draws)
	w.resized.Declare(&command)
	bound.Lay(w.Site, w.machines(), &played, &command)
	w.sized = &sized.Guests{Site: w.Site, Machines: w.machines()}
	for i := range played.Members {
		m := &member{world: w, id: fmt.Sprintf("c%d", i+1), alive: true}
		m.keeper = &keeper{member: m}
		w.members = append(w.members, m)
	}
	level := state.RaiseLevel(state.FeatureLevel)
	level.Key, level.Caller, level.At = "level", "sim", w.Now
	w.apply(level)
	if result := w.apply(command); result.Refusal != nil {
		panic("the site is refused: " + result.Refusal.Message)
	}
	return w
}

func (w *World) host(id string) *host {
	for _, h := range w.hosts {
		if h.ID == id {
			return h
		}
	}
	return nil
}

// apply puts a command into the log and compares what it changes with the rules.
func (w *World) apply(command state.Command) state.Result {
	before := w.store.Snapshot()
	w.bug.Expect(&command, before)
	data, err := command.Lean(before).Encode()
	if err != nil {
		panic(err)
	}
	data = state.Entry([][]byte{data}, before.FeatureLevel())
	w.log = append(w.log, data)
	index := w.shelf.Since + uint64(len(w.log))
	result, ok := w.store.FSM().Apply(&raft.Log{Index: index, Term: w.term, Data: data}).(state.Result)
	if !ok {
		panic("the state machine gave no result")
	}
	if result.Refusal != nil {
		w.Note("refused", string(result.Refusal.Code), command.Key, result.Refusal.Message)
		return result
	}
	w.Note("committed", command.Key, command.Kind, "")
	if result.Index == index { // not a repetition
		for i := range command.Operations {
			w.rules.checkStep(before, &command.Operations[i])
		}
		w.rules.checkNodes(before, &command)
		w.drifted.Recorded(command.VMs)
	}
	return result
}

// inputOf is what the driver of an operation has to know.
func (m *member) inputOf(snapshot *state.Snapshot, op operation.Operation, vm model.VM) operation.Input {
	input := operation.Input{Operation: op, VM: vm, Silent: op.Source != "" && m.sessions[op.Source] == nil}
	switch {
	case op.Awaits():
		input.Turn, input.Unlisted = m.hears(&op)
		as := vm
		as.Operation = "" // so that the job is not its own
		if m.tied(snapshot, &as, m.world.bug.Holds) {
			input.Held = "a backup of somebody else holds it"
		}
	case op.Phase == operation.Queued:
		working, queue := snapshot.StartsOn(op.Target)
		working += m.startsUnderWay(snapshot, op.Target, operation.Dispatched) // control commits them one after the other
		input.Turn = operation.HasTurn(op.ID, working, queue, parallelStarts)
	}
	input.Suspect = m.suspect(snapshot, &op)
	if !m.world.fencing {
		return input
	}
	now := m.keeper.moment(snapshot)
	input.Boot = now.Boot(op.Target)
	input.Came, input.Fell = m.keeper.fencer.Stay(now, &op, &vm)
	for _, id := range []string{op.Source, op.Target} {
		if node, enrolled := snapshot.Node(id); enrolled && m.keeper.fencer.Off(now, &node) {
			input.Fenced = append(input.Fenced, id)
		}
	}
	return input
}

// sortedKeys are the keys of a map, ascending.
func sortedKeys[T any](of map[string]T) []string { return slices.Sorted(maps.Keys(of)) }

// because says why guests end from now on, until the function is called that it returns.
func (w *World) because(cause string) (over func()) {
	before := w.cause
	w.cause = cause
	return func() { w.cause = before }
}
