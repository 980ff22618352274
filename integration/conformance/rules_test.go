package conformance

import (
	"encoding/json"
	"errors"
	"strings"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
)

// runKeyRules tries to set keys where they may be set and where not: one by one on a record, and in an estate's document.
func runKeyRules(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Attempts []struct {
			Class    string
			ClassToo string `json:"class_"`
			Name     string
			On       string
			Value    json.RawMessage
			Weight   json.RawMessage
			Sticky   bool
		}
	}](c, given)
	want := decode[struct{ Allowed []bool }](c, expect)
	if len(g.Attempts) != len(want.Allowed) {
		c.Fatalf("%d attempts and %d answers", len(g.Attempts), len(want.Allowed))
	}
	if problems := documentProblems(newDocument()); problems != nil {
		c.Fatalf("the document without the key is refused: %v", problems)
	}
	for i, attempt := range g.Attempts {
		class := classOf(attempt.Class + attempt.ClassToo)
		what := string(class) + " key " + attempt.Name + " on " + attempt.On
		document := newDocument()
		if attempt.On == "node" {
			nodeKey := map[string]any{
				"name": attempt.Name, "default": orNumber(attempt.Value, 1), "sticky": attempt.Sticky, "weight": orNumber(attempt.Weight, 0),
			}
			if class == cluster.CustomerKey || class == cluster.BillingEntityKey { // node keys are the operator's and have no class
				nodeKey["class"] = class
			}
			document.node(nodeKey)
			c.same("whether a document may have "+what, documentProblems(document) == nil, want.Allowed[i])
			continue
		}
		kind := kindOf(attempt.On)
		value, weight := orNumber(attempt.Value, 1), orNumber(attempt.Weight, 10)
		set := map[string]any{"class": class, "name": attempt.Name, "value": value, "weight": weight}
		if attempt.Sticky { // only what is set on nodes can be
			set["sticky"] = true
		}
		if !document.key(kind, set) {
			c.Fatalf("there is no kind %q", attempt.On)
		}
		c.same("whether a document may have "+what, documentProblems(document) == nil, want.Allowed[i])
		figure, isNumber := value.(float64)
		heavy, isWeight := weight.(float64)
		if isNumber && isWeight && !attempt.Sticky {
			err := cluster.ValidateKey(kind, cluster.Key{Class: class, Name: attempt.Name, Value: figure, Weight: heavy})
			c.same("whether it is valid to set "+what, err == nil, want.Allowed[i])
		}
	}
}

// orNumber is what a case gives, a number or not, or a number if it gives nothing.
func orNumber(raw json.RawMessage, otherwise float64) any {
	var value any
	if len(raw) == 0 || json.Unmarshal(raw, &value) != nil {
		return otherwise
	}
	return value
}

// kindOf is our kind of what a case calls a resource.
func kindOf(on string) cluster.Kind {
	switch {
	case strings.HasSuffix(on, "product_offer"), on == "offer":
		return cluster.KindOffer
	case strings.HasSuffix(on, "billing_entity"): // the master's, too
		return cluster.KindBillingEntity
	case on == "server":
		return cluster.KindVM
	case strings.HasSuffix(on, "network"):
		return cluster.KindNetwork
	default:
		return cluster.Kind(strings.TrimPrefix(on, "first_"))
	}
}

// document is an estate with one resource of each kind, by section. JSON is YAML as well.
type document map[string]any

// sections are the names of a document's, and what the resource of each kind needs.
var sections = []struct {
	kind  cluster.Kind
	name  string
	entry map[string]any
}{
	{cluster.KindCluster, "clusters", map[string]any{"name": "default"}},
	{cluster.KindBillingEntity, "billing_entities", map[string]any{"name": "master", "master": true}},
	{cluster.KindOffer, "offers", map[string]any{"name": "small", "for": "vm"}},
	{cluster.KindCustomer, "customers", map[string]any{"name": "own", "billing_entity": "master"}},
	{cluster.KindVDC, "vdcs", map[string]any{"name": "vdc", "customer": "own", "cluster": "default"}},
	{cluster.KindImage, "images", map[string]any{"name": "image"}},
	{cluster.KindNetwork, "networks", map[string]any{"name": "network", "source": "default"}},
	{cluster.KindDisk, "disks", map[string]any{"name": "disk", "path": "/disk", "format": "raw"}},
	{cluster.KindNIC, "nics", map[string]any{"name": "nic", "network": "network"}},
	{cluster.KindVM, "vms", map[string]any{
		"name": "server", "vdc": "vdc", "offer": "small", "image": "image", "disks": []string{"disk"}, "nics": []string{"nic"},
		"memory": "1G", "vcpus": 1,
	}},
}

func newDocument() document {
	d := document{"format": "berth/estate/v1"}
	for _, section := range sections {
		d[section.name] = []any{section.entry}
	}
	return d
}

// key adds a key to the resource of a kind; false if there is none.
func (d document) key(kind cluster.Kind, key map[string]any) bool {
	for _, section := range sections {
		if section.kind == kind {
			d[section.name] = []any{with(section.entry, "keys", []any{key})}
			return true
		}
	}
	return false
}

// node declares a node key.
func (d document) node(key map[string]any) {
	d[sections[0].name] = []any{with(sections[0].entry, "node_keys", []any{key})}
}

func with(entry map[string]any, field string, value any) map[string]any {
	more := map[string]any{field: value}
	for name, value := range entry {
		more[name] = value
	}
	return more
}

// documentProblems reads the document and compares it with an empty estate.
func documentProblems(d document) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	parsed, problems := estate.Parse("case", text)
	if parsed == nil {
		return errors.New("it cannot be read")
	}
	if len(problems) == 0 {
		_, problems = estate.Diff(estate.State{}, parsed, false)
	}
	return estate.Problems(problems)
}
