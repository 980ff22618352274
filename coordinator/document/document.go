// Package document is the YAML form of an estate: what people write for 'berth apply' and what it means. It checks one value at
// a time; package estate checks whether the values fit together. Which fields there are is written in package schema.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// Format is the first line of every document.
const Format = "berth/estate/v1"

// MaxDocument is the size in bytes of the largest document that is read.
const MaxDocument = 16 << 20

// Document is a whole estate as somebody wrote it down. Its values are checked one by one; whether they fit together and
// with what there is, Diff tells.
type Document struct {
	name    string
	Entries []Entry // resources, what others link to first, as the kinds stand in the table
	Nodes   []model.Node
	VMs     []VM
	lines   map[string]int // of subjects, and of "subject field"
}

// Declares tells whether the document has a resource.
func (d *Document) Declares(kind model.Kind, name string) bool {
	return slices.ContainsFunc(d.Entries, func(e Entry) bool { return e.Kind == kind && e.Name == name })
}

// Entry is one resource of a document.
type Entry struct {
	Kind     model.Kind
	Name     string
	Links    map[string]string // by link name: the name of the other resource
	Settings map[string]string // canonical
	NodeKeys []model.NodeKey
	Keys     []model.Key
	Lists    map[string][]string // canonical
	Members  map[string][]string // by list name: the names of VMs or nodes
	Spelled  map[string]string   // by our names: what was written by those of the designs
}

// HasMembers tells whether the entry can only be compared once all VMs are.
func (e *Entry) HasMembers() bool {
	form, _ := schema.FormOf(e.Kind)
	return len(form.Members) > 0
}

// VM is one VM of a document. Its record has names where records of a state have IDs, and a place as kind/name.
type VM struct {
	model.VM
	UUID string // from its XML; empty: none
}

// Lines of a document, by what stands there.
func lineKey(subject, field string) string { return subject + " " + field }

// Locate says where in the document a problem is.
func (d *Document) Locate(p schema.Problem) schema.Problem {
	p.File = d.name
	line, known := d.lines[lineKey(p.Subject, p.Field)]
	if !known {
		line = d.lines[lineKey(p.Subject, "")]
	}
	p.Line = line
	return p
}

