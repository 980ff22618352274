package guard

import (
	"fmt"
	"slices"
	"strings"

	"berth/shared/domxml"
)

// Finding is one thing in a document that needs a permission.
type Finding struct {
	Path       string // in the document: domain/devices/hostdev
	What       string // what stands there, in the document's words
	Permission Permission
	Line       int // in the document; 0: it is in none

	whole string // the element, if it needs the permission as a whole
}

// Text is the finding for people.
func (f *Finding) Text() string {
	text := f.What
	if f.Path != "" {
		text = f.Path + ": " + f.What
	}
	if f.Line > 0 {
		text = fmt.Sprintf("line %d, %s", f.Line, text)
	}
	return text + " needs the permission " + string(f.Permission)
}

// Same tells whether two findings are about the same thing, wherever it stands.
func (f *Finding) Same(other *Finding) bool {
	return f.key() == other.key()
}

func (f *Finding) key() Finding {
	one := *f
	one.Line = 0
	return one
}

// Judge lists what of a domain document needs a permission that is not given. None: it may be put onto a host. The error wraps
// domxml.ErrInvalid: it is no document that all who read it read alike.
func Judge(document string, permitted Permitted) ([]Finding, error) {
	root, err := domxml.Read(document)
	if err != nil {
		return nil, err
	}
	j := judge{permitted: &permitted, known: map[Finding]bool{}}
	if root.Name != rootName {
		j.add(root, root.Name, "<"+root.Name+">", UnknownElements)
		return j.found, nil
	}
	j.element(root, root.Name)
	return j.found, nil
}

// JudgeDevices is Judge of elements that stand in a document's <devices>.
func JudgeDevices(elements string, permitted Permitted) ([]Finding, error) {
	found, err := Judge("<domain type='kvm'><devices>"+elements+"</devices></domain>", permitted)
	for i := range found {
		found[i].Line = 0
	}
	return found, err
}

// Needs are the permissions of findings, each once, in the order of Permissions.
func Needs(found []Finding) (needs []Permission) {
	for _, one := range Permissions() {
		if slices.ContainsFunc(found, func(f Finding) bool { return f.Permission == one }) {
			needs = append(needs, one)
		}
	}
	return needs
}

const rootName = "domain"

type judge struct {
	permitted *Permitted
	found     []Finding
	known     map[Finding]bool // by key
}

func (j *judge) add(at *domxml.Node, path, what string, permission Permission) {
	j.tell(Finding{Path: path, What: what, Permission: permission, Line: at.Line})
}

func (j *judge) tell(one Finding) {
	if !j.permitted.has(one.Permission) && !j.known[one.key()] {
		j.known[one.key()] = true
		j.found = append(j.found, one)
	}
}

// all adds an element that needs a permission whatever is in it.
func (j *judge) all(at *domxml.Node, path, what string, permission Permission) {
	j.tell(Finding{Path: path, What: what, Permission: permission, Line: at.Line, whole: at.String()})
}

// element judges one element whose rule is that of the path.
func (j *judge) element(at *domxml.Node, path string) {
	rule, known := table[path]
	switch {
	case at.Space == qemuNamespace && strings.Count(path, "/") == 1:
		j.all(at, path, "<"+cut(at.Name)+"> of libvirt's namespace for QEMU", QEMUCommandline)
		return
	case at.Space != "" || !known:
		j.all(at, path, "<"+cut(at.Name)+">", UnknownElements)
		return
	case rule.needs != "":
		j.all(at, path, rule.what(at), rule.needs)
		return
	case rule.free:
		return
	}
	for _, attribute := range at.Attributes {
		j.attribute(at, path, attribute, &rule)
	}
	text := at.Text
	if len(at.Children) > 0 { // there is only space between them
		text = ""
	}
	if rule.text == nil {
		if strings.TrimSpace(text) != "" {
			j.add(at, path, "the text "+quoted(text), UnknownElements)
		}
	} else if permission := rule.text.judge(text, j.permitted); permission != "" {
		j.add(at, path, quoted(text), permission)
	}
	for _, child := range at.Children {
		j.element(child, below(path, child.Name))
	}
}

// below is the path of a child. A backing store has one of its own, as deep as images are copies of each other.
func below(path, name string) string {
	if name == "backingStore" && strings.HasSuffix(path, "/backingStore") {
		return path
	}
	return path + "/" + name
}

func (j *judge) attribute(at *domxml.Node, path string, attribute domxml.NodeAttribute, rule *rule) {
	name := attribute.Name
	if attribute.Space != "" {
		j.add(at, path, "the attribute "+cut(name)+" of another namespace", UnknownElements)
		return
	}
	value, known := rule.attributes[name]
	if !known {
		j.add(at, path, "the attribute "+cut(name)+" ("+quoted(attribute.Value)+")", UnknownElements)
		return
	}
	if permission := value.judge(attribute.Value, j.permitted); permission != "" {
		j.add(at, path, name+" "+quoted(attribute.Value), permission)
	}
}

// what is an element that needs a permission as a whole.
func (r *rule) what(at *domxml.Node) string {
	for _, attribute := range at.Attributes {
		if attribute.Name == "type" || attribute.Name == "model" || attribute.Name == "mode" {
			return "<" + at.Name + " " + attribute.Name + "=" + quoted(attribute.Value) + ">"
		}
	}
	return "<" + at.Name + ">"
}

func quoted(text string) string { return fmt.Sprintf("%q", cut(text)) }

func cut(text string) string {
	const most = 128
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}

// qemuNamespace is libvirt's for what it hands to QEMU as it is.
const qemuNamespace = "http://libvirt.org/schemas/domain/qemu/1.0"
