package balance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/weigher"
	"berth/coordinator/view"
)

// ground is a fleet prepared for one pass or plan: a copy of the view's columns on which moves are planned, and where every
// VM is after them.
type ground struct {
	*Fleet
	columns *view.Columns
	engine  *placement.Engine // of the policy
	judge   *placement.Engine // of the policy without its weighers for load

	index map[string]int      // into VMs, by ID
	at    []int               // by VM: its node; -1: none of the cluster
	holds []view.Allocation   // by VM: what it takes there
	where affinity.Where      // of all VMs that run or are on their way somewhere
	named map[string]string   // name by ID, of VMs and nodes
	bound map[string][]string // by VM: the others that hard rules keep with it

	memberOf map[string][]model.Group // by VM
	accounts map[string][]int         // by customer ID: VMs by node; nil: customers' VMs are not kept spread
	asked    map[asked]placement.Request
}

// asked is the purpose of a request.
type asked struct {
	vm      int
	purpose placement.Purpose
}

// The weighers of soft rules.
const (
	nodeAffinity = "node-affinity"
	vmAffinity   = "vm-affinity"
)

// survey prepares a fleet. The error wraps placement.ErrInvalidPolicy.
func survey(fleet *Fleet) (*ground, error) {
	g := &ground{
		Fleet: fleet, columns: fleet.View.Columns(fleet.Cluster).Clone(),
		index: make(map[string]int, len(fleet.VMs)), at: make([]int, len(fleet.VMs)), holds: make([]view.Allocation, len(fleet.VMs)),
		where: make(affinity.Where, len(fleet.VMs)), named: make(map[string]string, len(fleet.VMs)),
		bound: make(map[string][]string), memberOf: make(map[string][]model.Group), asked: make(map[asked]placement.Request),
	}
	for i, id := range g.columns.IDs {
		g.named[id] = cmp.Or(g.columns.Names[i], id)
	}
	for i := range fleet.VMs {
		g.stand(i)
	}
	g.onTheirWay()
	if fleet.DisperseAccounts {
		g.account()
	}
	for _, tied := range affinity.Merged(fleet.Groups) {
		for _, vm := range tied {
			g.bound[vm] = slices.DeleteFunc(slices.Clone(tied), func(other string) bool { return other == vm })
		}
	}
	for i := range fleet.Groups {
		for _, vm := range fleet.Groups[i].VMs {
			g.memberOf[vm] = append(g.memberOf[vm], fleet.Groups[i])
		}
	}
	var err error
	if g.engine, err = placement.NewEngine(fleet.Policy); err != nil {
		return g, err
	}
	judge := fleet.Policy
	judge.Weighers = slices.DeleteFunc(slices.Clone(judge.Weighers), func(f policies.Factor) bool {
		asked, _ := weigher.ByName(f.Weigher)
		return asked.Load
	})
	g.judge, err = placement.NewEngine(judge)
	return g, err
}

// stand finds the node of a VM and what it takes there.
func (g *ground) stand(i int) {
	vm := &g.VMs[i]
	g.index[vm.ID], g.named[vm.ID], g.where[vm.ID], g.at[i] = i, vm.Name, vm.Node, -1
	if node, found := g.columns.Index(vm.Node); found {
		g.at[i] = node
	}
	if node := g.View.Node(vm.Node); node != nil {
		g.holds[i], _ = node.Holds(vm.ID)
	}
}

// onTheirWay puts VMs on the nodes of their reservations, because that is where they will be.
func (g *ground) onTheirWay() {
	for _, id := range g.columns.IDs {
		allocations := g.View.Node(id).Allocations
		for i := range allocations {
			one := &allocations[i]
			if !one.InFlight || one.Foreign {
				continue
			}
			if at, held := g.index[one.VM]; !held || g.VMs[at].Node != id {
				g.where[one.VM] = id
				g.named[one.VM] = cmp.Or(g.named[one.VM], one.Name)
			}
		}
	}
}

// name is the name for an ID.
func (g *ground) name(id string) string { return cmp.Or(g.named[id], id) }

