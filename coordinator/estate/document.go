package estate

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

	"berth/coordinator/cluster"
)

// Format is the first line of every document.
const Format = "berth/estate/v1"

// MaxDocument is the size in bytes of the largest document that is read.
const MaxDocument = 16 << 20

// Document is a whole estate as somebody wrote it down. Its values are checked one by one; whether they fit together and
// with what there is, Diff tells.
type Document struct {
	name    string
	entries []entry // resources, what others link to first, as the kinds stand in the table
	nodes   []nodeEntry
	vms     []vmEntry
	lines   map[string]int // of subjects, and of "subject field"
}

// Declares tells whether the document has a resource.
func (d *Document) Declares(kind cluster.Kind, name string) bool {
	return slices.ContainsFunc(d.entries, func(e entry) bool { return e.kind == kind && e.name == name })
}

// entry is one resource of a document.
type entry struct {
	kind     cluster.Kind
	name     string
	links    map[string]string // by link name: the name of the other resource
	settings map[string]string // canonical
	nodeKeys []cluster.NodeKey
	keys     []cluster.Key
	lists    map[string][]string // canonical
	members  map[string][]string // by list name: the names of VMs or nodes
}

// hasMembers tells whether the entry can only be compared once all VMs are.
func (e *entry) hasMembers() bool {
	form, _ := FormOf(e.kind)
	return len(form.Members) > 0
}

type nodeEntry struct {
	name                   string
	cluster                string
	settings               cluster.NodeSettings
	keys                   map[string]float64
	labels                 []string
	management, unbalanced bool
}

type vmEntry struct {
	name              string
	id                string // from its XML
	vdc, offer, image string // names
	within            placeName
	disks, nics       []string
	spec              cluster.VMSpec
	keys              []cluster.Key
	labels            []string
	migration         cluster.Migration
	ha                bool
	preferred         []string // names
}

// placeName is where a VM is to run; the zero value: its VDC says.
type placeName struct {
	kind cluster.Kind
	name string
}

// Lines of a document, by what stands there.
func lineKey(subject, field string) string { return subject + " " + field }

