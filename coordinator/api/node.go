package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// maxReason bounds what a maintenance may be given as its reason, in bytes.
const maxReason = 512

// node is the message of one node; nil if it has been removed meanwhile.
func (p *picture) node(id string) *berthv1.Node {
	view := p.view().Node(id)
	if view == nil {
		return nil
	}
	var names []string
	for _, vm := range p.VMsOn(id) {
		names = append(names, vm.Name)
	}
	inside := p.cluster(view.Node.Cluster)
	return wire.Node(wire.NodeReport{
		View:      view,
		Inventory: p.soft.Inventory(id),
		Telemetry: p.soft.Telemetry(id),
		VMs:       names,
		Declared:  inside.NodeKeys,
		Drain:     p.runningDrain(id).ID,
		At:        p.at,
	})
}

// runningDrain is the drain that empties a node now; zero if none does.
func (p *picture) runningDrain(node string) cluster.Plan {
	if p.drains == nil {
		p.drains = make(map[string]cluster.Plan)
		for _, plan := range p.LivePlans() {
			if plan.Kind == cluster.PlanDrain {
				p.drains[plan.Node] = plan
			}
		}
	}
	return p.drains[node]
}

// ListNodes answers with all nodes, by name. The capabilities document is left out: it is long, and GetNode has it.
func (s *Server) ListNodes(
	ctx context.Context, request *connect.Request[berthv1.ListNodesRequest],
) (*connect.Response[berthv1.ListNodesResponse], error) {
	page, err := extentOf(request.Msg, maxList)
	if err != nil {
		return nil, err
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	nodes := p.Nodes()
	slices.SortFunc(nodes, func(a, b cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	nodes, next := cut(nodes, page, ascending, func(node cluster.Node) string { return node.Name })
	response := &berthv1.ListNodesResponse{SchemaVersion: wire.SchemaVersion, NextPageToken: next}
	for _, node := range nodes {
		response.Nodes = append(response.Nodes, wire.Brief(s.node(p, node.ID)))
	}
	return connect.NewResponse(response), nil
}

// GetNode answers with one node and everything that libvirt runs there.
func (s *Server) GetNode(
	ctx context.Context, request *connect.Request[berthv1.GetNodeRequest],
) (*connect.Response[berthv1.GetNodeResponse], error) {
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	node, err := p.namedNode(request.Msg.GetNode())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.GetNodeResponse{
		SchemaVersion: wire.SchemaVersion, Node: s.node(p, node.ID), Domains: p.soft.Domains(node.ID),
	}), nil
}

// SetNode changes what the request names of a node: its settings, its values of the keys that its cluster declares, its
// labels and flags, and the cluster that it is in.
func (s *Server) SetNode(
	ctx context.Context, request *connect.Request[berthv1.SetNodeRequest],
) (*connect.Response[berthv1.SetNodeResponse], error) {
	message := request.Msg
	wanted := wire.SettingsFrom(message.GetSettings())
	if err := cluster.ValidateSettings(wanted); err != nil {
		return nil, invalid("node/"+message.GetNode(), "see 'berth node set --help' for the ranges", err)
	}
	var id string
	p, err := s.propose(ctx, message.GetRequestId(), func(p *picture) (state.Command, error) {
		node, err := p.namedNode(message.GetNode())
		if err != nil {
			return state.Command{}, err
		}
		id = node.ID
		subject := "node/" + node.Name
		command := state.Command{Kind: "set node", Expect: []state.Expectation{expectNode(node)}}
		said, err := applySettings(&node.Settings, wanted, message.GetReset_())
		if err != nil {
			return state.Command{}, invalid(subject, "see 'berth node set --help'", err)
		}
		inside, moved, err := p.moveNode(&node, message.GetCluster())
		if err != nil {
			return state.Command{}, err
		}
		keys, err := setNodeKeys(inside, &node, message.GetKeys(), message.GetUnsetKeys())
		if err != nil {
			return state.Command{}, unsound(subject, fmt.Sprintf("see 'berth key list cluster/%s'", inside.Name), err)
		}
		traits := setTraits(&node, message)
		fence, err := setFence(&node, message)
		if err != nil {
			return state.Command{}, invalid(subject, "see 'berth node set --help'", err)
		}
		said = slices.Concat(said, moved, keys, traits, fence)
		if len(said) == 0 {
			return state.Command{}, invalid(subject, "see 'berth node set --help'", errors.New("nothing to set"))
		}
		if len(moved)+len(keys)+len(traits) > 0 {
			if err := estate.EditNode(p.declared(), node); err != nil {
				return state.Command{}, unsound(subject, "see 'berth node set --help'", err)
			}
			command.Expect = append(command.Expect, expectResource(inside))
		}
		command.Nodes = []cluster.Node{node}
		p.tell(ctx, &command, "node.set", subject, "%s", strings.Join(said, ", "))
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.SetNodeResponse{SchemaVersion: wire.SchemaVersion, Node: p.node(id)}), nil
}

// setTraits gives a node the labels and flags that a request sets, and says what it did. What is as it was is said too:
// whoever asks for it sees that it was heard.
func setTraits(node *cluster.Node, message *berthv1.SetNodeRequest) []string {
	var said []string
	if labels := message.GetLabels(); labels != nil {
		node.Labels = slices.Sorted(slices.Values(labels.GetNames()))
		said = append(said, because("labels", cmp.Or(strings.Join(node.Labels, ", "), "none")))
	}
	flag := func(name string, asked *bool, into *bool) {
		if asked != nil {
			*into = *asked
			said = append(said, fmt.Sprintf("%s %t", name, *asked))
		}
	}
	flag("management", message.Management, &node.Management)
	flag("unbalanced", message.Unbalanced, &node.Unbalanced)
	return said
}

// moveNode puts a node into another cluster, if one is named, and returns the record of the one that it is in then. A node
// moves empty: what it holds was placed by the rules of the old one.
func (p *picture) moveNode(node *cluster.Node, to string) (inside cluster.Resource, said []string, err error) {
	if to == "" || to == node.Cluster {
		return p.cluster(node.Cluster), nil, nil
	}
	inside, err = p.resource(cluster.KindCluster, to)
	if err != nil {
		return inside, nil, err
	}
	if err := removable(p, *node); err != nil {
		return inside, nil, err
	}
	said = []string{"cluster " + node.Cluster + " -> " + inside.Name}
	node.Cluster = inside.Name
	return inside, said, nil
}

// applySettings changes s and says what it did.
func applySettings(s *cluster.NodeSettings, wanted cluster.NodeSettings, reset []string) ([]string, error) {
	var said []string
	if wanted.RAMRatio != nil {
		s.RAMRatio = wanted.RAMRatio
		said = append(said, fmt.Sprintf("ram_ratio %g", *wanted.RAMRatio))
	}
	if wanted.CPURatio != nil {
		s.CPURatio = wanted.CPURatio
		said = append(said, fmt.Sprintf("cpu_ratio %g", *wanted.CPURatio))
	}
	if wanted.Overhead != nil {
		s.Overhead = wanted.Overhead
		said = append(said, fmt.Sprintf("overhead %s", *wanted.Overhead))
	}
	for _, name := range reset {
		var both bool
		switch name {
		case "ram_ratio":
			both, s.RAMRatio = wanted.RAMRatio != nil, nil
		case "cpu_ratio":
			both, s.CPURatio = wanted.CPURatio != nil, nil
		case "overhead":
			both, s.Overhead = wanted.Overhead != nil, nil
		default:
			return nil, fmt.Errorf("%q is not a setting: use ram_ratio, cpu_ratio or overhead", name)
		}
		if both {
			return nil, fmt.Errorf("%s is both set and reset", name)
		}
		said = append(said, name+" back to the default")
	}
	return said, nil
}

// checkReason judges the reason that somebody gives for a maintenance.
func checkReason(subject, reason string) error {
	if len(reason) > maxReason {
		return invalid(subject, "say it shorter", fmt.Errorf("a reason of %d bytes is longer than %d", len(reason), maxReason))
	}
	return nil
}

// SetNodeMaintenance closes a node to new VMs, or opens it again. VMs that run there stay.
func (s *Server) SetNodeMaintenance(
	ctx context.Context, request *connect.Request[berthv1.SetNodeMaintenanceRequest],
) (*connect.Response[berthv1.SetNodeMaintenanceResponse], error) {
	message := request.Msg
	if err := checkReason("node/"+message.GetNode(), message.GetReason()); err != nil {
		return nil, err
	}
	var id string
	p, err := s.propose(ctx, message.GetRequestId(), func(p *picture) (state.Command, error) {
		node, err := p.namedNode(message.GetNode())
		if err != nil {
			return state.Command{}, err
		}
		id = node.ID
		if drain := p.runningDrain(node.ID); drain.ID != "" && !message.GetOn() {
			return state.Command{}, refusal(rpc.Busy, "node/"+node.Name, fmt.Sprintf("end the drain as well: 'berth node undrain %s'", node.Name),
				"plan %s drains node %s", drain.ID, node.Name)
		}
		if node.Maintenance == message.GetOn() && (node.MaintenanceReason == message.GetReason() || !message.GetOn()) {
			return state.Command{}, errUnchanged
		}
		node.Maintenance, node.MaintenanceReason = message.GetOn(), ""
		kind, said := "node.maintenance-ended", "takes VMs again"
		if message.GetOn() {
			node.MaintenanceReason = message.GetReason()
			kind, said = "node.maintenance", because("takes no more VMs", message.GetReason())
		}
		return state.Command{
			Kind: "set node maintenance", Expect: []state.Expectation{expectNode(node)}, Nodes: []cluster.Node{node},
			Events: []cluster.Event{p.event(ctx, kind, "node/"+node.Name, "%s", said)},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.SetNodeMaintenanceResponse{
		SchemaVersion: wire.SchemaVersion, Node: p.node(id),
	}), nil
}

// RemoveNode forgets a node. Its agent is refused from then on, because a certificate counts only as long as the node
// that it names has a record.
func (s *Server) RemoveNode(
	ctx context.Context, request *connect.Request[berthv1.RemoveNodeRequest],
) (*connect.Response[berthv1.RemoveNodeResponse], error) {
	const kind = "remove node"
	ref, key := request.Msg.GetNode(), request.Msg.GetRequestId()
	var id string
	_, err := s.propose(ctx, key, func(p *picture) (state.Command, error) {
		node, known := p.NodeByRef(ref)
		id = node.ID
		switch {
		case !known && p.Answered(key, kind):
			return state.Command{}, errUnchanged
		case !known:
			return state.Command{}, notFound("node", ref)
		}
		if err := removable(p, node); err != nil {
			return state.Command{}, err
		}
		return state.Command{
			Kind: kind, Expect: []state.Expectation{expectNode(node)},
			Delete: []state.Record{{Table: state.Nodes, ID: node.ID}},
			Events: []cluster.Event{p.event(ctx, "node.removed", "node/"+node.Name, "forgotten; its certificate is of no more use")},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	if id != "" {
		s.Disconnect(id, "the node was removed")
	}
	return connect.NewResponse(&berthv1.RemoveNodeResponse{SchemaVersion: wire.SchemaVersion}), nil
}

// removable refuses to forget a node that VMs, plans or operations still name.
func removable(p *picture, node cluster.Node) error {
	subject := "node/" + node.Name
	if p.Meta(state.MetaQuarantine) != "" && slices.Contains(p.untold(), node.Name) {
		return refusal(rpc.Conflict, subject,
			fmt.Sprintf("if its machine is off for good, say so with 'berth node fence %s --confirmed-off', then remove it", node.Name),
			"node %s has not told what it runs, and what was restored does not tell it either: removed, it might run VMs that are then started once more", node.Name)
	}
	if drain := p.runningDrain(node.ID); drain.ID != "" {
		return refusal(rpc.Busy, subject, fmt.Sprintf("wait for it with 'berth plan watch %s'", drain.ID),
			"plan %s drains node %s", drain.ID, node.Name)
	}
	if vms := p.VMsOn(node.ID); len(vms) > 0 {
		return refusal(rpc.Conflict, subject,
			fmt.Sprintf("migrate or stop them first: 'berth vm list --node %s'", node.Name),
			"node %s holds %d VMs, %q among them", node.Name, len(vms), vms[0].Name)
	}
	if vms := p.homeOf(node.ID); len(vms) > 0 {
		return refusal(rpc.Conflict, subject, "delete these VMs first: they start nowhere else",
			"node %s has the disks of %d VMs, %q among them", node.Name, len(vms), vms[0].Name)
	}
	for _, op := range p.LiveOperations() {
		if op.Source == node.ID || op.Target == node.ID {
			err := refusal(rpc.Busy, subject, fmt.Sprintf("wait for it with 'berth operation watch %s'", op.ID),
				"operation %s (%s of VM %q) works on node %s", op.ID, op.Kind, op.VMName, node.Name)
			return err
		}
	}
	return nil
}

// homeOf are the VMs whose disks a node has, in a cluster with local storage.
func (p *picture) homeOf(node string) []cluster.VM {
	return slices.DeleteFunc(p.VMs(), func(vm cluster.VM) bool { return vm.Home != node })
}
