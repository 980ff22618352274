package estates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"connectrpc.com/connect"

	"berth/coordinator/affinity"
	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

const groupHelp = "see 'berth group add --help'"

// ListGroups answers with the groups of one cluster, or of all, and whether they hold now.
func (s *GroupCalls) ListGroups(
	ctx context.Context, request *connect.Request[berthv1.ListGroupsRequest],
) (*connect.Response[berthv1.ListGroupsResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	clusters, err := groupFacts{p}.clusterNames(request.Msg.GetCluster())
	if err != nil {
		return nil, err
	}
	response := &berthv1.ListGroupsResponse{SchemaVersion: wire.SchemaVersion}
	for _, inside := range clusters {
		for _, group := range s.groupsIn(p, inside) {
			if !request.Msg.GetBrokenOnly() || !group.GetStatus().GetHolds() {
				response.Groups = append(response.Groups, group)
			}
		}
	}
	response.Groups, response.NextPageToken = answer.Cut(response.Groups, page, answer.Ascending, func(group *berthv1.Group) string {
		return answer.KeyOf(group.GetCluster(), group.GetName())
	})
	return connect.NewResponse(response), nil
}

// clusterNames is the cluster that a request names, or all by name if it names none.
func (p groupFacts) clusterNames(ref string) ([]string, error) {
	if ref != "" {
		name, err := p.ClusterName(ref)
		return []string{name}, err
	}
	var names []string
	for _, record := range ofKind(p.Moment, model.KindCluster) {
		names = append(names, record.Name)
	}
	return names, nil
}

// GetGroup answers with one group, whether it holds, and what it contradicts.
func (s *GroupCalls) GetGroup(
	ctx context.Context, request *connect.Request[berthv1.GetGroupRequest],
) (*connect.Response[berthv1.GetGroupResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	record, err := p.NamedResource(model.KindGroup, request.Msg.GetGroup())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.GetGroupResponse{SchemaVersion: wire.SchemaVersion, Group: s.group(p, p.Snapshot, record)}), nil
}

// CheckGroups answers with all contradictions between groups, and what the clusters cannot hold.
func (s *GroupCalls) CheckGroups(
	ctx context.Context, request *connect.Request[berthv1.CheckGroupsRequest],
) (*connect.Response[berthv1.CheckGroupsResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	clusters, err := groupFacts{p}.clusterNames(request.Msg.GetCluster())
	if err != nil {
		return nil, err
	}
	var found []affinity.Conflict
	response := &berthv1.CheckGroupsResponse{SchemaVersion: wire.SchemaVersion}
	for _, inside := range clusters {
		found = append(found, estate.Conflicts(p.Snapshot, inside)...)
		response.Groups += int32(len(p.GroupRecords(inside)))
	}
	slices.SortStableFunc(found, func(a, b affinity.Conflict) int {
		return cmp.Compare(urgency[a.Severity], urgency[b.Severity])
	})
	response.Conflicts = wire.Conflicts(found, p.MemberName)
	return connect.NewResponse(response), nil
}

var urgency = map[affinity.Severity]int{affinity.Error: 0, affinity.Warning: 1}

// CreateGroup makes a group.
func (s *GroupCalls) CreateGroup(
	ctx context.Context, request *connect.Request[berthv1.CreateGroupRequest],
) (*connect.Response[berthv1.CreateGroupResponse], error) {
	const kind = "add group"
	message, key := request.Msg.GetGroup(), request.Msg.GetRequestId()
	subject := "group/" + message.GetName()
	if err := answer.CheckName("group", message.GetName()); err != nil {
		return nil, refusal.Invalid(subject, "choose another name", err)
	}
	saved, err := s.saveGroup(ctx, key, request.Msg.GetDryRun(), func(p *answer.Moment) (
		before, after model.Resource, command state.Command, err error,
	) {
		if there, err := p.NamedResource(model.KindGroup, message.GetName()); err == nil {
			if p.Answered(key, kind) {
				return there, there, command, answer.ErrUnchanged
			}
			return before, after, command, refusal.New(rpc.Exists, subject, fmt.Sprintf(
				"change it with 'berth group set %s', or choose another name", there.Name,
			),
				"there is a group %q already, in cluster %s: no two groups of a site have one name", there.Name, p.ClusterOfGroup(&there))
		}
		now := p.Declared()
		after, err = estate.NewResource(now, model.KindGroup, message.GetName(), newGroup(message), answer.NewID(p.At), p.At)
		if err != nil {
			return before, after, command, refusal.Unsound(subject, groupHelp, err)
		}
		command.Kind = kind
		fields := answer.FieldsText(estate.ResourceFields(now, before, after))
		p.Tell(ctx, &command, "resource.created", subject, "%s", answer.Because("created", fields))
		return model.Resource{ID: after.ID}, after, command, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.CreateGroupResponse{
		SchemaVersion: wire.SchemaVersion, Group: saved, Warnings: warnings(saved),
	}), nil
}

// ChangeGroup changes what a request names of a group.
func (s *GroupCalls) ChangeGroup(
	ctx context.Context, request *connect.Request[berthv1.ChangeGroupRequest],
) (*connect.Response[berthv1.ChangeGroupResponse], error) {
	const kind = "change group"
	message, key := request.Msg, request.Msg.GetRequestId()
	if message.Name != nil {
		if err := answer.CheckName("group", message.GetName()); err != nil {
			return nil, refusal.Invalid("group/"+message.GetGroup(), "choose another name", err)
		}
	}
	var changes []estate.FieldChange
	saved, err := s.saveGroup(ctx, key, message.GetDryRun(), func(p *answer.Moment) (
		before, after model.Resource, command state.Command, err error,
	) {
		changes = nil
		done := p.Answered(key, kind)
		if before, err = p.NamedResource(model.KindGroup, message.GetGroup()); err != nil && done {
			before, err = p.NamedResource(model.KindGroup, message.GetName()) // the name that it was given
		}
		if err != nil || done {
			return before, before, command, cmp.Or(err, answer.ErrUnchanged)
		}
		after, changes, err = groupFacts{p}.changedGroup(before, message)
		if err != nil {
			return before, after, command, err
		}
		command.Kind = kind
		p.Tell(ctx, &command, "resource.changed", "group/"+after.Name, "%s", answer.FieldsText(changes))
		return before, after, command, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ChangeGroupResponse{
		SchemaVersion: wire.SchemaVersion, Group: saved, Warnings: warnings(saved), Changes: wire.Fields(changes),
	}), nil
}

// changedGroup is what a request makes of a group, with what differs.
func (p groupFacts) changedGroup(before model.Resource, message *berthv1.ChangeGroupRequest) (
	after model.Resource, changes []estate.FieldChange, err error,
) {
	subject := "group/" + before.Name
	wanted, err := p.groupEdit(model.GroupOf(&before, p.ClusterOfGroup(&before)), message)
	if err != nil {
		return before, nil, err
	}
	now, named := p.Declared(), before
	if message.Name != nil && message.GetName() != before.Name {
		named.Name = message.GetName()
		changes = append(changes, estate.FieldChange{Field: "name", From: before.Name, To: named.Name})
	}
	if after, err = estate.Edit(now, named, wanted); err != nil {
		return before, nil, refusal.Unsound(subject, groupHelp, err)
	}
	if changes = append(changes, estate.ResourceFields(now, before, after)...); len(changes) == 0 {
		return before, nil, answer.ErrUnchanged
	}
	return after, changes, nil
}

// saveGroup commits what build makes of a group, or only tries it, and answers with the group as it is then.
func (s *GroupCalls) saveGroup(
	ctx context.Context, requestID string, dryRun bool,
	build func(*answer.Moment) (before, after model.Resource, command state.Command, err error),
) (*berthv1.Group, error) {
	if dryRun {
		p, err := s.Verified(ctx)
		if err != nil {
			return nil, err
		}
		_, after, _, err := build(p)
		if err != nil && !errors.Is(err, answer.ErrUnchanged) {
			return nil, err
		}
		then := p.Declared()
		then.Resources = append(slices.DeleteFunc(then.Resources, func(r model.Resource) bool { return r.ID == after.ID }), after)
		return s.group(p, estate.Indexed(&then), after), nil
	}
	var id string
	p, err := s.Propose(ctx, requestID, func(p *answer.Moment) (state.Command, error) {
		before, after, command, err := build(p)
		if err != nil {
			id = before.ID
			return command, err
		}
		id = after.ID
		command.Expect = append(command.Expect, answer.ExpectResource(before))
		command.Resources = append(command.Resources, after)
		p.ExpectLinks(&command, append(answer.LinksOf(after), groupFacts{p}.neighbours(&after)...)...)
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	record, err := p.NamedResource(model.KindGroup, id)
	if err != nil {
		return nil, err // somebody deleted it meanwhile
	}
	return s.group(p, p.Snapshot, record), nil
}

// neighbours are the IDs of the other groups of a group's cluster: what it contradicts was judged by them.
func (p groupFacts) neighbours(group *model.Resource) []string {
	var ids []string
	for _, other := range p.GroupRecords(p.ClusterOfGroup(group)) {
		if other.ID != group.ID {
			ids = append(ids, other.ID)
		}
	}
	return ids
}

// warnings are the conflicts of a group that may be saved.
func warnings(group *berthv1.Group) []*berthv1.Conflict {
	return slices.DeleteFunc(slices.Clone(group.GetStatus().GetConflicts()), func(c *berthv1.Conflict) bool {
		return c.GetSeverity() != string(affinity.Warning)
	})
}

// DeleteGroup forgets a group. Its VMs stay where they are.
func (s *GroupCalls) DeleteGroup(
	ctx context.Context, request *connect.Request[berthv1.DeleteGroupRequest],
) (*connect.Response[berthv1.DeleteGroupResponse], error) {
	if err := deleteResource(ctx, s.Source, model.KindGroup, request.Msg.GetGroup(), request.Msg.GetRequestId()); err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.DeleteGroupResponse{SchemaVersion: wire.SchemaVersion}), nil
}
