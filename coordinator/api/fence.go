package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/fencing"
	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// setFence gives a node the fence device that a request names, and says so without its secrets. Where the mask of a secret is
// given back, the secret stays. No two nodes may have one target: what proves that the one is off would be true of the other.
func setFence(node *model.Node, others []model.Node, message *berthv1.SetNodeRequest) ([]string, error) {
	if message.GetFence() == nil {
		return nil, nil
	}
	device := wire.FenceDeviceFrom(message.GetFence()).Unmasked(node.Fence)
	if err := model.ValidateFenceDevice(device); err != nil {
		return nil, refusal.Invalid("node/"+node.Name, "see 'berth node set --help'", err)
	}
	for i := range others {
		shared, is := device.SharedTarget(others[i].Fence)
		if !is || others[i].ID == node.ID {
			continue
		}
		return nil, refusal.New(
			rpc.Conflict, "node/"+node.Name, "give each node the address of its own management board, or its own plug",
			"%s with these arguments switches off node %s: proof that the one is off would be taken for proof of the other",
			shared.Program, others[i].Name,
		)
	}
	if node.Fence.Method == model.FenceWatchdog && device.Method != model.FenceWatchdog {
		node.Watchdog = 0 // it is told to disarm it: from now on its silence proves nothing
	}
	if !node.Fence.SameTargets(device) {
		node.Fencing.Struck, node.Fencing.StruckBoot = "", "" // the other one may have hit the wrong machine
	}
	node.Fence = device
	switch device.Method {
	case model.FenceNone:
		return []string{"no fence device"}, nil
	case model.FenceCommand:
		return []string{"fenced by " + device.Title()}, nil
	default:
		return []string{"fenced by " + string(device.Method)}, nil
	}
}

// FenceNode proves that a node is off, by its device or by the caller's word, or asks its device for the power state.
func (s *nodeCalls) FenceNode(
	ctx context.Context, request *connect.Request[berthv1.FenceNodeRequest],
) (*connect.Response[berthv1.FenceNodeResponse], error) {
	message := request.Msg
	if message.GetCheck() && (message.GetConfirmedOff() || message.GetForce()) || message.GetConfirmedOff() && message.GetForce() {
		return nil, refusal.New(
			rpc.Invalid, "node/"+message.GetNode(), "ask for one of them", "check, confirmed_off and force exclude each other",
		)
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	node, err := p.NamedNode(message.GetNode())
	if err != nil {
		return nil, err
	}
	response := &berthv1.FenceNodeResponse{SchemaVersion: wire.SchemaVersion}
	if message.GetCheck() {
		on, err := answer.WhenLeading(ctx, s.Source, func() ([]bool, error) { return s.Control.NodePower(ctx, node.ID) })
		if err != nil {
			return nil, err
		}
		text := map[bool]string{true: "on", false: "off"}
		response.Power = text[slices.Contains(on, true)]
		for i, device := range node.Fence.All() {
			if len(node.Fence.Also) > 0 && i < len(on) {
				response.Devices = append(response.Devices, device.Target()+": "+text[on[i]])
			}
		}
	} else {
		wanted := fencing.FenceNode{
			Node: node.ID, ConfirmedOff: message.GetConfirmedOff(), Force: message.GetForce(), Caller: gate.CallerOf(ctx).String(),
		}
		if _, err := answer.WhenLeading(ctx, s.Source, func() (model.Node, error) { return s.Control.FenceNode(ctx, wanted) }); err != nil {
			return nil, err
		}
	}
	response.Node = s.node(s.Present(), node.ID)
	return connect.NewResponse(response), nil
}

// node is the message of one node, with what control knows of it; nil if it has been removed meanwhile.
func (s *nodeCalls) node(p *answer.Moment, id string) *berthv1.Node {
	message := nodeMessage(p, id)
	if why := s.Control.Contradicted(id); message != nil && why != "" {
		message.StateReason = why
	}
	if record, known := p.Node(id); message != nil && known {
		message.FenceIdentity = s.Control.IdentityOf(&record).Says(&record)
		if tried := s.Control.PowerTried(&record); tried != "" {
			message.FenceIdentity = strings.TrimPrefix(message.FenceIdentity+"; "+tried, "; ")
		}
	}
	return message
}

// fenceProblems are the silent nodes that VMs wait for and that nothing proves to be off, those whose proof does not hold, and that fence
// agents run as an account that reads too much.
func (s *queryCalls) fenceProblems(p *answer.Moment) []string {
	var lines []string
	agents := func(one *view.NodeView) bool { return one.Node.Fence.Method == model.FenceCommand }
	if s.OwnFences && slices.ContainsFunc(p.View().Nodes.Slice(), agents) {
		lines = append(lines, fmt.Sprintf("coordinator %s runs fence agents as its own account, which reads the key of the cluster's authority: "+
			"run it by berth-coordinator.service, or with --fence-socket and what listens there", s.SelfName))
	}
	for _, one := range p.View().Nodes.All() {
		node, why := &one.Node, ""
		if node.Fenced() { // without a proof nothing contradicts it
			why = s.Control.Contradicted(node.ID)
		}
		if why != "" {
			lines = append(lines, fmt.Sprintf("node %s was proven to be off, and %s; it gets nothing to do: "+
				"look at the copies of VMs that run there, and boot it anew",
				node.Name, why))
		}
		is := s.Control.IdentityOf(node)
		if why, _ := is.Refused(node); why != "" {
			lines = append(lines, fmt.Sprintf("node %s: %s", node.Name, is.Says(node)))
		}
		verdict, held := s.Control.FenceHeld(node.ID)
		if !held {
			continue
		}
		line := fmt.Sprintf("VMs that are to be highly available wait until node %s is proven to be off: %s", node.Name, verdict.Why)
		if verdict.Next != "" {
			line += "; " + verdict.Next
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}
