package inventory

import (
	"cmp"
	"context"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/shared/scrape"
)

// targets are whose figures other machines read: those that listen for this machine alone are not among them.
func targets(ctx context.Context, session *term.Session) (any, error) {
	var s site
	if err := s.readHosts(ctx, session); err != nil {
		return nil, err
	}
	found := []scrape.Target{} // Prometheus wants a list
	for _, member := range s.members {
		if address := member.GetMetricsAddress(); address != "" {
			found = append(found, scrape.CoordinatorTarget(address, member.GetName()))
		}
	}
	for _, node := range s.nodes {
		if address := node.GetMetricsAddress(); address != "" {
			found = append(found, scrape.AgentTarget(address, node.GetName(), cmp.Or(node.GetCluster(), model.DefaultCluster)))
		}
	}
	return found, nil
}
