package control

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// observeWithin is how long after a plan's end its effect may still be told from what came later.
const observeWithin = time.Hour

// keepPlaced makes a pass over every cluster, again and again until the context ends. The first one comes an interval after
// the leadership has begun: agents that are still on their way to a new leader are not to be taken for silent nodes.
func (c *Control) keepPlaced(ctx context.Context) {
	ticker := time.NewTicker(c.PassEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, name := range clusterNames(c.Store.Snapshot()) {
			if ctx.Err() == nil {
				c.pass(ctx, name)
			}
		}
	}
}

// clusterNames are those of all clusters, the default one among them, ascending.
func clusterNames(snapshot *state.Snapshot) []string {
	names := []string{cluster.DefaultCluster}
	for _, record := range snapshot.Clusters() {
		names = append(names, record.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// LastPass is what the last pass over a cluster came to; false before the first one of this leadership.
func (c *Control) LastPass(clusterName string) (LastPass, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, made := c.passes[clusterName]
	return last, made
}

func (c *Control) remember(clusterName string, last LastPass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passes[clusterName] = last
}

// pass looks at one cluster: it tells which groups are broken and what came of earlier moves, and carries out or proposes
// the move that is to be made now.
func (c *Control) pass(ctx context.Context, clusterName string) {
	snapshot, at := c.Store.Snapshot(), c.Now()
	idle := func(why string) { c.remember(clusterName, LastPass{At: at, Idle: why}) }
	if err := quarantined(snapshot); err != nil {
		idle(err.Error())
		return
	}
	if !c.settled(snapshot) || !c.rallied(snapshot) {
		idle("not all nodes have reported to this leader")
		return
	}
	if c.crowded() {
		idle("what people ask for goes first, and some of it waits")
		return
	}
	for _, node := range snapshot.Nodes() {
		if node.Fencing.Phase == cluster.FencingAsked {
			idle("the fence device of " + node.Name + " is being asked")
			return
		}
	}
	view := c.Inventory.View(snapshot, at)
	if mass := massSilence(silencesIn(view)); mass != "" {
		idle(mass + ": nothing is moved before they are heard again")
		return
	}
	fleet, err := c.fleet(snapshot, view, clusterName)
	if err != nil {
		c.Logger.Warn("a cluster cannot be looked at", "cluster", clusterName, "error", err)
		idle(err.Error())
		return
	}
	breaches := affinity.Breaches(fleet.Groups, whereabouts(snapshot, fleet), namesOf(fleet))
	c.mark(ctx, snapshot, fleet, breaches)
	c.observe(ctx, fleet)
	if why := occupied(snapshot, fleet); why != "" {
		last := LastPass{At: at, Idle: why, Unrepaired: map[string]string{}}
		for i := range breaches {
			last.Unrepaired[breaches[i].Group] = why
		}
		c.remember(clusterName, last)
		return
	}
	c.evening.Lock()
	found := balance.Pass(fleet)
	c.evening.Unlock()
	c.remember(clusterName, LastPass{At: at, Idle: found.Idle, Unrepaired: found.Unrepaired})
	c.act(ctx, snapshot, fleet, &found)
}

// silencesIn are the nodes of a view, and how well they are heard.
func silencesIn(view *cluster.View) []Silence {
	nodes := make([]Silence, 0, len(view.Nodes))
	for _, node := range view.Nodes {
		nodes = append(nodes, Silence{Node: node.Node, Liveness: node.Facts.Liveness})
	}
	return nodes
}

// whereabouts is the node that each VM is on, or on its way to.
func whereabouts(snapshot *state.Snapshot, fleet *balance.Fleet) affinity.Where {
	where := make(affinity.Where, len(fleet.VMs))
	for i := range fleet.VMs {
		where[fleet.VMs[i].ID] = fleet.VMs[i].Node
	}
	for _, op := range snapshot.LiveOperations() {
		if _, here := where[op.VM]; here && op.Kind == operation.Migrate {
			where[op.VM] = op.Target
		}
	}
	return where
}

// namesOf calls the fleet's VMs and nodes by their names.
func namesOf(fleet *balance.Fleet) affinity.Names {
	return func(id string) string {
		at, found := slices.BinarySearchFunc(fleet.VMs, id, func(vm balance.VM, id string) int { return cmp.Compare(vm.ID, id) })
		if found {
			return fleet.VMs[at].Name
		}
		if node := fleet.View.Node(id); node != nil {
			return node.Node.Name
		}
		return id
	}
}

// occupied tells why a cluster is left alone for now: what moves already changes the picture that a move would be found in.
func occupied(snapshot *state.Snapshot, fleet *balance.Fleet) string {
	for _, plan := range fleet.Recent {
		if unfinished(&plan) {
			return fmt.Sprintf("plan %s (%s) is carried out", plan.ID, plan.Kind)
		}
	}
	for _, op := range snapshot.LiveOperations() {
		if op.Kind == operation.Migrate && op.Result != operation.Parked && fleet.View.Node(op.Source) != nil {
			if node := fleet.View.Node(op.Source); clusterOf(&node.Node) == fleet.Cluster {
				return fmt.Sprintf("VM %q migrates from %s to %s", op.VMName, op.SourceName, op.TargetName)
			}
		}
	}
	return ""
}

// mark writes down since when groups are broken, and that they hold again. The fleet's groups are told, too.
func (c *Control) mark(ctx context.Context, snapshot *state.Snapshot, fleet *balance.Fleet, breaches []affinity.Breach) {
	said := map[string][]string{}
	for i := range breaches {
		said[breaches[i].Group] = append(said[breaches[i].Group], breaches[i].Text)
	}
	at := c.Now()
	command := state.Command{Key: c.newID(), Kind: "mark groups", Caller: berth, At: at}
	for i := range fleet.Groups {
		group := &fleet.Groups[i]
		event := cluster.Event{At: at, Subject: "group/" + group.Name, Caller: berth}
		switch broken := said[group.ID]; {
		case len(broken) > 0 && group.BrokenSince.IsZero():
			event.Kind, event.Message = "group.broken", strings.Join(broken, "; ")
			group.BrokenSince = at
		case len(broken) == 0 && !group.BrokenSince.IsZero():
			event.Kind, event.Message = "group.holds", "holds again, after "+at.Sub(group.BrokenSince).Round(time.Second).String()
			group.BrokenSince = time.Time{}
		default:
			continue
		}
		record, there := snapshot.Resource(group.ID)
		if !there {
			continue
		}
		record.BrokenSince = group.BrokenSince
		command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: record.ID, Revision: record.Revision})
		command.Resources, command.Events = append(command.Resources, record), append(command.Events, event)
	}
	if len(command.Resources) > 0 {
		c.try(ctx, command)
	}
}

// try proposes what the next pass would propose again if it could not be stored now.
func (c *Control) try(ctx context.Context, command state.Command) (stored bool) {
	result, err := c.propose(ctx, command)
	switch {
	case err != nil && ctx.Err() == nil:
		c.Logger.Warn("what a pass has found could not be kept", "what", command.Kind, "error", err)
	case err == nil && result.Refusal != nil && result.Refusal.Code != state.Stale:
		c.Logger.Error("what a pass has found was refused", "what", command.Kind, "refusal", result.Refusal.Message)
	}
	return err == nil && result.Refusal == nil
}

// observe writes down, once for each plan, what came of what balancing had predicted.
func (c *Control) observe(ctx context.Context, fleet *balance.Fleet) {
	for i := range fleet.Recent {
		plan := &fleet.Recent[i]
		if plan.Kind != cluster.PlanBalance || plan.State != cluster.PlanDone || !plan.ObservedAt.IsZero() ||
			fleet.At.Sub(plan.EndedAt) > observeWithin {
			continue
		}
		observed, known := balance.Observe(fleet, plan)
		if !known {
			continue
		}
		after := *plan
		after.Observed, after.ObservedAt, after.UpdatedAt = observed, fleet.At, fleet.At
		command := c.planCommand(&after, "observe plan")
		command.Caller = berth
		command.Events[0].Kind, command.Events[0].Caller = "plan.observed", berth
		command.Events[0].Message = planText(&after, fmt.Sprintf("predicted %.4g %s, from %.4g; it came to %.4g",
			plan.Predicted, plan.Unit, plan.Before, observed))
		if c.try(ctx, command) {
			plan.Observed, plan.ObservedAt = after.Observed, after.ObservedAt
		}
	}
}

// act carries out what a pass has found, or proposes it, as the cluster says.
func (c *Control) act(ctx context.Context, snapshot *state.Snapshot, fleet *balance.Fleet, found *balance.Found) {
	c.tidy(ctx, snapshot, fleet, found)
	mode := fleet.Settings.Balancing
	if found.Kind == cluster.PlanRepair {
		mode = fleet.Settings.Enforcement
	}
	if found.Kind == "" || mode == cluster.Off {
		return
	}
	at := c.Now()
	plan := cluster.Plan{
		Kind: found.Kind, State: cluster.PlanRunning, Cluster: fleet.Cluster, Group: found.Group, Policy: fleet.Policy.Name,
		Caller: berth, Reason: found.Reason, Moves: found.Moves, Parallel: fleet.Settings.ParallelMoves,
		Unit: found.Unit, Before: found.Before, Predicted: found.Predicted, CreatedAt: at, UpdatedAt: at,
	}
	if mode == cluster.Manual {
		plan.State = cluster.PlanProposed
	}
	old, waits := proposed(snapshot, fleet.Cluster, found.Kind)
	if mode == cluster.Manual && (waits && (old.Caller != berth || stillGood(fleet, &old, &plan)) || unwanted(fleet, &plan)) {
		return // it is proposed already, somebody thinks about a proposal of their own, or has just said no to this one
	}
	command := c.planCommand(&plan, proposeKind)
	if waits && old.Caller == berth {
		c.replace(&command, old, &plan)
	}
	if c.try(ctx, command) && plan.State == cluster.PlanRunning {
		c.execute(plan.ID)
	}
}

// unwanted tells whether somebody has discarded moves of the same VMs within the time that a VM rests after a move.
func unwanted(fleet *balance.Fleet, plan *cluster.Plan) bool {
	return slices.ContainsFunc(fleet.Recent, func(p cluster.Plan) bool {
		return p.State == cluster.PlanDiscarded && p.Message == nobodyWants && sameVMs(&p, plan) &&
			fleet.At.Sub(p.EndedAt) < fleet.Settings.Cooldown
	})
}

// stillGood tells whether an earlier proposal does what the one found now does: for the same group it moves as many VMs from
// the same nodes, to nodes that still take VMs, and with the same effect. Among equal targets the engine draws, and which VM
// is the least busy one changes with every look: that is no reason for another proposal every minute.
func stillGood(fleet *balance.Fleet, old, found *cluster.Plan) bool {
	alike := sameVMs(old, found) || old.Group == found.Group && sameSources(old, found) &&
		equal(old.Before, found.Before) && equal(old.Predicted, found.Predicted)
	return alike && !slices.ContainsFunc(old.Moves, func(m cluster.Move) bool {
		node := fleet.View.Node(m.Target)
		return node == nil || node.Node.Maintenance || node.Facts.Liveness != cluster.Up || !movable(fleet, m.VM)
	})
}

// sameSources tells whether two plans take as many VMs from the same nodes, in the same order.
func sameSources(a, b *cluster.Plan) bool {
	return slices.EqualFunc(a.Moves, b.Moves, func(a, b cluster.Move) bool { return a.Source == b.Source })
}

// equal compares figures that were summed up in another order, perhaps.
func equal(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// movable tells whether Berth may still move a VM by itself.
func movable(fleet *balance.Fleet, vm string) bool {
	at, found := slices.BinarySearchFunc(fleet.VMs, vm, func(vm balance.VM, id string) int { return cmp.Compare(vm.ID, id) })
	return found && fleet.VMs[at].Busy == "" && fleet.VMs[at].Migration == cluster.MigrateAutomatic && !fleet.VMs[at].Unbalanced
}

func sameVMs(a, b *cluster.Plan) bool {
	return slices.EqualFunc(a.Moves, b.Moves, func(a, b cluster.Move) bool { return a.VM == b.VM && a.Source == b.Source })
}

// tidy discards proposals that nobody can want any more: their VMs are elsewhere by now, or Berth itself finds nothing to
// move.
func (c *Control) tidy(ctx context.Context, snapshot *state.Snapshot, fleet *balance.Fleet, found *balance.Found) {
	for _, plan := range fleet.Recent {
		if plan.State != cluster.PlanProposed {
			continue
		}
		why := outdated(snapshot, &plan)
		if why == "" && plan.Caller == berth && found.Kind == "" {
			why = "no longer needed: " + found.Idle
		}
		if why != "" {
			discard(&plan, why, c.Now())
			command := c.planCommand(&plan, discardKind)
			command.Caller = berth
			command.Events[0].Caller, command.Events[0].Message = berth, planText(&plan, why)
			c.try(ctx, command)
		}
	}
}

// outdated tells which VM of a proposal is no longer where it was.
func outdated(snapshot *state.Snapshot, plan *cluster.Plan) string {
	for i := range plan.Moves {
		move := &plan.Moves[i]
		if vm, there := snapshot.VM(move.VM); !move.Stays && (!there || vm.Holder != move.Source) {
			return fmt.Sprintf("out of date: %s is no longer on %s", move.VMName, move.SourceName)
		}
	}
	return ""
}
