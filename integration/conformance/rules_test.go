package conformance

import (
	"encoding/json"
	"errors"
	"strings"

	"berth/coordinator/document"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
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
		declared := newDocument()
		if attempt.On == "node" {
			nodeKey := map[string]any{
				"name": attempt.Name, "default": orNumber(attempt.Value, 1), "sticky": attempt.Sticky, "weight": orNumber(attempt.Weight, 0),
			}
			if class == model.CustomerKey || class == model.BillingEntityKey { // node keys are the operator's and have no class
				nodeKey["class"] = class
			}
			declared.node(nodeKey)
			c.same("whether a document may have "+what, documentProblems(declared) == nil, want.Allowed[i])
			continue
		}
		kind := kindOf(attempt.On)
		usual := 1.0
		if kind == model.KindCluster && model.IsSpecialKey(attempt.Name) {
			usual = 0 // the only one that it may have there
		}
		value, weight := orNumber(attempt.Value, usual), orNumber(attempt.Weight, 10)
		set := map[string]any{"class": class, "name": attempt.Name, "value": value, "weight": weight}
		if attempt.Sticky { // only what is set on nodes can be
			set["sticky"] = true
		}
		if !declared.key(kind, set) {
			c.Fatalf("there is no kind %q", attempt.On)
		}
		c.same("whether a document may have "+what, documentProblems(declared) == nil, want.Allowed[i])
		figure, isNumber := value.(float64)
		heavy, isWeight := weight.(float64)
		if isNumber && isWeight && !attempt.Sticky {
			err := model.ValidateKey(kind, model.Key{Class: class, Name: attempt.Name, Value: figure, Weight: heavy})
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
func kindOf(on string) model.Kind {
	switch {
	case strings.HasSuffix(on, "product_offer"), on == "offer":
		return model.KindOffer
	case strings.HasSuffix(on, "billing_entity"): // the master's, too
		return model.KindBillingEntity
	case on == "server":
		return model.KindVM
	case strings.HasSuffix(on, "network"):
		return model.KindNetwork
	default:
		return model.Kind(strings.TrimPrefix(on, "first_"))
	}
}

// document is an estate with one resource of each kind, by section. JSON is YAML as well.
type declaration map[string]any

// sections are the names of a document's, and what the resource of each kind needs.
var sections = []struct {
	kind  model.Kind
	name  string
	entry map[string]any
}{
	{model.KindCluster, "clusters", map[string]any{"name": "default"}},
	{model.KindBillingEntity, "billing_entities", map[string]any{"name": "master", "master": true}},
	{model.KindOffer, "offers", map[string]any{"name": "small", "for": "vm"}},
	{model.KindCustomer, "customers", map[string]any{"name": "own", "billing_entity": "master"}},
	{model.KindVDC, "vdcs", map[string]any{"name": "vdc", "customer": "own", "cluster": "default"}},
	{model.KindImage, "images", map[string]any{"name": "image"}},
	{model.KindNetwork, "networks", map[string]any{"name": "network", "source": "default"}},
	{model.KindDisk, "disks", map[string]any{"name": "disk", "path": "/disk", "format": "raw"}},
	{model.KindNIC, "nics", map[string]any{"name": "nic", "network": "network"}},
	{model.KindVM, "vms", map[string]any{
		"name": "server", "vdc": "vdc", "offer": "small", "image": "image", "disks": []string{"disk"}, "nics": []string{"nic"},
		"memory": "1G", "vcpus": 1,
	}},
}

func newDocument() declaration {
	d := declaration{"format": "berth/estate/v1"}
	for _, section := range sections {
		d[section.name] = []any{section.entry}
	}
	return d
}

// key adds a key to the resource of a kind; false if there is none.
func (d declaration) key(kind model.Kind, key map[string]any) bool {
	for _, section := range sections {
		if section.kind == kind {
			d[section.name] = []any{with(section.entry, "keys", []any{key})}
			return true
		}
	}
	return false
}

// node declares a node key.
func (d declaration) node(key map[string]any) {
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
func documentProblems(d declaration) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	parsed, problems := document.Parse("case", text)
	if parsed == nil {
		return errors.New("it cannot be read")
	}
	if len(problems) == 0 {
		_, problems = estate.Diff(estate.State{}, parsed, false)
	}
	return schema.Problems(problems)
}
