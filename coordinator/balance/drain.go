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
	"berth/coordinator/view"
	"berth/shared/units"
)

// mostNamed is how many names a refusal tells.
const mostNamed = 3

// Preflight is what draining a node would lead to, as far as that can be known before.
type Preflight struct {
	Plan model.Plan // kind, cluster, node, reason and moves; a VM that cannot move has Stays and the reason
	// Headroom is what the other nodes of the cluster have left to promise once all moves are made, and Largest the largest
	// VM that would still fit on one of them.
	Headroom, Largest units.Bytes
	// Estimate is how long the copies take at the bandwidth, with Parallel at once; 0 when the bandwidth is not known.
	Estimate time.Duration
	Warnings []string // in words: a hard VM rule that is broken meanwhile, a group that cannot hold without the node
	// Refused says why the node cannot be drained at all and what to do about it: it is the last node, or a hard rule keeps its
	// VMs there. Empty: it can be drained.
	Refused string
}

// WarnOfFrozen adds which VMs cannot move at this moment, because somebody has frozen their guests' file systems.
func (p *Preflight) WarnOfFrozen(vms []string) {
	if len(vms) > 0 {
		p.Warnings = append(p.Warnings, "somebody has frozen the file systems of "+units.Some(vms, mostNamed, ", ")+
			", as backups do: no such VM moves until its guest writes again ('virsh domfsthaw NAME' on its node has it write)")
	}
}

// WithoutVMRules is the policy of a drain that ignores hard rules for VMs (SEMANTICS.md, "Drains"): they weigh and do not
// refuse.
func WithoutVMRules(policy policies.Policy) policies.Policy {
	policy.Constraints = slices.DeleteFunc(slices.Clone(policy.Constraints), func(name string) bool { return name == vmAffinity })
	return policy
}

// Drain plans, on planned state, how a node is emptied: where each VM goes, and which VMs cannot move and why. The largest VM
// comes first, and VMs that hard rules keep together are one unit. Bandwidth is per second and move. Parallel is how many VMs
// move at once, at least 1.
//
// Hard rules for VMs hold where they can. Where one would keep a VM on the node it is ignored, if the policy allows that
// (Fleet.DrainIgnoresVMRules). Hard rules for nodes always hold.
func Drain(fleet *Fleet, node string, parallel int, bandwidth units.Bytes) Preflight {
	plan := model.Plan{Kind: model.PlanDrain, Cluster: fleet.Cluster, Node: node, Parallel: parallel, Bandwidth: bandwidth}
	g, err := survey(fleet)
	plan.NodeName = g.name(node)
	at, found := g.columns.Index(node)
	switch {
	case err != nil:
		return Preflight{Plan: plan, Refused: err.Error()}
	case !found:
		return Preflight{Plan: plan, Refused: fmt.Sprintf("node %s is not in cluster %s", plan.NodeName, fleet.Cluster)}
	}
	d := draining{ground: g, node: at, before: hardBreaches(g)}
	if d.free, err = placement.NewEngine(WithoutVMRules(fleet.Policy)); err != nil {
		return Preflight{Plan: plan, Refused: err.Error()}
	}
	refused := d.refused()
	for _, unit := range d.units() {
		d.place(unit)
	}
	d.foreign()
	plan.Moves = d.moves
	plan.Reason = d.reason()
	flight := Preflight{Plan: plan, Refused: refused, Warnings: d.warnings(), Estimate: estimate(d.moves, parallel, bandwidth)}
	for other := range g.columns.IDs {
		if other != at && g.columns.Standing[other] == view.Stands {
			flight.Headroom += max(g.columns.PromisedFree(other)-g.columns.Overhead[other], 0)
			flight.Largest = max(flight.Largest, g.columns.Room.At(other)-1) // a node takes a VM only if its room is larger than the VM
		}
	}
	return flight
}

// draining is a drain while it is planned.
type draining struct {
	*ground
	node   int
	free   *placement.Engine // without hard rules among VMs
	before []affinity.Breach // hard rules that are broken before the drain
	moves  []model.Move
}

