package balance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/affinity"
	"berth/coordinator/model"
	"berth/coordinator/placement"
)

// repairs is the attempts of one pass to repair broken rules.
type repairs struct {
	*ground
	seed   uint64
	groups map[string]*model.Group // by ID
	why    map[string][]string     // by group ID: why its candidates were not moved
	waits  map[string]bool         // by ID: groups whose smaller share will be emptied once its VMs have rested
}

// maxReasons is how many reasons one group reports.
const maxReasons = 3

// repair finds the first candidate whose move repairs a rule, or a part of it. VMs that hard rules keep together are tried
// one by one first, and as a unit when none of them can go alone.
func (g *ground) repair(found *Found) bool {
	if len(found.Breaches) == 0 {
		return false
	}
	if g.Settings.Enforcement == model.Off {
		for i := range found.Breaches {
			found.Unrepaired[found.Breaches[i].Group] = "enforcement is off"
		}
		return false
	}
	r := repairs{
		ground: g, seed: g.Seed(), groups: make(map[string]*model.Group), why: make(map[string][]string), waits: make(map[string]bool),
	}
	for i := range g.Groups {
		r.groups[g.Groups[i].ID] = &g.Groups[i]
	}
	candidates := affinity.Candidates(g.Groups, g.where, r.fixed, r.less, g.name)
	repaired := r.try(candidates, found)
	for i := range found.Breaches {
		group := found.Breaches[i].Group
		switch {
		case repaired && group == found.Group:
		case len(r.why[group]) > 0:
			found.Unrepaired[group] = strings.Join(r.why[group], "; ")
		case repaired:
			found.Unrepaired[group] = fmt.Sprintf("group %s comes first: one move at a time", r.groups[found.Group].Name)
		default:
			found.Unrepaired[group] = "Berth may move none of the VMs: " + r.members(found.Breaches[i].VMs)
		}
	}
	return repaired
}

// try goes through the candidates: hard rules before soft ones. Candidates that should join VMs on other nodes are tried as a
// unit before the next share is tried.
func (r *repairs) try(candidates []affinity.Candidate, found *Found) bool {
	for _, hard := range []bool{true, false} {
		for _, together := range []bool{false, true} {
			for i := range candidates {
				c := &candidates[i]
				if c.Hard == hard && (r.one(c, together, found) || r.parting(c) && !together && r.one(c, true, found)) {
					return true
				}
			}
		}
	}
	return false
}

// fixed tells whether enforcement takes a VM for immovable.
func (r *repairs) fixed(id string) bool {
	vm, known := r.index[id]
	return !known || r.immovable(vm) != ""
}

// less sorts VMs by the CPU that they use, because CPU use is what makes a migration expensive.
func (r *repairs) less(a, b string) int {
	use := func(id string) float64 {
		if vm, known := r.index[id]; known {
			return r.VMs[vm].CPU
		}
		return 0
	}
	return cmp.Or(cmp.Compare(use(a), use(b)), cmp.Compare(a, b))
}

// members says why none of a breach's VMs was a candidate.
func (r *repairs) members(ids []string) string {
	var all []string
	for _, id := range ids {
		if vm, known := r.index[id]; !known {
			all = append(all, r.name(id)+" is on its way")
		} else if why := r.immovable(vm); why != "" {
			all = append(all, why)
		}
		if len(all) == maxReasons {
			break
		}
	}
	if len(all) == 0 {
		return "each shares its node with one that is immovable"
	}
	return strings.Join(all, "; ")
}

// note keeps the reason why a candidate was not moved.
func (r *repairs) note(c *affinity.Candidate, why string) bool {
	if all := r.why[c.Breach.Group]; len(all) < maxReasons && !slices.Contains(all, why) {
		r.why[c.Breach.Group] = append(all, why)
	}
	return false
}

