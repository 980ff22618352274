package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/estate"
	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
	"berth/coordinator/state"
	"berth/coordinator/unanswered"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// maxReason bounds what a maintenance may be given as its reason, in bytes.
const maxReason = 512

// nodeMessage is the message of one node; nil if it has been removed meanwhile.
func nodeMessage(p *answer.Moment, id string) *berthv1.Node {
	view := p.View().Node(id)
	if view == nil {
		return nil
	}
	var names []string
	for vm := range p.SharedVMsOn(id) {
		names = append(names, vm.Name)
	}
	inside := p.Cluster(view.Node.Cluster)
	return wire.Node(wire.NodeReport{
		View:      view,
		Inventory: p.Soft.Inventory(id),
		Telemetry: p.Soft.Telemetry(id),
		VMs:       names,
		Declared:  inside.NodeKeys,
		Drain:     p.RunningDrain(id).ID,
		At:        p.At,
	})
}

// nodeState begins the names of the states of nodes in the protocol.
const nodeState = "NODE_STATE_"

// A node that takes no VMs has a second state.
const (
	stateMaintenance = "maintenance"
	stateDraining    = "draining"
)

// nodeFilters is what a list of nodes can be narrowed by.
func nodeFilters(p *answer.Moment) *answer.Filterable {
	return &answer.Filterable{
		What: "node", Bearer: "node", States: append(answer.Words(berthv1.NodeState_name, nodeState), stateMaintenance, stateDraining),
		Fields: []string{answer.ByState, answer.ByLabel},
		Labels: answer.LabelsOf(p.SharedNodes(), func(node *model.Node) []string { return node.Labels }),
	}
}

// nodeStates are all states that a node has.
func nodeStates(node *berthv1.Node) []string {
	states := []string{answer.Word(node.GetState().String(), nodeState)}
	if node.GetMaintenance() {
		states = append(states, stateMaintenance)
	}
	if node.GetPlanId() != "" {
		states = append(states, stateDraining)
	}
	return states
}

