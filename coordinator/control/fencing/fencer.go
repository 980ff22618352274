package fencing

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// Fencer is what a leader knows about the fencing of nodes beside their records. It says what is to be committed and which
// devices are to be asked; whoever has one does that and tells it what came of it. Another leader begins with a new one, which
// lets what may be at work come to its end. A Fencer never waits, sends or reads a clock, and is not safe for concurrent use.
type Fencer struct {
	evidence.Proofs
	witnesses
	identities
	attention
	dues

	powers powers
	newID  func() string
	since  time.Time            // when the leadership began
	asking map[string]bool      // by node ID, as all that follow: its device is being asked
	rests  map[string]time.Time // until when a device is left alone
	heard  map[string]time.Time // when each was last heard under the boot that its record has
	fell   map[string]time.Time // when each was last heard under the boot before that
	leases map[string]time.Time // when each node got its last one
	came   map[string]arrival   // by VM ID: when each came to the node that has it, of those that came under this leader
	// disarmed are those that were told to disarm their watchdogs and have not said since that they have: what they say of an
	// armed one may be older.
	disarmed map[string]bool
	held     map[string]evidence.FenceVerdict // what is to be said of it
}

// NewFencer makes that of a leadership which begins then.
func NewFencer(at time.Time, newID func() string) *Fencer {
	return &Fencer{
		newID: newID, since: at, asking: map[string]bool{}, rests: map[string]time.Time{}, leases: map[string]time.Time{},
		heard: map[string]time.Time{}, fell: map[string]time.Time{}, disarmed: map[string]bool{}, came: map[string]arrival{},
		Proofs: evidence.Proofs{}, held: map[string]evidence.FenceVerdict{}, witnesses: witnesses{}, identities: identities{}, powers: powers{},
		attention: newAttention(), dues: newDues(),
	}
}

// arrival is when a VM came to its node, under an epoch.
type arrival struct {
	epoch uint64
	at    time.Time
}

// Came takes note that a VM has come to its node. Its record has that as well, by a wall clock, which may jump before the node is lost:
// then a loss that came soon would look like one that came an hour later.
func (f *Fencer) Came(vm *model.VM, at time.Time) {
	if f.came[vm.ID].epoch != vm.Epoch {
		f.came[vm.ID] = arrival{vm.Epoch, at}
	}
}

// Leased takes note that a node gets a lease now, or is told that it needs none any more.
func (f *Fencer) Leased(node string, leased bool, at time.Time) {
	if leased {
		if f.leases[node].IsZero() {
			f.fresh[node] = true
		}
		f.leases[node] = at
	} else {
		f.disarmed[node], f.fresh[node] = true, true
		delete(f.leases, node)
	}
}

// Held says why a silent node that VMs wait for is not proven to be off; false if nothing is to be said.
func (f *Fencer) Held(node string) (evidence.FenceVerdict, bool) {
	verdict, held := f.held[node]
	return verdict, held
}

// Struck is the name of the node that the device of another one has perhaps switched off in its place; empty: none is, or it was
// heard since and has not booted.
func (f *Fencer) Struck(p evidence.Moment, node *model.Node) string {
	return struckBy(p, node, f.since)
}

// provenAt is since when this leader knows that a node is off, at the earliest since it leads. No setting of a clock moves that.
func (f *Fencer) provenAt(node string) time.Time {
	if at := f.Proofs[node]; at.After(f.since) {
		return at
	}
	return f.since
}

// awaited are the names of VMs that are to be highly available and that are not started because a node may have them, by its ID.
func (f *Fencer) awaited(p evidence.Moment) map[string][]string {
	awaited := map[string][]string{}
	var survey *evidence.Survey
	for _, vm := range p.VMsMarked(model.MarkMissing) {
		if vm.Operation != "" {
			continue
		}
		if survey == nil {
			survey = f.Survey(p)
		}
		answer := survey.Verdict(&vm, "")
		inTheWay := answer.InTheWay()
		if slices.ContainsFunc(inTheWay, func(word evidence.Word) bool { return word.Standing == evidence.ShowsIt }) {
			continue // it runs there, so nothing waits for other nodes
		}
		for _, word := range inTheWay {
			if word.Standing == evidence.Silent && word.Node != vm.Holder {
				awaited[word.Node] = append(awaited[word.Node], vm.Name)
			}
		}
	}
	for _, names := range awaited {
		slices.Sort(names)
	}
	return awaited
}

