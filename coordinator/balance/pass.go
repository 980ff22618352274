package balance

import (
	"cmp"
	"fmt"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/view"
)

// Interval is how often the leader makes a pass.
const Interval = time.Minute

// Found is the result of a pass: at most one VM to move, or one unit of VMs.
type Found struct {
	Kind model.PlanKind // PlanRepair or PlanBalance; empty: no move
	// Moves is the one move, and the moves of the VMs that hard rules tie to that VM on the same node. They go to the same
	// target, one after the other.
	Moves    []model.Move
	Decision placement.Decision // that chose the target; with no ID
	Group    string             // ID: of a repair
	Hard     bool               // of a repair
	Reason   string             // of the move, with figures

	// Of a balance move: the balancer's figure of the cluster before and after, in Unit; lower is better.
	Unit              string
	Before, Predicted float64

	// Idle says why there is no move.
	Idle string
	// Breaches are the rules that do not hold now, and Unrepaired why each was not repaired in this pass, by group ID.
	Breaches   []affinity.Breach
	Unrepaired map[string]string
}

// InUpgrade is why a cluster in upgrade mode is left alone.
const InUpgrade = "the cluster is in upgrade mode: no rule is enforced and nothing is balanced"

// Pass finds the move to make now; in upgrade mode there is none. It looks for repairs first, unless enforcement is off. Then
// it looks for balancing, unless that is off or its window is closed: first moves that spread the VMs of a customer, where the
// policy wants that, then what the balancer finds. It finds one move; the next pass sees its effect.
//
// Repairs come in the order of affinity.Candidates, and the engine chooses the target. After a VM was moved, soft repairs and
// balancing leave it alone for the cluster's cool-down. A hard repair does so only if the rule was already broken when the VM
// was last moved. A rule that was broken since, which is not Berth's doing, is repaired at once.
func Pass(fleet *Fleet) Found {
	found := Found{Unrepaired: make(map[string]string)}
	g, err := survey(fleet)
	found.Breaches = affinity.Breaches(fleet.Groups, g.where, g.name)
	balancer, s := g.situation()
	if balancer.Watch != nil {
		balancer.Watch(s)
	}
	if err != nil {
		found.Idle = err.Error()
		return found
	}
	if fleet.Settings.UpgradeMode {
		found.stand(InUpgrade)
		return found
	}
	if g.repair(&found) {
		return found
	}
	why := g.even(balancer, s, &found)
	if found.Kind == "" {
		found.Idle = brokenRules(len(found.Breaches)) + why
	}
	return found
}

// stand says why nothing at all is moved: of the pass, and of each group that is broken.
func (f *Found) stand(why string) {
	f.Idle = why
	for i := range f.Breaches {
		f.Unrepaired[f.Breaches[i].Group] = why
	}
}

func brokenRules(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 rule is broken and cannot be repaired now; "
	default:
		return fmt.Sprintf("%d rules are broken and cannot be repaired now; ", n)
	}
}

// maxAbsent is the largest share of nodes that may be silent while others are balanced. With more silent nodes, what looks
// uneven is more likely a network that is cut in two.
const maxAbsent = 0.3

