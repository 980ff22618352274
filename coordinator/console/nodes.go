package console

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// noCluster stands in an address for nodes that are in no cluster. It is no name that a cluster can have.
const noCluster = "-"

// nodeList is what the list of nodes shows: a page of those that are like what was asked for.
type nodeList struct {
	Rows               []nodeView
	Cluster, Beginning string // of the name; empty: any
	Troubled           bool   // only those with problems
	Filtered           bool
	First, Next        string // addresses of pages; empty: this is the first one, or the last
	From, To, Of       int    // which of those that are like that, from 1 on, and how many there are
}

// Name says whose nodes they are.
func (l nodeList) Name() string { return strings.TrimPrefix(l.Cluster, noCluster) }

// listNodes lists nodes by name.
func listNodes(v *visit) (*page, error) {
	shown := nodeList{Cluster: v.asked("cluster"), Beginning: v.asked("name"), Troubled: v.asked("troubled") != ""}
	shown.Filtered = shown.Cluster != "" || shown.Beginning != "" || shown.Troubled
	nodes, known, err := nodesNow(v.ctx, v)
	if err != nil {
		return nil, err
	}
	var found []nodeView
	for _, node := range nodes {
		if shown.Cluster != "" && node.GetCluster() != strings.TrimPrefix(shown.Cluster, noCluster) ||
			!strings.HasPrefix(node.GetName(), shown.Beginning) {
			continue
		}
		if one := viewNode(node); !shown.Troubled || len(one.Trouble) > 0 {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b nodeView) int { return strings.Compare(a.GetName(), b.GetName()) })
	from, _ := slices.BinarySearchFunc(found, v.asked("from"), func(node nodeView, name string) int {
		return strings.Compare(node.GetName(), name)
	})
	to := min(from+nodesInLine, len(found))
	if from > 0 {
		shown.First = v.another("from", "")
	}
	if to < len(found) {
		shown.Next = v.another("from", found[to].GetName())
	}
	shown.Rows, shown.From, shown.To, shown.Of = found[from:to], from+1, to, len(found)
	made := &page{name: "nodes", Title: "Nodes", Here: "map", Command: "berth node list", Body: shown}
	return made.date(known), nil
}

// nodesNow are all nodes as they are, or else as this coordinator last knew them.
func nodesNow(ctx context.Context, v *visit) ([]*berthv1.Node, *berthv1.LastKnown, error) {
	nodes, err := allNodes(ctx, v)
	if err != nil && leaderless(err) {
		return lastNodes(ctx, v)
	}
	return nodes, nil, err
}

func allNodes(ctx context.Context, v *visit) ([]*berthv1.Node, error) {
	all, err := rpc.ReadAll(&berthv1.ListNodesRequest{}, rpc.Everything,
		func(q *berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
			return body(v.API.ListNodes(ctx, connect.NewRequest(q)))
		})
	return all.GetNodes(), err
}

// another is the address of this page with another value of a field; empty: without the field.
func (v *visit) another(field, value string) string {
	to := *v.request.URL
	query := to.Query()
	query.Del(field)
	if value != "" {
		query.Set(field, value)
	}
	to.Path, to.RawQuery = strings.TrimPrefix(to.Path, livePath), query.Encode()
	return to.RequestURI()
}

// nodesAddress is of the page that lists the nodes of a cluster.
func nodesAddress(cluster string, field, value string) string {
	if cluster == "" {
		cluster = noCluster
	}
	query := url.Values{"cluster": {cluster}}
	if value != "" {
		query.Set(field, value)
	}
	return "/nodes?" + query.Encode()
}
