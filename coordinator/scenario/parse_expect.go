package scenario

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/constraint"
	"berth/coordinator/strictyaml"
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
	m := r.Mapping(node, "expect of "+words)
	e := &Expectation{Line: node.Line}
	switch of {
	case expectsPlacement:
		e.placement(m)
	case expectsDrain:
		e.moved = movesOf(m, "moved")
		e.left, e.leftGiven = m.Texts("left"), m.Has("left")
	case expectsRun:
		e.moves = m.Whole("moves", 0, maxCapacity)
		e.where, e.proposed = movesOf(m, "where"), movesOf(m, "proposed")
		e.idle, e.holds, e.broken = m.Text("idle"), m.Texts("holds"), m.Texts("broken")
	case expectsCapacity:
		e.more = m.Whole("more", 0, maxCapacity)
		for _, one := range m.Pairs("nodes") {
			if more := m.WholeOf(one.Value, one.Name, 0, maxCapacity); more != nil {
				e.perNode = append(e.perNode, expectedCount{node: one.Name, more: *more})
			}
		}
		e.runsOut = m.Text("runs_out_first")
	case expectsNothing:
		r.Refuse(node, "leave out expect", "nothing can be expected of %s", words)
		return nil
	}
	m.Close()
	return e
}

func (e *Expectation) placement(m *strictyaml.Mapping) {
	e.nodes = m.Texts("node")
	e.outcome = m.Word("outcome", string(placement.Placed), string(placement.Stay), string(placement.Refused))
	e.phase = m.Word("phase", string(placement.PhaseConstraint), string(placement.PhaseSystem))
	e.round = m.Whole("round", 0, model.MaxMSAVSteps)
	for _, one := range m.Pairs("refused") {
		refusal := expectedRefusal{node: one.Name, constraints: listOf(m, one)}
		for _, name := range refusal.constraints {
			if _, known := constraint.ByName(name); !known {
				m.Refuse(one.Value, "use "+constraintNames(), "there is no constraint %q", name)
			}
		}
		e.refused = append(e.refused, refusal)
	}
	for _, one := range m.Pairs("scores") {
		scores := m.Mapping(one.Value, "scores of "+one.Name)
		e.scores = append(e.scores, expectedScore{
			node: one.Name, system: scores.Number("system", -strictyaml.MaxFigure), customer: scores.Number("customer", -strictyaml.MaxFigure),
		})
		scores.Close()
	}
}

// moves are VMs, and the nodes any of which will do for each.
func movesOf(m *strictyaml.Mapping, name string) []expectedMove {
	var moves []expectedMove
	for _, one := range m.Pairs(name) {
		moves = append(moves, expectedMove{vm: one.Name, nodes: listOf(m, one)})
	}
	return moves
}

// listOf is a value that is one text or several.
func listOf(m *strictyaml.Mapping, one strictyaml.Field) []string {
	if one.Value.Kind != yaml.SequenceNode {
		return []string{m.TextOf(one.Value, one.Name)}
	}
	texts := make([]string, 0, len(one.Value.Content))
	for _, value := range one.Value.Content {
		texts = append(texts, m.TextOf(value, one.Name))
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
