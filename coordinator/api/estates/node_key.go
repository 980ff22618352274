package estates

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// DeclareNodeKey gives all nodes of a cluster a key, or changes what is declared of it.
func (s *ResourceCalls) DeclareNodeKey(
	ctx context.Context, request *connect.Request[berthv1.DeclareNodeKeyRequest],
) (*connect.Response[berthv1.DeclareNodeKeyResponse], error) {
	message, wanted := request.Msg, wire.NodeKeyFrom(request.Msg.GetKey())
	changed, p, err := s.changeResource(ctx, string(model.KindCluster), message.GetCluster(), message.GetRequestId(),
		func(_ estate.State, before model.Resource) (edit, error) {
			after, err := schema.SetNodeKey(before, wanted)
			if err != nil {
				return edit{}, refusal.Unsound("cluster/"+before.Name, "see 'berth cluster node-key declare --help'", err)
			}
			return edit{after: after, kind: "node-key.declared", said: answer.Because("node key "+wanted.Name, schema.NodeKeyText(wanted))}, nil
		})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DeclareNodeKeyResponse{
		SchemaVersion: wire.SchemaVersion, Cluster: resourceMessage(p, changed),
	}), nil
}

// DropNodeKey takes a key from all nodes of a cluster, with the values that they set.
func (s *ResourceCalls) DropNodeKey(
	ctx context.Context, request *connect.Request[berthv1.DropNodeKeyRequest],
) (*connect.Response[berthv1.DropNodeKeyResponse], error) {
	message := request.Msg
	changed, p, err := s.changeResource(ctx, string(model.KindCluster), message.GetCluster(), message.GetRequestId(),
		func(now estate.State, before model.Resource) (edit, error) {
			after, nodes, there := estate.UnsetNodeKey(now, before, message.GetKey())
			if !there {
				return edit{}, refusal.New(rpc.NotFound, "cluster/"+before.Name, fmt.Sprintf("see 'berth key list cluster/%s'", before.Name),
					"cluster %q declares no node key %q", before.Name, message.GetKey())
			}
			return edit{after: after, nodes: nodes, kind: "node-key.dropped", said: "node key " + message.GetKey() + " taken away"}, nil
		})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DropNodeKeyResponse{
		SchemaVersion: wire.SchemaVersion, Cluster: resourceMessage(p, changed),
	}), nil
}