func hardBreaches(g *ground) []affinity.Breach {
	return slices.DeleteFunc(affinity.Breaches(g.Groups, g.where, g.name), func(b affinity.Breach) bool { return !b.Rule.Hard() })
}

// refused says why the node cannot be drained at all.
func (d *draining) refused() string {
	c := d.columns
	name := d.name(c.IDs[d.node])
	if c.Len() == 1 {
		return fmt.Sprintf("%s is the last node of cluster %s: its VMs have nowhere to go; enrol another node first", name, d.Cluster)
	}
	var others []string
	for node := range c.IDs {
		if node == d.node {
			continue
		}
		if c.Standing[node] == view.Stands {
			others = nil
			break
		}
		others = append(others, d.name(c.IDs[node]))
	}
	if len(others) > 0 {
		return fmt.Sprintf("no other node of cluster %s is up and out of maintenance: the VMs of %s have nowhere to go; see to %s first",
			d.Cluster, name, units.Some(others, mostNamed, ", "))
	}
	for i := range d.Groups {
		group := &d.Groups[i]
		if rule := group.NodesRule; !rule.Hard() || rule.Polarity != model.Positive || !slices.Equal(group.Nodes, c.IDs[d.node:d.node+1]) {
			continue
		}
		var bound []string
		for _, vm := range group.VMs {
			if d.where[vm] == c.IDs[d.node] {
				bound = append(bound, d.name(vm))
			}
		}
		if len(bound) > 0 {
			return fmt.Sprintf("group %s keeps %s on %s alone by a hard rule: give the group another node, or make the rule soft",
				group.Name, units.Some(bound, mostNamed, ", "), name)
		}
	}
	return ""
}

// units is the node's VMs, each together with those that hard rules tie to it there. The largest unit comes first, and the
// largest VM in it.
func (d *draining) units() [][]int {
	var units [][]int
	seen := make(map[int]bool)
	for vm := range d.VMs {
		if d.at[vm] != d.node || seen[vm] {
			continue
		}
		unit := append([]int{vm}, d.mates(vm)...)
		slices.SortFunc(unit, d.larger)
		for _, one := range unit {
			seen[one] = true
		}
		units = append(units, unit)
	}
	slices.SortStableFunc(units, func(a, b []int) int { return cmp.Or(cmp.Compare(d.memory(b), d.memory(a)), d.larger(a[0], b[0])) })
	return units
}

func (g *ground) larger(a, b int) int {
	return cmp.Or(cmp.Compare(g.VMs[b].Memory, g.VMs[a].Memory), cmp.Compare(g.VMs[a].Name, g.VMs[b].Name), cmp.Compare(a, b))
}

func (g *ground) memory(vms []int) (sum units.Bytes) {
	for _, vm := range vms {
		sum += g.VMs[vm].Memory
	}
	return sum
}

// place finds a target for a unit, or for each of its VMs.
func (d *draining) place(unit []int) {
	var going []int
	for _, vm := range unit {
		if one := &d.VMs[vm]; one.Migration == model.MigrateNever {
			d.stays(vm, d.immovable(vm))
		} else if one.Busy != "" {
			d.stays(vm, one.Busy)
		} else {
			going = append(going, vm)
		}
	}
	if len(going) == 0 || d.together(d.engine, going) || d.DrainIgnoresVMRules && d.together(d.free, going) {
		return
	}
	for _, vm := range going {
		if d.together(d.engine, []int{vm}) || d.DrainIgnoresVMRules && d.together(d.free, []int{vm}) {
			continue
		}
		policy := d.Policy
		if d.DrainIgnoresVMRules {
			policy = WithoutVMRules(policy)
		}
		request, err := d.leaving([]int{vm})
		if err != nil {
			d.stays(vm, err.Error())
			continue
		}
		d.stays(vm, d.decide(vm, request, policy, d.Seed()).Reason)
	}
}

