package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// resourceMessage is the message of one resource without what uses it.
func (p *picture) resourceMessage(r cluster.Resource) *berthv1.Resource {
	return wire.Resource(wire.ResourceReport{
		Resource: r, Name: p.resourceName, Effective: effectiveSettings(r), EffectiveLists: effectiveLists(r),
		NodeName: p.nodeName,
	})
}

// effectiveSettings are those of a resource with every default filled in.
func effectiveSettings(r cluster.Resource) map[string]string {
	form, _ := estate.FormOf(r.Kind)
	effective := make(map[string]string, len(form.Settings))
	for _, setting := range form.Settings {
		if value := estate.Effective(&r, setting); value != "" {
			effective[setting.Name] = value
		}
	}
	return effective
}

// effectiveLists are those of a resource with every default filled in.
func effectiveLists(r cluster.Resource) map[string][]string {
	form, _ := estate.FormOf(r.Kind)
	effective := make(map[string][]string, len(form.Lists))
	for _, list := range form.Lists {
		if words := estate.EffectiveList(&r, list); len(words) > 0 {
			effective[list.Name] = words
		}
	}
	return effective
}

// ListResources answers with the resources of one kind, or of all. Groups have calls of their own.
func (s *Server) ListResources(
	ctx context.Context, request *connect.Request[berthv1.ListResourcesRequest],
) (*connect.Response[berthv1.ListResourcesResponse], error) {
	forms := generic()
	if kind := request.Msg.GetKind(); kind != "" {
		form, err := formOf(kind)
		if err != nil {
			return nil, err
		}
		forms = []estate.Form{form}
	}
	page, err := extentOf(request.Msg, maxList)
	if err != nil {
		return nil, err
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	var found []cluster.Resource
	rank := make(map[cluster.Kind]int, len(forms))
	for i, form := range forms {
		rank[form.Kind] = i
		found = append(found, p.ofKind(form.Kind)...)
	}
	found, next := cut(found, page, ascending, func(r cluster.Resource) string { return keyOf(fmt.Sprintf("%02d", rank[r.Kind]), r.Name) })
	response := &berthv1.ListResourcesResponse{SchemaVersion: wire.SchemaVersion, NextPageToken: next}
	for _, r := range found {
		response.Resources = append(response.Resources, p.resourceMessage(r))
	}
	return connect.NewResponse(response), nil
}

// ofKind are all resources of a kind, by name: those that are there without being declared too.
func (p *picture) ofKind(kind cluster.Kind) []cluster.Resource {
	found := p.Resources(kind)
	for _, implied := range impliedOf(kind) {
		at, declared := slices.BinarySearchFunc(found, implied.Name, func(r cluster.Resource, name string) int {
			return strings.Compare(r.Name, name)
		})
		if !declared {
			found = slices.Insert(found, at, implied)
		}
	}
	return found
}

// impliedOf are the resources of a kind that are there without being declared: the default cluster, and what is built in.
func impliedOf(kind cluster.Kind) []cluster.Resource {
	switch kind {
	case cluster.KindCluster:
		return []cluster.Resource{cluster.DefaultClusterRecord()}
	case cluster.KindPolicy:
		return estate.BuiltinPolicies()
	default:
		return nil
	}
}

// GetResource answers with one resource and what links to it.
func (s *Server) GetResource(
	ctx context.Context, request *connect.Request[berthv1.GetResourceRequest],
) (*connect.Response[berthv1.GetResourceResponse], error) {
	form, err := formOf(request.Msg.GetKind())
	if err != nil {
		return nil, err
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	found, err := p.resource(form.Kind, request.Msg.GetName())
	if err != nil {
		return nil, err
	}
	message := p.resourceMessage(found)
	message.UsedBy = p.usersOf(found)
	return connect.NewResponse(&berthv1.GetResourceResponse{SchemaVersion: wire.SchemaVersion, Resource: message}), nil
}

// usersOf is what uses a resource. A cluster that names no policy uses the one that it has by default, also while it is not
// declared itself.
func (p *picture) usersOf(r cluster.Resource) []string {
	used := estate.InUse(p.declared(), r.Kind, r.ID)
	if r.ID != cluster.BuiltIn+placement.PolicyAffinity {
		return used
	}
	for _, record := range p.ofKind(cluster.KindCluster) {
		if record.Links[estate.LinkPolicy] == "" {
			used = append(used, string(record.Kind)+"/"+record.Name)
		}
	}
	slices.Sort(used)
	return used
}

// AddResource declares a resource.
func (s *Server) AddResource(
	ctx context.Context, request *connect.Request[berthv1.AddResourceRequest],
) (*connect.Response[berthv1.AddResourceResponse], error) {
	message := request.Msg
	form, err := formOf(message.GetKind())
	if err != nil {
		return nil, err
	}
	kind, key, subject := "add "+string(form.Kind), message.GetRequestId(), message.GetKind()+"/"+message.GetName()
	if err := checkName(string(form.Kind), message.GetName()); err != nil {
		return nil, invalid(subject, "choose another name", err)
	}
	p, err := s.propose(ctx, key, func(p *picture) (state.Command, error) {
		if there, err := p.resource(form.Kind, message.GetName()); err == nil {
			if p.Answered(key, kind) {
				return state.Command{}, errUnchanged
			}
			return state.Command{}, exists(subject, there)
		}
		now := p.declared()
		made, err := estate.NewResource(now, form.Kind, message.GetName(), estate.Wanted{
			Links: message.GetLinks(), Settings: message.GetSettings(), Lists: listsFrom(message.GetLists()),
		}, newID(p.at), p.at)
		if err != nil {
			return state.Command{}, unsound(subject, fmt.Sprintf("see 'berth %s add --help'", form.Kind), err)
		}
		made.ID = resourceID(made, made.ID)
		command := state.Command{Kind: kind, Expect: []state.Expectation{expectResource(made)}, Resources: []cluster.Resource{made}}
		p.expectLinks(&command, linksOf(made)...)
		p.tell(ctx, &command, "resource.created", subject, "%s", because("created", fieldsText(estate.ResourceFields(now, cluster.Resource{}, made))))
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	made, err := p.resource(form.Kind, message.GetName())
	if err != nil {
		return nil, err // somebody took it away again
	}
	return connect.NewResponse(&berthv1.AddResourceResponse{
		SchemaVersion: wire.SchemaVersion, Resource: p.resourceMessage(made),
	}), nil
}

// exists refuses a second resource of a name.
func exists(subject string, there cluster.Resource) error {
	next := fmt.Sprintf("change it with 'berth %s set %s'", there.Kind, there.Name)
	if builtIn(there) {
		next = "choose another name: what is built in cannot change"
	}
	return refusal(rpc.Exists, subject, next, "there is a %s %q already", there.Kind, there.Name)
}

func builtIn(r cluster.Resource) bool { return strings.HasPrefix(r.ID, cluster.BuiltIn) }

// listsFrom reads the lists that a request carries, unchecked.
func listsFrom(messages map[string]*berthv1.Names) map[string][]string {
	lists := make(map[string][]string, len(messages))
	for name, words := range messages {
		lists[name] = words.GetNames()
	}
	return lists
}

// masterID is the ID of the master billing entity, so that of two that are made at a time one is refused.
const masterID = "master"

// resourceID is the ID that a new resource gets: the one that was made for it, but for what there is once.
func resourceID(r cluster.Resource, made string) string {
	if r.Kind == cluster.KindBillingEntity && r.Settings[estate.SettingMaster] == "true" {
		return masterID
	}
	return made
}

func linksOf(r cluster.Resource) []string { return slices.Sorted(maps.Values(r.Links)) }

// ChangeResource changes what a resource links to and what is set on it.
func (s *Server) ChangeResource(
	ctx context.Context, request *connect.Request[berthv1.ChangeResourceRequest],
) (*connect.Response[berthv1.ChangeResourceResponse], error) {
	message := request.Msg
	help := fmt.Sprintf("see 'berth %s set --help'", message.GetKind())
	changed, p, err := s.changeResource(ctx, message.GetKind(), message.GetName(), message.GetRequestId(),
		func(now estate.State, before cluster.Resource) (edit, error) {
			after, err := estate.Edit(now, before, estate.Wanted{
				Links: message.GetLinks(), Settings: message.GetSettings(), Lists: listsFrom(message.GetLists()), Unset: message.GetUnset(),
			})
			if err != nil {
				return edit{}, unsound(string(before.Kind)+"/"+before.Name, help, err)
			}
			return edit{after: after, kind: "resource.changed", said: fieldsText(estate.ResourceFields(now, before, after))}, nil
		})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ChangeResourceResponse{
		SchemaVersion: wire.SchemaVersion, Resource: p.resourceMessage(changed),
	}), nil
}

// edit is what becomes of a resource, and what the history says of it.
type edit struct {
	after cluster.Resource
	nodes []cluster.Node // that change along with it
	kind  string         // of the event
	said  string
}

// changeResource commits one change to one resource, judged with everything that is declared. The default cluster is
// declared by its first change.
func (s *Server) changeResource(
	ctx context.Context, kind, ref, requestID string, change func(estate.State, cluster.Resource) (edit, error),
) (cluster.Resource, *picture, error) {
	form, err := formOf(kind)
	if err != nil {
		return cluster.Resource{}, nil, err
	}
	var id string
	commandKind := "change " + string(form.Kind)
	p, err := s.propose(ctx, requestID, func(p *picture) (state.Command, error) {
		before, err := p.resource(form.Kind, ref)
		if err != nil {
			return state.Command{}, err
		}
		id = before.ID
		if p.Answered(requestID, commandKind) {
			return state.Command{}, errUnchanged
		}
		now := p.declared()
		made, err := change(now, before)
		switch {
		case err != nil:
			return state.Command{}, err
		case sameResource(before, made.after):
			return state.Command{}, errUnchanged
		}
		if before.Revision == 0 {
			made.after.CreatedAt = p.at
		}
		subject := string(before.Kind) + "/" + before.Name
		command := state.Command{
			Kind: commandKind, Expect: []state.Expectation{expectResource(before)},
			Resources: []cluster.Resource{made.after}, Nodes: made.nodes,
		}
		p.expectLinks(&command, linksOf(made.after)...)
		p.expectUsers(&command, before, made.after)
		p.tell(ctx, &command, made.kind, subject, "%s", made.said)
		return command, nil
	})
	if err != nil {
		return cluster.Resource{}, nil, err
	}
	changed, err := p.resource(form.Kind, id)
	return changed, p, err
}

// expectUsers guards a change by what it concerns beside the resource itself: where VMs run, of a VDC, a pod or a cluster with
// other links,
// and what the nodes set of the keys that their cluster declares.
func (p *picture) expectUsers(command *state.Command, before, after cluster.Resource) {
	if placing(before.Kind) && !maps.Equal(before.Links, after.Links) {
		for _, vm := range p.VMs() {
			if vm.VDC == before.ID || before.Kind != cluster.KindVDC {
				command.Expect = append(command.Expect, expectVM(vm))
			}
		}
	}
	if !slices.Equal(before.NodeKeys, after.NodeKeys) {
		for _, node := range p.Nodes() {
			if node.Cluster == before.Name {
				command.Expect = append(command.Expect, expectNode(node))
			}
		}
	}
}

// placing tells whether the links of a kind say where VMs may be.
func placing(kind cluster.Kind) bool {
	return kind == cluster.KindVDC || kind == cluster.KindPod || kind == cluster.KindCluster
}

// sameResource tells whether a change changed nothing.
func sameResource(a, b cluster.Resource) bool {
	return maps.Equal(a.Links, b.Links) && maps.Equal(a.Settings, b.Settings) &&
		slices.Equal(a.Keys, b.Keys) && slices.Equal(a.NodeKeys, b.NodeKeys) && maps.EqualFunc(a.Lists, b.Lists, slices.Equal)
}

// DeleteResource forgets a resource that nothing links to.
func (s *Server) DeleteResource(
	ctx context.Context, request *connect.Request[berthv1.DeleteResourceRequest],
) (*connect.Response[berthv1.DeleteResourceResponse], error) {
	form, err := formOf(request.Msg.GetKind())
	if err != nil {
		return nil, err
	}
	name, key := request.Msg.GetName(), request.Msg.GetRequestId()
	done, err := s.deleteWithVolume(ctx, form.Kind, name, key)
	if !done && err == nil {
		err = s.deleteResource(ctx, form.Kind, name, key)
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DeleteResourceResponse{SchemaVersion: wire.SchemaVersion}), nil
}

func (s *Server) deleteResource(ctx context.Context, of cluster.Kind, ref, key string) error {
	kind := "delete " + string(of)
	_, err := s.propose(ctx, key, func(p *picture) (state.Command, error) {
		found, err := p.resource(of, ref)
		switch {
		case err != nil && p.Answered(key, kind):
			return state.Command{}, errUnchanged
		case err != nil:
			return state.Command{}, err
		}
		subject := string(of) + "/" + found.Name
		if found.Revision == 0 {
			return state.Command{}, undeclared(found)
		}
		if users := estate.InUse(p.declared(), of, found.ID); len(users) > 0 {
			return state.Command{}, inUse(of, found.Name, users)
		}
		command := state.Command{
			Kind: kind, Expect: []state.Expectation{expectResource(found)},
			Delete: []state.Record{{Table: state.Resources, ID: found.ID}},
		}
		p.tell(ctx, &command, "resource.deleted", subject, "forgotten")
		return command, nil
	})
	return err
}

// undeclared refuses to delete what is there without having been declared.
func undeclared(r cluster.Resource) error {
	subject := string(r.Kind) + "/" + r.Name
	if builtIn(r) {
		return refusal(rpc.Conflict, subject, "leave it: nothing uses it unless it is named", "the %s %q is built in", r.Kind, r.Name)
	}
	return refusal(rpc.Conflict, subject, "there is nothing to do: it has its defaults",
		"the cluster %q was never declared, and is there for what is in no other cluster", r.Name)
}

// inUse refuses to forget what other things link to, and names some of them.
func inUse(kind cluster.Kind, name string, users []string) error {
	const most = 5
	named := strings.Join(users[:min(len(users), most)], ", ")
	if more := len(users) - most; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return refusal(rpc.Conflict, string(kind)+"/"+name, fmt.Sprintf("change or delete what uses it first: 'berth %s show %s' lists it", kind, name),
		"%s %q is in use by %s", kind, name, named)
}
