package api

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// declared is everything that people declared, as the rules of an estate read it.
func (p *picture) declared() estate.State {
	now := estate.State{Nodes: p.Nodes(), VMs: p.VMs()}
	for _, form := range estate.Forms() {
		now.Resources = append(now.Resources, p.Resources(form.Kind)...)
	}
	return now
}

// resource finds a resource of a kind by name or ID. What is there without being declared is at revision 0.
func (p *picture) resource(kind cluster.Kind, ref string) (cluster.Resource, error) {
	if found, known := p.Resource(ref); known && found.Kind == kind {
		return found, nil
	}
	if found, known := p.ResourceByName(kind, ref); known {
		return found, nil
	}
	for _, implied := range impliedOf(kind) {
		if ref == implied.Name || ref == implied.ID {
			return implied, nil
		}
	}
	return cluster.Resource{}, notFound(string(kind), ref)
}

// namedVM and namedNode find what a request names, by name or ID.
func (p *picture) namedVM(ref string) (cluster.VM, error) {
	if vm, known := p.VMByRef(ref); known {
		return vm, nil
	}
	return cluster.VM{}, notFound("vm", ref)
}

func (p *picture) namedNode(ref string) (cluster.Node, error) {
	if node, known := p.NodeByRef(ref); known {
		return node, nil
	}
	return cluster.Node{}, notFound("node", ref)
}

// generic are the kinds that the calls for resources are about. Groups have members, and calls of their own.
func generic() []estate.Form {
	return slices.DeleteFunc(estate.Forms(), func(form estate.Form) bool { return form.Kind == cluster.KindGroup })
}

// formOf reads the kind that a request names.
func formOf(kind string) (estate.Form, error) {
	var kinds []string
	for _, form := range generic() {
		if string(form.Kind) == kind {
			return form, nil
		}
		kinds = append(kinds, string(form.Kind))
	}
	if kind == string(cluster.KindGroup) {
		return estate.Form{}, refusal(rpc.Invalid, "", "see 'berth group --help'", "a group has members, and is seen and changed by calls of its own")
	}
	return estate.Form{}, refusal(rpc.Invalid, "", "use one of "+strings.Join(kinds, ", "), "%q is no kind of resource", kind)
}

func expectResource(r cluster.Resource) state.Expectation {
	return state.Expectation{Table: state.Resources, ID: r.ID, Revision: r.Revision}
}

// expectLinks guards a change by the revisions of what the changed things link to: the change was judged by them. The
// default cluster need not have a record; a link of its own command is expected already.
func (p *picture) expectLinks(command *state.Command, ids ...string) {
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

// problems is the refusal that lists everything that is wrong.
func problems(subject string, found []estate.Problem) *connect.Error {
	detail := &berthv1.ErrorDetail{Code: rpc.Invalid, Subject: cmp.Or(subject, found[0].Subject), NextStep: "correct it and try again: nothing was changed"}
	lines := make([]string, 0, len(found))
	for _, one := range found {
		detail.Problems = append(detail.Problems, wire.Problem(one))
		lines = append(lines, one.String())
	}
	if len(found) > 1 {
		detail.NextStep = "correct all of them and try again: nothing was changed"
	}
	return rpc.Errorf(statuses[rpc.Invalid], detail, "%s", strings.Join(lines, "\n"))
}

// unsound is the refusal of a single change that breaks a rule.
func unsound(subject, next string, err error) error {
	var (
		ready   *connect.Error
		refused *estate.RefusedError
	)
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &refused):
		return problems(subject, refused.Problems)
	default:
		return invalid(subject, next, err)
	}
}

// fieldsText says in one line what changes, for the history.
func fieldsText(fields []estate.FieldChange) string {
	said := make([]string, 0, len(fields))
	for _, f := range fields {
		said = append(said, f.String())
	}
	return strings.Join(said, "; ")
}

// tell adds one line of history to a command.
func (p *picture) tell(ctx context.Context, command *state.Command, kind, subject, format string, args ...any) {
	command.Events = append(command.Events, p.event(ctx, kind, subject, format, args...))
}
