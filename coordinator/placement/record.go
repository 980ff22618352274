package placement

import (
	"cmp"
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
)

// MaxRecorded is how many nodes a decision says everything of: about 800 bytes each, in a record that is replicated. On a
// larger cluster the best candidates and some of the refused stand for the others; the reason counts them all.
const MaxRecorded = 100

// record writes the run down: each node with every verdict and every term, and in words what came of it.
func (r *run) record(decision *Decision) {
	decision.Order, decision.Gate, decision.Selector = r.orderText(), r.gateText(), r.selectorText()
	refused := r.refused()
	refusedShare := min(len(refused), max(MaxRecorded/2, MaxRecorded-len(r.candidates)))
	candidateShare := min(len(r.candidates), MaxRecorded-refusedShare)
	decision.Nodes = make([]NodeResult, 0, candidateShare+refusedShare)
	for i := range r.candidates {
		if i < candidateShare || r.concerns(r.candidates[i].node) {
			decision.Nodes = append(decision.Nodes, r.candidateResult(&r.candidates[i], i+1))
		}
	}
	for i, node := range refused {
		if i < refusedShare || r.concerns(node) {
			decision.Nodes = append(decision.Nodes, r.nodeResult(node))
		}
	}
	decision.Omitted = len(r.view.Nodes) - len(decision.Nodes)
	if !r.placed() {
		decision.Reason, decision.Counterfactual = r.refusalReason(), r.refusalCounterfactual()
		return
	}
	winner := &r.candidates[0]
	node := r.view.Nodes[winner.node]
	decision.Outcome, decision.Winner, decision.WinnerName = Placed, node.Node.ID, r.name(winner.node)
	if winner.stays {
		decision.Outcome = Stay
	}
	if next := r.runnerUp(); next != nil {
		decision.Margin = winner.score - next.score
	}
	decision.Reason, decision.Counterfactual = r.winReason(), r.winCounterfactual()
}

// concerns tells whether the request names the node, so that its result is never omitted.
func (r *run) concerns(node int) bool {
	id := r.view.Nodes[node].Node.ID
	return id == r.input.Current || id == r.input.Pinned
}

// runnerUp is the next one in the winner's tier and band; nil when the winner is alone there.
func (r *run) runnerUp() *candidate {
	if len(r.candidates) < 2 || compareGroup(&r.candidates[0], &r.candidates[1]) != 0 {
		return nil
	}
	return &r.candidates[1]
}

// refused are the nodes that a constraint refused, by name.
func (r *run) refused() []int {
	refused := make([]int, 0, len(r.view.Nodes)-len(r.admitted))
	for node, next := 0, 0; node < len(r.view.Nodes); node++ {
		if next < len(r.admitted) && r.admitted[next] == node {
			next++
			continue
		}
		refused = append(refused, node)
	}
	slices.SortStableFunc(refused, func(a, b int) int { return cmp.Compare(r.name(a), r.name(b)) })
	return refused
}

func (r *run) name(node int) string {
	record := &r.view.Nodes[node].Node
	return cmp.Or(record.Name, record.ID)
}

// nodeResult has what the Filter stage found of a node.
func (r *run) nodeResult(node int) NodeResult {
	view := r.view.Nodes[node]
	result := NodeResult{
		Node: view.Node.ID, Name: r.name(node), Current: r.input.Current == view.Node.ID,
		Constraints: make([]ConstraintResult, 0, len(r.engine.constraints)),
	}
	for c, verdict := range r.verdictsOf(node) {
		rules := &r.engine.constraints[c]
		one := constraintResult(rules.Name, verdict)
		if !verdict.Passed {
			one.Message = rules.Say(&r.input, view, verdict)
		}
		result.Constraints = append(result.Constraints, one)
	}
	return result
}

func constraintResult(name string, verdict rule.Verdict) ConstraintResult {
	result := ConstraintResult{Constraint: name, Passed: verdict.Passed, Code: verdict.Code}
	if verdict.Unit != "" {
		needed, available := verdict.Needed, verdict.Available
		result.Needed, result.Available, result.Unit = &needed, &available, string(verdict.Unit)
	}
	if verdict.Aged {
		age := verdict.Age.Seconds()
		result.AgeSeconds = &age
	}
	return result
}

// candidateResult adds what the later stages found of a node. A node that the gate let in at no round is refused by it.
func (r *run) candidateResult(one *candidate, rank int) NodeResult {
	result := r.nodeResult(one.node)
	result.Tier, result.Band, result.Score = one.tier, one.band, one.score
	result.Terms = r.terms(one)
	if one.shut {
		final, score := r.engine.policy.Gate.Final, r.engine.gated.Weigh(&r.input, r.view.Nodes[one.node], nil)
		result.Constraints = append(result.Constraints, ConstraintResult{
			Constraint: string(r.engine.policy.Gate.Kind), Code: "below_final",
			Message: "system score " + figure(score) + " does not exceed " + figure(final),
			Needed:  &final, Available: &score, Unit: "score",
		})
		return result
	}
	result.Admitted, result.Rank = true, rank
	return result
}

// terms are those of the gate's score, if it looked at one that no weigher gave, and then those of the weighers. With one
// weigher its terms add up to the node's score; with several, the terms without a key do.
func (r *run) terms(one *candidate) []Term {
	e, node := r.engine, r.view.Nodes[one.node]
	var terms []Term
	weighed := slices.ContainsFunc(e.policy.Weighers, func(f Factor) bool { return f.Weigher == systemScore })
	if e.thresholds != nil && !weighed {
		terms = r.appendTerms(terms, systemScore, e.gated.Weigh, node)
	}
	for w := range e.weighers {
		if len(one.parts) > 0 {
			terms = append(terms, Term{
				Weigher: e.weighers[w].Name, Raw: one.parts[w].raw, Weight: e.factors[w], Contribution: one.parts[w].contribution,
			})
		}
		terms = r.appendTerms(terms, e.weighers[w].Name, e.weighers[w].Weigh, node)
	}
	return terms
}

func (r *run) appendTerms(
	terms []Term, name string, weigh func(*rule.Input, *cluster.NodeView, *[]rule.Term) float64, node *cluster.NodeView,
) []Term {
	var found []rule.Term
	weigh(&r.input, node, &found)
	for _, one := range found {
		term := Term{Weigher: name, Key: one.Key, Raw: one.Raw, Weight: one.Weight, Contribution: one.Contribution}
		if one.Key != "" {
			proximity := one.Proximity
			term.Proximity = &proximity
		}
		if one.Unknown {
			term.Note = "the value is not known and contributes nothing"
		}
		terms = append(terms, term)
	}
	return terms
}