// silence is a node as fencing looks at it, without what waits for it and for how long that may wait.
func (f *Fencer) silence(p evidence.Moment, node model.Node, facts model.NodeFacts) evidence.Silence {
	latest := func(of time.Time) time.Duration {
		if of.Before(f.since) {
			of = f.since
		}
		return p.At.Sub(of)
	}
	one := evidence.Silence{
		Node: node, Liveness: facts.Liveness, Silent: latest(facts.HeardAt),
		Asking: f.asking[node.ID], Leased: latest(f.leases[node.ID]), Rest: f.rests[node.ID].Sub(p.At), Leases: !f.leases[node.ID].IsZero(),
		Struck: f.Struck(p, &node), Check: f.Checking(node.ID),
	}
	one.Other, one.Mend = f.Identity(&node).Refused(&node)
	one.Useless = f.powers.useless(&node)
	if !facts.SickSince.IsZero() {
		one.Sick, one.SickWhy = latest(facts.SickSince), facts.LivenessReason
	}
	if node.Fencing.Phase == model.FencingAsked && !one.Asking {
		one.Left = fenceCall(node.Fence) - p.At.Sub(f.since)
	}
	return one
}

// Unprovable says why nothing but somebody's word would prove that a node is off if it fell silent now, and what ends that. Empty:
// something would, as far as is known.
func (f *Fencer) Unprovable(p evidence.Moment, node model.Node) (why, next string) {
	one := f.silence(p, node, p.Facts(node.ID))
	return one.Unprovable()
}

// News is what the history tells of a node that is not fenced, though VMs wait for it.
func (f *Fencer) News(p evidence.Moment, verdict evidence.FenceVerdict) state.Command {
	return state.Command{
		Key: f.newID(), Kind: "fence held", Caller: lead.Berth, At: p.At,
		Events: []model.Event{{
			At: p.At, Kind: "node.not-fenced", Subject: "node/" + p.NodeName(verdict.Node),
			Message: verdict.Why + ": " + verdict.Next, Caller: lead.Berth,
		}},
	}
}

// Ask says what is to be committed before a node's device is asked, and gives the record with it. It reports false if the
// device is being asked already. Two calls never overlap on a node: what the record says is at work, by whatever leader, has
// come to its end before. Answered is to be called when the call has ended, or is not made.
func (f *Fencer) Ask(node model.Node, caller, why string, at time.Time) (command state.Command, asked model.Node, free bool) {
	if f.asking[node.ID] {
		return command, node, false
	}
	f.asking[node.ID] = true
	attempt := 1
	if node.Fencing.Phase == model.FencingFailed || node.Fencing.Phase == model.FencingAsked {
		attempt = node.Fencing.Attempt + 1
	}
	expected := node.Revision
	node = f.attempt(node, model.FencingAsked, node.Fence.Method, attempt, caller, at)
	return state.Command{
		Key: f.newID(), Kind: "ask fence device", Caller: caller, At: at,
		Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: expected}}, Nodes: []model.Node{node},
		Events: []model.Event{{
			At: at, Kind: "node.fence", Subject: "node/" + node.Name, Caller: caller,
			Message: fmt.Sprintf("%s is asked to switch it off, try %d: %s", node.Fence.Title(), attempt, why),
		}},
	}, node, true
}

// TooLate says why a device that was to be asked is not called any more; empty: it is. Node is the record that Ask gave.
func (f *Fencer) TooLate(node *model.Node, at time.Time) string {
	if stood := at.Sub(node.Fencing.AskedAt); stood > fenceHaste {
		return fmt.Sprintf("its device was not asked: this coordinator stood still for %s before it could", stood.Round(time.Second))
	}
	return ""
}

// Answered tells that the call of a node's device has ended. One that gave no proof is left alone for a while.
func (f *Fencer) Answered(node *model.Node, proven bool, at time.Time) {
	if !proven {
		f.rests[node.ID] = at.Add(fenceRest(node.Fencing.Attempt))
	}
}

// Free tells that no call of a node's device is under way any more, and that what came of it is committed.
func (f *Fencer) Free(node string) {
	delete(f.asking, node)
	delete(f.witnesses, node)
}

// ByWatchdog is a node's record when its watchdog has proven it to be off.
func (f *Fencer) ByWatchdog(node model.Node, at time.Time) model.Node {
	return f.attempt(node, "", model.FenceWatchdog, 1, lead.Berth, at)
}

