package estate

import (
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// UnsetNodeKey takes a key from all nodes of a cluster: the cluster's record without it, and the records of the nodes that
// had set a value, without that. It is false if the cluster does not declare the key.
func UnsetNodeKey(now State, record model.Resource, name string) (model.Resource, []model.Node, bool) {
	if _, declared := record.NodeKey(name); !declared {
		return record, nil, false
	}
	record.NodeKeys = slices.DeleteFunc(slices.Clone(record.NodeKeys), func(k model.NodeKey) bool { return k.Name == name })
	return record, withoutUndeclared(now, &record), true
}

// SetNodeKeyValue sets a node's value of a key that its cluster declares; nil is the cluster's default again. The node
// given is not changed. The error is a *model.InvalidError.
func SetNodeKeyValue(record model.Resource, node model.Node, name string, value *float64) (model.Node, error) {
	if _, declared := record.NodeKey(name); !declared {
		names := make([]string, len(record.NodeKeys))
		for i, key := range record.NodeKeys {
			names[i] = key.Name
		}
		return model.Node{}, &model.InvalidError{
			Field: "node key " + name, Value: "of node/" + node.Name,
			Want: fmt.Sprintf("a key that cluster/%s declares for all its nodes; it declares %s", node.Cluster, schema.Several(names)),
		}
	}
	node.Keys = maps.Clone(node.Keys)
	if value == nil {
		delete(node.Keys, name)
		node.Keys = nilIfEmpty(node.Keys)
		return node, nil
	}
	if err := model.ValidateKeyFigure("key "+name+" value", *value); err != nil {
		return model.Node{}, err
	}
	if node.Keys == nil {
		node.Keys = make(map[string]float64, 1)
	}
	node.Keys[name] = *value
	return node, nil
}

// EditNode checks a node that the caller has changed: its settings, its cluster and its keys. The error is a
// *RefusedError.
func EditNode(now State, node model.Node) error {
	return schema.Problems(CheckChange(now, now.withNode(node)))
}
