package answer

import (
	"context"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/api/refusal"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/shared/rpc"
)

// Declared is everything that people declared, as the rules of an estate read it.
func (p *Moment) Declared() estate.State {
	now := estate.State{Nodes: p.Nodes(), VMs: p.VMs()}
	for _, form := range schema.Forms() {
		now.Resources = append(now.Resources, p.Resources(form.Kind)...)
	}
	return now
}

// NamedResource finds a resource of a kind by name or ID. What is there without being declared is at revision 0.
func (p *Moment) NamedResource(kind model.Kind, ref string) (model.Resource, error) {
	ref = strings.TrimPrefix(ref, string(kind)+"/")
	if found, known := p.Resource(ref); known && found.Kind == kind {
		return found, nil
	}
	if found, known := p.ResourceByName(kind, ref); known {
		return found, nil
	}
	for _, implied := range ImpliedOf(kind) {
		if ref == implied.Name || ref == implied.ID {
			return implied, nil
		}
	}
	return model.Resource{}, refusal.NotFound(string(kind), ref)
}

// NamedVM finds the VM that a request names, by name or ID.
func (p *Moment) NamedVM(ref string) (model.VM, error) {
	if vm, known := p.VMByRef(ref); known {
		return vm, nil
	}
	return model.VM{}, refusal.NotFound("vm", ref)
}

// NamedNode finds the node that a request names, by name or ID.
func (p *Moment) NamedNode(ref string) (model.Node, error) {
	if node, known := p.NodeByRef(ref); known {
		return node, nil
	}
	return model.Node{}, refusal.NotFound("node", ref)
}

// Forms are the kinds that the calls for resources are about. Groups have members, and calls of their own.
func Forms() []schema.Form {
	return slices.DeleteFunc(schema.Forms(), func(form schema.Form) bool { return form.Kind == model.KindGroup })
}

// FormOf reads the kind that a request names.
func FormOf(kind string) (schema.Form, error) {
	var kinds []string
	for _, form := range Forms() {
		if string(form.Kind) == kind {
			return form, nil
		}
		kinds = append(kinds, string(form.Kind))
	}
	if kind == string(model.KindGroup) {
		return schema.Form{}, refusal.New(
			rpc.Invalid, "", "see 'berth group --help'", "a group has members, and is seen and changed by calls of its own",
		)
	}
	return schema.Form{}, refusal.New(rpc.Invalid, "", "use one of "+strings.Join(kinds, ", "), "%q is no kind of resource", kind)
}

// ExpectResource guards a change by the revision of a resource that it was made of.
func ExpectResource(r model.Resource) state.Expectation {
	return state.Expectation{Table: state.Resources, ID: r.ID, Revision: r.Revision}
}

// ExpectLinks guards a change by the revisions of what the changed things link to: the change was judged by them. The
// default cluster need not have a record; a link of its own command is expected already.
func (p *Moment) ExpectLinks(command *state.Command, ids ...string) {
	expected := make(map[string]bool, len(command.Expect)+len(ids))
	for _, e := range command.Expect {
		if e.Table == state.Resources {
			expected[e.ID] = true
		}
	}
	for _, id := range ids {
		if id == "" || expected[id] {
			continue
		}
		expected[id] = true
		linked, _ := p.Resource(id)
		command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: id, Revision: linked.Revision})
	}
}

// FieldsText says in one line what changes, for the history.
func FieldsText(fields []estate.FieldChange) string {
	said := make([]string, 0, len(fields))
	for _, f := range fields {
		said = append(said, f.String())
	}
	return strings.Join(said, "; ")
}

// Tell adds one line of history to a command.
func (p *Moment) Tell(ctx context.Context, command *state.Command, kind, subject, format string, args ...any) {
	command.Events = append(command.Events, p.Event(ctx, kind, subject, format, args...))
}

// ImpliedOf are the resources of a kind that are there without being declared: the default cluster, and what is built in.
func ImpliedOf(kind model.Kind) []model.Resource {
	switch kind {
	case model.KindCluster:
		return []model.Resource{model.DefaultClusterRecord()}
	case model.KindPolicy:
		return estate.BuiltinPolicies()
	default:
		return nil
	}
}

// LinksOf are the IDs of what a resource links to, in order.
func LinksOf(r model.Resource) []string { return slices.Sorted(maps.Values(r.Links)) }

// Because says what is the case and, if it is known, why.
func Because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
