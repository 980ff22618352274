package conformance

import (
	"encoding/json"
	"strings"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// runDeclaredCluster declares a cluster as a document does, and reads the weights of its keys.
func runDeclaredCluster(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Cluster json.RawMessage
		Unset   []string // system keys that are taken away afterwards
	}](c, given)
	want := decode[struct {
		Weights map[string]float64
		Refused optional[string] // a part of why
	}](c, expect)
	declared, problems := document.Parse("case", []byte("format: berth/estate/v1\nclusters: ["+string(g.Cluster)+"]\n"))
	if want.Refused.given {
		err := schema.Problems(problems)
		c.same("whether it is refused because of "+want.Refused.value, err != nil && strings.Contains(err.Error(), want.Refused.value), true)
		return
	}
	c.must(schema.Problems(problems))
	keys := declared.Entries[0].Keys
	for _, name := range g.Unset {
		left, there := schema.UnsetKey(model.KindCluster, keys, model.SystemKey, name)
		c.same("whether there is a key "+name, there, true)
		keys = left
	}
	weights := map[string]float64{}
	for _, key := range keys {
		weights[key.Name] = key.Weight
		if model.IsSpecialKey(key.Name) {
			c.near("the value of "+key.Name, key.Value, 0)
		}
	}
	c.same("the number of keys", len(weights), len(want.Weights))
	c.sameScores("the weight", weights, want.Weights)
}
