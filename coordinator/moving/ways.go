package moving

import (
	"cmp"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// waysTo are the ways to ask for a move, the best first: at first with all that is wanted of it, and then with less. A drain lets
// placement say where its VM goes; the other plans are about their target.
func (d *Driver) waysTo(move *Move) []Attempt {
	alone := Attempt{
		Move: *move, Plan: d.Plan.ID, Caller: d.Plan.Caller, Bandwidth: d.Plan.Bandwidth, Purpose: purposeOf(d.Plan.Kind),
	}
	goal, rest := d.unitOf(move)
	together := alone
	if together.Unit = rest; goal != "" {
		together.Unit, together.Among = nil, []string{goal}
	}
	drain := d.Plan.Kind == model.PlanDrain
	if !drain {
		together.Among = []string{d.plannedTarget(move)}
	}
	ways := []Attempt{together}
	if failed := d.failedTargets(move.VM); len(failed) > 0 && (drain || d.hardRepair()) {
		elsewhere := together
		if elsewhere.Excluded = failed; !drain {
			elsewhere.Among = nil // whatever node keeps the hard rules repairs them
		}
		ways = []Attempt{elsewhere, together}
	}
	if drain && (goal != "" || rest != nil) {
		ways = append(ways, alone)
	}
	if d.freely {
		alone.Freely = true
		ways = append(ways, alone)
	}
	for i := range ways {
		ways[i].Excluded = union(d.kept, ways[i].Excluded)
	}
	return ways
}

func purposeOf(kind model.PlanKind) placement.Purpose {
	switch kind {
	case model.PlanDrain:
		return placement.ForDrain
	case model.PlanReturn:
		return placement.ForReturn
	case model.PlanRepair:
		return placement.ForRepair
	default:
		return placement.ForBalance
	}
}

// union are the IDs of both lists, ascending.
func union(a, b []string) []string {
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

// plannedTarget is where the plan wants a VM, whatever was tried since.
func (d *Driver) plannedTarget(move *Move) string {
	at := slices.IndexFunc(d.Plan.Moves, func(m model.Move) bool { return m.VM == move.VM })
	if at < 0 {
		return move.Target
	}
	return d.Plan.Moves[at].Target
}

// hardRepair tells whether the plan repairs a group with a hard rule.
func (d *Driver) hardRepair() bool {
	record, known := d.Resource(d.Plan.Group)
	if d.Plan.Kind != model.PlanRepair || !known {
		return false
	}
	group := model.GroupOf(&record, d.Plan.Cluster)
	return group.VMsRule.Hard() || group.NodesRule.Hard()
}

// failedTargets are the nodes that a VM of the plan could not move to, ascending.
func (d *Driver) failedTargets(vm string) []string {
	var failed []string
	for _, op := range d.OperationsOfPlan(d.Plan.ID) {
		if op.VM == vm && op.Result == operation.Failed && !slices.Contains(failed, op.Target) {
			failed = append(failed, op.Target)
		}
	}
	slices.Sort(failed)
	return failed
}

// unitMoves tells whether another VM that has to stay with this one is on its way.
func (d *Driver) unitMoves(move *Move) bool {
	return slices.ContainsFunc(d.moves, func(other Move) bool {
		return other.VM != move.VM && other.State == Moving && slices.Contains(d.tied[move.VM], other.VM)
	})
}

// unitOf is where the VMs that have to stay with this one have gone, if any has; else those that are still to come along.
func (d *Driver) unitOf(move *Move) (goal string, rest *placement.Unit) {
	var newest time.Time
	var along []model.VM
	for i := range d.moves {
		other := &d.moves[i]
		if other.VM == move.VM || !slices.Contains(d.tied[move.VM], other.VM) {
			continue
		}
		switch {
		case other.State == model.MoveMoved && other.Operation.CreatedAt.After(newest):
			goal, newest = other.Operation.Target, other.Operation.CreatedAt
		case d.follows(other):
			if vm, there := d.VM(other.VM); there {
				along = append(along, vm)
			}
		}
	}
	return goal, UnitOf(along, d.Size)
}

// UnitOf are VMs that come along to a node, as large as size says; nil if there are none.
func UnitOf(vms []model.VM, size func(*model.VM) (units.Bytes, int)) *placement.Unit {
	if len(vms) == 0 {
		return nil
	}
	vms = slices.Clone(vms)
	slices.SortFunc(vms, func(a, b model.VM) int { return cmp.Compare(a.ID, b.ID) })
	unit := &placement.Unit{}
	for i := range vms {
		memory, vcpus := size(&vms[i])
		unit.VMs, unit.Names = append(unit.VMs, vms[i].ID), append(unit.Names, vms[i].Name)
		unit.Memory, unit.VCPUs = unit.Memory+memory, unit.VCPUs+vcpus
	}
	return unit
}

// keptFree are the nodes to which VMs of other units are still to follow the first of theirs: their room is taken, although
// nothing reserves it.
func (d *Driver) keptFree(move *Move) []string {
	var kept []string
	goal, _ := d.unitOf(move)
	for i := range d.moves {
		first := &d.moves[i]
		gone := first.State == Moving || first.State == model.MoveMoved
		if !gone || first.Operation.Target == goal || slices.Contains(d.tied[move.VM], first.VM) {
			continue
		}
		if slices.ContainsFunc(d.moves, func(other Move) bool {
			return slices.Contains(d.tied[first.VM], other.VM) && d.follows(&other)
		}) {
			kept = append(kept, first.Operation.Target)
		}
	}
	return kept
}

// follows tells whether a VM is still to go where its unit went.
func (d *Driver) follows(move *Move) bool {
	return move.State == Waiting && (d.refused[move.VM] == nil || !d.refused[move.VM].final)
}