// ask is the placement request for a VM.
func (g *ground) ask(vm int, purpose placement.Purpose) (placement.Request, error) {
	is := asked{vm, purpose}
	if request, known := g.asked[is]; known {
		return request, nil
	}
	request, err := g.Ask(g.VMs[vm].ID, purpose)
	if err == nil {
		err = request.Validate()
	}
	if err != nil {
		return request, fmt.Errorf("%s cannot be placed: %w", g.VMs[vm].Name, err)
	}
	g.asked[is] = request
	return request, nil
}

// without runs a function while a VM is left out of its own node's figures.
func (g *ground) without(vm int, do func()) {
	c, node := g.columns, g.at[vm]
	if node < 0 {
		do()
		return
	}
	free, load, busy, room := c.Free.At(node), c.Load.At(node), c.Busy.At(node), c.Room.At(node)
	var work float64
	if c.AtWork.Given() {
		work = c.AtWork.At(node)
	}
	c.Discharge(node, g.holds[vm])
	do()
	c.Charge(node, g.holds[vm])
	c.Free.Set(node, free) // charging takes more than the VM had
	c.Load.Set(node, load)
	c.Busy.Set(node, busy)
	c.Room.Set(node, room)
	if c.AtWork.Given() {
		c.AtWork.Set(node, work)
	}
}

// choose asks an engine on planned state.
func (g *ground) choose(engine *placement.Engine, vm int, request *placement.Request, seed uint64) (choice placement.Choice) {
	g.without(vm, func() { choice = engine.Choose(g.columns, g.View.At, request, seed) })
	return choice
}

// decide is choose with an explanation.
func (g *ground) decide(vm int, request placement.Request, policy policies.Policy, seed uint64) (d placement.Decision) {
	g.without(vm, func() { d = placement.PlaceOn(g.columns, g.View.At, request, policy, seed) })
	return d
}

// move makes a move in planned state.
func (g *ground) move(vm, to int) {
	g.moveAccount(vm, g.at[vm], to)
	g.holds[vm] = g.columns.Move(g.at[vm], to, g.holds[vm])
	g.at[vm] = to
	g.where[g.VMs[vm].ID] = g.columns.IDs[to]
}

// planned is a move from the VM's present node.
func (g *ground) planned(vm, to int, reason string) model.Move {
	one := &g.VMs[vm]
	move := model.Move{
		VM: one.ID, VMName: one.Name, Source: one.Node, SourceName: cmp.Or(one.NodeName, g.name(one.Node)),
		Memory: one.Memory, Reason: reason,
	}
	if to >= 0 {
		move.Target, move.TargetName = g.columns.IDs[to], g.name(g.columns.IDs[to])
	}
	return move
}

// mates is the VMs on a VM's node that hard rules tie to it, as indexes.
func (g *ground) mates(vm int) []int {
	var mates []int
	for _, id := range g.bound[g.VMs[vm].ID] {
		if other, known := g.index[id]; known && g.at[other] == g.at[vm] && g.at[vm] >= 0 {
			mates = append(mates, other)
		}
	}
	return mates
}

// unit is what moves together with a VM.
func (g *ground) unit(mates []int) *placement.Unit {
	if len(mates) == 0 {
		return nil
	}
	u := &placement.Unit{}
	for _, mate := range slices.Sorted(slices.Values(mates)) { // sorted by ID, as the VMs are
		u.VMs, u.Names = append(u.VMs, g.VMs[mate].ID), append(u.Names, g.VMs[mate].Name)
		u.Memory += g.VMs[mate].Memory
		u.VCPUs += g.VMs[mate].VCPUs
	}
	return u
}

// immovable says why Berth never moves a VM by itself; empty: it may.
func (g *ground) immovable(vm int) string {
	switch one := &g.VMs[vm]; one.Migration {
	case model.MigrateNever:
		return one.Name + " may not be moved at all (migration never)"
	case model.MigrateManual:
		return one.Name + " is moved by people only (migration manual)"
	default:
		return ""
	}
}

// rests says that Berth moved a VM too recently; empty: it did not.
func (g *ground) rests(vm int) string {
	one := &g.VMs[vm]
	if until := one.MovedAt.Add(g.Settings.Cooldown); !one.MovedAt.IsZero() && g.At.Before(until) {
		return fmt.Sprintf("%s was moved lately: it rests until %s", one.Name, clock(until))
	}
	return ""
}

