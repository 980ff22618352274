package moving

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
)

// Berth is the caller of what the leader does by itself.
const Berth = "berth"

// NobodyWants is the message of a plan that a person has discarded.
const NobodyWants = "nobody wants it"

// observeWithin is how long after a plan's end its effect may still be told from what came later.
const observeWithin = time.Hour

// Passed is what a pass over a cluster has come to. The parts are to be stored in this order, each as soon as it can be: the next
// pass finds again what could not be.
type Passed struct {
	Marks     []Mark
	Both      []Told // VMs that one of the marks made candidates for two repairs; stored with the marks
	Observed  []Change
	Discarded []Change    // proposals that nobody can want any more
	Plan      *model.Plan // running or proposed, without an ID; nil: nothing is to be moved now
	Instead   *model.Plan // the proposal that Plan takes the place of, still as it was; nil: of none
	// Decision is the one that found the first of Plan's moves.
	Decision placement.Decision

	Idle       string            // why nothing is moved; empty: something is, or is proposed
	Occupied   bool              // the cluster was left alone because something moves in it
	Unrepaired map[string]string // by group ID: why what breaks it was not repaired
}

// Mark is a group that is broken from now on, or that holds again.
type Mark struct {
	Record model.Resource // as it is to be
	Broken bool
	Why    string        // of one that is broken
	Lasted time.Duration // of one that holds again: how long it did not
}

// Told is what is worth telling of a VM.
type Told struct{ VM, Name, Why string }

// Pass looks at one cluster: it finds which groups are broken, what came of earlier moves, and the move that is to be made now.
// The fleet's groups and plans are told what it finds.
func Pass(fleet *balance.Fleet, records Records) Passed {
	if mass := fleet.View.MassSilence(); mass != "" {
		return Passed{Idle: mass + ": nothing is moved before they are heard again"}
	}
	where := whereabouts(records, fleet)
	breaches := affinity.Breaches(fleet.Groups, where, namesOf(fleet))
	passed := Passed{Marks: mark(records, fleet, breaches), Observed: observe(fleet)}
	passed.Both = InBoth(passed.Marks, fleet.Groups, where, func(id string) bool {
		at, found := searchVM(fleet, id)
		return !found || fleet.VMs[at].Migration != model.MigrateAutomatic
	}, namesOf(fleet))
	if why := occupied(records, fleet); why != "" {
		passed.Idle, passed.Occupied, passed.Unrepaired = why, true, map[string]string{}
		for i := range breaches {
			passed.Unrepaired[breaches[i].Group] = why
		}
		return passed
	}
	found := balance.Pass(fleet)
	passed.Idle, passed.Unrepaired = found.Idle, found.Unrepaired
	passed.Discarded = tidy(records, fleet, &found)
	passed.act(fleet, &found)
	return passed
}

// whereabouts is the node that each VM is on, or on its way to.
func whereabouts(records Records, fleet *balance.Fleet) affinity.Where {
	where := make(affinity.Where, len(fleet.VMs))
	for i := range fleet.VMs {
		where[fleet.VMs[i].ID] = fleet.VMs[i].Node
	}
	for _, op := range records.LiveOperations() {
		if _, here := where[op.VM]; here && op.Kind == operation.Migrate {
			where[op.VM] = op.Target
		}
	}
	return where
}

// namesOf calls the fleet's VMs and nodes by their names.
func namesOf(fleet *balance.Fleet) affinity.Names {
	return func(id string) string {
		if at, found := searchVM(fleet, id); found {
			return fleet.VMs[at].Name
		}
		if node := fleet.View.Node(id); node != nil {
			return node.Node.Name
		}
		return id
	}
}

func searchVM(fleet *balance.Fleet, id string) (int, bool) {
	return slices.BinarySearchFunc(fleet.VMs, id, func(vm balance.VM, id string) int { return cmp.Compare(vm.ID, id) })
}

// occupied tells why a cluster is left alone for now: what moves already changes the view that a move would be found in.
func occupied(records Records, fleet *balance.Fleet) string {
	for _, plan := range fleet.Recent {
		if Unfinished(&plan) {
			return fmt.Sprintf("plan %s (%s) is carried out", plan.ID, plan.Kind)
		}
	}
	for _, op := range records.LiveOperations() {
		if op.Kind != operation.Migrate || op.Result == operation.Parked {
			continue
		}
		if node := fleet.View.Node(op.Source); node != nil && node.Node.ClusterName() == fleet.Cluster {
			return fmt.Sprintf("VM %q migrates from %s to %s", op.VMName, op.SourceName, op.TargetName)
		}
	}
	return ""
}

