package placement

import (
	"errors"
	"fmt"
	"slices"

	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/rule"
	"berth/coordinator/placement/weigher"
	"berth/coordinator/view"
)

// ErrNodeNotKept is returned for a node that the decision keeps nothing of.
var ErrNodeNotKept = errors.New("the decision keeps nothing of the node")

// NodeAnswer says why a decision did not take a node.
type NodeAnswer struct {
	Node    NodeResult
	Won     bool     // it did take it
	Why     []string // what kept the node out, or how far it is behind; sentences without a full stop
	Changes []string // each of them alone would have let the node win
}

// WhyNot answers for one node, given by ID or name. The error is ErrNodeNotKept, and for a decision of release 0.1 the
// answer has no changes.
func WhyNot(d Decision, node string) (NodeAnswer, error) {
	d = Explain(d)
	found := -1
	for i := range d.Nodes {
		if d.Nodes[i].Node == node || found < 0 && d.Nodes[i].Name == node {
			found = i
		}
	}
	if found < 0 {
		why := "it was not among the nodes that were looked at"
		if d.Omitted > 0 {
			why = fmt.Sprintf("%s left out of the record", count(d.Omitted, "node"))
		}
		return NodeAnswer{}, fmt.Errorf("node %q: %w (%s)", node, ErrNodeNotKept, why)
	}
	answer := NodeAnswer{Node: d.Nodes[found], Won: d.Nodes[found].Node == d.Winner && d.Winner != ""}
	switch {
	case answer.Won:
		answer.Why = []string{d.Reason}
		return answer, nil
	case !answer.Node.Admitted:
		answer.Why = complaintsOf(&answer.Node)
	default:
		answer.Why = []string{behindText(&d, &answer.Node)}
	}
	for i := range d.Changes {
		if d.Changes[i].Node == answer.Node.Node {
			answer.Changes = append(answer.Changes, d.Changes[i].Text)
		}
	}
	if e, choice, err := d.again(); err == nil {
		at, _ := e.input.Columns.Index(answer.Node.Node)
		for _, text := range (remedies{e, choice}).changesFor(at) {
			if !slices.Contains(answer.Changes, text) {
				answer.Changes = append(answer.Changes, text)
			}
		}
	}
	return answer, nil
}

// behindText says how far an admitted node is behind the winner.
func behindText(d *Decision, node *NodeResult) string {
	if len(d.Nodes) == 0 {
		return d.Reason
	}
	winner := &d.Nodes[0]
	switch {
	case d.Outcome == Stay && d.Margin < 0:
		return d.Reason
	case node.Tier != winner.Tier:
		return fmt.Sprintf("it stands in tier %d%s, %s in tier %d%s, which comes first",
			node.Tier, d.accountOf(node.Node), winner.Name, winner.Tier, d.accountOf(winner.Node))
	case node.Wish != winner.Wish:
		return d.wishText(node, winner)
	case node.Band != winner.Band:
		return withCause(fmt.Sprintf("it enters in round %d with a system score of %s, %s in round %d with %s",
			node.Band, figure(node.SystemScore), winner.Name, winner.Band, figure(winner.SystemScore)),
			tellingText(node, winner, policies.SystemScore))
	case node.Score == winner.Score && winner.Current:
		return fmt.Sprintf("it is as good as %s, where the VM is already", winner.Name)
	case node.Score == winner.Score:
		return fmt.Sprintf("it is as good as %s, which was drawn", winner.Name)
	}
	text, cause := "its score is %s, %s less than that of %s", combinedText(node, winner)
	score, less := node.Score, winner.Score-node.Score
	switch only := onlyWeigher(d, node); {
	case cause != "":
	case only.Weight:
		text, score, cause = "its weight is %s, %s more than that of %s", -node.Score, tellingText(node, winner, only.Name)
	default:
		cause = tellingText(node, winner, only.Name)
	}
	return withCause(fmt.Sprintf(text, figure(score), margin(less), winner.Name), cause)
}

// onlyWeigher is the one that alone decided inside the round: that of the node's terms which is not the gate's.
func onlyWeigher(d *Decision, node *NodeResult) weigher.Weigher {
	name := policies.CustomerScore
	if d.Rules != nil {
		for _, factor := range d.Rules.Weighers {
			if slices.ContainsFunc(node.Terms, func(t Term) bool { return t.Weigher == factor.Weigher }) {
				name = factor.Weigher
			}
		}
	}
	found, _ := weigher.ByName(name)
	return found
}

func withCause(text, cause string) string {
	if cause == "" {
		return text
	}
	return text + ": " + cause
}

// Behind says for each admitted node of an explained decision how far it is behind the winner and which keys make that,
// nodes that are as good as the winner apart; at most so many nodes, by rank.
func Behind(d *Decision, most int) []string {
	var lines []string
	for i := range d.Nodes {
		node := &d.Nodes[i]
		if !node.Admitted || i == 0 || node.Wish == d.Nodes[0].Wish && node.Band == d.Nodes[0].Band && node.Score == d.Nodes[0].Score {
			continue
		}
		if len(lines) == most {
			break
		}
		lines = append(lines, "not "+node.Name+": "+behindText(d, node))
	}
	return lines
}

// changesFor are those that let this node win, or one that was refused take the VM: lifting the one refusal, switching off
// one key or group, asking for the node.
func (r remedies) changesFor(node int) []string {
	switch entered, _, _ := r.standing(node); {
	case r.out[node]:
		return r.liftingChanges(node)
	case entered == 0 && r.rounds() != nil:
		return r.changesWithout("would take it", func(trial *trial, one *variant) bool {
			return trial.takes(node, &one.request, func(_ *view.Figures, in *rule.Input) {
				in.Groups = rule.SelectGroups(one.groups, []int{node}, r.input.Name)
			})
		}, node)
	}
	changes := r.changesWithout("would win", func(trial *trial, one *variant) bool { return trial.on(one).Node == node }, node)
	if before, _, score := r.standing(node); r.choice.Node >= 0 &&
		(before != r.choice.Round || score != r.choice.Customer || !r.alike(node, r.choice.Node)) {
		changes = append(changes, r.changesWithout("would be as good", func(trial *trial, one *variant) bool {
			best := trial.on(one)
			entered, _, score := trial.standing(node)
			return best.Node >= 0 && best.Node != node && entered == best.Round && score == best.Customer && trial.alike(node, best.Node)
		}, node)...)
	}
	if r.choice.Node >= 0 && r.input.Pinned == "" {
		changes = append(changes, fmt.Sprintf("asked for by name, %s would take it", r.input.Name(node)))
	}
	return changes
}

// liftingChanges are those that lift the only refusal of a node.
func (r remedies) liftingChanges(node int) []string {
	var attempts []attempt
	for c := range r.constraints {
		attempts = append(attempts, r.relaxations(c)...)
	}
	attempts = append(append(attempts, r.overheads()...), r.sizes()...)
	var changes []string
	for _, one := range attempts {
		if one.node == node && len(r.firstThatFits(nil, []attempt{one})) > 0 {
			changes = append(changes, one.change.Text)
		}
	}
	return changes
}

// changesWithout are the keys and groups without any one of which the node would do something. Where nodes that are not kept
// count in what several weighers give, that cannot be told.
func (r remedies) changesWithout(what string, does func(trial *trial, one *variant) bool, node int) []string {
	if r.several.given != nil {
		return nil
	}
	trial := r.trial()
	var changes []string
	for _, one := range r.variants() {
		if does(trial, &one) {
			changes = append(changes, fmt.Sprintf("without %s, %s %s", one.without, r.input.Name(node), what))
		}
	}
	return changes
}
