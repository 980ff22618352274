package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// What a map shows of how many nodes.
const (
	openUpTo  = 60  // all clusters unfolded
	tableUpTo = 200 // tables of all nodes; of more, pictures, and tables of at most so many that have problems
)

// nodeView is one node as the map shows it.
type nodeView struct {
	*berthv1.Node

	State   string
	Trouble []string // why it is shown first
	Bar     bar
	VMs     string
	VCPUs   string
	Waiting string // pressure on memory
}

// Waits is the pressure on everything, in words; empty: its kernel does not tell, or nothing is heard of it.
func (n nodeView) Waits() string {
	told := n.GetTelemetry()
	if told.GetMemoryPressure() == nil {
		return ""
	}
	return "some work " + pressures(told.GetCpuPressure().GetSomeAvg10(), told.GetMemoryPressure().GetSomeAvg10(),
		told.GetIoPressure().GetSomeAvg10())
}

// clusterView is one cluster with its nodes.
type clusterView struct {
	Name, Pod, Zone string
	Nodes           []nodeView
	Troubled        int
	Bar             bar
	Open            bool

	Rows  []nodeView // of its table
	Lines []lineView // of its picture; none: the table has all nodes
}

// Listed is the address of the list of its nodes.
func (c clusterView) Listed() string { return nodesAddress(c.Name, "", "") }

// Left is how many nodes with problems the table leaves out, and AllTroubled the address of the list that has them.
func (c clusterView) Left() int           { return max(0, c.Troubled-len(c.Rows)) }
func (c clusterView) AllTroubled() string { return nodesAddress(c.Name, "troubled", "yes") }

// mapView is what the map shows.
type mapView struct {
	Status   *berthv1.StatusResponse
	Unread   string // why the status could not be read
	Clusters []clusterView
	Pictured bool // nodes are shown as lines of pictures
}

