package estates

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// resourceMessage is the message of one resource without what uses it.
func resourceMessage(p *answer.Moment, r model.Resource) *berthv1.Resource {
	report := wire.ResourceReport{
		Resource: r, Name: p.ResourceName, Effective: effectiveSettings(r), EffectiveLists: effectiveLists(r),
		NodeName: p.NodeName,
	}
	if planner, from := plannerOf(p, &r); planner != "" {
		report.Effective[model.SettingPlanner] = planner
		report.From = map[string]string{model.SettingPlanner: from}
	}
	return wire.Resource(report)
}

// effectiveSettings are those of a resource with every default filled in.
func effectiveSettings(r model.Resource) map[string]string {
	form, _ := schema.FormOf(r.Kind)
	effective := make(map[string]string, len(form.Settings))
	for _, setting := range form.Settings {
		if value := estate.Effective(&r, setting); value != "" {
			effective[setting.Name] = value
		}
	}
	return effective
}

// effectiveLists are those of a resource with every default filled in.
func effectiveLists(r model.Resource) map[string][]string {
	form, _ := schema.FormOf(r.Kind)
	effective := make(map[string][]string, len(form.Lists))
	for _, list := range form.Lists {
		if words := estate.EffectiveList(&r, list); len(words) > 0 {
			effective[list.Name] = words
		}
	}
	return effective
}

// ListResources answers with the resources of one kind, or of all. Groups have calls of their own.
func (s *ResourceCalls) ListResources(
	ctx context.Context, request *connect.Request[berthv1.ListResourcesRequest],
) (*connect.Response[berthv1.ListResourcesResponse], error) {
	forms := answer.Forms()
	if kind := request.Msg.GetKind(); kind != "" {
		form, err := answer.FormOf(kind)
		if err != nil {
			return nil, err
		}
		forms = []schema.Form{form}
	}
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	var found []model.Resource
	rank := make(map[model.Kind]int, len(forms))
	for i, form := range forms {
		rank[form.Kind] = i
		found = append(found, ofKind(p, form.Kind)...)
	}
	found, next := answer.Cut(found, page, answer.Ascending, func(r model.Resource) string {
		return answer.KeyOf(fmt.Sprintf("%02d", rank[r.Kind]), r.Name)
	})
	response := &berthv1.ListResourcesResponse{SchemaVersion: wire.SchemaVersion, NextPageToken: next}
	for _, r := range found {
		response.Resources = append(response.Resources, resourceMessage(p, r))
	}
	return connect.NewResponse(response), nil
}

// ofKind are all resources of a kind, by name: those that are there without being declared too.
func ofKind(p *answer.Moment, kind model.Kind) []model.Resource {
	found := p.Resources(kind)
	for _, implied := range answer.ImpliedOf(kind) {
		at, declared := slices.BinarySearchFunc(found, implied.Name, func(r model.Resource, name string) int {
			return strings.Compare(r.Name, name)
		})
		if !declared {
			found = slices.Insert(found, at, implied)
		}
	}
	return found
}

// GetResource answers with one resource and what links to it.
func (s *ResourceCalls) GetResource(
	ctx context.Context, request *connect.Request[berthv1.GetResourceRequest],
) (*connect.Response[berthv1.GetResourceResponse], error) {
	form, err := answer.FormOf(request.Msg.GetKind())
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	found, err := p.NamedResource(form.Kind, request.Msg.GetName())
	if err != nil {
		return nil, err
	}
	message := resourceMessage(p, found)
	message.UsedBy = usersOf(p, found)
	return connect.NewResponse(&berthv1.GetResourceResponse{SchemaVersion: wire.SchemaVersion, Resource: message}), nil
}

// usersOf is what uses a resource. A cluster that names no policy uses the one that it has by default, also while it is not
// declared itself.
func usersOf(p *answer.Moment, r model.Resource) []string {
	used := estate.InUse(p.Declared(), r.Kind, r.ID)
	if r.ID != model.BuiltIn+policies.Affinity {
		return used
	}
	for _, record := range ofKind(p, model.KindCluster) {
		if record.Links[schema.LinkPolicy] == "" {
			used = append(used, string(record.Kind)+"/"+record.Name)
		}
	}
	slices.Sort(used)
	return used
}

