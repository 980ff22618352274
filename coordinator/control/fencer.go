package control

import (
	"fmt"
	"slices"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// Fencer is what a leader knows about the fencing of nodes beside their records. It says what is to be committed and which
// devices are to be asked; whoever has one does that and tells it what came of it. Another leader begins with a new one, which
// lets what may be at work come to its end. A Fencer never waits, sends or reads a clock, and is not safe for concurrent use.
type Fencer struct {
	newID  func() string
	since  time.Time               // when the leadership began
	asking map[string]bool         // by node ID, as all that follow: its device is being asked
	rests  map[string]time.Time    // until when a device is left alone
	leases map[string]time.Time    // when each node got its last one
	proven map[string]time.Time    // when this leader had the proof
	held   map[string]FenceVerdict // what is to be said of it
}

// NewFencer makes that of a leadership which begins then.
func NewFencer(at time.Time, newID func() string) *Fencer {
	return &Fencer{
		newID: newID, since: at, asking: map[string]bool{}, rests: map[string]time.Time{}, leases: map[string]time.Time{},
		proven: map[string]time.Time{}, held: map[string]FenceVerdict{},
	}
}

// Leased takes note that a node gets a lease now, or is told that it needs none any more.
func (f *Fencer) Leased(node string, leased bool, at time.Time) {
	if leased {
		f.leases[node] = at
	} else {
		delete(f.leases, node)
	}
}

// Held says why a silent node that VMs wait for is not proven to be off; false if nothing is to be said.
func (f *Fencer) Held(node string) (FenceVerdict, bool) {
	verdict, held := f.held[node]
	return verdict, held
}

// Silences are all nodes as fencing looks at them.
func (f *Fencer) Silences(p Picture) []Silence {
	waits := map[string]int{}
	for _, op := range p.LiveOperations() {
		if vm, _ := p.VM(op.VM); vm.HA && op.Result != operation.Parked {
			waits[op.Source]++
			if op.Target != op.Source {
				waits[op.Target]++
			}
		}
	}
	after := map[string]time.Duration{}
	for _, record := range p.Clusters() {
		after[record.Name] = cluster.SettingsOf(&record).FenceAfter
	}
	var nodes []Silence
	for _, node := range p.Nodes() {
		one := f.silence(p, node, p.Facts(node.ID))
		one.After, one.Waiting = cluster.DefaultFenceAfter, waits[node.ID]
		if set, known := after[clusterOf(&node)]; known {
			one.After = set
		}
		if one.Liveness == cluster.Unreachable {
			one.HA = highlyAvailable(p.VMsOn(node.ID))
		}
		nodes = append(nodes, one)
	}
	return nodes
}

// silence is a node as fencing looks at it, without what waits for it and for how long that may wait.
func (f *Fencer) silence(p Picture, node cluster.Node, facts cluster.NodeFacts) Silence {
	latest := func(of time.Time) time.Duration {
		if of.Before(f.since) {
			of = f.since
		}
		return p.At.Sub(of)
	}
	one := Silence{
		Node: node, Liveness: facts.Liveness, Silent: latest(facts.HeardAt),
		Asking: f.asking[node.ID], Leased: latest(f.leases[node.ID]), Rest: f.rests[node.ID].Sub(p.At), Leases: !f.leases[node.ID].IsZero(),
	}
	if node.Fencing.Phase == cluster.FencingAsked && !one.Asking {
		one.Left = fenceCall(node.Fence) - p.At.Sub(f.since)
	}
	return one
}

// highlyAvailable names those that are to be, ascending.
func highlyAvailable(vms []cluster.VM) []string {
	var names []string
	for i := range vms {
		if vms[i].HA && vms[i].Desired == cluster.Running {
			names = append(names, vms[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// Look says what follows from the nodes' silence: of FenceAsk and FenceProven something is to be done. News are those that
// nothing happens to until somebody does something, and of which that was not said before.
func (f *Fencer) Look(p Picture) (verdicts, news []FenceVerdict) {
	verdicts = Fencing(p.At.Sub(f.since), f.Silences(p))
	before := f.held
	f.held = map[string]FenceVerdict{}
	for _, verdict := range verdicts {
		if verdict.Act == FenceAsk || verdict.Act == FenceProven {
			continue
		}
		f.held[verdict.Node] = verdict
		if verdict.Act == FenceHeld && before[verdict.Node].Why != verdict.Why {
			news = append(news, verdict)
		}
	}
	return verdicts, news
}

// News is what the history tells of a node that is not fenced, though VMs wait for it.
func (f *Fencer) News(p Picture, verdict FenceVerdict) state.Command {
	return state.Command{
		Key: f.newID(), Kind: "fence held", Caller: berth, At: p.At,
		Events: []cluster.Event{{
			At: p.At, Kind: "node.not-fenced", Subject: "node/" + nodeName(p.Snapshot, verdict.Node), Message: verdict.Why + ": " + verdict.Next, Caller: berth,
		}},
	}
}

// Ask says what is to be committed before a node's device is asked, and gives the record with it. It reports false if the
// device is being asked already. Two calls never overlap on a node: what the record says is at work, by whatever leader, has
// come to its end before. Answered is to be called when the call has ended, or is not made.
func (f *Fencer) Ask(node cluster.Node, caller, why string, at time.Time) (command state.Command, asked cluster.Node, free bool) {
	if f.asking[node.ID] {
		return command, node, false
	}
	f.asking[node.ID] = true
	attempt := 1
	if node.Fencing.Phase == cluster.FencingFailed || node.Fencing.Phase == cluster.FencingAsked {
		attempt = node.Fencing.Attempt + 1
	}
	expected := node.Revision
	node = f.attempt(node, cluster.FencingAsked, node.Fence.Method, attempt, caller, at)
	return state.Command{
		Key: f.newID(), Kind: "ask fence device", Caller: caller, At: at,
		Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: expected}}, Nodes: []cluster.Node{node},
		Events: []cluster.Event{{
			At: at, Kind: "node.fence", Subject: "node/" + node.Name, Caller: caller,
			Message: fmt.Sprintf("%s is asked to switch it off, try %d: %s", node.Fence.Program, attempt, why),
		}},
	}, node, true
}

// TooLate says why a device that was to be asked is not called any more; empty: it is. Node is the record that Ask gave.
func (f *Fencer) TooLate(node *cluster.Node, at time.Time) string {
	if stood := at.Sub(node.Fencing.AskedAt); stood > fenceHaste {
		return fmt.Sprintf("its device was not asked: this coordinator stood still for %s before it could", stood.Round(time.Second))
	}
	return ""
}

// Answered tells that the call of a node's device has ended. One that gave no proof is left alone for a while.
func (f *Fencer) Answered(node *cluster.Node, proven bool, at time.Time) {
	if !proven {
		f.rests[node.ID] = at.Add(fenceRest(node.Fencing.Attempt))
	}
}

// Free tells that no call of a node's device is under way any more, and that what came of it is committed.
func (f *Fencer) Free(node string) { delete(f.asking, node) }

// ByWatchdog is a node's record when its watchdog has proven it to be off.
func (f *Fencer) ByWatchdog(node cluster.Node, at time.Time) cluster.Node {
	return f.attempt(node, "", cluster.FenceWatchdog, 1, berth, at)
}

// ByHand is a node's record when somebody's word has proven it to be off.
func (f *Fencer) ByHand(node cluster.Node, caller string, at time.Time) cluster.Node {
	return f.attempt(node, "", cluster.FenceManual, 1, caller, at)
}

// attempt is a node's record when a fencing of its present boot begins.
func (f *Fencer) attempt(
	node cluster.Node, phase cluster.FencingPhase, method cluster.FenceMethod, attempt int, caller string, at time.Time,
) cluster.Node {
	node.Fencing = cluster.Fencing{
		ID: f.newID(), Phase: phase, Method: method, Boot: node.Boot, Attempt: attempt, Caller: caller, AskedAt: at,
	}
	return node
}

// End says what is to be committed when a fencing has ended: the proof, or that there is none. Node is the record that the
// fencing began with. It reports false if the records tell of another one by now. A node that has booted anew meanwhile is not
// proven to be off: what was asked for is of a boot that is over, and what the device says may be so, too.
func (f *Fencer) End(p Picture, node cluster.Node, message string, proven bool) (state.Command, bool) {
	fencing := node.Fencing
	asked := fencing.Phase == cluster.FencingAsked
	now, enrolled := p.Node(node.ID)
	if !enrolled || asked && now.Fencing.ID != fencing.ID || now.Fenced() {
		return state.Command{}, false
	}
	fencing.EndedAt, fencing.Message, fencing.Phase = p.At, message, cluster.FencingFailed
	event := cluster.Event{At: p.At, Kind: "node.fence-failed", Subject: "node/" + node.Name, Caller: fencing.Caller, Message: "no proof that it is off: " + message}
	switch {
	case now.Boot != fencing.Boot || isAnew(p.Facts(node.ID), fencing.Boot):
		fencing = cluster.Fencing{}
		event.Kind, event.Message = "node.returned", "booted anew while it was fenced: it counts as it did ("+message+")"
	case proven:
		fencing.Phase = cluster.FencingProven
		event.Kind, event.Message = "node.fenced", "proven to be off: "+message
		f.proven[node.ID] = p.At
	}
	expected := now.Revision
	now.Fencing = fencing
	return state.Command{
		Key: f.newID(), Kind: "end fencing", Caller: fencing.Caller, At: p.At,
		Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: expected}}, Nodes: []cluster.Node{now},
		Events: []cluster.Event{event},
	}, true
}

// released is how many VMs of a node that is off are written down by one command.
const released = 64

// Release says what is to be committed so that the VMs of nodes that are proven to be off have no holder.
func (f *Fencer) Release(p Picture) []state.Command {
	var commands []state.Command
	for _, node := range p.Nodes() {
		if !f.Off(p, &node) {
			continue
		}
		vms := slices.DeleteFunc(p.VMsOn(node.ID), func(vm cluster.VM) bool { return vm.Operation != "" })
		for some := range slices.Chunk(vms, released) {
			command := state.Command{
				Key: f.newID(), Kind: "release vms", Caller: berth, At: p.At,
				Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: node.Revision}},
			}
			for _, vm := range some {
				command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
				vm.Holder = ""
				vm.Condition = fmt.Sprintf("its node %s is proven to be off (%s)", node.Name, node.Fencing.Message)
				command.VMs = append(command.VMs, vm)
				command.Events = append(command.Events, cluster.Event{
					At: p.At, Kind: "vm.released", Subject: "vm/" + vm.Name, Caller: berth,
					Message: fmt.Sprintf("runs on %s no more: %s", node.Name, node.Fencing.Message),
				})
			}
			commands = append(commands, command)
		}
	}
	return commands
}

