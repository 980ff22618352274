package inventory

import (
	"context"

	"berth/coordinator/cli/term"
	"berth/coordinator/targets"
)

// prometheusTargets are whose figures other machines read: those that listen for this machine alone are not among them.
func prometheusTargets(ctx context.Context, session *term.Session) (any, error) {
	var s site
	if err := s.readHosts(ctx, session); err != nil {
		return nil, err
	}
	return targets.Of(s.members, s.nodes), nil
}
