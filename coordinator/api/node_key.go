package api

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// DeclareNodeKey gives all nodes of a cluster a key, or changes what is declared of it.
func (s *Server) DeclareNodeKey(
	ctx context.Context, request *connect.Request[berthv1.DeclareNodeKeyRequest],
) (*connect.Response[berthv1.DeclareNodeKeyResponse], error) {
	message, wanted := request.Msg, wire.NodeKeyFrom(request.Msg.GetKey())
	changed, p, err := s.changeResource(ctx, string(cluster.KindCluster), message.GetCluster(), message.GetRequestId(),
		func(_ estate.State, before cluster.Resource) (edit, error) {
			after, err := estate.SetNodeKey(before, wanted)
			if err != nil {
				return edit{}, unsound("cluster/"+before.Name, "see 'berth cluster node-key declare --help'", err)
			}
			return edit{after: after, kind: "node-key.declared", said: because("node key "+wanted.Name, estate.NodeKeyText(wanted))}, nil
		})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DeclareNodeKeyResponse{
		SchemaVersion: wire.SchemaVersion, Cluster: p.resourceMessage(changed),
	}), nil
}

// DropNodeKey takes a key from all nodes of a cluster, with the values that they set.
func (s *Server) DropNodeKey(
	ctx context.Context, request *connect.Request[berthv1.DropNodeKeyRequest],
) (*connect.Response[berthv1.DropNodeKeyResponse], error) {
	message := request.Msg
	changed, p, err := s.changeResource(ctx, string(cluster.KindCluster), message.GetCluster(), message.GetRequestId(),
		func(now estate.State, before cluster.Resource) (edit, error) {
			after, nodes, there := estate.UnsetNodeKey(now, before, message.GetKey())
			if !there {
				return edit{}, refusal(rpc.NotFound, "cluster/"+before.Name, fmt.Sprintf("see 'berth key list cluster/%s'", before.Name),
					"cluster %q declares no node key %q", before.Name, message.GetKey())
			}
			return edit{after: after, nodes: nodes, kind: "node-key.dropped", said: "node key " + message.GetKey() + " taken away"}, nil
		})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DropNodeKeyResponse{
		SchemaVersion: wire.SchemaVersion, Cluster: p.resourceMessage(changed),
	}), nil
}

// setNodeKeys changes the values that a node sets of the keys that its cluster declares, and says what it did.
func setNodeKeys(inside cluster.Resource, node *cluster.Node, values map[string]float64, unset []string) ([]string, error) {
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
