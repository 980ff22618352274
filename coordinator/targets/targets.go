// Package targets is whose figures Prometheus can read: all coordinators and agents that other machines reach. Any coordinator tells it,
// so that a Prometheus which knows one of them keeps its targets whoever leads.
//
// Agents tell the leader alone where they are read. The others ask it, and keep what it said for the time without one.
package targets

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/scrape"
)

// Of are those of members and nodes. Who listens for his own machine alone is not among them.
func Of(members []*berthv1.Member, nodes []*berthv1.Node) []scrape.Target {
	found := []scrape.Target{} // Prometheus wants a list
	for _, member := range members {
		if address := member.GetMetricsAddress(); address != "" {
			found = append(found, scrape.CoordinatorTarget(address, member.GetName()))
		}
	}
	for _, node := range nodes {
		if address := node.GetMetricsAddress(); address != "" {
			found = append(found, scrape.AgentTarget(address, node.GetName(), cmp.Or(node.GetCluster(), model.DefaultCluster)))
		}
	}
	return found
}

// Leader answers for the one that leads. The clients of the API do.
type Leader interface {
	ListMembers(context.Context, *connect.Request[berthv1.ListMembersRequest]) (*connect.Response[berthv1.ListMembersResponse], error)
	ListNodes(context.Context, *connect.Request[berthv1.ListNodesRequest]) (*connect.Response[berthv1.ListNodesResponse], error)
}

// ErrUnknown reports that there is no leader to ask, and that none was asked before.
var ErrUnknown = errors.New("no coordinator leads, and this one has not asked a leader before whose figures there are: ask again")

// fresh is how long an answer of the leader serves, however many ask: Prometheus asks once a minute.
const fresh = 5 * time.Second

// Book keeps what is known. It is safe for concurrent use, and its zero value is ready.
type Book struct {
	mu      sync.Mutex
	asked   time.Time // when members and nodes came from a leader; zero: never
	members []*berthv1.Member
	nodes   []*berthv1.Node // by name
}

// Tell keeps what this member knows as the leader, and gives the targets. The members and nodes are those on record. An agent that has not
// been heard since this one leads keeps the address that it had: nothing says that it has another.
func (b *Book) Tell(members []*berthv1.Member, nodes []*berthv1.Node) []scrape.Target {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keep(members, nodes)
	b.asked = time.Time{} // the next leader knows better
	return Of(b.members, b.nodes)
}

// Ask gives the targets by what the leader says; nil: there is none. Without an answer it gives those that are kept.
func (b *Book) Ask(ctx context.Context, leader Leader, now time.Time) ([]scrape.Target, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked.IsZero() || now.Sub(b.asked) >= fresh || now.Before(b.asked) {
		err := ErrUnknown
		if leader != nil {
			err = b.read(ctx, leader, now)
		}
		if err != nil && b.members == nil {
			return nil, err
		}
	}
	return Of(b.members, b.nodes), nil
}

func (b *Book) read(ctx context.Context, leader Leader, now time.Time) error {
	members, err := leader.ListMembers(ctx, connect.NewRequest(&berthv1.ListMembersRequest{}))
	if err != nil {
		return err
	}
	var nodes []*berthv1.Node
	for request := (&berthv1.ListNodesRequest{}); ; {
		page, err := leader.ListNodes(ctx, connect.NewRequest(request))
		if err != nil {
			return err
		}
		nodes = append(nodes, page.Msg.GetNodes()...)
		request.PageToken = page.Msg.GetNextPageToken()
		if request.PageToken == "" {
			break
		}
	}
	b.keep(members.Msg.GetMembers(), nodes)
	b.asked = now
	return nil
}

// Known is where figures were read as a leader told it last: of members by their names, of nodes by their IDs;
// empty: on its own machine alone. False: no leader has told.
func (b *Book) Known() (members, nodes map[string]string, told bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	members, nodes = make(map[string]string), make(map[string]string)
	for _, member := range b.members {
		members[member.GetName()] = member.GetMetricsAddress()
	}
	for _, node := range b.nodes {
		nodes[node.GetId()] = node.GetMetricsAddress()
	}
	return members, nodes, b.members != nil
}

// keep takes what there is now. Of each node only what is told of it stays.
func (b *Book) keep(members []*berthv1.Member, nodes []*berthv1.Node) {
	kept := make([]*berthv1.Node, 0, len(nodes))
	for _, node := range nodes {
		address := node.GetMetricsAddress()
		if node.GetAgentRelease() == "" { // not heard
			if at, found := slices.BinarySearchFunc(b.nodes, node.GetName(), byName); found && b.nodes[at].GetId() == node.GetId() {
				address = cmp.Or(address, b.nodes[at].GetMetricsAddress())
			}
		}
		kept = append(kept, &berthv1.Node{Id: node.GetId(), Name: node.GetName(), Cluster: node.GetCluster(), MetricsAddress: address})
	}
	slices.SortFunc(kept, func(x, y *berthv1.Node) int { return strings.Compare(x.GetName(), y.GetName()) })
	b.members, b.nodes = members, kept
}

func byName(node *berthv1.Node, name string) int { return strings.Compare(node.GetName(), name) }
