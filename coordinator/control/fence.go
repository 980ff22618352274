package control

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// fenceEvery is between two looks at silent nodes.
const fenceEvery = time.Second

// FenceDevices reach what nodes are switched off with. Package fence implements it.
type FenceDevices interface {
	// Off switches the node off and asks whether it is. Nil is the proof that it is; with any error nothing is known.
	Off(ctx context.Context, device cluster.FenceDevice) error
	// On asks whether the node is on.
	On(ctx context.Context, device cluster.FenceDevice) (bool, error)
}

// fences is what a leader remembers of fencing. Another leader begins anew: it lets what may be at work come to its end.
type fences struct {
	mu     sync.Mutex
	since  time.Time                // when the leadership began
	calls  map[string]chan struct{} // by node ID: closed when the call of its device has ended
	rests  map[string]time.Time     // until when a device is left alone
	leases map[string]time.Time     // when each node got its last one
	proven map[string]time.Time     // when this leader had the proof
	held   map[string]FenceVerdict
	work   sync.WaitGroup
}

func (f *fences) begin(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.since = at
	f.calls, f.rests, f.leases = map[string]chan struct{}{}, map[string]time.Time{}, map[string]time.Time{}
	f.proven, f.held = map[string]time.Time{}, map[string]FenceVerdict{}
}

// Leased takes note that a node gets a lease now, or is told that it needs none any more.
func (c *Control) Leased(node string, leased bool) {
	c.fences.mu.Lock()
	defer c.fences.mu.Unlock()
	switch {
	case c.fences.leases == nil:
	case leased:
		c.fences.leases[node] = c.Now()
	default:
		delete(c.fences.leases, node)
	}
}

// FenceHeld says why a silent node that VMs wait for is not proven to be off; false if nothing is to be said.
func (c *Control) FenceHeld(node string) (FenceVerdict, bool) {
	c.fences.mu.Lock()
	defer c.fences.mu.Unlock()
	verdict, held := c.fences.held[node]
	return verdict, held
}

// watchSilence proves silent nodes to be off until the context ends, and takes note of those that come back.
func (c *Control) watchSilence(ctx context.Context) {
	ticker := time.NewTicker(fenceEvery)
	defer ticker.Stop()
	defer c.fences.work.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		snapshot := c.Store.Snapshot()
		if quarantined(snapshot) != nil {
			continue
		}
		c.notice(ctx, snapshot)
		c.lookAtSilence(ctx, c.Store.Snapshot())
		c.release(ctx, c.Store.Snapshot())
	}
}