// ByHand is a node's record when somebody's word has proven it to be off.
func (f *Fencer) ByHand(node model.Node, caller string, at time.Time) model.Node {
	return f.attempt(node, "", model.FenceManual, 1, caller, at)
}

// attempt is a node's record when a fencing of its present boot begins.
func (f *Fencer) attempt(
	node model.Node, phase model.FencingPhase, method model.FenceMethod, attempt int, caller string, at time.Time,
) model.Node {
	node.Fencing = model.Fencing{
		ID: f.newID(), Phase: phase, Method: method, Boot: node.Boot, Attempt: attempt, Caller: caller, AskedAt: at,
	}
	return node
}

// End says what is to be committed when a fencing has ended: the proof, or that there is none. Node is the record that the
// fencing began with. It reports false if the records tell of another one by now. A node that has booted anew meanwhile is not
// proven to be off: what was asked for is of a boot that is over, and what the device says may be so, too.
func (f *Fencer) End(p evidence.Moment, node model.Node, message string, proven bool) (state.Command, bool) {
	fencing := node.Fencing
	asked := fencing.Phase == model.FencingAsked
	now, enrolled := p.Node(node.ID)
	if !enrolled || asked && now.Fencing.ID != fencing.ID || now.Fenced() {
		return state.Command{}, false
	}
	fencing.EndedAt, fencing.Message, fencing.Phase = p.At, message, model.FencingFailed
	event := model.Event{
		At: p.At, Kind: "node.fence-failed", Subject: "node/" + node.Name, Caller: fencing.Caller,
		Message: "no proof that it is off: " + message,
	}
	switch {
	case now.Boot != fencing.Boot || evidence.BootedAnew(p.Facts(node.ID), &now, fencing.Boot):
		fencing = model.Fencing{}
		event.Kind, event.Message = "node.returned", "booted anew while it was fenced: it counts as it did ("+message+")"
	case proven:
		fencing.Phase = model.FencingProven
		event.Kind, event.Message = "node.fenced", "proven to be off: "+message
		f.Proofs[node.ID] = p.At
	}
	expected := now.Revision
	now.Fencing = fencing
	return state.Command{
		Key: f.newID(), Kind: "end fencing", Caller: fencing.Caller, At: p.At,
		Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: expected}}, Nodes: []model.Node{now},
		Events: []model.Event{event},
	}, true
}

// released is how many VMs of a node that is off are written down by one command.
const released = 64

// Release says what is to be committed so that the VMs of nodes that are proven to be off have no holder. One that may be on another
// node, which is not heard, keeps it.
func (f *Fencer) Release(p evidence.Moment) []state.Command {
	var commands []state.Command
	var survey *evidence.Survey
	for _, id := range attended(f.ill) {
		node := p.SharedNode(id)
		if node == nil || !f.Off(p, node) {
			continue
		}
		vms := slices.DeleteFunc(p.VMsOn(node.ID), func(vm model.VM) bool { return vm.Operation != "" })
		if len(vms) > 0 && survey == nil {
			survey = f.Survey(p)
		}
		var free []model.VM
		for i := range vms {
			if after, can := survey.Released(vms[i]); can {
				free = append(free, after)
			}
		}
		for some := range slices.Chunk(free, released) {
			command := state.Command{
				Key: f.newID(), Kind: "release vms", Caller: lead.Berth, At: p.At,
				Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: node.Revision}},
			}
			for _, vm := range some {
				command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
				if vm.HA {
					f.lose(p, &vm, node)
				}
				vm.Condition = model.Condition{
					Kind: model.HolderOff, About: node.ID,
					Text: fmt.Sprintf("its node %s is proven to be off (%s)", node.Name, node.Fencing.Message),
				}
				command.VMs = append(command.VMs, vm)
				command.Events = append(command.Events, model.Event{
					At: p.At, Kind: "vm.released", Subject: "vm/" + vm.Name, Caller: lead.Berth,
					Message: fmt.Sprintf("runs on %s no more: %s", node.Name, node.Fencing.Message),
				})
			}
			commands = append(commands, command)
		}
	}
	return commands
}

// atOnce is how close to each other hosts fall silent that fail together: no VM takes down two at a time.
const atOnce = 15 * time.Second

