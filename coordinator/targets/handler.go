package targets

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/consensus"
	"berth/coordinator/inventory"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/scrape"
)

// Path is where Prometheus asks for what there is to read.
const Path = "/targets"

// limit is how long the leader may take to say what there is. Prometheus itself waits for some ten seconds.
const limit = 5 * time.Second

// Handler answers with all coordinators and agents whose figures other machines can read. A member that does not lead asks the leader. It
// refuses only when there is nothing that it could say: Prometheus keeps a list that it has as long as it gets no other.
type Handler struct {
	Consensus *consensus.Consensus
	Store     *state.Store
	Inventory *inventory.Store
	Peers     connect.HTTPClient // to other members' APIs
	Book      *Book              // what it has told
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, err := h.targets(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	text, err := scrape.Discovery(found)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a reader that is gone asks again
}

func (h *Handler) targets(ctx context.Context) ([]scrape.Target, error) {
	stats, snapshot, now := h.Consensus.Stats(), h.Store.Snapshot(), time.Now()
	if stats.Members == nil {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return h.Book.Ask(ctx, h.leader(snapshot), now)
	}
	var members []*berthv1.Member
	for _, member := range snapshot.Members() {
		port := 0
		if told := stats.Members[member.ID].Report; told != nil {
			port = told.MetricsPort
		}
		members = append(members, &berthv1.Member{Name: member.Name, MetricsAddress: wire.MemberMetrics(member.APIAddress, port)})
	}
	var nodes []*berthv1.Node
	for _, node := range h.Inventory.View(snapshot, now).Nodes.All() {
		nodes = append(nodes, &berthv1.Node{
			Id: node.Node.ID, Name: node.Node.Name, Cluster: node.Node.Cluster, AgentRelease: node.Facts.Release,
			MetricsAddress: wire.AgentMetrics(node, h.Inventory.Inventory(node.Node.ID)),
		})
	}
	return h.Book.Tell(members, nodes), nil
}

// leader is the API of the one that leads; nil: there is none, or its record has not come here yet.
func (h *Handler) leader(snapshot *state.Snapshot) Leader {
	id, known := h.Consensus.Leader()
	if !known {
		return nil
	}
	record, known := snapshot.Member(id)
	if !known {
		return nil
	}
	return berthv1connect.NewBerthServiceClient(h.Peers, "https://"+record.APIAddress)
}