// silences are all nodes as fencing looks at them.
func (c *Control) silences(snapshot *state.Snapshot, at time.Time) (leading time.Duration, nodes []Silence) {
	waits := map[string]int{}
	for _, op := range snapshot.LiveOperations() {
		if vm, _ := snapshot.VM(op.VM); vm.HA && op.Result != operation.Parked {
			waits[op.Source]++
			if op.Target != op.Source {
				waits[op.Target]++
			}
		}
	}
	after := map[string]time.Duration{}
	for _, record := range snapshot.Clusters() {
		after[record.Name] = cluster.SettingsOf(&record).FenceAfter
	}
	c.fences.mu.Lock()
	defer c.fences.mu.Unlock()
	latest := func(of time.Time) time.Duration {
		if of.Before(c.fences.since) {
			of = c.fences.since
		}
		return at.Sub(of)
	}
	for _, node := range snapshot.Nodes() {
		facts := c.Inventory.Facts(node.ID, at)
		one := Silence{
			Node: node, Liveness: facts.Liveness, Silent: latest(facts.HeardAt), After: cluster.DefaultFenceAfter,
			Waiting: waits[node.ID], Asking: c.fences.calls[node.ID] != nil, Leased: latest(c.fences.leases[node.ID]),
			Rest: c.fences.rests[node.ID].Sub(at), Leases: !c.fences.leases[node.ID].IsZero(),
		}
		if set, known := after[clusterOf(&node)]; known {
			one.After = set
		}
		if node.Fencing.Phase == cluster.FencingAsked && !one.Asking {
			one.Left = fenceCall(node.Fence) - at.Sub(c.fences.since)
		}
		if one.Liveness == cluster.Unreachable {
			one.HA = highlyAvailable(snapshot.VMsOn(node.ID))
		}
		nodes = append(nodes, one)
	}
	return at.Sub(c.fences.since), nodes
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

// lookAtSilence does what follows from the nodes' silence.
func (c *Control) lookAtSilence(ctx context.Context, snapshot *state.Snapshot) {
	leading, nodes := c.silences(snapshot, c.Now())
	if ctx.Err() != nil {
		return // a call that ended with the leadership has not come to its end: the next leader waits for that
	}
	held := map[string]FenceVerdict{}
	for _, verdict := range Fencing(leading, nodes) {
		node, _ := snapshot.Node(verdict.Node)
		switch verdict.Act {
		case FenceAsk:
			if err := c.askDevice(ctx, node, berth, verdict.Why); err != nil && ctx.Err() == nil {
				c.Logger.Warn("a node's fence device could not be asked", "node", node.Name, "error", err)
			}
		case FenceProven:
			node.Fencing = cluster.Fencing{ID: c.newID(), Method: cluster.FenceWatchdog, Boot: node.Boot, Attempt: 1, Caller: berth, AskedAt: c.Now()}
			c.endFencing(ctx, node, verdict.Why, true)
		default:
			held[verdict.Node] = verdict
		}
	}
	c.fences.mu.Lock()
	before := c.fences.held
	c.fences.held = held
	c.fences.mu.Unlock()
	for id, verdict := range held {
		if verdict.Act == FenceHeld && before[id].Why != verdict.Why {
			c.tellHeld(ctx, snapshot, verdict)
		}
	}
}

// tellHeld puts into the history that a node is not fenced, though VMs wait for it.
func (c *Control) tellHeld(ctx context.Context, snapshot *state.Snapshot, verdict FenceVerdict) {
	at, name := c.Now(), nodeName(snapshot, verdict.Node)
	c.Logger.Warn("a silent node is not fenced", "node", name, "why", verdict.Why)
	c.try(ctx, state.Command{
		Key: c.newID(), Kind: "fence held", Caller: berth, At: at,
		Events: []cluster.Event{{At: at, Kind: "node.not-fenced", Subject: "node/" + name, Message: verdict.Why + ": " + verdict.Next, Caller: berth}},
	})
}

// askDevice commits that a node's device is asked, and has it asked beside. Two calls never overlap on a node: what the
// record says is at work, by whatever leader, has come to its end before.
func (c *Control) askDevice(ctx context.Context, node cluster.Node, caller, why string) error {
	c.fences.mu.Lock()
	if c.fences.calls[node.ID] != nil {
		c.fences.mu.Unlock()
		return nil
	}
	ended := make(chan struct{})
	c.fences.calls[node.ID] = ended
	c.fences.mu.Unlock()
	end := func() {
		c.fences.mu.Lock()
		delete(c.fences.calls, node.ID)
		c.fences.mu.Unlock()
		close(ended)
	}
	attempt := 1
	if node.Fencing.Phase == cluster.FencingFailed || node.Fencing.Phase == cluster.FencingAsked {
		attempt = node.Fencing.Attempt + 1
	}
	at, expected := c.Now(), node.Revision
	node.Fencing = cluster.Fencing{
		ID: c.newID(), Phase: cluster.FencingAsked, Method: node.Fence.Method, Boot: node.Boot, Attempt: attempt, Caller: caller, AskedAt: at,
	}
	result, err := c.propose(ctx, state.Command{
		Key: c.newID(), Kind: "ask fence device", Caller: caller, At: at,
		Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: expected}}, Nodes: []cluster.Node{node},
		Events: []cluster.Event{{
			At: at, Kind: "node.fence", Subject: "node/" + node.Name, Caller: caller,
			Message: fmt.Sprintf("%s is asked to switch it off, try %d: %s", node.Fence.Program, attempt, why),
		}},
	})
	if err != nil || result.Refusal != nil {
		end()
		if err == nil && result.Refusal.Code != state.Stale {
			err = result.Refusal
		}
		return err
	}
	c.mu.Lock()
	leading := c.ctx
	c.mu.Unlock()
	c.Logger.Warn("a node is fenced", "node", node.Name, "program", node.Fence.Program, "attempt", attempt, "why", why)
	c.fences.work.Go(func() {
		defer end()
		err := c.Fences.Off(leading, node.Fence)
		switch {
		case leading.Err() != nil: // the next leader lets it come to its end, and asks again
		case err != nil:
			c.fences.mu.Lock()
			c.fences.rests[node.ID] = c.Now().Add(fenceRest(attempt))
			c.fences.mu.Unlock()
			c.endFencing(leading, node, err.Error(), false)
		default:
			c.endFencing(leading, node, node.Fence.Program+" has switched it off, and says that it is off", true)
		}
	})
	return nil
}

