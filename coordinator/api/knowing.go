package api

import (
	"berth/coordinator/api/answer"
	"berth/coordinator/api/lastknown"
	"berth/coordinator/api/members"
	berthv1 "berth/shared/gen/berth/v1"
)

// knowing is a source of answers that knows something without a leader, too.
type knowing struct {
	*answer.Source

	keeper  *lastknown.Keeper
	targets lastknown.Targets
}

// lastKnown is the moment that this member answers from by itself, and as of when that is; nil: it leads, and knows the present.
func (s knowing) lastKnown() (*answer.Moment, *berthv1.LastKnown) {
	if p := s.Present(); s.Consensus.IsLeader() {
		return p, nil
	}
	snapshot := s.Store.Snapshot()
	return s.keeper.Of(members.Name(s.Source, snapshot, s.Self), snapshot, s.Consensus.Stats(), s.Now())
}