// locate says where in the document a problem is.
func (d *Document) locate(p Problem) Problem {
	p.File = d.name
	line, known := d.lines[lineKey(p.Subject, p.Field)]
	if !known {
		line = d.lines[lineKey(p.Subject, "")]
	}
	p.Line = line
	return p
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s)(.*)$`)

// Parse reads a document, which problems call by the name given. With any problem there is no document.
func Parse(name string, data []byte) (*Document, []Problem) {
	refuse := func(line int, message, next string) (*Document, []Problem) {
		return nil, []Problem{{File: name, Line: line, Message: message, Next: next}}
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
func ParseNode(name string, node *yaml.Node) (*Document, []Problem) { return parse(name, node, false) }

func parse(name string, root *yaml.Node, whole bool) (*Document, []Problem) {
	p := &parser{reader: reader{file: name}, document: &Document{name: name, lines: make(map[string]int)}}
	if !p.plain(root) {
		return nil, sorted(p.problems)
	}
	if root.Kind != yaml.MappingNode {
		p.report(root, "", "want fields, found "+shown(root), "begin with format: "+Format)
		return nil, p.problems
	}
	known := []string{"format"}
	for _, form := range forms {
		known = append(known, form.Plural)
	}
	sections := p.mapping(root, "", append(known, "nodes", "vms")...)
	if text, ok := p.text(sections["format"], "", "format"); whole && !ok || ok && text != Format {
		p.problems = nil // the fields of another format are not mistakes of this one
		p.report(root, "", "the format is not "+Format, otherFormat(text))
		return nil, p.problems
	}
	for _, form := range forms {
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
		return nil, sorted(p.problems)
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
func (p *parser) named(kind cluster.Kind, node *yaml.Node, known ...string) (string, map[string]*yaml.Node, bool) {
	subject := ""
	if name := nameIn(node); name != "" {
		subject = ref(kind, name)
	}
	fields := p.mapping(node, subject, append([]string{"name"}, known...)...)
	name, ok := p.text(fields["name"], "", "name")
	if !ok {
		if node.Kind == yaml.MappingNode && fields["name"] == nil {
			p.report(node, "", kind.WithArticle()+" without a name", "give it a name")
		}
		return "", nil, false
	}
	if err := cluster.ValidateName(string(kind), name); err != nil {
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

func (p *parser) resource(form Form, node *yaml.Node) {
	known := form.fields()
	if form.HasNodeKeys {
		known = append(known, "node_keys")
	}
	if form.Kind.Keys() {
		known = append(known, "keys")
	}
	name, fields, ok := p.named(form.Kind, node, known...)
	if !ok {
		return
	}
	subject := ref(form.Kind, name)
	one := entry{kind: form.Kind, name: name, links: make(map[string]string), settings: make(map[string]string)}
	for _, link := range form.Links {
		if value, ok := p.text(fields[link.Name], subject, link.Name); ok {
			one.links[link.Name] = value
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
		one.settings[setting.Name] = canonical
	}
	one.lists = p.lists(form, fields, subject)
	one.members = make(map[string][]string)
	for _, members := range form.Members {
		one.members[members.Name] = p.once(fields[members.Name], subject, members.Name)
	}
	one.nodeKeys = p.nodeKeys(fields["node_keys"], subject)
	one.keys = p.keys(fields["keys"], form.Kind, subject)
	if form.Kind == cluster.KindCluster && fields["keys"] == nil {
		one.keys = cluster.SpecialKeyDefaults()
	}
	p.document.entries = append(p.document.entries, one)
}

// lists reads the lists of words, and those of pairs, which are written as fields.
func (p *parser) lists(form Form, fields map[string]*yaml.Node, subject string) map[string][]string {
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
					words = append(words, PairText(f.name.Value, value))
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

func (p *parser) keys(node *yaml.Node, kind cluster.Kind, subject string) []cluster.Key {
	var keys []cluster.Key
	for _, item := range p.list(node, subject, "keys") {
		fields := p.mapping(item, subject, "name", "value", "weight", "class")
		one := cluster.Key{Class: cluster.SystemKey}
		if class, ok := p.text(fields["class"], subject, "class"); ok {
			one.Class = cluster.KeyClass(class)
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
		if err := cluster.ValidateKey(kind, one); err != nil {
			p.invalid(item, subject, err)
			continue
		}
		if slices.ContainsFunc(keys, func(k cluster.Key) bool { return sameKey(k, one) }) {
			p.report(item, subject, "two "+string(one.Class)+" keys "+one.Name, "keep one")
			continue
		}
		keys = append(keys, one)
	}
	sortKeys(keys)
	return keys
}

func (p *parser) nodeKeys(node *yaml.Node, subject string) []cluster.NodeKey {
	var keys []cluster.NodeKey
	for _, item := range p.list(node, subject, "node_keys") {
		fields := p.mapping(item, subject, "name", "default", "sticky", "weight")
		name, ok := p.text(fields["name"], subject, "node key name")
		if !ok {
			if item.Kind == yaml.MappingNode && fields["name"] == nil {
				p.report(item, subject, "a node key without a name", "write {name: NAME, default: NUMBER}")
			}
			continue
		}
		one := cluster.NodeKey{Name: name, Sticky: p.truth(fields["sticky"], subject, "node key "+name+" sticky")}
		one.Default, _ = p.number(fields["default"], subject, "node key "+name+" default")
		one.Weight, _ = p.number(fields["weight"], subject, "node key "+name+" weight")
		if err := cluster.ValidateNodeKey(one); err != nil {
			p.invalid(item, subject, err)
			continue
		}
		if slices.ContainsFunc(keys, func(k cluster.NodeKey) bool { return k.Name == name }) {
			p.report(item, subject, "two node keys "+name, "keep one")
			continue
		}
		keys = append(keys, one)
	}
	sortNodeKeys(keys)
	return keys
}

func sameKey(a, b cluster.Key) bool { return a.Class == b.Class && a.Name == b.Name }

func sortKeys(keys []cluster.Key) {
	slices.SortFunc(keys, func(a, b cluster.Key) int {
		if a.Class != b.Class {
			return strings.Compare(string(a.Class), string(b.Class))
		}
		return strings.Compare(a.Name, b.Name)
	})
}

func sortNodeKeys(keys []cluster.NodeKey) {
	slices.SortFunc(keys, func(a, b cluster.NodeKey) int { return strings.Compare(a.Name, b.Name) })
}
