package sim

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/cluster"
	"berth/coordinator/placement"
	"berth/coordinator/placement/constraint"
)

// expects is what can be expected of a step.
type expects int

const (
	expectsNothing expects = iota
	expectsPlacement
	expectsDrain
	expectsCapacity
	expectsRun
)

func (r *reader) expectation(node *yaml.Node, of expects, words string) *Expectation {
	m := r.mapping(node, "expect of "+words)
	e := &Expectation{Line: node.Line}
	switch of {
	case expectsPlacement:
		e.placement(m)
	case expectsDrain:
		e.moved = m.moves("moved")
		e.left, e.leftGiven = m.texts("left"), m.has("left")
	case expectsRun:
		e.moves = m.whole("moves", 0, maxCapacity)
		e.where, e.proposed = m.moves("where"), m.moves("proposed")
		e.idle, e.holds, e.broken = m.text("idle"), m.texts("holds"), m.texts("broken")
	case expectsCapacity:
		e.more = m.whole("more", 0, maxCapacity)
		for _, one := range m.pairs("nodes") {
			if more := m.wholeOf(one.value, one.name, 0, maxCapacity); more != nil {
				e.perNode = append(e.perNode, expectedCount{node: one.name, more: *more})
			}
		}
		e.runsOut = m.text("runs_out_first")
	case expectsNothing:
		r.refuse(node, "leave out expect", "nothing can be expected of %s", words)
		return nil
	}
	m.close()
	return e
}

func (e *Expectation) placement(m *mapping) {
	e.nodes = m.texts("node")
	e.outcome = m.word("outcome", string(placement.Placed), string(placement.Stay), string(placement.Refused))
	e.phase = m.word("phase", string(placement.PhaseConstraint), string(placement.PhaseSystem))
	e.round = m.whole("round", 0, cluster.MaxMSAVSteps)
	for _, one := range m.pairs("refused") {
		refusal := expectedRefusal{node: one.name, constraints: m.listOf(one)}
		for _, name := range refusal.constraints {
			if _, known := constraint.ByName(name); !known {
				m.refuse(one.value, "use "+constraintNames(), "there is no constraint %q", name)
			}
		}
		e.refused = append(e.refused, refusal)
	}
	for _, one := range m.pairs("scores") {
		scores := m.mapping(one.value, "scores of "+one.name)
		e.scores = append(e.scores, expectedScore{
			node: one.name, system: scores.number("system", -maxFigure), customer: scores.number("customer", -maxFigure),
		})
		scores.close()
	}
}

// moves are VMs, and the nodes any of which will do for each.
func (m *mapping) moves(name string) []expectedMove {
	var moves []expectedMove
	for _, one := range m.pairs(name) {
		moves = append(moves, expectedMove{vm: one.name, nodes: m.listOf(one)})
	}
	return moves
}

// listOf is a value that is one text or several.
func (m *mapping) listOf(one field) []string {
	if one.value.Kind != yaml.SequenceNode {
		return []string{m.textOf(one.value, one.name)}
	}
	texts := make([]string, 0, len(one.value.Content))
	for _, value := range one.value.Content {
		texts = append(texts, m.textOf(value, one.name))
	}
	return texts
}

func constraintNames() string {
	names := make([]string, 0, len(constraint.All()))
	for _, one := range constraint.All() {
		names = append(names, one.Name)
	}
	return strings.Join(names, ", ")
}