// Names tells whether the document has an entry for a thing.
func (d *Document) Names(kind model.Kind, name string) bool {
	_, named := d.lines[lineKey(schema.Ref(kind, name), "")]
	return named
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s)(.*)$`)

// Parse reads a document, which problems call by the name given. With any problem there is no document.
func Parse(name string, data []byte) (*Document, []schema.Problem) {
	refuse := func(line int, message, next string) (*Document, []schema.Problem) {
		return nil, []schema.Problem{{File: name, Line: line, Message: message, Next: next}}
	}
	if len(data) > MaxDocument {
		return refuse(0, fmt.Sprintf("%d bytes, at most %d are read", len(data), MaxDocument), "declare the estate in several files")
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, second yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return refuse(1, "the document is empty", "begin with format: "+Format)
	case err != nil:
		line, message := 0, err.Error()
		if parts := yamlLine.FindStringSubmatch(message); parts != nil {
			line, _ = strconv.Atoi(parts[1])
			message = parts[2]
		}
		return refuse(line, "not YAML: "+message, "see 'berth apply --help' for an example")
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return refuse(max(second.Line, 1), "more than one document", "declare the estate in one, without ---")
	}
	if len(root.Content) != 1 {
		return refuse(1, "the document is empty", "begin with format: "+Format)
	}
	return parse(name, root.Content[0], true)
}

// ParseNode reads a document that is a part of another one. It need not say its format.
func ParseNode(name string, node *yaml.Node) (*Document, []schema.Problem) {
	return parse(name, node, false)
}

func parse(name string, root *yaml.Node, whole bool) (*Document, []schema.Problem) {
	p := &parser{reader: reader{file: name}, document: &Document{name: name, lines: make(map[string]int)}}
	if !p.plain(root) {
		return nil, schema.Sorted(p.problems)
	}
	if root.Kind != yaml.MappingNode {
		p.report(root, "", "want fields, found "+shown(root), "begin with format: "+Format)
		return nil, p.problems
	}
	known := []string{"format"}
	for _, form := range schema.Forms() {
		known = append(known, form.Plural)
	}
	sections := p.mapping(root, "", append(known, "nodes", "vms")...)
	if text, ok := p.text(sections["format"], "", "format"); whole && !ok || ok && text != Format {
		p.problems = nil // the fields of another format are not mistakes of this one
		p.report(root, "", "the format is not "+Format, otherFormat(text))
		return nil, p.problems
	}
	for _, form := range schema.Forms() {
		for _, node := range p.list(sections[form.Plural], "", form.Plural) {
			p.resource(form, node)
		}
	}
	for _, node := range p.list(sections["nodes"], "", "nodes") {
		p.node(node)
	}
	for _, node := range p.list(sections["vms"], "", "vms") {
		p.vm(node)
	}
	if len(p.problems) > 0 {
		return nil, schema.Sorted(p.problems)
	}
	return p.document, nil
}

// otherFormat says what to do with a document that does not say this format.
func otherFormat(said string) string {
	if strings.HasPrefix(said, "berth/scenario/") {
		return "that is a scenario, which 'berth simulate' reads; what stands under its estate: can be applied"
	}
	return "begin with format: " + Format
}

type parser struct {
	reader
	document *Document
}

// named reads an entry's fields and its name, and remembers the lines. Without a name there is no entry.
func (p *parser) named(kind model.Kind, node *yaml.Node, known ...string) (string, map[string]*yaml.Node, bool) {
	subject := ""
	if name := nameIn(node); name != "" {
		subject = schema.Ref(kind, name)
	}
	fields := p.mapping(node, subject, append([]string{"name"}, known...)...)
	name, ok := p.text(fields["name"], "", "name")
	if !ok {
		if node.Kind == yaml.MappingNode && fields["name"] == nil {
			p.report(node, "", kind.WithArticle()+" without a name", "give it a name")
		}
		return "", nil, false
	}
	if err := model.ValidateName(string(kind), name); err != nil {
		p.invalid(fields["name"], "", err)
		return "", nil, false
	}
	if before, twice := p.document.lines[lineKey(subject, "")]; twice {
		p.report(node, subject, fmt.Sprintf("another %s has the name, in line %d", kind, before), "rename one or leave it out")
		return "", nil, false
	}
	p.document.lines[lineKey(subject, "")] = node.Line
	for name, value := range fields {
		p.document.lines[lineKey(subject, name)] = value.Line
	}
	return name, fields, true
}

// nameIn looks ahead for an entry's name, so that everything that is wrong with it can be told by name.
func nameIn(node *yaml.Node) string {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if value := node.Content[i+1]; node.Content[i].Value == "name" && value.Kind == yaml.ScalarNode {
				return value.Value
			}
		}
	}
	return ""
}

func (p *parser) resource(form schema.Form, node *yaml.Node) {
	known := form.Fields()
	if form.HasNodeKeys {
		known = append(known, "node_keys")
	}
	if form.Kind.Keys() {
		known = append(known, "keys")
	}
	own, spelled := p.ours(form, node)
	name, fields, ok := p.named(form.Kind, own, known...)
	if !ok {
		return
	}
	subject := schema.Ref(form.Kind, name)
	one := Entry{Kind: form.Kind, Name: name, Links: make(map[string]string), Settings: make(map[string]string), Spelled: spelled}
	for _, link := range form.Links {
		if value, ok := p.text(fields[link.Name], subject, link.Name); ok {
			one.Links[link.Name] = value
		} else if link.Required && fields[link.Name] == nil {
			p.report(node, subject, "without a "+link.Name, "name one: "+link.Doc)
		}
	}
	for _, setting := range form.Settings {
		value, ok := p.text(fields[setting.Name], subject, setting.Name)
		if !ok {
			if setting.Required && fields[setting.Name] == nil {
				p.report(node, subject, "without a "+setting.Name, "give one: "+setting.Doc)
			}
			continue
		}
		canonical, err := setting.Canonical(value)
		if err != nil {
			p.invalid(fields[setting.Name], subject, err)
		}
		one.Settings[setting.Name] = canonical
		if setting.IsAlias(value) {
			one.Spelled[setting.Name] = value
		}
	}
	one.Lists = p.lists(form, fields, subject)
	one.Members = make(map[string][]string)
	for _, members := range form.Members {
		one.Members[members.Name] = p.once(fields[members.Name], subject, members.Name)
	}
	one.NodeKeys = p.nodeKeys(fields["node_keys"], subject)
	one.Keys = p.keys(fields["keys"], form.Kind, subject)
	if form.Kind == model.KindCluster {
		one.Keys = schema.WithSpecialKeys(one.Keys)
	}
	p.document.Entries = append(p.document.Entries, one)
}

// lists reads the lists of words, and those of pairs, which are written as fields.
func (p *parser) lists(form schema.Form, fields map[string]*yaml.Node, subject string) map[string][]string {
	lists := make(map[string][]string)
	for _, list := range form.Lists {
		node := fields[list.Name]
		if node == nil {
			continue
		}
		var words []string
		if list.Pairs {
			for _, f := range p.pairs(node, subject) {
				if value, ok := p.number(f.value, subject, list.Name+" "+f.name.Value); ok {
					words = append(words, schema.PairText(f.name.Value, value))
				}
			}
		} else {
			words = p.names(node, subject, list.Name)
		}
		canonical, err := list.Canonical(words)
		switch {
		case err != nil:
			p.invalid(node, subject, err)
		case len(canonical) > 0:
			lists[list.Name] = canonical
		}
	}
	return lists
}

// once reads a list of names and reports those that are there twice.
func (p *parser) once(node *yaml.Node, subject, field string) []string {
	names := p.names(node, subject, field)
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			p.report(node, subject, fmt.Sprintf("%s lists %s twice", field, name), "keep one")
		}
		seen[name] = true
	}
	return names
}

func (p *parser) keys(node *yaml.Node, kind model.Kind, subject string) []model.Key {
	var keys []model.Key
	for _, item := range p.list(node, subject, "keys") {
		fields := p.mapping(item, subject, "name", "value", "weight", "class")
		one := model.Key{Class: model.SystemKey}
		if class, ok := p.text(fields["class"], subject, "class"); ok {
			one.Class = model.KeyClass(class)
		}
		var named, valued bool
		one.Name, named = p.text(fields["name"], subject, "key name")
		one.Value, valued = p.number(fields["value"], subject, "key "+one.Name+" value")
		one.Weight, _ = p.number(fields["weight"], subject, "key "+one.Name+" weight")
		if item.Kind == yaml.MappingNode && (fields["name"] == nil || fields["value"] == nil) {
			p.report(item, subject, "a key needs a name and a value", "write {name: NAME, value: NUMBER, weight: NUMBER}")
		}
		if !named || !valued {
			continue
		}
		if err := model.ValidateKey(kind, one); err != nil {
			p.invalid(item, subject, err)
			continue
		}
		if slices.ContainsFunc(keys, func(k model.Key) bool { return schema.SameKey(k, one) }) {
			p.report(item, subject, "two "+string(one.Class)+" keys "+one.Name, "keep one")
			continue
		}
		keys = append(keys, one)
	}
	schema.SortKeys(keys)
	return keys
}

func (p *parser) nodeKeys(node *yaml.Node, subject string) []model.NodeKey {
	var keys []model.NodeKey
	for _, item := range p.list(node, subject, "node_keys") {
		fields := p.mapping(item, subject, "name", "default", "sticky", "weight")
		name, ok := p.text(fields["name"], subject, "node key name")
		if !ok {
			if item.Kind == yaml.MappingNode && fields["name"] == nil {
				p.report(item, subject, "a node key without a name", "write {name: NAME, default: NUMBER}")
			}
			continue
		}
		one := model.NodeKey{Name: name, Sticky: p.truth(fields["sticky"], subject, "node key "+name+" sticky")}
		one.Default, _ = p.number(fields["default"], subject, "node key "+name+" default")
		one.Weight, _ = p.number(fields["weight"], subject, "node key "+name+" weight")
		if err := model.ValidateNodeKey(one); err != nil {
			p.invalid(item, subject, err)
			continue
		}
		if slices.ContainsFunc(keys, func(k model.NodeKey) bool { return k.Name == name }) {
			p.report(item, subject, "two node keys "+name, "keep one")
			continue
		}
		keys = append(keys, one)
	}
	schema.SortNodeKeys(keys)
	return keys
}