// mark finds the groups that are broken from now on, and those that hold again.
func mark(records Records, fleet *balance.Fleet, breaches []affinity.Breach) (marks []Mark) {
	of := map[string][]affinity.Breach{}
	for i := range breaches {
		of[breaches[i].Group] = append(of[breaches[i].Group], breaches[i])
	}
	for i := range fleet.Groups {
		group := &fleet.Groups[i]
		record, there := records.Resource(group.ID)
		if one, changed := MarkOf(group, record, of[group.ID], fleet.At); changed && there {
			marks = append(marks, one)
		}
	}
	return marks
}

// MarkOf marks a group, and its record, that is broken from now on by some breaches, or that holds again without any. False: it is as it
// was.
func MarkOf(group *model.Group, record model.Resource, breaches []affinity.Breach, at time.Time) (one Mark, changed bool) {
	switch {
	case len(breaches) > 0 && group.BrokenSince.IsZero():
		var said []string
		for i := range breaches {
			said = append(said, breaches[i].Text)
		}
		one.Broken, one.Why = true, strings.Join(said, "; ")
		group.BrokenSince, group.HeldSince = at, time.Time{}
	case len(breaches) == 0 && !group.BrokenSince.IsZero():
		one.Lasted = at.Sub(group.BrokenSince)
		group.BrokenSince, group.HeldSince = time.Time{}, at
	default:
		return Mark{}, false
	}
	one.Record, one.Record.BrokenSince, one.Record.HeldSince = record, group.BrokenSince, group.HeldSince
	return one, true
}

// InBoth finds the VMs that would be moved for a rule about nodes and for one among VMs, one of which is broken since now. So each
// is told of once, and not by every pass that cannot repair both. Fixed are the VMs that Berth does not move.
func InBoth(
	marks []Mark, groups []model.Group, where affinity.Where, fixed func(vm string) bool, names affinity.Names,
) (told []Told) {
	broken := make(map[string]bool)
	for i := range marks {
		if marks[i].Broken {
			broken[marks[i].Record.ID] = true
		}
	}
	if len(broken) == 0 {
		return nil
	}
	for _, both := range affinity.InBoth(affinity.Candidates(groups, where, fixed, nil, names)) {
		if broken[both.Nodes.Group] || broken[both.VMs.Group] {
			told = append(told, Told{VM: both.VM, Name: names(both.VM), Why: both.Text()})
		}
	}
	return told
}

// observe finds, once for each plan, what came of what balancing had predicted.
func observe(fleet *balance.Fleet) (changes []Change) {
	for i := range fleet.Recent {
		plan := &fleet.Recent[i]
		if plan.Kind != model.PlanBalance || plan.State != model.PlanDone || !plan.ObservedAt.IsZero() ||
			fleet.At.Sub(plan.EndedAt) > observeWithin {
			continue
		}
		observed, known := balance.Observe(fleet, plan)
		if !known {
			continue
		}
		plan.Observed, plan.ObservedAt, plan.UpdatedAt = observed, fleet.At, fleet.At
		changes = append(changes, Change{Plan: *plan, Said: fmt.Sprintf("predicted %.4g %s, from %.4g; it came to %.4g",
			plan.Predicted, plan.Unit, plan.Before, observed)})
	}
	return changes
}

// AsPredicted tells whether what came of a plan is what was predicted.
func AsPredicted(plan *model.Plan) bool { return equal(plan.Observed, plan.Predicted) }