// lose takes note in a VM's record that its host was lost, as far as this leader knows when: if it did not lead then, that counts as now.
// Where others fell silent at that moment it was not the VM.
func (f *Fencer) lose(p evidence.Moment, vm *model.VM, node *model.Node) {
	at := f.fellAt(p, node)
	if at.IsZero() {
		at = p.At
	}
	for _, id := range attended(f.ill, f.fresh, f.unsettled) { // any other answers as it did
		other := p.SharedNode(id)
		if other == nil {
			continue
		}
		apart := f.fellAt(p, other).Sub(at)
		if other.ID != node.ID && apart < atOnce && apart > -atOnce {
			return
		}
	}
	vm.Lose(node.Name, cmp.Or(f.cameAt(vm), vm.CameAt()), at)
}

// fellAt is when a node was heard last that is silent, or that has booted since; zero: it answers, or nobody knows.
func (f *Fencer) fellAt(p evidence.Moment, node *model.Node) time.Time {
	facts := p.Facts(node.ID)
	switch {
	case facts.Boot != node.Boot || facts.HeardAt.IsZero(): // what it was heard at is of another boot
		return f.heard[node.ID]
	case facts.Liveness.Answers():
		return time.Time{}
	}
	return facts.HeardAt
}

// cameAt is when a VM came to the node that has it; zero: not under this leader.
func (f *Fencer) cameAt(vm *model.VM) time.Time {
	if here, seen := f.came[vm.ID]; seen && here.epoch == vm.Epoch {
		return here.at
	}
	return time.Time{}
}

// Stay is when the VM of a migration came to its source, and when that was heard last under the boot with which the migration began, by
// this leader's own clock: a wall clock may have been set meanwhile, and the migration is judged when the host is back. Zero: it does not
// know, or the host is still heard.
func (f *Fencer) Stay(p evidence.Moment, op *operation.Operation, vm *model.VM) (came, fell time.Time) {
	node, known := p.Node(op.Source)
	if !known || op.Kind != operation.Migrate {
		return time.Time{}, time.Time{}
	}
	if node.Boot != op.SourceBoot {
		return f.cameAt(vm), f.fell[node.ID]
	}
	return f.cameAt(vm), f.fellAt(p, &node)
}

// noticed is how many nodes are written down by one command.
const noticed = 64

// Notice is what is to be committed of nodes that are heard, and the IDs of those that count again when it is: whatever waits
// for one of them goes on.
type Notice struct {
	Command state.Command
	Back    []string
}