// Off tells whether a node counts as off: that is proven, nothing contradicts it, and it was not heard under another boot,
// which its record tells of a moment later only.
func (f *Fencer) Off(p Picture, node *cluster.Node) bool {
	return node.Fenced() && f.Contradicted(p, node) == "" && !isAnew(p.Facts(node.ID), node.Fencing.Boot)
}

// isAnew tells whether a node was heard under another boot than one that was known.
func isAnew(facts cluster.NodeFacts, boot string) bool {
	return !facts.HeardAt.IsZero() && facts.Boot != "" && boot != "" && facts.Boot != boot
}

// Contradicted says that a node answers which is proven to be off, and has not booted since; empty: it does not. Either its
// device lied, or it was only frozen: nobody may count on the proof any more.
func (f *Fencer) Contradicted(p Picture, node *cluster.Node) string {
	if !node.Fenced() {
		return ""
	}
	facts := p.Facts(node.ID)
	heard := facts.HeardAt.After(f.proven[node.ID]) // of another leader's proof: heard at all
	if !heard || facts.HeardAt.IsZero() || facts.Boot != node.Fencing.Boot && node.Fencing.Boot != "" {
		return ""
	}
	return "it answers, and has not booted since: its fence device told a lie, or it was only frozen"
}

// Showing is the name of a node that is heard and shows a copy of a VM which holds memory; empty: none does. Asked only for
// nodes that contradict the proof that they are off, others do not count: what they show may be older than the record.
func (f *Fencer) Showing(p Picture, vm string, contradicting bool) string {
	for _, node := range p.Nodes() {
		if f.Off(p, &node) || contradicting && f.Contradicted(p, &node) == "" {
			continue
		}
		facts := p.Facts(node.ID)
		if domain := facts.Domain(vm); domain != nil && domain.State.Holds() && facts.Liveness != cluster.Unreachable {
			return node.Name
		}
	}
	return ""
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
// heard.
func (f *Fencer) Notice(p Picture) []Notice {
	var all []Notice
	for _, node := range p.Nodes() {
		facts := p.Facts(node.ID)
		silence := f.silence(p, node, facts)
		after, event := noticedNode(&silence, facts)
		if after.Boot == node.Boot && after.Watchdog == node.Watchdog && after.Fencing == node.Fencing {
			continue
		}
		if len(all) == 0 || len(all[len(all)-1].Command.Nodes) == noticed {
			all = append(all, Notice{Command: state.Command{Key: f.newID(), Kind: "notice nodes", Caller: berth, At: p.At}})
		}
		one := &all[len(all)-1]
		if event.Kind != "" {
			event.At, event.Subject, event.Caller = p.At, "node/"+after.Name, berth
			one.Command.Events = append(one.Command.Events, event)
			one.Back = append(one.Back, after.ID)
		}
		one.Command.Expect = append(one.Command.Expect, state.Expectation{Table: state.Nodes, ID: after.ID, Revision: after.Revision})
		one.Command.Nodes = append(one.Command.Nodes, after)
	}
	return all
}

// noticedNode is a node's record after it was heard, with what is to be told.
func noticedNode(one *Silence, facts cluster.NodeFacts) (after cluster.Node, event cluster.Event) {
	after = one.Node
	if facts.HeardAt.IsZero() || facts.Boot == "" {
		return after, event
	}
	if after.Boot != facts.Boot {
		after.Boot, after.Watchdog = facts.Boot, 0
		if after.Fenced() && isAnew(facts, after.Fencing.Boot) {
			event = cluster.Event{Kind: "node.returned", Message: "booted anew since it was proven to be off: it counts again"}
			after.Fencing = cluster.Fencing{}
		}
		if after.Fenced() && after.Fencing.Boot == "" {
			after.Fencing.Boot = facts.Boot // it may have been on all the time, and was never heard before: the next boot tells
		}
	}
	if facts.Liveness == cluster.Unreachable {
		return after, event
	}
	if facts.Watchdog > 0 && one.Leases && after.Fence.Method == cluster.FenceWatchdog {
		after.Watchdog = facts.Watchdog
	}
	tried := after.Fencing.Phase == cluster.FencingFailed || after.Fencing.Phase == cluster.FencingAsked
	if tried && !one.Asking && one.Left <= 0 && (facts.Liveness == cluster.Up || facts.Liveness == cluster.Degraded) {
		after.Fencing = cluster.Fencing{}
	}
	return after, event
}
