package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/rule"
	"berth/coordinator/placement/weigher"
	"berth/coordinator/view"
)

// Explain computes everything that follows from what the decision keeps: what each stage did, every kept node with all its
// verdicts and terms, and what would have changed the result. Decisions of release 0.1 kept these themselves and come back as
// they are, and so does a decision for which no policy was found.
func Explain(d Decision) Decision {
	e, choice, err := d.again()
	if err != nil {
		if d.Rules == nil && d.Across != nil { // no cluster was looked at
			d.Order, d.Counterfactual = d.Across.Text(d.Tried), joined(d.Changes)
		}
		return d
	}
	ordered := e.order()
	if choice.Node >= 0 {
		first(ordered, choice.Node)
	}
	w := wording{e, choice}
	d.Order, d.Gate, d.Selector = w.orderText(ordered), w.gateText(), w.selectorText()
	d.Prefer, d.Warnings = w.preferText(), Warnings(&d)
	if across := d.Across.Text(d.Tried); across != "" {
		d.Order = across + "; " + d.Order
	}
	d.Nodes, d.Ranks = resultsOf(e, ordered), ranksOf(e, choice, ordered, d.Omitted)
	if choice.Node < 0 {
		d.Counterfactual = joined(d.Changes)
	} else {
		d.Counterfactual = remedies{e, choice}.winCounterfactual()
	}
	return d
}

// again makes the decision again from what it kept. The error is ErrNotReplayable, or what is wrong with its policy.
func (d *Decision) again() (*Engine, Choice, error) {
	if d.Rules == nil || d.Inputs == nil {
		return nil, Choice{}, ErrNotReplayable
	}
	e, err := engineOf(*d.Rules)
	if err != nil {
		return nil, Choice{}, err
	}
	e.prepare(d.Inputs.columns(), d.At, &d.Request, d.Seed)
	e.input.Resolve()
	e.input.Met, e.input.Groups, e.input.Uncovered = d.Inputs.Met, d.Inputs.Groups, d.Inputs.Uncovered
	e.input.Settle()
	e.several.given = d.Inputs.Shares
	return e, e.choose(), nil
}

func joined(changes []Change) string {
	texts := make([]string, 0, len(changes))
	for i := range changes {
		texts = append(texts, changes[i].Text)
	}
	return strings.Join(texts, "; ")
}

// resultsOf is the results of all nodes: candidates in order, then refused nodes by name.
func resultsOf(e *Engine, ordered []candidate) []NodeResult {
	in, nodes := &e.input, e.input.Columns.Len()
	shut := 0
	for i := range ordered {
		if ordered[i].shut {
			shut++
		}
	}
	terms := mostTerms(e, len(ordered))
	w := &writer{
		engine:  e,
		results: make([]ConstraintResult, 0, nodes*len(e.constraints)+shut),
		figures: make([]float64, 0, nodes*figuresOfANode+2*shut+terms),
		terms:   make([]Term, 0, terms),
	}
	// Nodes are visited in the order of the columns, because that is their order in memory.
	all, place := make([]NodeResult, nodes), make([]int32, nodes)
	for i := range ordered {
		place[ordered[i].node] = int32(i)
	}
	var refused []int
	for node, out := range e.out {
		if out {
			refused = append(refused, node)
		} else {
			at := int(place[node])
			w.candidate(&all[at], &ordered[at], at+1)
		}
	}
	slices.SortStableFunc(refused, func(a, b int) int { return cmp.Compare(in.Name(a), in.Name(b)) })
	for i, node := range refused {
		w.node(&all[len(ordered)+i], node)
	}
	return all
}

// figuresOfANode is about how many figures the verdicts on one node have: an amount, what is needed, an age.
const figuresOfANode = 8

// mostTerms is the largest number of terms that the scores of some candidates can have.
func mostTerms(e *Engine, candidates int) int {
	in, each := &e.input, len(e.wanting.By)+len(e.scorers)+len(e.input.OfNodes)+len(e.input.OfVMs)
	for _, columns := range [][]view.Column[float64]{in.System, in.Reserved} {
		for _, column := range columns {
			if column.Given() {
				each++
			}
		}
	}
	met := 0
	for i := range in.Met {
		met += len(in.Met[i].Nodes)
	}
	if len(e.scorers) == 1 {
		each-- // a single weigher's score has no term of its own
	}
	return candidates*each + met
}

// writer takes results out of a few large slices, because a decision on ten thousand nodes has a hundred thousand verdicts.
type writer struct {
	engine  *Engine
	results []ConstraintResult
	figures []float64
	terms   []Term
	scratch []rule.Term
}