// showMap shows all nodes by place, problems first.
func showMap(v *visit) (*page, error) {
	var (
		shown    mapView
		nodes    []*berthv1.Node
		declared []*berthv1.Resource
		known    *berthv1.LastKnown
	)
	group, ctx := errgroup.WithContext(v.ctx)
	group.Go(func() error {
		answer, err := status(ctx, v)
		if err != nil {
			_, said := refusalOf(err)
			shown.Unread = said.Text
			return nil
		}
		shown.Status = answer
		return nil
	})
	group.Go(func() (err error) {
		nodes, known, err = nodesNow(ctx, v)
		return err
	})
	group.Go(func() (err error) {
		if declared, err = places(ctx, v); err != nil && leaderless(err) {
			err = nil // nodes say themselves in which cluster they are
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	shown.Clusters, shown.Pictured = byPlace(nodes, declared), len(nodes) > tableUpTo
	made := &page{name: "map", Title: "Map", Here: "map", Command: "berth status; berth node list", Refresh: 15, Body: shown}
	return made.date(known), nil
}

// places are the clusters and pods that are declared.
func places(ctx context.Context, v *visit) (all []*berthv1.Resource, err error) {
	for _, kind := range []string{"cluster", "pod"} {
		some, err := rpc.ReadAll(&berthv1.ListResourcesRequest{Kind: kind}, rpc.Everything,
			func(q *berthv1.ListResourcesRequest) (*berthv1.ListResourcesResponse, error) {
				return body(v.API.ListResources(ctx, connect.NewRequest(q)))
			})
		if err != nil {
			return nil, err
		}
		all = append(all, some.GetResources()...)
	}
	return all, nil
}

// body is the message of an answer.
func body[A any](answer *connect.Response[A], err error) (*A, error) {
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

// byPlace sorts nodes into clusters: by zone, pod and name, and inside of one those with trouble first.
func byPlace(nodes []*berthv1.Node, declared []*berthv1.Resource) []clusterView {
	zoneOf, clusters := make(map[string]string), make(map[string]*clusterView)
	for _, resource := range declared {
		switch resource.GetKind() {
		case "pod":
			zoneOf[resource.GetName()] = resource.GetLinks()["zone"]
		case "cluster":
			clusters[resource.GetName()] = &clusterView{Name: resource.GetName(), Pod: resource.GetLinks()["pod"]}
		}
	}
	for _, node := range nodes {
		cluster := clusters[node.GetCluster()]
		if cluster == nil {
			cluster = &clusterView{Name: node.GetCluster()}
			clusters[node.GetCluster()] = cluster
		}
		one := viewNode(node)
		cluster.Nodes = append(cluster.Nodes, one)
		cluster.Bar.add(one.Bar)
		if len(one.Trouble) > 0 {
			cluster.Troubled++
		}
	}
	all := make([]clusterView, 0, len(clusters))
	for _, cluster := range clusters {
		cluster.Zone = zoneOf[cluster.Pod]
		cluster.Open = len(nodes) <= openUpTo || cluster.Troubled > 0 && len(cluster.Nodes) <= openUpTo
		slices.SortStableFunc(cluster.Nodes, func(a, b nodeView) int {
			return cmp.Or(cmp.Compare(min(len(b.Trouble), 1), min(len(a.Trouble), 1)), strings.Compare(a.GetName(), b.GetName()))
		})
		all = append(all, *cluster)
	}
	slices.SortFunc(all, func(a, b clusterView) int {
		return cmp.Or(cmp.Compare(min(b.Troubled, 1), min(a.Troubled, 1)), strings.Compare(a.Zone, b.Zone), strings.Compare(a.Pod, b.Pod),
			strings.Compare(a.Name, b.Name))
	})
	rows := tableUpTo
	for i := range all {
		cluster := &all[i]
		if cluster.Rows = cluster.Nodes; len(nodes) > tableUpTo {
			cluster.Lines, cluster.Open = drawNodes(cluster.Name, cluster.Nodes), true
			cluster.Rows = cluster.Nodes[:min(cluster.Troubled, rows)]
			rows -= len(cluster.Rows)
		}
	}
	return all
}

func viewNode(node *berthv1.Node) nodeView {
	one := nodeView{Node: node, State: word(node.GetState()), Bar: barOf(node), VMs: unknown, VCPUs: unknown, Waiting: unknown}
	if node.GetState() != berthv1.NodeState_NODE_STATE_UP {
		one.Trouble = append(one.Trouble, cmp.Or(node.GetStateReason(), "it is "+one.State))
	}
	if node.GetHeld() != "" {
		one.Trouble = append(one.Trouble, node.GetHeld())
	}
	if node.GetUnanswered() != "" {
		one.Trouble = append(one.Trouble, node.GetUnanswered())
	}
	if ailing := node.GetTelemetry().GetAiling(); ailing != "" {
		one.Trouble = append(one.Trouble, ailing)
	}
	switch {
	case node.GetPlanId() != "":
		one.State += ", draining"
	case node.GetMaintenance():
		one.State += ", maintenance"
	}
	if ledgers := node.GetLedgers(); ledgers != nil {
		one.VMs = fmt.Sprint(ledgers.GetVms())
		one.VCPUs = fmt.Sprintf("%d of %d", ledgers.GetVcpusUsed(), ledgers.GetVcpusLimit())
	}
	if pressure := node.GetTelemetry().GetMemoryPressure(); pressure != nil {
		one.Waiting = fmt.Sprintf("%.1f %%", pressure.GetSomeAvg10())
	}
	return one
}

// nodePage is what the page of one node shows.
type nodePage struct {
	Node nodeView
	VMs  []*berthv1.VM
	More bool
}

// showNode shows one node and what runs there.
func showNode(v *visit) (*page, error) {
	name := v.path("node")
	answer, err := body(v.API.GetNode(v.ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: name})))
	node := answer.GetNode()
	var known *berthv1.LastKnown
	if err != nil && leaderless(err) {
		node, known, err = lastNode(v, name)
	}
	if err != nil {
		return nil, err
	}
	vms, err := listVMs(v, &berthv1.ListVMsRequest{Node: node.GetId()})
	if err != nil {
		return nil, err
	}
	made := &page{
		name: "node", Title: "Node " + node.GetName(), Here: "map", Command: "berth node show " + quoted(name),
		Body: nodePage{viewNode(node), vms.GetVms(), vms.GetNextPageToken() != ""},
	}
	return made.date(cmp.Or(known, vms.GetLastKnown())), nil
}