// ListNodes answers with the nodes that are asked for, by name. The capabilities document is left out: it is long, and GetNode has it.
func (s *nodeCalls) ListNodes(
	ctx context.Context, request *connect.Request[berthv1.ListNodesRequest],
) (*connect.Response[berthv1.ListNodesResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	return nodeList(p, nil, request.Msg, page, s.node)
}

// LastKnownNodes answers as ListNodes, with what this member last knew.
func (s *nodeCalls) LastKnownNodes(
	_ context.Context, request *connect.Request[berthv1.ListNodesRequest],
) (*connect.Response[berthv1.ListNodesResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, known := s.lastKnown()
	of := nodeMessage
	if known != nil {
		of = s.targets.OfNodes(known, nodeMessage)
	}
	return nodeList(p, known, request.Msg, page, of)
}

func nodeList(
	p *answer.Moment, known *berthv1.LastKnown, asked *berthv1.ListNodesRequest, page answer.Page,
	of func(*answer.Moment, string) *berthv1.Node,
) (*connect.Response[berthv1.ListNodesResponse], error) {
	filter, err := p.FilterOf(asked.GetFilter(), nodeFilters(p))
	if err != nil {
		return nil, err
	}
	response := &berthv1.ListNodesResponse{SchemaVersion: wire.SchemaVersion, Filtered: filter.Asked(), LastKnown: known}
	response.Nodes, response.NextPageToken = answer.PickFrom(p.SharedNodesFrom(page.After), page,
		func(node *model.Node) string { return node.Name },
		func(node *model.Node) (*berthv1.Node, bool) {
			if !filter.Labelled(node.Labels) {
				return nil, false
			}
			message := wire.Brief(of(p, node.ID))
			return message, filter.Is(nodeStates(message)...)
		})
	return connect.NewResponse(response), nil
}

// GetNode answers with one node and everything that libvirt runs there.
func (s *nodeCalls) GetNode(
	ctx context.Context, request *connect.Request[berthv1.GetNodeRequest],
) (*connect.Response[berthv1.GetNodeResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	node, err := p.NamedNode(request.Msg.GetNode())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.GetNodeResponse{
		SchemaVersion: wire.SchemaVersion, Node: s.node(p, node.ID), Domains: p.Soft.Domains(node.ID),
	}), nil
}

// SetNode changes what the request names of a node: its settings, its values of the keys that its cluster declares, its
// labels and flags, and the cluster that it is in.
func (s *nodeCalls) SetNode(
	ctx context.Context, request *connect.Request[berthv1.SetNodeRequest],
) (*connect.Response[berthv1.SetNodeResponse], error) {
	message := request.Msg
	wanted := wire.SettingsFrom(message.GetSettings())
	if err := model.ValidateSettings(wanted); err != nil {
		return nil, refusal.Invalid("node/"+message.GetNode(), "see 'berth node set --help' for the ranges", err)
	}
	var id string
	p, err := s.Propose(ctx, message.GetRequestId(), func(p *answer.Moment) (state.Command, error) {
		node, err := p.NamedNode(message.GetNode())
		if err != nil {
			return state.Command{}, err
		}
		id = node.ID
		subject := "node/" + node.Name
		command := state.Command{Kind: "set node", Expect: []state.Expectation{answer.ExpectNode(node)}}
		said, err := applySettings(&node.Settings, wanted, message.GetReset_())
		if err != nil {
			return state.Command{}, refusal.Invalid(subject, "see 'berth node set --help'", err)
		}
		inside, moved, err := moveNode(p, &node, message.GetCluster())
		if err != nil {
			return state.Command{}, err
		}
		keys, err := setNodeKeys(inside, &node, message.GetKeys(), message.GetUnsetKeys())
		if err != nil {
			return state.Command{}, refusal.Unsound(subject, fmt.Sprintf("see 'berth key list cluster/%s'", inside.Name), err)
		}
		traits := setTraits(&node, message)
		fence, err := setFence(&node, p.Nodes(), message)
		if err != nil {
			return state.Command{}, err
		}
		decided, err := decideMachine(&node, message.GetMachine())
		if err != nil {
			return state.Command{}, err
		}
		said = slices.Concat(said, moved, keys, traits, fence, decided)
		if len(said) == 0 {
			return state.Command{}, refusal.Invalid(subject, "see 'berth node set --help'", errors.New("nothing to set"))
		}
		if len(moved)+len(keys)+len(traits) > 0 {
			if err := estate.EditNode(p.Declared(), node); err != nil {
				return state.Command{}, refusal.Unsound(subject, "see 'berth node set --help'", err)
			}
			command.Expect = append(command.Expect, answer.ExpectResource(inside))
		}
		command.Nodes = []model.Node{node}
		p.Tell(ctx, &command, "node.set", subject, "%s", strings.Join(said, ", "))
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.SetNodeResponse{SchemaVersion: wire.SchemaVersion, Node: nodeMessage(p, id)}), nil
}

// decideMachine is a person's word on which of two machines a node is.
func decideMachine(node *model.Node, word string) (said []string, err error) {
	if word == "" {
		return nil, nil
	}
	if !node.Held() {
		err := errors.New("one machine is the node: nothing is to be decided")
		return nil, refusal.Invalid("node/"+node.Name, "see 'berth node show "+node.Name+"'", err)
	}
	next := node.HeldNext()
	if !node.Decide(word) {
		err := fmt.Errorf("%q is neither of the two machines that say they are node %s", word, node.Name)
		return nil, refusal.Invalid("node/"+node.Name, next, err)
	}
	return []string{"it is the machine " + word}, nil
}

// setTraits gives a node the labels and flags that a request sets, and says what it did. What is as it was is said too:
// whoever asks for it sees that it was heard.
func setTraits(node *model.Node, message *berthv1.SetNodeRequest) []string {
	var said []string
	if labels := message.GetLabels(); labels != nil {
		node.Labels = slices.Sorted(slices.Values(labels.GetNames()))
		said = append(said, answer.Because("labels", cmp.Or(strings.Join(node.Labels, ", "), "none")))
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
func moveNode(p *answer.Moment, node *model.Node, to string) (inside model.Resource, said []string, err error) {
	if to == "" || to == node.Cluster {
		return p.Cluster(node.Cluster), nil, nil
	}
	inside, err = p.NamedResource(model.KindCluster, to)
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
func applySettings(s *model.NodeSettings, wanted model.NodeSettings, reset []string) ([]string, error) {
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
		return refusal.Invalid(subject, "say it shorter", fmt.Errorf("a reason of %d bytes is longer than %d", len(reason), maxReason))
	}
	return nil
}

// SetNodeMaintenance closes a node to new VMs, or opens it again. VMs that run there stay.
func (s *nodeCalls) SetNodeMaintenance(
	ctx context.Context, request *connect.Request[berthv1.SetNodeMaintenanceRequest],
) (*connect.Response[berthv1.SetNodeMaintenanceResponse], error) {
	message := request.Msg
	if err := checkReason("node/"+message.GetNode(), message.GetReason()); err != nil {
		return nil, err
	}
	var id string
	p, err := s.Propose(ctx, message.GetRequestId(), func(p *answer.Moment) (state.Command, error) {
		node, err := p.NamedNode(message.GetNode())
		if err != nil {
			return state.Command{}, err
		}
		id = node.ID
		if drain := p.RunningDrain(node.ID); drain.ID != "" && !message.GetOn() {
			return state.Command{}, refusal.New(rpc.Busy, "node/"+node.Name,
				fmt.Sprintf("end the drain as well: 'berth node undrain %s'", node.Name),
				"plan %s drains node %s", drain.ID, node.Name)
		}
		if node.Maintenance == message.GetOn() && (node.MaintenanceReason == message.GetReason() || !message.GetOn()) &&
			(message.GetOn() || !node.Unanswered.Holds()) {
			return state.Command{}, answer.ErrUnchanged
		}
		node.Maintenance, node.MaintenanceReason = message.GetOn(), ""
		kind, said := "node.maintenance-ended", "takes VMs again"
		if message.GetOn() {
			node.MaintenanceReason = message.GetReason()
			kind, said = "node.maintenance", answer.Because("takes no more VMs", message.GetReason())
		} else {
			node.Unanswered = unanswered.Mark{} // who opens it again has looked at it
		}
		return state.Command{
			Kind: "set node maintenance", Expect: []state.Expectation{answer.ExpectNode(node)}, Nodes: []model.Node{node},
			Events: []model.Event{p.Event(ctx, kind, "node/"+node.Name, "%s", said)},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.SetNodeMaintenanceResponse{
		SchemaVersion: wire.SchemaVersion, Node: nodeMessage(p, id),
	}), nil
}

// RemoveNode forgets a node. Its agent is refused from then on, because a certificate counts only as long as the node
// that it names has a record.
func (s *nodeCalls) RemoveNode(
	ctx context.Context, request *connect.Request[berthv1.RemoveNodeRequest],
) (*connect.Response[berthv1.RemoveNodeResponse], error) {
	const kind = "remove node"
	ref, key := request.Msg.GetNode(), request.Msg.GetRequestId()
	var id string
	_, err := s.Propose(ctx, key, func(p *answer.Moment) (state.Command, error) {
		node, known := p.NodeByRef(ref)
		id = node.ID
		switch {
		case !known && p.Answered(key, kind):
			return state.Command{}, answer.ErrUnchanged
		case !known:
			return state.Command{}, refusal.NotFound("node", ref)
		}
		if err := removable(p, node); err != nil {
			return state.Command{}, err
		}
		command := state.Command{
			Kind: kind, Expect: []state.Expectation{answer.ExpectNode(node)},
			Delete: []state.Record{{Table: state.Nodes, ID: node.ID}},
			Events: []model.Event{p.Event(ctx, "node.removed", "node/"+node.Name, "forgotten; its certificate is of no more use")},
		}
		identities.Remove(p.Snapshot, &command, pki.Identity{Role: pki.RoleAgent, ID: node.ID, Name: node.Name}, p.At,
			gate.CallerOf(ctx).String())
		return command, nil
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
func removable(p *answer.Moment, node model.Node) error {
	subject := "node/" + node.Name
	if p.Meta(state.MetaQuarantine) != "" && slices.Contains(problems{p}.untold(), node.Name) {
		return refusal.New(rpc.Conflict, subject,
			fmt.Sprintf("if its machine is off for good, say so with 'berth node fence %s --confirmed-off', then remove it", node.Name),
			"node %s has not told what it runs, and what was restored does not tell it either: removed, "+
				"it might run VMs that are then started once more", node.Name)
	}
	if drain := p.RunningDrain(node.ID); drain.ID != "" {
		return refusal.New(rpc.Busy, subject, fmt.Sprintf("wait for it with 'berth plan watch %s'", drain.ID),
			"plan %s drains node %s", drain.ID, node.Name)
	}
	if vms := p.VMsOn(node.ID); len(vms) > 0 {
		return refusal.New(rpc.Conflict, subject,
			fmt.Sprintf("migrate or stop them first: 'berth vm list --node %s'", node.Name),
			"node %s holds %s, %q among them", node.Name, rule.Count(len(vms), "VM"), vms[0].Name)
	}
	if vms := homeOf(p, node.ID); len(vms) > 0 {
		return refusal.New(rpc.Conflict, subject, "delete these VMs first: they start nowhere else",
			"node %s has the disks of %s, %q among them", node.Name, rule.Count(len(vms), "VM"), vms[0].Name)
	}
	for _, op := range p.LiveOperations() {
		if op.Source == node.ID || op.Target == node.ID {
			err := refusal.New(rpc.Busy, subject, fmt.Sprintf("wait for it with 'berth operation watch %s'", op.ID),
				"operation %s (%s of VM %q) works on node %s", op.ID, op.Kind, op.VMName, node.Name)
			return err
		}
	}
	return nil
}

// homeOf are the VMs that have disks on a node, and on no other one.
func homeOf(p *answer.Moment, node string) []model.VM {
	var home []model.VM
	for vm := range p.SharedVMs() {
		if vm.Home == node || vm.Bound == node {
			home = append(home, *vm)
		}
	}
	return home
}

// setNodeKeys changes the values that a node sets of the keys that its cluster declares, and says what it did.
func setNodeKeys(inside model.Resource, node *model.Node, values map[string]float64, unset []string) ([]string, error) {
	wanted := make(map[string]*float64, len(values)+len(unset))
	for name, value := range values {
		wanted[name] = &value
	}
	for _, name := range unset {
		if wanted[name] != nil {
			return nil, fmt.Errorf("key %s is both set and unset", name)
		}
		wanted[name] = nil
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if _, set := node.Keys[name]; set && wanted[name] == nil {
			delete(node.Keys, name) // also one that the cluster which the node moves to does not declare
		} else if changed, err := estate.SetNodeKeyValue(inside, *node, name, wanted[name]); err != nil {
			return nil, err
		} else {
			*node = changed
		}
		if value := wanted[name]; value != nil {
			said = append(said, fmt.Sprintf("key %s %g", name, *value))
		} else {
			said = append(said, "key "+name+" back to the default")
		}
	}
	return said, nil
}