// pointer to a copy of the figure.
func (w *writer) pointer(figure float64) *float64 {
	w.figures = append(w.figures, figure)
	return &w.figures[len(w.figures)-1]
}

// node writes what the Filter stage found of a node.
func (w *writer) node(result *NodeResult, node int) {
	in, id := &w.engine.input, w.engine.input.Columns.IDs[node]
	result.Node, result.Name, result.Current = id, in.Name(node), in.Current == id
	first := len(w.results)
	for c := range w.engine.constraints {
		one := &w.engine.constraints[c]
		verdict := one.Check(in, node)
		result := w.constraint(one.Name, &verdict)
		if !verdict.Passed {
			result.Message = one.Say(in, node, verdict)
		}
	}
	result.Constraints = slices.Clip(w.results[first:])
}

// constraint appends one verdict. It writes the result in place, because it is large to copy.
func (w *writer) constraint(name string, verdict *rule.Verdict) *ConstraintResult {
	w.results = grown(w.results)
	result := &w.results[len(w.results)-1]
	result.Constraint, result.Passed = name, verdict.Passed
	if !verdict.Passed {
		result.Code = verdict.Code
	}
	if verdict.Unit != "" {
		result.Needed, result.Available = w.pointer(verdict.Needed), w.pointer(verdict.Available)
		result.Unit = string(verdict.Unit)
	}
	if verdict.Aged {
		result.AgeSeconds = w.pointer(verdict.Age.Seconds())
	}
	return result
}

// grown is the slice with one more zero value. Entries that were never written are zero already.
func grown[T any](slice []T) []T {
	if len(slice) < cap(slice) {
		return slice[:len(slice)+1]
	}
	var zero T
	return append(slice, zero)
}

// candidate writes what the stages found about a candidate. If the gate let it in at no round, the gate has refused it.
func (w *writer) candidate(result *NodeResult, one *candidate, rank int) {
	e := w.engine
	first := len(w.results)
	w.node(result, one.node)
	result.Tier, result.Wish, result.Band, result.Score = one.tier, one.wish, one.band, one.score
	if e.rounds() != nil {
		result.SystemScore = one.system
	}
	result.CustomerScore = one.customerScore(e.scorers)
	result.Terms = w.termsOf(one)
	if one.shut {
		w.results = append(w.results, w.belowFinal(one.system))
		result.Constraints = slices.Clip(w.results[first:])
		return
	}
	result.Admitted, result.Rank = true, rank
}

// scoreUnit is that of the gate's refusal.
const scoreUnit = "score"

// belowFinal is the gate's refusal.
func (w *writer) belowFinal(score float64) ConstraintResult {
	gate := w.engine.policy.Gate
	return ConstraintResult{
		Constraint: string(gate.Kind), Code: "below_final",
		Message: "system score " + figure(score) + " does not exceed " + figure(gate.Final),
		Needed:  w.pointer(gate.Final), Available: w.pointer(score), Unit: scoreUnit,
	}
}

// customerScore is the score by the customer keys.
func (c *candidate) customerScore(scorers []weigher.Weigher) float64 {
	for s := range scorers {
		if scorers[s].Name != policies.CustomerScore {
			continue
		}
		if len(c.parts) > 0 {
			return c.parts[s].raw
		}
		return c.score
	}
	return 0
}

// termsOf is the terms of the gate's score, unless a weigher gives the same score, and then those of the weighers.
func (w *writer) termsOf(one *candidate) []Term {
	e := w.engine
	first := len(w.terms)
	weighed := slices.ContainsFunc(e.scorers, func(s weigher.Weigher) bool { return s.Name == policies.SystemScore })
	if e.rounds() != nil && !weighed {
		w.weigh(&e.gated, one.node)
	}
	for i, wish := range e.wanting.By {
		asked, score := &e.weighers[wish], e.wanting.Scores[i][one.node]
		w.terms = append(w.terms, Term{Weigher: asked.Name, Raw: shown(asked, score)}) // it adds to no score
		w.weigh(asked, one.node)
	}
	for s := range e.scorers {
		switch {
		case len(one.parts) > 0:
			w.terms = append(w.terms, Term{
				Weigher: e.scorers[s].Name, Raw: shown(&e.scorers[s], one.parts[s].raw), Share: one.parts[s].share,
				Weight: e.weights[s], Contribution: one.parts[s].contribution,
			})
		case !e.scorers[s].Keys:
			w.terms = append(w.terms, Term{Weigher: e.scorers[s].Name, Raw: shown(&e.scorers[s], one.score), Contribution: one.score})
		}
		w.weigh(&e.scorers[s], one.node)
	}
	return slices.Clip(w.terms[first:])
}

