package evidence

import (
	"maps"
	"slices"
	"strings"

	"berth/coordinator/model"
)

// Survey is what every node's word is worth at one moment. It is made once and asked about many VMs: a node is listened to when it is asked
// for the first time. It is not safe for concurrent use.
type Survey struct {
	Moment

	proofs Proofs
	nodes  []*hearing          // all, by name; nil: nobody has asked for all yet
	byID   map[string]*hearing // those that were listened to
	shown  map[string][]Copy   // by UUID: what the nodes that are believed show; by the nodes' names; nil: nobody has asked yet
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

// Survey listens to the nodes: to all of them now, unless the moment knows which ones may show a VM.
func (p Proofs) Survey(m Moment) *Survey {
	s := &Survey{Moment: m, proofs: maps.Clone(p), byID: make(map[string]*hearing)}
	if m.MayShow == nil {
		s.everyone()
	}
	return s
}

// hear listens to a node.
func (s *Survey) hear(node *model.Node) *hearing {
	if one, asked := s.byID[node.ID]; asked {
		return one
	}
	one := &hearing{node: *node, facts: s.Facts(node.ID)}
	one.worth = s.proofs.worth(s.Moment, one)
	s.byID[node.ID] = one
	return one
}

// everyone is all nodes, by name.
func (s *Survey) everyone() []*hearing {
	if s.nodes == nil {
		for node := range s.SharedNodes() {
			s.nodes = append(s.nodes, s.hear(node))
		}
		slices.SortFunc(s.nodes, byName)
	}
	return s.nodes
}

func byName(a, b *hearing) int { return strings.Compare(a.node.Name, b.node.Name) }

// all is what the nodes that are believed show.
func (s *Survey) all() map[string][]Copy {
	if s.shown != nil {
		return s.shown
	}
	s.shown = map[string][]Copy{}
	for _, one := range s.everyone() {
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
	if one, asked := s.byID[id]; asked {
		return one
	}
	if node, known := s.Node(id); known && s.nodes == nil {
		return s.hear(&node)
	}
	return nil
}

// those are some nodes, by name: those that are members.
func (s *Survey) those(ids []string) []*hearing {
	slices.Sort(ids)
	var nodes []*hearing
	for _, id := range slices.Compact(ids) {
		if one := s.of(id); one != nil {
			nodes = append(nodes, one)
		}
	}
	slices.SortFunc(nodes, byName)
	return nodes
}

// under is the node whose host has told this boot last; nil: none has.
func (s *Survey) under(boot string) *hearing {
	at := slices.IndexFunc(s.everyone(), func(one *hearing) bool { return one.facts.Boot == boot })
	if at < 0 {
		return nil
	}
	return s.nodes[at]
}

// shownOf is what the nodes that are believed show under a UUID, by their names. Nobody changes the list.
func (s *Survey) shownOf(uuid string) []Copy {
	if s.MayShow == nil || s.shown != nil {
		return s.all()[uuid]
	}
	var shown []Copy
	for _, one := range s.those(s.MayShow(uuid)) {
		if domain := one.facts.Domain(uuid); domain != nil && one.worth == heard {
			shown = append(shown, Copy{Node: one.node.ID, Name: one.node.Name, Domain: *domain})
		}
	}
	return shown
}

// copies are those of a VM that nodes show, without those that are to be discarded.
func (s *Survey) copies(vm *model.VM) []Copy {
	return slices.DeleteFunc(slices.Clone(s.shownOf(vm.ID)), func(one Copy) bool { return isLeft(vm, one.Node, &one.Domain) })
}

// plain tells that a VM runs where it should, under its record's word in all that anybody looks at: nothing follows for it, and nothing
// is to be kept. Nearly all VMs are so, and that is known of them without gathering what all nodes show.
func (s *Survey) plain(vm *model.VM) bool {
	if s.MayShow == nil || vm.Holder == "" || vm.Kept != "" || vm.Paused != (model.Stand{}) || len(vm.Discards) > 0 ||
		vm.Drift != nil || vm.Bound != "" || vm.Condition != (model.Condition{}) || s.removedShow(vm.ID) {
		return false
	}
	holder := s.of(vm.Holder)
	if holder == nil || holder.worth != heard || holder.facts.Boot == "" || vm.Whereabouts != (model.Whereabouts{Boot: holder.facts.Boot}) {
		return false
	}
	domain := holder.facts.Domain(vm.ID)
	if domain == nil || domain.State != model.DomainRunning || !domain.Managed || domain.Epoch != vm.Epoch || domain.Name != vm.Name ||
		domain.Autostart || vm.Persistent && !domain.Persistent {
		return false
	}
	for _, id := range s.MayShow(vm.ID) {
		// What a node has not told yet is not believed before it has.
		if one := s.of(id); id != vm.Holder && (one == nil || one.facts.Inventory) {
			return false
		}
	}
	return s.strayed(*vm, holder.node) == ""
}

// removedShow tells whether a node that was removed shows a copy of a VM.
func (m Moment) removedShow(vm string) bool {
	for i := range m.Removed {
		if slices.ContainsFunc(m.Removed[i].Domains, func(d model.Domain) bool { return d.UUID == vm }) {
			return true
		}
	}
	return false
}

// Shown is all that the nodes show, by UUID, and the names of those that do not tell, without what is proven to be off.
func (s *Survey) Shown() (shown map[string][]Copy, unheard []string) {
	for _, one := range s.everyone() {
		if one.worth != heard && one.worth != off {
			unheard = append(unheard, one.node.Name)
		}
	}
	return s.all(), unheard
}