// equal compares figures that were summed up in another order, perhaps.
func equal(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// tidy discards proposals that nobody can want any more: their VMs are elsewhere by now, or Berth itself finds nothing to
// move.
func tidy(records Records, fleet *balance.Fleet, found *balance.Found) (changes []Change) {
	for i := range fleet.Recent {
		plan := &fleet.Recent[i]
		if plan.State != model.PlanProposed {
			continue
		}
		why := outdated(records, plan)
		if why == "" && plan.Caller == Berth && found.Kind == "" {
			why = "no longer needed: " + found.Idle
		}
		if why != "" {
			Discard(plan, why, fleet.At)
			changes = append(changes, Change{Plan: *plan, Said: why})
		}
	}
	return changes
}

// outdated tells which VM of a proposal is no longer where it was.
func outdated(records Records, plan *model.Plan) string {
	for i := range plan.Moves {
		move := &plan.Moves[i]
		if vm, there := records.VM(move.VM); !move.Stays && (!there || vm.Holder != move.Source) {
			return fmt.Sprintf("out of date: %s is no longer on %s", move.VMName, move.SourceName)
		}
	}
	return ""
}

// Discard ends a proposal.
func Discard(plan *model.Plan, why string, at time.Time) {
	plan.State, plan.Message, plan.UpdatedAt, plan.EndedAt = model.PlanDiscarded, why, at, at
	plan.Moves = slices.Clone(plan.Moves)
	for i := range plan.Moves {
		plan.Moves[i].Result = model.MoveLeft
	}
}

// act makes a plan of what was found: one to be carried out or one to be proposed, as the cluster says.
func (p *Passed) act(fleet *balance.Fleet, found *balance.Found) {
	mode := fleet.Settings.Balancing
	if found.Kind == model.PlanRepair {
		mode = fleet.Settings.Enforcement
	}
	if found.Kind == "" || mode == model.Off {
		return
	}
	plan := model.Plan{
		Kind: found.Kind, State: model.PlanRunning, Cluster: fleet.Cluster, Group: found.Group, Policy: fleet.Policy.Name,
		Caller: Berth, Reason: found.Reason, Moves: found.Moves, Parallel: fleet.Settings.ParallelMoves,
		Unit: found.Unit, Before: found.Before, Predicted: found.Predicted, CreatedAt: fleet.At, UpdatedAt: fleet.At,
	}
	if mode == model.Manual {
		plan.State = model.PlanProposed
	}
	at := slices.IndexFunc(fleet.Recent, func(p model.Plan) bool { return p.State == model.PlanProposed && p.Kind == found.Kind })
	if at >= 0 {
		old := &fleet.Recent[at]
		if mode == model.Manual && (old.Caller != Berth || stillGood(fleet, old, &plan)) {
			return // it is proposed already, or somebody thinks about a proposal of their own
		}
		if old.Caller == Berth {
			p.Instead = old
		}
	}
	if mode == model.Manual && unwanted(fleet, &plan) {
		p.Instead = nil
		return // somebody has just said no to this one
	}
	p.Plan, p.Decision = &plan, found.Decision
}

// unwanted tells whether somebody has discarded moves of the same VMs within the time that a VM rests after a move.
func unwanted(fleet *balance.Fleet, plan *model.Plan) bool {
	return slices.ContainsFunc(fleet.Recent, func(p model.Plan) bool {
		return p.State == model.PlanDiscarded && p.Message == NobodyWants && sameVMs(&p, plan) &&
			fleet.At.Sub(p.EndedAt) < fleet.Settings.Cooldown
	})
}

// stillGood tells whether an earlier proposal does what the one found now does: for the same group it moves as many VMs from
// the same nodes, to nodes that still take VMs, and with the same effect. Among equal targets the engine draws, and which VM
// is the least busy one changes with every look: that is no reason for another proposal every minute.
func stillGood(fleet *balance.Fleet, old, found *model.Plan) bool {
	alike := sameVMs(old, found) || old.Group == found.Group && sameSources(old, found) &&
		equal(old.Before, found.Before) && equal(old.Predicted, found.Predicted)
	return alike && !slices.ContainsFunc(old.Moves, func(m model.Move) bool {
		node := fleet.View.Node(m.Target)
		return node == nil || node.Node.Maintenance || node.Facts.Liveness != model.Up || !movable(fleet, m.VM)
	})
}

// movable tells whether Berth may still move a VM by itself.
func movable(fleet *balance.Fleet, vm string) bool {
	at, found := searchVM(fleet, vm)
	return found && fleet.VMs[at].Busy == "" && fleet.VMs[at].Migration == model.MigrateAutomatic && !fleet.VMs[at].Unbalanced
}

func sameVMs(a, b *model.Plan) bool {
	return slices.EqualFunc(a.Moves, b.Moves, func(a, b model.Move) bool { return a.VM == b.VM && a.Source == b.Source })
}

// sameSources tells whether two plans take as many VMs from the same nodes, in the same order.
func sameSources(a, b *model.Plan) bool {
	return slices.EqualFunc(a.Moves, b.Moves, func(a, b model.Move) bool { return a.Source == b.Source })
}
