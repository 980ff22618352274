package daemon

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/coordinator/wire"
	"berth/shared/scrape"
)

// discoveryPath is where Prometheus asks for what there is to read.
const discoveryPath = "/targets"

// discover answers with all coordinators and agents whose figures other machines can read. A member that does not lead refuses: it does
// not hear the agents, and Prometheus keeps a list that it has as long as it gets no other.
func (d *daemon) discover(w http.ResponseWriter, _ *http.Request) {
	stats := d.consensus.Stats()
	if stats.Members == nil {
		http.Error(w, "this coordinator does not lead, so it does not know the agents: ask all coordinators", http.StatusServiceUnavailable)
		return
	}
	snapshot := d.store.Snapshot()
	var targets []scrape.Target
	for _, member := range snapshot.Members() {
		port := 0
		if told := stats.Members[member.ID].Report; told != nil {
			port = told.MetricsPort
		}
		if address := wire.MemberMetrics(member.APIAddress, port); address != "" {
			targets = append(targets, scrape.CoordinatorTarget(address, member.Name))
		}
	}
	nodes := d.inventory.View(snapshot, time.Now()).Nodes.Slice()
	slices.SortFunc(nodes, func(a, b *view.NodeView) int { return strings.Compare(a.Node.Name, b.Node.Name) })
	for _, node := range nodes {
		if address := wire.AgentMetrics(node, d.inventory.Inventory(node.Node.ID)); address != "" {
			targets = append(targets, scrape.AgentTarget(address, node.Node.Name, cmp.Or(node.Node.Cluster, model.DefaultCluster)))
		}
	}
	text, err := scrape.Discovery(targets)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a reader that is gone asks again
}