// even finds a move that spreads a customer's VMs more evenly, or else one that makes the cluster more even. It returns why
// there is none. The balancer never makes a customer's VMs less evenly spread, so neither undoes the other's moves.
func (g *ground) even(balancer Balancer, s *Situation, found *Found) string {
	if why := g.held(); why != "" {
		return why
	}
	why := ""
	if g.DisperseAccounts {
		why = dispersal{g}.spread(s, found)
	}
	switch {
	case found.Kind != "":
		return ""
	case !g.Balancer.Nothing():
		return joined(why, g.balance(balancer, s, found))
	default:
		return cmp.Or(why, allSpread)
	}
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// held says why there is no balancing now; empty: there may be.
func (g *ground) held() string {
	switch {
	case g.Settings.Balancing == model.Off:
		return "balancing is off"
	case g.Balancer.Nothing() && !g.DisperseAccounts:
		return fmt.Sprintf("policy %s has no balancer", g.Policy.Name)
	case !g.Settings.BalanceWindow.Open(g.At):
		return "the balance window is closed"
	}
	silent, wanted := 0, 0
	for node := range g.columns.IDs {
		switch g.columns.Standing[node] {
		case view.StandsInMaintenance, view.StandsDownInMaintenance:
		case view.Stands, view.StandsDegraded:
			wanted++
		default:
			silent, wanted = silent+1, wanted+1
		}
	}
	if float64(silent) > maxAbsent*float64(wanted) {
		return fmt.Sprintf("%d of %d nodes are silent: nothing is balanced while more than %.0f %% are", silent, wanted, 100*maxAbsent)
	}
	return ""
}

// balance finds a move that makes the cluster more even. It returns why there is none.
func (g *ground) balance(balancer Balancer, s *Situation, found *Found) string {
	if why, holds := BackOff(g.Fleet); holds {
		return why
	}
	seed := g.Seed()
	return balancer.Propose(s, func(p Proposal) bool {
		request, target, chosen := g.askEngine(p, seed)
		return chosen && g.accept(found, &p, &request, target, seed, balancer.Unit, func() float64 { return balancer.Figure(s) })
	})
}

// accept takes a proposal if a whole decision on the view, with the seed that chose the target, has the same result. Figure
// measures how uneven the cluster is, in unit; it is read before and after the move.
func (g *ground) accept(
	found *Found, p *Proposal, request *placement.Request, target int, seed uint64, unit string, figure func() float64,
) bool {
	decision := placement.Place(g.View, *request, g.Policy, seed)
	if decision.Outcome != placement.Placed || decision.Winner != g.columns.IDs[target] {
		return false
	}
	found.Kind, found.Decision, found.Reason = model.PlanBalance, decision, p.Reason(target)
	found.Moves = []model.Move{g.planned(p.VM, target, found.Reason)}
	found.Unit, found.Before = unit, figure()
	g.move(p.VM, target)
	found.Predicted = figure()
	return true
}

// keeping is the targets of a proposal on which no rule holds worse: otherwise a repair would undo the move.
func (g *ground) keeping(p *Proposal) []string {
	nodes := make([]string, 0, len(p.Targets))
	for _, node := range p.Targets {
		if !g.crowds(p.VM, node) && !g.worse(p.VM, node) && !g.breaks([]int{p.VM}, node) {
			nodes = append(nodes, g.columns.IDs[node])
		}
	}
	return nodes
}

// askEngine asks the engine about a proposal. The VM may stay, so that the policy's weighers can speak against the move. Where
// only the weighers for load speak against it, or nothing speaks either way, the balancer is believed, because it has judged
// the load.
func (g *ground) askEngine(p Proposal, seed uint64) (request placement.Request, target int, chosen bool) {
	request, err := g.ask(p.VM, placement.ForBalance)
	if err != nil {
		return request, -1, false
	}
	request.Among = g.keeping(&p)
	if len(request.Among) == 0 {
		return request, -1, false
	}
	choice := g.choose(g.engine, p.VM, &request, seed)
	if choice.Stays {
		other := g.choose(g.judge, p.VM, &request, seed)
		if other.Stays && (other.RunnerUp < 0 || other.Margin != 0) {
			return request, -1, false
		}
		better := other.Node
		if other.Stays {
			better = other.RunnerUp
		}
		request.Among, request.Leave = []string{g.columns.IDs[better]}, true
		choice = g.choose(g.engine, p.VM, &request, seed)
	}
	if choice.Node < 0 || choice.Stays {
		return request, -1, false
	}
	return request, choice.Node, true
}

// situation is what the policy's balancer sees, on the columns that moves are planned on.
func (g *ground) situation() (Balancer, *Situation) {
	balancer, _ := ByName(g.Balancer.Balancer)
	n := g.columns.Len()
	s := &Situation{
		Columns: g.columns, Parameters: g.Balancer.parameters(balancer), VMs: make([]Resting, 0, len(g.VMs)), On: make([][]int, n),
		Out: make([]bool, n), Migrating: make([]bool, n), At: g.At, History: cmp.Or(g.History, &History{}),
	}
	for node, id := range g.columns.IDs {
		s.Out[node] = g.columns.Standing[node] != view.Stands || g.View.Node(id).Node.Unbalanced
		s.Migrating[node] = g.migrating(id)
	}
	for i := range g.VMs {
		one := Resting{VM: g.VMs[i], At: g.at[i]}
		one.Movable = !one.Unbalanced && g.at[i] >= 0 && g.immovable(i) == "" && g.hinders(i) == "" && g.rests(i) == ""
		s.VMs = append(s.VMs, one)
		if one.At >= 0 {
			s.On[one.At] = append(s.On[one.At], i)
		}
	}
	return balancer, s
}

// migrating tells whether a VM is coming to the node or leaving it, by Berth or by somebody else.
func (g *ground) migrating(node string) bool {
	viewed := g.View.Node(node)
	for i := range viewed.Facts.Domains {
		if viewed.Facts.Domains[i].State == model.DomainPausedMigration {
			return true
		}
	}
	for i := range viewed.Allocations {
		at, held := g.index[viewed.Allocations[i].VM]
		if held && (g.VMs[at].Node != node && viewed.Allocations[i].InFlight || g.where[g.VMs[at].ID] != g.VMs[at].Node) {
			return true
		}
	}
	return false
}
