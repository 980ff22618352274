package members

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/admission"
	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	"berth/shared/domxml/guard"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// maxReason bounds why an identity is revoked, in bytes.
const maxReason = 256

// keep adds to an enrolment the record of who is enrolled. Without it the certificate would be good for nothing.
func keep(ctx context.Context, p *answer.Moment, command *state.Command, certificate []byte, token *model.Token) error {
	if p.FeatureLevel() < state.IdentityLevel {
		return nil // it is recorded at its first call, once all coordinators know of records
	}
	who, err := pki.BearerOfPEM(certificate)
	if err != nil {
		return err
	}
	if who.Role == pki.RoleOperator {
		other, taken := p.IdentityByName(model.IdentityOperator, who.Name)
		switch until := ended(p, &other); {
		case taken && !until.IsZero():
			identities.Put(command, other.Revoke(p.At, gate.CallerOf(ctx).String(),
				"its certificate ended at "+until.UTC().Format(time.RFC3339)+", and its name was enrolled anew"))
			forgetTokens(p, command, identities.Subject(&other))
		case taken:
			return refusal.New(rpc.Exists, "operator/"+who.Name,
				fmt.Sprintf("take another name with --name, or run 'berth identity revoke operator/%s' first", who.Name),
				"there is an operator %q already (ID %s); the token is still good", who.Name, other.ID)
		}
	}
	if holder, taken := p.IdentityByKey(who.Key); taken {
		return refusal.New(rpc.Conflict, identities.Subject(&holder), "make a new key and run the command again; the token is still good",
			"%s %s has the same key", holder.Kind, holder.Name)
	}
	identity := identities.New(who, p.At)
	if before, known := p.Identity(who.ID); known { // a node whose certificate has ended
		before.Keys = identity.Keys
		identity = before
	}
	if who.Role == pki.RoleOperator {
		identity.Permit = permitOfToken(p, token)
		if identity.Permit != model.PermitNone {
			command.Events = append(command.Events, p.Event(ctx, "identity.permitted", identities.Subject(&identity),
				"may put onto hosts: %s; %s gave that with a token", permitText(identity.Permit), token.CreatedBy))
		}
	}
	identities.Put(command, identity)
	return nil
}

