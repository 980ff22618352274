package members

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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

// permitOf reads a list of permissions, and writes it as records have it.
func permitOf(text string) (string, error) {
	list, bad := guard.Split(text)
	switch {
	case text == guard.All || text == guard.None:
		return text, nil
	case bad != "" || len(list) == 0:
		return "", fmt.Errorf("%q is no permission: use all, none, or of %s with commas between", bad, guard.Listed(guard.Permissions()))
	}
	return guard.Join(list), nil
}

// permitText is a list of permissions for people.
func permitText(permit string) string { return strings.ReplaceAll(permit, ",", ", ") }

// given is a list as its giver can give it. Only who has what later releases will have, too, gives that.
func given(ctx context.Context, p *answer.Moment, permit string) string {
	if permit == guard.All && p.Held(ctx) != guard.All {
		return guard.Join(guard.Permissions())
	}
	return permit
}

// SetIdentity says what an operator may put onto hosts. What it takes is gone at the next call: every change is judged by the leader.
func (s *Calls) SetIdentity(
	ctx context.Context, request *connect.Request[berthv1.SetIdentityRequest],
) (*connect.Response[berthv1.SetIdentityResponse], error) {
	wanted, err := permitOf(request.Msg.GetPermit())
	if err != nil {
		return nil, refusal.Invalid("identity/"+request.Msg.GetIdentity(), "see 'berth identity set --help'", err)
	}
	identity, err := s.change(ctx, "set identity", request.Msg.GetRequestId(), request.Msg.GetIdentity(),
		func(p *answer.Moment, identity *model.Identity) (event, message string, err error) {
			if err := changeable(identity); err != nil {
				return "", "", err
			}
			before, permit := admission.Held(identity), given(ctx, p, wanted)
			if err := mayPermit(ctx, p, identity, permit); err != nil {
				return "", "", err
			}
			if identity.Permit == permit {
				return "", "", answer.ErrUnchanged
			}
			identity.Permit = permit
			return "identity.permitted", fmt.Sprintf("may put onto hosts: %s; before: %s", permitText(permit), permitText(before)), nil
		})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.SetIdentityResponse{SchemaVersion: wire.SchemaVersion, Identity: wire.Identity(identity)}), nil
}

// changeable refuses an identity that has no permissions of its own.
func changeable(identity *model.Identity) error {
	subject := identities.Subject(identity)
	switch {
	case identity.Kind != model.IdentityOperator:
		return refusal.New(rpc.Invalid, subject, "name an operator: 'berth identity list' shows them",
			"a %s puts nothing onto hosts by its own word: only operators have permissions", identity.Kind)
	case !identity.Live():
		return refusal.New(rpc.Conflict, subject, "let the person in again with 'berth token add --for operator'",
			"operator %s was revoked: it may do nothing", identity.Name)
	}
	return nil
}

// mayPermit refuses to give more than the caller has, and to give anything to oneself. What is taken needs nobody's permission: who may
// revoke an operator may do less to it, too.
func mayPermit(ctx context.Context, p *answer.Moment, identity *model.Identity, permit string) error {
	subject, caller := identities.Subject(identity), gate.CallerOf(ctx)
	wanted, _ := guard.Split(permit)
	gives := admission.Without(wanted, admission.Held(identity))
	if len(gives) > 0 && caller.Role == pki.RoleOperator && caller.ID == identity.ID {
		return refusal.New(rpc.Denied, subject,
			fmt.Sprintf("have an operator who has that run 'berth identity set %s --permit %s'", subject, permit),
			"operator %s does not have %s, and nobody gives himself a permission", identity.Name, guard.Listed(gives))
	}
	return p.MayGive(ctx, subject, gives)
}

// mayConfirm refuses to confirm oneself, by the word of one who is not confirmed either, and to give permissions that the caller does not
// have.
func mayConfirm(ctx context.Context, p *answer.Moment, identity *model.Identity) error {
	subject, caller := identities.Subject(identity), gate.CallerOf(ctx)
	if err := confirmed(ctx, p, subject, "it confirms nobody"); err != nil {
		return err
	}
	gives, _ := guard.Split(admission.OnceConfirmed(identity))
	if lacks := admission.Without(gives, p.Held(ctx)); len(lacks) > 0 {
		return refusal.New(rpc.Denied, subject, fmt.Sprintf(
			"have an operator confirm it who has that, or run 'berth identity set %s --permit none' first; who has it can give it again", subject),
			"not permitted: this gives %s, which %s does not have", guard.Listed(lacks), caller)
	}
	return nil
}

// takesAll refuses a call of one who does not have all permissions. Why ends the sentence.
func (s *Calls) takesAll(ctx context.Context, subject, why string) error {
	p, err := s.Verified(ctx)
	if err != nil {
		return err
	}
	return p.HasAll(ctx, subject, why)
}

