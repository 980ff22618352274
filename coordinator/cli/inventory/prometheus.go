package inventory

import (
	"context"

	"berth/coordinator/cli/term"
	"berth/coordinator/targets"
	"berth/shared/scrape"
)

// prometheusTargets are whose figures other machines read: those that listen for this machine alone are not among them.
func prometheusTargets(ctx context.Context, session *term.Session) (any, error) {
	var s site
	if err := s.readHosts(ctx, session); err != nil {
		return nil, err
	}
	found := targets.Of(s.members, s.nodes)
	if found == nil {
		found = []scrape.Target{} // Prometheus wants a list
	}
	return found, nil
}