// endFencing commits what came of a fencing: the proof, or that there is none. It does nothing if the record tells of another
// one by now.
func (c *Control) endFencing(ctx context.Context, node cluster.Node, message string, proven bool) {
	fencing := node.Fencing
	asked := fencing.Phase == cluster.FencingAsked
	fencing.EndedAt, fencing.Message, fencing.Phase = c.Now(), message, cluster.FencingFailed
	event := cluster.Event{At: fencing.EndedAt, Kind: "node.fence-failed", Subject: "node/" + node.Name, Caller: fencing.Caller, Message: "no proof that it is off: " + message}
	if proven {
		fencing.Phase = cluster.FencingProven
		event.Kind, event.Message = "node.fenced", "proven to be off: "+message
	}
	for ctx.Err() == nil {
		now, enrolled := c.Store.Snapshot().Node(node.ID)
		if !enrolled || asked && now.Fencing.ID != fencing.ID || now.Fenced() {
			return
		}
		expected := now.Revision
		now.Fencing = fencing
		if proven {
			c.fences.mu.Lock()
			c.fences.proven[node.ID] = c.Now()
			c.fences.mu.Unlock()
		}
		result, err := c.propose(ctx, state.Command{
			Key: c.newID(), Kind: "end fencing", Caller: fencing.Caller, At: fencing.EndedAt,
			Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: expected}}, Nodes: []cluster.Node{now},
			Events: []cluster.Event{event},
		})
		switch {
		case err != nil:
			c.Logger.Warn("what came of a fencing could not be kept", "node", node.Name, "error", err)
			return
		case result.Refusal == nil:
			c.Logger.Warn("a fencing has ended", "node", node.Name, "proven", proven, "message", message)
			if proven {
				c.AgentConnected(node.ID) // whatever waits for it goes on
			}
			return
		case result.Refusal.Code != state.Stale:
			c.Logger.Error("what came of a fencing was refused", "node", node.Name, "refusal", result.Refusal.Message)
			return
		}
	}
}

// released is how many VMs of a node that is off are written down by one command.
const released = 64

