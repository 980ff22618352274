package schema

import (
	"slices"

	"berth/coordinator/model"
)

// SetNodeKey declares a key of the nodes of a cluster, or changes its default, its stickiness and its weight. All nodes of
// the cluster have it at once, with its default. The error is a *model.InvalidError.
func SetNodeKey(record model.Resource, key model.NodeKey) (model.Resource, error) {
	if record.Kind != model.KindCluster {
		return model.Resource{}, &model.InvalidError{
			Field: "node key " + key.Name, Value: "on " + record.Kind.WithArticle(), Want: "a cluster: its nodes all have the key",
		}
	}
	if err := model.ValidateNodeKey(key); err != nil {
		return model.Resource{}, err
	}
	keys := slices.DeleteFunc(slices.Clone(record.NodeKeys), func(k model.NodeKey) bool { return k.Name == key.Name })
	if len(keys) == model.MaxKeys {
		return model.Resource{}, TooManyKeys(record.Kind, key.Name)
	}
	record.NodeKeys = append(keys, key)
	SortNodeKeys(record.NodeKeys)
	return record, nil
}
