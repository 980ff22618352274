package evidence

import (
	"slices"
	"strings"

	"berth/coordinator/model"
)

// Survey is what every node's word is worth at one moment. It is made once and asked about many VMs. It is not safe for concurrent use.
type Survey struct {
	Moment

	nodes []hearing         // by name
	byID  map[string]int    // where each is among them
	shown map[string][]Copy // by UUID: what the nodes that are believed show; by the nodes' names; nil: nobody has asked yet
}

// hearing is what a node's word is worth, whatever it is about.
type hearing struct {
	node  model.Node
	facts model.NodeFacts
	worth worth
}

type worth int

const (
	heard      worth = iota // it lists its domains
	off                     // it is proven to be off: it has none
	silent                  // it does not answer
	speechless              // it answers, and cannot list its domains, or has not done so yet
	lying                   // it is proven to be off, and has answered since without having booted anew
)

// Survey listens to all nodes.
func (p Proofs) Survey(m Moment) *Survey {
	nodes := m.Nodes()
	s := &Survey{Moment: m, nodes: make([]hearing, 0, len(nodes)), byID: make(map[string]int, len(nodes))}
	for _, node := range nodes {
		one := hearing{node: node, facts: m.Facts(node.ID)}
		one.worth = p.worth(m, &one)
		s.nodes = append(s.nodes, one)
	}
	slices.SortFunc(s.nodes, func(a, b hearing) int { return strings.Compare(a.node.Name, b.node.Name) })
	for i := range s.nodes {
		s.byID[s.nodes[i].node.ID] = i
	}
	return s
}

// all is what the nodes that are believed show.
func (s *Survey) all() map[string][]Copy {
	if s.shown != nil {
		return s.shown
	}
	s.shown = map[string][]Copy{}
	for i := range s.nodes {
		one := &s.nodes[i]
		if one.worth != heard {
			continue
		}
		for _, domain := range one.facts.Domains {
			s.shown[domain.UUID] = append(s.shown[domain.UUID], Copy{Node: one.node.ID, Name: one.node.Name, Domain: domain})
		}
	}
	return s.shown
}

func (p Proofs) worth(m Moment, one *hearing) worth {
	facts := &one.facts
	switch {
	case p.Off(m, &one.node):
		return off
	case p.Contradicted(m, &one.node) != "":
		return lying
	case facts.Liveness == model.Degraded, facts.Liveness == model.Up && (!facts.Inventory || !facts.DomainsKnown):
		return speechless
	case facts.Liveness != model.Up:
		return silent
	default:
		return heard
	}
}

// of is a node as the survey has it; nil if it is no member.
func (s *Survey) of(id string) *hearing {
	at, known := s.byID[id]
	if !known {
		return nil
	}
	return &s.nodes[at]
}

// under is the node whose host has told this boot last; nil: none has.
func (s *Survey) under(boot string) *hearing {
	at := slices.IndexFunc(s.nodes, func(one hearing) bool { return one.facts.Boot == boot })
	if at < 0 {
		return nil
	}
	return &s.nodes[at]
}

// copies are those of a VM that nodes show, without those that are to be discarded.
func (s *Survey) copies(vm *model.VM) []Copy {
	return slices.DeleteFunc(slices.Clone(s.all()[vm.ID]), func(one Copy) bool { return isLeft(vm, one.Node, &one.Domain) })
}

// Shown is all that the nodes show, by UUID, and the names of those that do not tell, without what is proven to be off.
func (s *Survey) Shown() (shown map[string][]Copy, unheard []string) {
	for i := range s.nodes {
		if worth := s.nodes[i].worth; worth != heard && worth != off {
			unheard = append(unheard, s.nodes[i].node.Name)
		}
	}
	return s.all(), unheard
}