// release writes down that the VMs of nodes that are proven to be off run nowhere.
func (c *Control) release(ctx context.Context, snapshot *state.Snapshot) {
	for _, node := range snapshot.Nodes() {
		if !node.Fenced() || c.contradicted(&node) != "" {
			continue
		}
		vms := slices.DeleteFunc(snapshot.VMsOn(node.ID), func(vm cluster.VM) bool { return vm.Operation != "" })
		for some := range slices.Chunk(vms, released) {
			at := c.Now()
			command := state.Command{
				Key: c.newID(), Kind: "release vms", Caller: berth, At: at,
				Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: node.Revision}},
			}
			for _, vm := range some {
				command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
				vm.Holder = ""
				vm.Condition = fmt.Sprintf("its node %s is proven to be off (%s)", node.Name, node.Fencing.Message)
				command.VMs = append(command.VMs, vm)
				command.Events = append(command.Events, cluster.Event{
					At: at, Kind: "vm.released", Subject: "vm/" + vm.Name, Caller: berth,
					Message: fmt.Sprintf("runs on %s no more: %s", node.Name, node.Fencing.Message),
				})
			}
			c.try(ctx, command)
		}
	}
}

// contradicted says that a node answers which is proven to be off, and has not booted since; empty: it does not. Either its
// device lied, or it was only frozen: nobody may count on the proof any more.
func (c *Control) contradicted(node *cluster.Node) string {
	if !node.Fenced() {
		return ""
	}
	facts := c.Inventory.Facts(node.ID, c.Now())
	c.fences.mu.Lock()
	defer c.fences.mu.Unlock()
	heard := facts.HeardAt.After(c.fences.proven[node.ID]) // of another leader's proof: heard at all
	if !heard || facts.HeardAt.IsZero() || facts.Boot != node.Fencing.Boot && node.Fencing.Boot != "" {
		return ""
	}
	return "it answers, and has not booted since: its fence device told a lie, or it was only frozen"
}

// Contradicted says why the proof that a node is off does not hold; empty: it does, or there is none.
func (c *Control) Contradicted(node string) string {
	record, known := c.Store.Snapshot().Node(node)
	if !known || !c.leading() {
		return ""
	}
	return c.contradicted(&record)
}

// noticed is how many nodes are written down by one command.
const noticed = 64

// notice writes down the boots of nodes that are heard, and whether their watchdogs are armed. A node that was proven to be off
// counts again when it has booted anew; what was tried and came to nothing is forgotten when it is heard.
func (c *Control) notice(ctx context.Context, snapshot *state.Snapshot) {
	at := c.Now()
	_, nodes := c.silences(snapshot, at)
	var command state.Command
	var back []string
	flush := func() {
		if len(command.Nodes) > 0 && c.try(ctx, command) {
			for _, id := range back {
				c.AgentConnected(id)
			}
		}
		command, back = state.Command{Key: c.newID(), Kind: "notice nodes", Caller: berth, At: at}, nil
	}
	flush()
	for i := range nodes {
		facts := c.Inventory.Facts(nodes[i].Node.ID, at)
		after, event := noticedNode(&nodes[i], facts)
		if event.Kind != "" {
			event.At, event.Subject, event.Caller = at, "node/"+after.Name, berth
			command.Events = append(command.Events, event)
			back = append(back, after.ID)
		}
		if after.Boot == nodes[i].Node.Boot && after.Watchdog == nodes[i].Node.Watchdog && after.Fencing == nodes[i].Node.Fencing {
			continue
		}
		command.Expect = append(command.Expect, state.Expectation{Table: state.Nodes, ID: after.ID, Revision: after.Revision})
		command.Nodes = append(command.Nodes, after)
		if len(command.Nodes) == noticed {
			flush()
		}
	}
	flush()
}

// noticedNode is a node's record after it was heard, with what is to be told.
func noticedNode(one *Silence, facts cluster.NodeFacts) (after cluster.Node, event cluster.Event) {
	after = one.Node
	if facts.HeardAt.IsZero() || facts.Boot == "" || facts.Liveness == cluster.Unreachable {
		return after, event
	}
	if after.Boot != facts.Boot {
		after.Boot, after.Watchdog = facts.Boot, 0
		if after.Fenced() && after.Fencing.Boot != "" && after.Fencing.Boot != facts.Boot {
			event = cluster.Event{Kind: "node.returned", Message: "booted anew since it was proven to be off: it counts again"}
			after.Fencing = cluster.Fencing{}
		}
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