// one tries one candidate, alone or together with the VMs on its node that hard rules tie to it.
func (r *repairs) one(c *affinity.Candidate, together bool, found *Found) bool {
	vm := r.index[c.VM] // an unknown VM counts as fixed and is no candidate
	mates := r.mates(vm)
	if together && len(mates) == 0 {
		return false
	}
	if !c.Hard && !together && r.tied(vm) {
		return r.note(c, fmt.Sprintf("%s is tied to others by a hard rule", r.VMs[vm].Name))
	}
	going := []int{vm}
	if together {
		going = append(going, mates...)
	}
	if r.parting(c) && r.waits[c.Breach.Group] {
		return false // a larger share would move to a smaller one, and back later
	}
	for _, one := range going {
		if why := cmp.Or(r.immovable(one), r.hinders(one)); why != "" {
			return r.note(c, why)
		}
		if why := r.cooling(c, one); why != "" {
			r.waits[c.Breach.Group] = r.waits[c.Breach.Group] || r.parting(c)
			return r.note(c, why)
		}
	}
	request, err := r.ask(vm, placement.ForRepair)
	if err != nil {
		return r.note(c, err.Error())
	}
	request.Leave = c.Hard
	if r.parting(c) {
		if request.Among = r.joining(vm); request.Among == nil {
			return r.note(c, fmt.Sprintf("%s has none to join on another node", r.VMs[vm].Name))
		}
	}
	if together || r.parting(c) {
		request.Unit = r.unit(mates) // only a share that has room as a whole is begun
	}
	choice := r.choose(r.engine, vm, &request, r.seed)
	if choice.Node < 0 && len(r.why[c.Breach.Group]) < maxReasons {
		return r.note(c, fmt.Sprintf("%s: %s", r.VMs[vm].Name, r.decide(vm, request, r.Policy, r.seed).Reason))
	}
	if choice.Node < 0 {
		return false
	}
	if !c.Hard && (choice.Stays || !r.improves(vm, going[1:], choice.Node)) {
		as, found := r.asGood(vm, going[1:], request, choice)
		if !found {
			return r.note(c, r.elsewhere(vm, choice))
		}
		request, choice = as, r.choose(r.engine, vm, &as, r.seed)
	}
	if r.breaks(going, choice.Node) {
		return r.note(c, fmt.Sprintf("%s would break another hard rule on %s", r.VMs[vm].Name, r.name(r.columns.IDs[choice.Node])))
	}
	decision := placement.Place(r.View, request, r.Policy, r.seed)
	if decision.Outcome != placement.Placed {
		return r.note(c, fmt.Sprintf("%s: %s", r.VMs[vm].Name, decision.Reason))
	}
	target, _ := r.columns.Index(decision.Winner)
	found.Kind, found.Decision, found.Group, found.Hard = model.PlanRepair, decision, c.Breach.Group, c.Hard
	found.Reason = fmt.Sprintf("group %s: %s", c.Breach.GroupName, c.Breach.Text)
	for _, one := range going {
		found.Moves = append(found.Moves, r.planned(one, target, found.Reason))
	}
	return true
}

// joining is the nodes of the VMs that a VM should join, ascending. The constraint knows only the VM's own groups. A VM that
// is tied to others by one that does not run could otherwise go anywhere, from one wrong node to the next.
func (r *repairs) joining(vm int) []string {
	var nodes []string
	for _, id := range r.bound[r.VMs[vm].ID] {
		if node, runs := r.where[id]; runs && node != r.VMs[vm].Node && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// parting tells whether a candidate should join VMs on other nodes. Then it may leave the VMs of its own node, which follow.
func (r *repairs) parting(c *affinity.Candidate) bool {
	return c.Hard && c.Breach.Scope == affinity.OfVMs && c.Breach.Rule.Polarity == model.Positive
}

// cooling says why a VM has to rest before this move; empty: it has not.
func (r *repairs) cooling(c *affinity.Candidate, vm int) string {
	if since := r.groups[c.Breach.Group].BrokenSince; c.Hard && (since.IsZero() || since.After(r.VMs[vm].MovedAt)) {
		return ""
	}
	return r.rests(vm)
}

// improves tells whether the soft rules hold better with the VM, and those that come along, on another node.
func (r *repairs) improves(vm int, mates []int, to int) bool {
	where := maps.Clone(r.where)
	for _, mate := range mates {
		delete(where, r.VMs[mate].ID)
	}
	target, first := r.columns.IDs[to], r.first()
	if !affinity.Improves(r.Groups, r.VMs[vm].ID, target, where, first) {
		return false
	}
	where[r.VMs[vm].ID] = target
	for _, mate := range mates { // none of them may want to go back
		source := r.VMs[mate].Node
		where[r.VMs[mate].ID] = target
		if affinity.Improves(r.Groups, r.VMs[mate].ID, source, where, first) {
			return false
		}
	}
	return true
}

// asGood asks for a node that the engine finds as good as the drawn one, and where the soft rules hold better. A draw must
// not decide whether a rule is repaired, or a later pass would find what an earlier one missed.
func (r *repairs) asGood(vm int, mates []int, request placement.Request, drawn placement.Choice) (placement.Request, bool) {
	if drawn.Ties < 2 {
		return request, false
	}
	request.Leave, request.Among = true, nil
	for node, id := range r.columns.IDs {
		if node != r.at[vm] && r.improves(vm, mates, node) {
			request.Among = append(request.Among, id)
		}
	}
	if request.Among == nil {
		return request, false
	}
	better := r.choose(r.engine, vm, &request, r.seed)
	if better.Node < 0 {
		return request, false
	}
	target := r.columns.IDs[better.Node]
	both := request
	if both.Leave, both.Among = !drawn.Stays, []string{target}; !drawn.Stays {
		both.Among = append(both.Among, r.columns.IDs[drawn.Node])
		slices.Sort(both.Among)
	}
	request.Among = []string{target}
	return request, r.choose(r.engine, vm, &both, r.seed).Ties == 2
}

// elsewhere says why a soft rule stays broken.
func (r *repairs) elsewhere(vm int, choice placement.Choice) string {
	if choice.Stays {
		return fmt.Sprintf("%s is on the best node for it by the policy", r.VMs[vm].Name)
	}
	return fmt.Sprintf("%s would go to %s, where the soft rules are kept no better", r.VMs[vm].Name, r.name(r.columns.IDs[choice.Node]))
}
