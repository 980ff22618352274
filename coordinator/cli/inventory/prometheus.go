package inventory

import (
	"context"

	"berth/coordinator/cli/term"
	"berth/coordinator/targets"
	"berth/shared/rpc"
)

// prometheusTargets are whose figures other machines read: those that listen for this machine alone are not among them.
func prometheusTargets(ctx context.Context, session *term.Session, s *site) (any, error) {
	if err := s.readHosts(ctx, session); err != nil {
		return nil, err
	}
	if s.known != nil && !s.known.GetTargets() { // a list without agents would have Prometheus drop those that it reads
		return nil, term.Failf(rpc.NoLeader, "wait for a leader, and keep the list that there is: 'berth status' says who is missing",
			"the coordinators have no leader, and %s has never been told where figures are read", term.Clean(s.known.GetAnsweredBy()))
	}
	return targets.Of(s.members, s.nodes), nil
}
