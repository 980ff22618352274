package estate

import (
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/cluster"
)

// SetKey adds a key to those of a resource of the kind, or replaces the one of its class and name. The keys given are not
// changed. The error is a *cluster.InvalidError that says which rule the key breaks.
func SetKey(kind cluster.Kind, keys []cluster.Key, key cluster.Key) ([]cluster.Key, error) {
	if err := cluster.ValidateKey(kind, key); err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(slices.Clone(keys), func(k cluster.Key) bool { return sameKey(k, key) })
	if len(out) == cluster.MaxKeys {
		return nil, tooMany(kind, key.Name)
	}
	out = append(out, key)
	sortKeys(out)
	return out, nil
}

func tooMany(kind cluster.Kind, name string) error {
	return &cluster.InvalidError{
		Field: "key " + name, Value: "as one more", Want: fmt.Sprintf("at most %d keys on one %s", cluster.MaxKeys, kind),
	}
}

// UnsetKey removes the key of this class and name; false if there is none. The keys given are not changed.
func UnsetKey(keys []cluster.Key, class cluster.KeyClass, name string) ([]cluster.Key, bool) {
	out := slices.DeleteFunc(slices.Clone(keys), func(k cluster.Key) bool { return k.Class == class && k.Name == name })
	return out, len(out) < len(keys)
}

// SetNodeKey declares a key of the nodes of a cluster, or changes its default, its stickiness and its weight. All nodes of
// the cluster have it at once, with its default. The error is a *cluster.InvalidError.
func SetNodeKey(record cluster.Resource, key cluster.NodeKey) (cluster.Resource, error) {
	if record.Kind != cluster.KindCluster {
		return cluster.Resource{}, &cluster.InvalidError{
			Field: "node key " + key.Name, Value: "on " + record.Kind.WithArticle(), Want: "a cluster: its nodes all have the key",
		}
	}
	if err := cluster.ValidateNodeKey(key); err != nil {
		return cluster.Resource{}, err
	}
	keys := slices.DeleteFunc(slices.Clone(record.NodeKeys), func(k cluster.NodeKey) bool { return k.Name == key.Name })
	if len(keys) == cluster.MaxKeys {
		return cluster.Resource{}, tooMany(record.Kind, key.Name)
	}
	record.NodeKeys = append(keys, key)
	sortNodeKeys(record.NodeKeys)
	return record, nil
}

// UnsetNodeKey takes a key from all nodes of a cluster: the cluster's record without it, and the records of the nodes that
// had set a value, without that. It is false if the cluster does not declare the key.
func UnsetNodeKey(now State, record cluster.Resource, name string) (cluster.Resource, []cluster.Node, bool) {
	if _, declared := record.NodeKey(name); !declared {
		return record, nil, false
	}
	record.NodeKeys = slices.DeleteFunc(slices.Clone(record.NodeKeys), func(k cluster.NodeKey) bool { return k.Name == name })
	return record, withoutUndeclared(now, &record), true
}

// SetNodeKeyValue sets a node's value of a key that its cluster declares; nil is the cluster's default again. The node
// given is not changed. The error is a *cluster.InvalidError.
func SetNodeKeyValue(record cluster.Resource, node cluster.Node, name string, value *float64) (cluster.Node, error) {
	if _, declared := record.NodeKey(name); !declared {
		names := make([]string, len(record.NodeKeys))
		for i, key := range record.NodeKeys {
			names[i] = key.Name
		}
		return cluster.Node{}, &cluster.InvalidError{
			Field: "node key " + name, Value: "of node/" + node.Name,
			Want: fmt.Sprintf("a key that cluster/%s declares for all its nodes; it declares %s", node.Cluster, several(names)),
		}
	}
	node.Keys = maps.Clone(node.Keys)
	if value == nil {
		delete(node.Keys, name)
		node.Keys = nilIfEmpty(node.Keys)
		return node, nil
	}
	if err := cluster.ValidateKeyFigure("key "+name+" value", *value); err != nil {
		return cluster.Node{}, err
	}
	if node.Keys == nil {
		node.Keys = make(map[string]float64, 1)
	}
	node.Keys[name] = *value
	return node, nil
}

// EditNode checks a node that the caller has changed: its settings, its cluster and its keys. The error is a
// *RefusedError.
func EditNode(now State, node cluster.Node) error {
	return Problems(CheckChange(now, now.withNode(node)))
}