// AddResource declares a resource.
func (s *ResourceCalls) AddResource(
	ctx context.Context, request *connect.Request[berthv1.AddResourceRequest],
) (*connect.Response[berthv1.AddResourceResponse], error) {
	message := request.Msg
	form, err := answer.FormOf(message.GetKind())
	if err != nil {
		return nil, err
	}
	kind, key, subject := "add "+string(form.Kind), message.GetRequestId(), message.GetKind()+"/"+message.GetName()
	if err := answer.CheckName(string(form.Kind), message.GetName()); err != nil {
		return nil, refusal.Invalid(subject, "choose another name", err)
	}
	p, err := s.Propose(ctx, key, func(p *answer.Moment) (state.Command, error) {
		if there, err := p.NamedResource(form.Kind, message.GetName()); err == nil {
			if p.Answered(key, kind) {
				return state.Command{}, answer.ErrUnchanged
			}
			return state.Command{}, exists(subject, there)
		}
		now := p.Declared()
		made, err := estate.NewResource(now, form.Kind, message.GetName(), estate.Wanted{
			Links: message.GetLinks(), Settings: message.GetSettings(), Lists: listsFrom(message.GetLists()),
		}, answer.NewID(p.At), p.At)
		if err != nil {
			return state.Command{}, refusal.Unsound(subject, fmt.Sprintf("see 'berth %s add --help'", form.Kind), err)
		}
		if err := p.AdmitResource(ctx, nil, &made); err != nil {
			return state.Command{}, err
		}
		made.ID = resourceID(made, made.ID)
		command := state.Command{Kind: kind, Expect: []state.Expectation{answer.ExpectResource(made)}, Resources: []model.Resource{made}}
		p.ExpectLinks(&command, answer.LinksOf(made)...)
		p.Tell(
			ctx, &command, "resource.created", subject, "%s",
			answer.Because("created", answer.FieldsText(estate.ResourceFields(now, model.Resource{}, made))),
		)
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	made, err := p.NamedResource(form.Kind, message.GetName())
	if err != nil {
		return nil, err // somebody took it away again
	}
	response := &berthv1.AddResourceResponse{SchemaVersion: wire.SchemaVersion, Resource: resourceMessage(p, made)}
	if form.Kind == model.KindNetwork {
		response.Warnings = p.NetworksNowhere("", made.Settings[schema.SettingSource])
	}
	return connect.NewResponse(response), nil
}

// exists refuses a second resource of a name.
func exists(subject string, there model.Resource) error {
	next := fmt.Sprintf("change it with 'berth %s set %s'", there.Kind, there.Name)
	if builtIn(there) {
		next = "choose another name: what is built in cannot change"
	}
	return refusal.New(rpc.Exists, subject, next, "there is a %s %q already", there.Kind, there.Name)
}

func builtIn(r model.Resource) bool { return strings.HasPrefix(r.ID, model.BuiltIn) }

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
func resourceID(r model.Resource, made string) string {
	if r.Kind == model.KindBillingEntity && r.Settings[schema.SettingMaster] == "true" {
		return masterID
	}
	return made
}

// ChangeResource changes what a resource links to and what is set on it.
func (s *ResourceCalls) ChangeResource(
	ctx context.Context, request *connect.Request[berthv1.ChangeResourceRequest],
) (*connect.Response[berthv1.ChangeResourceResponse], error) {
	message := request.Msg
	help := fmt.Sprintf("see 'berth %s set --help'", message.GetKind())
	changed, p, err := s.changeResource(ctx, message.GetKind(), message.GetName(), message.GetRequestId(),
		func(now estate.State, before model.Resource) (edit, error) {
			after, err := estate.Edit(now, before, estate.Wanted{
				Links: message.GetLinks(), Settings: message.GetSettings(), Lists: listsFrom(message.GetLists()), Unset: message.GetUnset(),
			})
			if err != nil {
				return edit{}, refusal.Unsound(string(before.Kind)+"/"+before.Name, help, err)
			}
			return edit{after: after, kind: "resource.changed", said: answer.FieldsText(estate.ResourceFields(now, before, after))}, nil
		})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ChangeResourceResponse{
		SchemaVersion: wire.SchemaVersion, Resource: resourceMessage(p, changed),
	}), nil
}

// edit is what becomes of a resource, and what the history says of it.
type edit struct {
	after model.Resource
	nodes []model.Node // that change along with it
	kind  string       // of the event
	said  string
}

// changeResource commits one change to one resource, judged with everything that is declared. The default cluster is
// declared by its first change.
func (s *ResourceCalls) changeResource(
	ctx context.Context, kind, ref, requestID string, change func(estate.State, model.Resource) (edit, error),
) (model.Resource, *answer.Moment, error) {
	form, err := answer.FormOf(kind)
	if err != nil {
		return model.Resource{}, nil, err
	}
	var id string
	commandKind := "change " + string(form.Kind)
	p, err := s.Propose(ctx, requestID, func(p *answer.Moment) (state.Command, error) {
		before, err := p.NamedResource(form.Kind, ref)
		if err != nil {
			return state.Command{}, err
		}
		id = before.ID
		if p.Answered(requestID, commandKind) {
			return state.Command{}, answer.ErrUnchanged
		}
		now := p.Declared()
		made, err := change(now, before)
		switch {
		case err != nil:
			return state.Command{}, err
		case sameResource(before, made.after):
			return state.Command{}, answer.ErrUnchanged
		}
		if before.Revision == 0 {
			made.after.CreatedAt = p.At
		}
		if err := p.AdmitResource(ctx, &before, &made.after); err != nil {
			return state.Command{}, err
		}
		subject := string(before.Kind) + "/" + before.Name
		command := state.Command{
			Kind: commandKind, Expect: []state.Expectation{answer.ExpectResource(before)},
			Resources: []model.Resource{made.after}, Nodes: made.nodes,
		}
		p.ExpectLinks(&command, answer.LinksOf(made.after)...)
		expectUsers(p, &command, before, made.after)
		p.Tell(ctx, &command, made.kind, subject, "%s", made.said)
		return command, nil
	})
	if err != nil {
		return model.Resource{}, nil, err
	}
	changed, err := p.NamedResource(form.Kind, id)
	return changed, p, err
}

// expectUsers guards a change by the records that it concerns apart from the resource itself: the VMs, if a VDC, a pod or a cluster
// gets other links, and the nodes of a cluster, if other keys are declared of them.
func expectUsers(p *answer.Moment, command *state.Command, before, after model.Resource) {
	if placing(before.Kind) && !maps.Equal(before.Links, after.Links) {
		for _, vm := range p.VMs() {
			if vm.VDC == before.ID || before.Kind != model.KindVDC {
				command.Expect = append(command.Expect, answer.ExpectVM(vm))
			}
		}
	}
	if !slices.Equal(before.NodeKeys, after.NodeKeys) {
		for _, node := range p.Nodes() {
			if node.Cluster == before.Name {
				command.Expect = append(command.Expect, answer.ExpectNode(node))
			}
		}
	}
}

// placing tells whether the links of a kind say where VMs may be.
func placing(kind model.Kind) bool {
	return kind == model.KindVDC || kind == model.KindPod || kind == model.KindCluster
}

// sameResource tells whether a change changed nothing.
func sameResource(a, b model.Resource) bool {
	return maps.Equal(a.Links, b.Links) && maps.Equal(a.Settings, b.Settings) && maps.Equal(a.Spelled, b.Spelled) &&
		slices.Equal(a.Keys, b.Keys) && slices.Equal(a.NodeKeys, b.NodeKeys) && maps.EqualFunc(a.Lists, b.Lists, slices.Equal)
}

// DeleteResource forgets a resource that nothing links to.
func (s *ResourceCalls) DeleteResource(
	ctx context.Context, request *connect.Request[berthv1.DeleteResourceRequest],
) (*connect.Response[berthv1.DeleteResourceResponse], error) {
	form, err := answer.FormOf(request.Msg.GetKind())
	if err != nil {
		return nil, err
	}
	name, key := request.Msg.GetName(), request.Msg.GetRequestId()
	done, err := s.deleteWithVolume(ctx, form.Kind, name, key)
	if !done && err == nil {
		err = deleteResource(ctx, s.Source, form.Kind, name, key)
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DeleteResourceResponse{SchemaVersion: wire.SchemaVersion}), nil
}

func deleteResource(ctx context.Context, s *answer.Source, of model.Kind, ref, key string) error {
	kind := "delete " + string(of)
	_, err := s.Propose(ctx, key, func(p *answer.Moment) (state.Command, error) {
		found, err := p.NamedResource(of, ref)
		switch {
		case err != nil && p.Answered(key, kind):
			return state.Command{}, answer.ErrUnchanged
		case err != nil:
			return state.Command{}, err
		}
		subject := string(of) + "/" + found.Name
		if found.Revision == 0 {
			return state.Command{}, undeclared(found)
		}
		if users := estate.InUse(p.Declared(), of, found.ID); len(users) > 0 {
			return state.Command{}, inUse(of, found.Name, users)
		}
		command := state.Command{
			Kind: kind, Expect: []state.Expectation{answer.ExpectResource(found)},
			Delete: []state.Record{{Table: state.Resources, ID: found.ID}},
		}
		p.Tell(ctx, &command, "resource.deleted", subject, "forgotten")
		return command, nil
	})
	return err
}

// undeclared refuses to delete what is there without having been declared.
func undeclared(r model.Resource) error {
	subject := string(r.Kind) + "/" + r.Name
	if builtIn(r) {
		return refusal.New(rpc.Conflict, subject, "leave it: nothing uses it unless it is named", "the %s %q is built in", r.Kind, r.Name)
	}
	return refusal.New(rpc.Conflict, subject, "there is nothing to do: it has its defaults",
		"the cluster %q was never declared, and is there for what is in no other cluster", r.Name)
}

// inUse refuses to forget what other things link to, and names some of them.
func inUse(kind model.Kind, name string, users []string) error {
	const most = 5
	return refusal.New(rpc.Conflict, string(kind)+"/"+name, fmt.Sprintf(
		"change or delete what uses it first: 'berth %s show %s' lists it", kind, name,
	),
		"%s %q is in use by %s", kind, name, units.Some(users, most, ", "))
}