func (w *writer) weigh(scorer *weigher.Weigher, node int) {
	w.scratch = w.scratch[:0]
	scorer.Weigh(&w.engine.input, node, &w.scratch)
	for i := range w.scratch {
		one := &w.scratch[i]
		w.terms = grown(w.terms)
		term := &w.terms[len(w.terms)-1]
		term.Weigher, term.Raw, term.Contribution, term.Count = scorer.Name, one.Raw, one.Contribution, one.Count
		term.Key, term.Note = one.Group, one.Note
		if one.Key != nil {
			term.Key, term.Weight, term.Wanted = one.Key.Name, one.Key.Weight, one.Key.Value
			term.Class, term.Level = one.Key.Class, one.Key.Level
			term.Proximity = w.pointer(one.Proximity)
		}
		if one.Unknown {
			term.Note = "the value is not known and contributes nothing"
		}
	}
}

// winCounterfactual names the keys and groups without which another node would have won. It decides again without each,
// instead of calculating on the scores. Where left-out nodes count in the shares, it says nothing.
func (r remedies) winCounterfactual() string {
	if r.choice.Candidates == 1 || r.bypassed() || r.several.given != nil {
		return ""
	}
	sentences := r.leaving()
	trial := r.trial()
	for _, one := range r.variants() {
		other := trial.on(&one)
		if other.Node < 0 || other.Node == r.choice.Node {
			continue
		}
		if entered, _, score := trial.standing(r.choice.Node); entered == other.Round && score == other.Customer && !trial.out[r.choice.Node] &&
			trial.alike(r.choice.Node, other.Node) {
			continue // only the draw, or that the VM is there already, would separate them
		}
		sentences = append(sentences, fmt.Sprintf("without %s, %s would win", one.without, r.input.Name(other.Node)))
	}
	return strings.Join(sentences, "; ")
}

// leaving says what would have to differ for a VM that stays to go to the next node: none is told where more than a score parts the two.
func (r remedies) leaving() []string {
	next := r.choice.RunnerUp
	if !r.choice.Stays || next < 0 || r.input.Pinned != "" || !r.alike(next, r.choice.Node) {
		return nil
	}
	name := r.input.Name(next)
	switch gain := r.choice.Margin; {
	case gain < 0:
		return []string{fmt.Sprintf("asked for a gain of %s or less, %s would win", margin(-gain), name)}
	case r.choice.Behind:
		return []string{fmt.Sprintf("with a system score above %s, %s could win", figure(r.choice.Threshold), name)}
	case gain == 0:
		return []string{fmt.Sprintf("if anything spoke more for %[1]s than for the node where the VM is, %[1]s would win", name)}
	default:
		return []string{fmt.Sprintf("if %s were better by more than %s, it would win", name, margin(gain))}
	}
}

// variant is the decision without one of its inputs.
type variant struct {
	without string // in words
	request Request
	groups  []rule.Membership
}

// variants is one variant for each key and each group.
func (e *Engine) variants() []variant {
	var variants []variant
	for k := range e.input.SystemKeys {
		one := variant{without: "system key " + e.input.SystemKeys[k].Name, request: *e.request, groups: e.input.Groups}
		one.request.SystemKeys = without(e.request.SystemKeys, k)
		variants = append(variants, one)
	}
	for k := range e.input.CustomerKeys {
		one := variant{without: "customer key " + e.input.CustomerKeys[k].Name, request: *e.request, groups: e.input.Groups}
		one.request.CustomerKeys = without(e.request.CustomerKeys, k)
		variants = append(variants, one)
	}
	for g := range e.input.Groups {
		group := &e.input.Groups[g]
		variants = append(variants, variant{
			without: "group " + group.Name, request: *e.request, groups: rule.WithoutGroups(e.input.Groups, group.Group),
		})
	}
	if len(e.input.Preferred) > 0 && e.input.Current == "" {
		one := variant{without: "its preferred nodes", request: *e.request, groups: e.input.Groups}
		one.request.Preferred = nil
		variants = append(variants, one)
	}
	return variants
}

// on makes the decision again without something.
func (t *trial) on(one *variant) Choice {
	t.prepare(t.asked.input.Columns, t.asked.at, &one.request, t.asked.seed)
	t.input.Resolve()
	t.input.Met, t.input.Groups = t.asked.input.Met, one.groups
	t.input.Settle()
	return t.choose()
}