// confirmed refuses a caller who came back with a backup and waits to be confirmed. So ends the sentence.
func confirmed(ctx context.Context, p *answer.Moment, subject, so string) error {
	caller := gate.CallerOf(ctx)
	by, known := p.Identity(caller.ID)
	if !known || by.Unconfirmed == "" {
		return nil
	}
	return refusal.New(rpc.Denied, subject,
		fmt.Sprintf("have another operator run 'berth identity confirm %s'; 'berth coordinator login' on a coordinator makes one",
			identities.Subject(&by)),
		"%s came back with a backup and nobody has confirmed it: %s", caller, so)
}

// givenByToken completes a token with the permissions that its operators get, of those that its maker has.
func givenByToken(ctx context.Context, p *answer.Moment, made *model.Token, text string) error {
	subject := "token/" + tokenID(made)
	if err := confirmed(ctx, p, subject, "it lets nobody in"); err != nil {
		return err
	}
	switch {
	case made.Purpose == model.PurposeCoordinator && text == "":
		return p.HasAll(ctx, subject, "whoever is root of a coordinator has all permissions")
	case text == "":
		return nil
	}
	permit, err := permitOf(text)
	switch {
	case err != nil:
		return refusal.Invalid("token", "see 'berth token add --help'", err)
	case made.Purpose != model.PurposeOperator:
		return refusal.Invalid("token", "leave the permissions out, or make a token for an operator",
			fmt.Errorf("a token for a %s gives no permissions: only operators have them", made.Purpose))
	}
	list, _ := guard.Split(permit)
	if err := p.MayGive(ctx, subject, list); err != nil {
		return err
	}
	if made.Permit = given(ctx, p, permit); p.FeatureLevel() < state.IdentityLevel && made.Permit == guard.All {
		made.Permit = "" // an operator without a record has that, and a member of an earlier release could not read it
	}
	return nil
}

// makerCounts refuses a token whose maker does not count any more, or has not all permissions any more that whoever it lets in gets as
// root of a coordinator. The command expects that the maker's record stays as it was read.
func makerCounts(p *answer.Moment, command *state.Command, token *model.Token) error {
	role, name, _ := strings.Cut(token.CreatedBy, "/")
	kind := map[string]model.IdentityKind{
		string(pki.RolePeer): model.IdentityCoordinator, string(pki.RoleOperator): model.IdentityOperator,
	}[role]
	if began, _ := identities.Began(p.Snapshot); !began {
		return nil
	}
	maker, live := p.IdentityByName(kind, name)
	const another = "create another one with 'berth token add'"
	switch {
	case !live && !slices.ContainsFunc(p.Identities(), func(i model.Identity) bool { return i.Kind == kind && i.Name == name }):
		return nil // for a while after an upgrade some count without a record
	case !live:
		return refusal.New(rpc.Denied, "token", another, "%s, who has made the token, was revoked", token.CreatedBy)
	case token.Purpose == model.PurposeCoordinator && kind == model.IdentityOperator && admission.Held(&maker) != guard.All:
		return refusal.New(rpc.Denied, "token", another, "%s, who has made the token, has not all permissions any more, which root of a "+
			"coordinator has", token.CreatedBy)
	}
	asRead(p, command, maker.ID)
	return nil
}

// asRead has a command refused if the record of an identity is not as it was read any more. One without a record has none then, too.
func asRead(p *answer.Moment, command *state.Command, id string) {
	if identity, known := p.Identity(id); known {
		command.Expect = append(command.Expect, state.Expectation{Table: state.Identities, ID: id, Revision: identity.Revision})
	}
}

// forgetTokens ends the tokens of somebody who does not count any more: it would come back with one.
func forgetTokens(p *answer.Moment, command *state.Command, maker string) {
	maker = strings.Replace(maker, string(model.IdentityCoordinator)+"/", string(pki.RolePeer)+"/", 1)
	for _, token := range p.Tokens() {
		if token.CreatedBy == maker {
			command.Expect = append(command.Expect, expectToken(token))
			command.Delete = append(command.Delete, state.Record{Table: state.Tokens, ID: token.Hash})
		}
	}
}

// permitOfToken is what an operator gets from the token that lets it in: what that says, as far as who has made it still has that.
func permitOfToken(p *answer.Moment, token *model.Token) string {
	role, name, _ := strings.Cut(token.CreatedBy, "/")
	if role == string(pki.RolePeer) { // root of a coordinator; one of an earlier release says nothing
		return cmp.Or(token.Permit, guard.All)
	}
	maker, _ := p.IdentityByName(model.IdentityOperator, name)
	return guard.Common(cmp.Or(token.Permit, guard.None), admission.Held(&maker))
}
