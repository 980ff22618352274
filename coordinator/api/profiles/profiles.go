// Package profiles has the call about what VMs and nodes use at which hour of the week.
package profiles

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/profile"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Asking is what control does for profiles.
type Asking interface {
	// Week is what nodes, by their IDs, tell of the week and the last hour of a VM, or without one of themselves. Silent says of each
	// that did not why.
	Week(ctx context.Context, nodes []string, vm string) (told profile.Told, silent []string)
}

// ProfileCalls are those about profiles.
type ProfileCalls struct {
	*answer.Source
	Control Asking
}

// mostAsked is how many nodes are asked about one VM. Each measures an hour of it only if it was there for most of that hour.
const mostAsked = 16

// Profile tells what a VM or a node uses at which hour of the week, and what it used in the last minutes.
func (s *ProfileCalls) Profile(
	ctx context.Context, request *connect.Request[berthv1.ProfileRequest],
) (*connect.Response[berthv1.ProfileResponse], error) {
	message := request.Msg
	if (message.GetVm() == "") == (message.GetNode() == "") {
		return nil, refusal.Invalid("vm", "name a VM or a node", errors.New("one VM or one node has a profile"))
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	response := &berthv1.ProfileResponse{SchemaVersion: wire.SchemaVersion}
	var told profile.Told
	var nodes []string
	if message.GetNode() != "" {
		node, err := p.NamedNode(message.GetNode())
		if err != nil {
			return nil, err
		}
		response.Node, nodes = node.Name, []string{node.ID}
		told, response.Warnings = s.Control.Week(ctx, nodes, "")
	} else {
		vm, err := p.NamedVM(message.GetVm())
		if err != nil {
			return nil, err
		}
		response.Vm, nodes = vm.Name, where(p, &vm)
		told, response.Warnings = s.Control.Week(ctx, nodes, vm.ID)
	}
	if len(nodes) > 0 && len(response.GetWarnings()) == len(nodes) {
		subject := "node/" + response.GetNode()
		if response.GetVm() != "" {
			subject = "vm/" + response.GetVm()
		}
		return nil, refusal.New(rpc.Unavailable, subject, fmt.Sprintf(
			"see 'berth node show %s'; profiles are kept by the nodes' agents", p.NodeName(nodes[0]),
		), "%s", strings.Join(response.GetWarnings(), "; "))
	}
	response.Hours, response.Minutes = wire.Profile(told.Hours), wire.Profile(told.Minutes)
	return connect.NewResponse(response), nil
}

// where are the nodes that a VM was on last, as far as its operations are kept. The one that has it is the first.
func where(p *answer.Moment, vm *model.VM) []string {
	stays := []profile.Stay{{Node: vm.Holder, At: p.At}}
	for _, op := range p.Operations() {
		if op.VM != vm.ID || op.Result != operation.Done {
			continue
		}
		for _, node := range []string{op.Target, op.Source} {
			if _, known := p.Node(node); known {
				stays = append(stays, profile.Stay{Node: node, At: op.EndedAt})
			}
		}
	}
	return profile.Nodes(stays, mostAsked)
}