// Notice says what is to be written down of nodes that are heard: their boots, and whether their watchdogs are armed. A node
// that was proven to be off counts again when it has booted anew; what was tried and came to nothing is forgotten when it is
// heard. It looks at the nodes of which Take was told since, and at those of which it knows that time may tell something.
func (f *Fencer) Notice(p evidence.Moment) []Notice {
	var all []Notice
	machines := levelOf(p) >= state.MachineLevel // what members would not keep is not noticed again and again
	guards, unsettled := p.Guards(), map[string]bool{}
	for _, id := range attended(f.ill, f.fresh, f.unsettled) {
		node := p.SharedNode(id)
		if node == nil {
			continue
		}
		facts := p.Facts(node.ID)
		if !facts.HeardAt.IsZero() && facts.Watchdog == 0 {
			delete(f.disarmed, node.ID)
		}
		silence := f.silence(p, *node, facts)
		watched := node.Watchdog > 0 || node.Fence.Method == model.FenceWatchdog
		silence.Guarded = watched && guards(node.ID) && !f.disarmed[node.ID]
		after, event := noticedNode(&silence, facts, machines)
		if facts.Boot == node.Boot {
			f.heard[node.ID] = facts.HeardAt
		} else if heard := f.heard[node.ID]; !heard.IsZero() {
			f.fell[node.ID] = heard
		}
		if unnoticed(&after, node) {
			continue
		}
		unsettled[id] = true
		gone := f.lostByBoot(p, node, &after)
		if len(all) == 0 || len(all[len(all)-1].Command.Nodes) == noticed || len(all[len(all)-1].Command.VMs)+len(gone) > released {
			all = append(all, Notice{Command: state.Command{Key: f.newID(), Kind: "notice nodes", Caller: lead.Berth, At: p.At}})
		}
		one := &all[len(all)-1]
		if event.Kind != "" {
			event.At, event.Subject, event.Caller = p.At, "node/"+after.Name, lead.Berth
			one.Command.Events = append(one.Command.Events, event)
			if !after.Held() {
				one.Back = append(one.Back, after.ID)
			}
		}
		one.Command.Expect = append(one.Command.Expect, state.Expectation{Table: state.Nodes, ID: after.ID, Revision: after.Revision})
		one.Command.Nodes = append(one.Command.Nodes, after)
		for _, vm := range gone {
			one.Command.Expect = append(one.Command.Expect, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
			one.Command.VMs = append(one.Command.VMs, vm)
		}
	}
	f.fresh, f.unsettled = map[string]bool{}, unsettled
	return all
}

// lostByBoot are the VMs that are to be highly available and were lost with the last boot of a node's host, if it has booted anew. A
// migration judges its own by itself.
func (f *Fencer) lostByBoot(p evidence.Moment, before, after *model.Node) (gone []model.VM) {
	if before.Boot == "" || before.Boot == after.Boot {
		return nil
	}
	for _, vm := range p.VMsOn(before.ID) {
		if op, _ := p.LiveOperationOf(vm.ID); !vm.Guarded() || op.Kind == operation.Migrate {
			continue
		}
		f.lose(p, &vm, before)
		gone = append(gone, vm)
	}
	return gone
}

// unnoticed tells that nothing is new of a node that was heard. What it says of its hardware is not known where no boot is either.
func unnoticed(after, node *model.Node) bool {
	return after.Boot == node.Boot && after.Watchdog == node.Watchdog && after.Fencing == node.Fencing && after.Twin == node.Twin &&
		after.Hardware == node.Hardware && after.HardwareSource == node.HardwareSource && after.Peers == node.Peers
}

// noticedNode is a node's record after it was heard, with what is to be told.
func noticedNode(one *evidence.Silence, facts model.NodeFacts, machines bool) (after model.Node, event model.Event) {
	after = one.Node
	if facts.HeardAt.IsZero() || facts.Boot == "" {
		return after, event
	}
	machine := facts.Machine()
	if why := after.Doubt(machine); why != "" {
		// What was heard in a session that has ended is the past: somebody may have decided since.
		if after.Held() || !machines || !facts.Liveness.Answers() {
			return after, event
		}
		after.Twin = model.Twin{Machine: machine, Why: why}
		return after, model.Event{Kind: "node.held", Message: why + ": neither is believed until somebody decides: " + after.HeldNext()}
	}
	if stronger := after.Hardware == "" || facts.Source == model.HardwareProduct; machines && facts.Hardware != "" && stronger {
		after.Hardware, after.HardwareSource = facts.Hardware, facts.Source
	}
	if machines && facts.Peers != "" {
		after.Peers = facts.Peers
	}
	if after.Boot != facts.Boot {
		after.LastBoot = after.Boot
		after.Boot, after.Watchdog = facts.Boot, 0
		if after.Fenced() && evidence.BootedAnew(facts, &after, after.Fencing.Boot) {
			event = model.Event{Kind: "node.returned", Message: "booted anew since it was proven to be off: it counts again"}
			after.Fencing = model.Fencing{}
		}
		if after.Fenced() && after.Fencing.Boot == "" {
			after.Fencing.Boot = facts.Boot // it may have been on all the time, and was never heard before: the next boot tells
		}
	}
	if facts.Liveness == model.Unreachable {
		return after, event
	}
	switch {
	case !one.Guarded:
		after.Watchdog = 0 // and then it is told to disarm it
	case facts.Watchdog > 0 && one.Leases && after.Fence.Method == model.FenceWatchdog:
		after.Watchdog = facts.Watchdog
	}
	tried := after.Fencing.Phase == model.FencingFailed || after.Fencing.Phase == model.FencingAsked
	if tried && !one.Asking && one.Left <= 0 && facts.Liveness.Answers() {
		after.Fencing = model.Fencing{}
	}
	return after, event
}

// fenceRest is how long a device that gave no proof is left alone: longer each time.
func fenceRest(attempt int) time.Duration {
	const first, most = 10 * time.Second, 5 * time.Minute
	return min(first<<min(max(attempt-1, 0), 10), most)
}

// fenceHaste is how soon a device is called once that is committed, or not at all: whoever stood still meanwhile may lead no
// more, and the next leader counts on calls that have begun by then.
const fenceHaste = 5 * time.Second

// fenceCall is the longest that a fencing by a node's devices can take: until it begins, two calls of each program, and what it takes
// to end them.
func fenceCall(devices model.FenceDevice) time.Duration {
	limit := fenceHaste + 5*time.Second
	for _, one := range devices.All() {
		limit += 2 * one.Within()
	}
	return limit
}
