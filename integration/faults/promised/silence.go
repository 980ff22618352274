package promised

import "berth/coordinator/model"

// Silence counts how many nodes of a site are silent when one is fenced without a word: not many, a rack that is dark as a whole counted
// once.
type Silence struct {
	Racked                          bool // the node that is fenced stands in the rack
	many, all, dark, silent, inRack int
}

// Count counts one node. Dark tells that it has no session any more, though it may be silent for a moment only.
func (s *Silence) Count(silent, dark, inRack bool) {
	s.all++
	if inRack {
		s.inRack++
	}
	if silent {
		s.many++
	}
	if (silent || dark) && inRack {
		s.dark++
	}
	if silent && inRack {
		s.silent++
	}
}

// TooMany tells whether more are silent than may be.
func (s *Silence) TooMany() (many, all int, tooMany bool) {
	isTooMany := func(silent, all int) bool {
		return silent > model.MaxSilentNodes || silent > 1 && silent*100 > all*model.MaxSilentPercent
	}
	many, all = s.many, s.all
	if s.inRack > 1 && s.dark == s.inRack && 2*s.inRack < s.all && (!s.Racked || !isTooMany(s.inRack, s.all)) {
		many, all = many-s.silent+1, all-s.inRack+1
	}
	return many, all, isTooMany(many, all)
}