// hinders says why a VM that may be moved cannot be moved now; empty: it can.
func (g *ground) hinders(vm int) string {
	one := &g.VMs[vm]
	switch {
	case one.Busy != "":
		return fmt.Sprintf("%s cannot be moved now: %s", one.Name, one.Busy)
	case g.at[vm] < 0:
		return fmt.Sprintf("%s is on a node of another cluster", one.Name)
	default:
		return g.failed(one)
	}
}

// failed says that moves of a VM by plans have failed too recently; empty: they have not.
func (g *ground) failed(vm *VM) string {
	failures := 0
	var last time.Time
	for i := range g.Recent {
		plan := &g.Recent[i]
		at := slices.IndexFunc(plan.Moves, func(m model.Move) bool { return m.VM == vm.ID })
		if at < 0 || plan.Moves[at].Result == "" || plan.Moves[at].Result == model.MoveLeft {
			continue
		}
		if plan.Moves[at].Result != model.MoveFailed {
			break
		}
		if failures++; failures == 1 {
			last = plan.EndedAt
		}
	}
	if until := last.Add(pause(failures)); failures > 0 && g.At.Before(until) {
		return fmt.Sprintf("%s could not be moved the last time: it is tried again at %s", vm.Name, clock(until))
	}
	return ""
}

// clock is a moment in words.
func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

// first is the scope of those soft rules that weigh more in the policy.
func (g *ground) first() affinity.Scope {
	factor := func(name string) float64 {
		for _, f := range g.Policy.Weighers {
			if f.Weigher == name {
				return f.Factor
			}
		}
		return 0
	}
	if factor(vmAffinity) > factor(nodeAffinity) {
		return affinity.OfVMs
	}
	return affinity.OfNodes
}

// tied tells whether another VM runs that hard rules tie to this one. Balancing leaves such VMs alone. While they are
// together the constraint keeps them so. When they are on two nodes the constraint would let each go to either one, and which
// is right is for enforcement to decide.
func (g *ground) tied(vm int) bool {
	return slices.ContainsFunc(g.bound[g.VMs[vm].ID], func(other string) bool {
		_, runs := g.where[other]
		return runs
	})
}

// worse tells whether the rules hold worse with the VM on another node: enforcement would bring it back.
func (g *ground) worse(vm, to int) bool {
	if g.tied(vm) {
		return true
	}
	id := g.VMs[vm].ID
	if !slices.ContainsFunc(g.memberOf[id], func(group model.Group) bool { return group.VMsRule.Soft() || group.NodesRule.Soft() }) {
		return false
	}
	return affinity.Worsens(g.memberOf[id], id, g.columns.IDs[to], g.where, g.first())
}

// breaks tells whether a hard rule that holds would be broken with the VMs on another node. The engine checks all but one
// case: VMs that several groups tie together, and that are on several nodes already, may go to any of these nodes, and that
// may separate two that are together now.
func (g *ground) breaks(vms []int, to int) bool {
	for _, vm := range vms {
		id := g.VMs[vm].ID
		if len(g.bound[id]) == 0 {
			continue
		}
		before := affinity.Breaches(g.memberOf[id], g.where, g.name)
		was := make([]string, len(vms))
		for i, one := range vms {
			was[i], g.where[g.VMs[one].ID] = g.where[g.VMs[one].ID], g.columns.IDs[to]
		}
		after := affinity.Breaches(g.memberOf[id], g.where, g.name)
		for i, one := range vms {
			g.where[g.VMs[one].ID] = was[i]
		}
		if slices.ContainsFunc(after, func(b affinity.Breach) bool { return b.Rule.Hard() && !known(before, &b) }) {
			return true
		}
	}
	return false
}

// known tells whether a rule was broken before.
func known(before []affinity.Breach, b *affinity.Breach) bool {
	return slices.ContainsFunc(before, func(was affinity.Breach) bool { return was.Group == b.Group && was.Scope == b.Scope })
}
