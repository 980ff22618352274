package schema

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
)

// SameKey tells whether two keys are one: of one class and name.
func SameKey(a, b model.Key) bool { return a.Class == b.Class && a.Name == b.Name }

// SortKeys puts keys in the order in which they are stored.
func SortKeys(keys []model.Key) {
	slices.SortFunc(keys, func(a, b model.Key) int {
		if a.Class != b.Class {
			return strings.Compare(string(a.Class), string(b.Class))
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// SortNodeKeys puts declared node keys in the order in which they are stored.
func SortNodeKeys(keys []model.NodeKey) {
	slices.SortFunc(keys, func(a, b model.NodeKey) int { return strings.Compare(a.Name, b.Name) })
}

// SetKey adds a key to those of a resource of the kind, or replaces the one of its class and name. The keys given are not
// changed. The error is a *model.InvalidError that says which rule the key breaks.
func SetKey(kind model.Kind, keys []model.Key, key model.Key) ([]model.Key, error) {
	if err := model.ValidateKey(kind, key); err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(slices.Clone(keys), func(k model.Key) bool { return SameKey(k, key) })
	if len(out) == model.MaxKeys {
		return nil, TooManyKeys(kind, key.Name)
	}
	out = append(out, key)
	SortKeys(out)
	return out, nil
}

// TooManyKeys is the *model.InvalidError of a key that there is no room for.
func TooManyKeys(kind model.Kind, name string) error {
	return &model.InvalidError{
		Field: "key " + name, Value: "as one more", Want: fmt.Sprintf("at most %d keys on one %s", model.MaxKeys, kind),
	}
}

// UnsetKey removes the key of this class and name from those of a resource of the kind; false if there is none. The keys given
// are not changed. A cluster has its special keys always: such a key gets the weight 0, with which it counts nothing.
func UnsetKey(kind model.Kind, keys []model.Key, class model.KeyClass, name string) ([]model.Key, bool) {
	out := slices.Clone(keys)
	at := slices.IndexFunc(out, func(k model.Key) bool { return k.Class == class && k.Name == name })
	switch {
	case at < 0:
		return out, false
	case special(kind, &out[at]):
		out[at].Weight = 0
		return out, true
	default:
		return slices.Delete(out, at, at+1), true
	}
}

func special(kind model.Kind, key *model.Key) bool {
	return kind == model.KindCluster && key.Class == model.SystemKey && model.IsSpecialKey(key.Name)
}

// WithSpecialKeys are the keys of a cluster that is declared with some: the special keys that it does not name have their
// default weights, because losing them in silence would make load stop counting.
func WithSpecialKeys(keys []model.Key) []model.Key {
	return completed(keys, model.SpecialKeyDefaults())
}

// SpelledOut are the keys of a record as a document has to name them to mean the same: a cluster that lacks a special key has it
// with the weight 0.
func SpelledOut(kind model.Kind, keys []model.Key) []model.Key {
	if kind != model.KindCluster {
		return keys
	}
	defaults := model.SpecialKeyDefaults()
	for i := range defaults {
		defaults[i].Weight = 0
	}
	return completed(keys, defaults)
}

func completed(keys, defaults []model.Key) []model.Key {
	out := slices.Clone(keys)
	for _, one := range defaults {
		if !slices.ContainsFunc(keys, func(k model.Key) bool { return SameKey(k, one) }) {
			out = append(out, one)
		}
	}
	SortKeys(out)
	return out
}