// named finds an identity by what people call it: ID, KIND/NAME, or NAME where that is enough.
func named(p *answer.Moment, ref string) (model.Identity, error) {
	var found, gone []model.Identity
	for _, identity := range p.Identities() {
		switch {
		case identity.ID == ref:
			return identity, nil
		case identity.Name != ref && identities.Subject(&identity) != ref:
		case identity.Live():
			found = append(found, identity)
		default:
			gone = append(gone, identity)
		}
	}
	if len(found) == 0 {
		found = gone
	}
	switch len(found) {
	case 0:
		return model.Identity{}, refusal.NotFound("identity", ref)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i := range found {
		names[i] = identities.Subject(&found[i]) + " (ID " + found[i].ID + ")"
	}
	return model.Identity{}, refusal.New(rpc.Invalid, "identity/"+ref, "name one of them by KIND/NAME or ID",
		"%q may be %s", ref, strings.Join(names, " or "))
}

// ListIdentities answers with who counts, and with who did.
func (s *Calls) ListIdentities(
	ctx context.Context, request *connect.Request[berthv1.ListIdentitiesRequest],
) (*connect.Response[berthv1.ListIdentitiesResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	key := func(i model.Identity) string { return answer.KeyOf(string(i.Kind), i.Name, i.ID) }
	all := p.Identities()
	if !request.Msg.GetAll() {
		all = slices.DeleteFunc(all, func(i model.Identity) bool { return !i.Live() })
	}
	slices.SortFunc(all, func(a, b model.Identity) int { return strings.Compare(key(a), key(b)) })
	part, next := answer.Cut(all, page, answer.Ascending, key)
	response := &berthv1.ListIdentitiesResponse{SchemaVersion: wire.SchemaVersion, NextPageToken: next}
	for _, identity := range part {
		response.Identities = append(response.Identities, wire.Identity(identity))
	}
	return connect.NewResponse(response), nil
}

// GetIdentity answers with one identity.
func (s *Calls) GetIdentity(
	ctx context.Context, request *connect.Request[berthv1.GetIdentityRequest],
) (*connect.Response[berthv1.GetIdentityResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	identity, err := named(p, request.Msg.GetIdentity())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.GetIdentityResponse{SchemaVersion: wire.SchemaVersion, Identity: wire.Identity(identity)}), nil
}

// RevokeIdentity ends what an identity may do. Every member acts on it as soon as it has the record, which needs no leader.
func (s *Calls) RevokeIdentity(
	ctx context.Context, request *connect.Request[berthv1.RevokeIdentityRequest],
) (*connect.Response[berthv1.RevokeIdentityResponse], error) {
	reason := request.Msg.GetReason()
	if len(reason) > maxReason {
		return nil, refusal.Invalid("identity", "say it shorter", fmt.Errorf("a reason of %d bytes is longer than %d", len(reason), maxReason))
	}
	identity, err := s.change(ctx, "revoke identity", request.Msg.GetRequestId(), request.Msg.GetIdentity(),
		func(p *answer.Moment, identity *model.Identity) (event, message string, err error) {
			if !identity.Live() {
				return "", "", answer.ErrUnchanged
			}
			if err := revocable(p, identity); err != nil {
				return "", "", err
			}
			*identity = identity.Revoke(p.At, gate.CallerOf(ctx).String(), reason)
			message = "revoked: its certificates count no more"
			if reason != "" {
				message += "; reason: " + reason
			}
			return "identity.revoked", message, nil
		})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RevokeIdentityResponse{SchemaVersion: wire.SchemaVersion, Identity: wire.Identity(identity)}), nil
}

// revocable refuses what would leave the cluster without somebody that it needs.
func revocable(p *answer.Moment, identity *model.Identity) error {
	subject := identities.Subject(identity)
	if _, member := p.Member(identity.ID); member {
		return refusal.New(rpc.Conflict, subject, fmt.Sprintf("run 'berth coordinator delete %s': it is revoked with that", identity.Name),
			"coordinator %s has a part in every decision", identity.Name)
	}
	if identity.Kind != model.IdentityOperator {
		return nil
	}
	for _, other := range p.Identities() {
		if other.Kind == model.IdentityOperator && other.Live() && other.ID != identity.ID {
			return nil
		}
	}
	return refusal.New(rpc.Conflict, subject, "let another operator in first with 'berth token add --for operator'",
		"operator %s is the last one: nobody could give orders any more", identity.Name)
}

// ConfirmIdentity notes that somebody knows an identity to be good that came back with a backup. From then on it has the permissions that
// it had, so only who has them confirms it.
func (s *Calls) ConfirmIdentity(
	ctx context.Context, request *connect.Request[berthv1.ConfirmIdentityRequest],
) (*connect.Response[berthv1.ConfirmIdentityResponse], error) {
	identity, err := s.change(ctx, "confirm identity", request.Msg.GetRequestId(), request.Msg.GetIdentity(),
		func(p *answer.Moment, identity *model.Identity) (event, message string, err error) {
			if identity.Unconfirmed == "" {
				return "", "", answer.ErrUnchanged
			}
			if err := mayConfirm(ctx, p, identity); err != nil {
				return "", "", err
			}
			identity.Unconfirmed = ""
			message = "confirmed: it was not revoked since the backup"
			if has := admission.Held(identity); has != guard.None {
				message += "; may put onto hosts: " + permitText(has)
			}
			return "identity.confirmed", message, nil
		})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ConfirmIdentityResponse{SchemaVersion: wire.SchemaVersion, Identity: wire.Identity(identity)}), nil
}

// change changes one identity.
func (s *Calls) change(
	ctx context.Context, kind, requestID, ref string,
	how func(p *answer.Moment, identity *model.Identity) (event, message string, err error),
) (model.Identity, error) {
	var id string
	p, err := s.Propose(ctx, requestID, func(p *answer.Moment) (state.Command, error) {
		identity, err := named(p, ref)
		if err != nil {
			return state.Command{}, err
		}
		id = identity.ID
		event, message, err := how(p, &identity)
		if err != nil {
			return state.Command{}, err
		}
		command := state.Command{
			Kind: kind, Events: []model.Event{p.Event(ctx, event, identities.Subject(&identity), "%s", message)},
		}
		identities.Put(&command, identity)
		if !identity.Live() {
			forgetTokens(p, &command, identities.Subject(&identity))
		}
		if caller := gate.CallerOf(ctx); caller.ID != identity.ID {
			asRead(p, &command, caller.ID) // what it may do must not have been taken in between
		}
		return command, nil
	})
	if err != nil {
		return model.Identity{}, err
	}
	identity, _ := p.Identity(id)
	return identity, nil
}