// leaving is the request for some VMs that go to one node.
func (d *draining) leaving(going []int) (placement.Request, error) {
	request, err := d.ask(going[0], placement.ForDrain)
	request.Leave, request.Unit = true, d.unit(going[1:])
	return request, err
}

// together plans that some VMs go to one node; false if no node takes them.
func (d *draining) together(engine *placement.Engine, going []int) bool {
	request, err := d.leaving(going)
	if err != nil {
		return false
	}
	choice := d.choose(engine, going[0], &request, d.Seed())
	if choice.Node < 0 {
		return false
	}
	for _, vm := range going {
		d.moves = append(d.moves, d.planned(vm, choice.Node, ""))
		d.move(vm, choice.Node)
	}
	return true
}

func (g *ground) staying(vm int, why string) model.Move {
	move := g.planned(vm, -1, why)
	move.Stays = true
	return move
}

func (d *draining) stays(vm int, why string) { d.moves = append(d.moves, d.staying(vm, why)) }

// foreign lists the domains that are not Berth's.
func (d *draining) foreign() {
	viewed := d.View.Node(d.columns.IDs[d.node])
	for i := range viewed.Allocations {
		if one := &viewed.Allocations[i]; one.Foreign {
			d.moves = append(d.moves, model.Move{
				VM: one.VM, VMName: one.Name, Source: viewed.Node.ID, SourceName: viewed.Node.Name, Memory: one.Memory,
				Reason: "it is not Berth's own: Berth does not touch it", Stays: true,
			})
		}
	}
}

// reason summarises the plan.
func (d *draining) reason() string {
	var memory units.Bytes
	moving, staying := 0, 0
	for i := range d.moves {
		if d.moves[i].Stays {
			staying++
			continue
		}
		moving++
		memory += d.moves[i].Memory
	}
	switch {
	case moving == 0 && staying == 0:
		return "the node has no VMs"
	case staying == 0:
		return fmt.Sprintf("%s, %s", counted(moving, "move"), memory)
	case moving == 0:
		return counted(staying, "VM") + " cannot move"
	default:
		return fmt.Sprintf("%s, %s; %s cannot move", counted(moving, "move"), memory, counted(staying, "VM"))
	}
}

// warnings is the rules that the drain breaks, and which groups cannot hold without the node.
func (d *draining) warnings() []string {
	var all []string
	for _, b := range hardBreaches(d.ground) {
		if !known(d.before, &b) {
			all = append(all, fmt.Sprintf("the hard rule of group %s would not hold meanwhile: %s", b.GroupName, b.Text))
		}
	}
	rooms := make([]affinity.Room, d.columns.Len())
	for node, id := range d.columns.IDs {
		standing := d.columns.Standing[node]
		rooms[node] = affinity.Room{
			Node: id, Takes: standing != view.StandsInMaintenance && standing != view.StandsDownInMaintenance || node == d.node,
		}
	}
	known := affinity.Lint(d.Groups, rooms, d.name)
	rooms[d.node].Takes = false
	for _, conflict := range affinity.Lint(d.Groups, rooms, d.name) {
		if !slices.ContainsFunc(known, func(was affinity.Conflict) bool { return was.Text == conflict.Text }) {
			all = append(all, fmt.Sprintf("without %s: %s", d.name(d.columns.IDs[d.node]), conflict.Text))
		}
	}
	return all
}

// estimate is how long the copies take in the plan's order, with Parallel at once, each at the bandwidth.
func estimate(moves []model.Move, parallel int, bandwidth units.Bytes) time.Duration {
	if bandwidth <= 0 {
		return 0
	}
	lanes := make([]time.Duration, max(parallel, 1)) // when each is free again
	for i := range moves {
		if !moves[i].Stays {
			lane := slices.Index(lanes, slices.Min(lanes))
			lanes[lane] += time.Duration(float64(moves[i].Memory) / float64(bandwidth) * float64(time.Second))
		}
	}
	return slices.Max(lanes)
}
