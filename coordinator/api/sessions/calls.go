// Package sessions lets browsers in. Its calls make links, list sessions and end them. Its desk, on each member, turns a link into a
// cookie, and a cookie into somebody who calls the API from inside: with an operator's name, key and rights, and no certificate.
package sessions

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/coordinator/session"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// maxSweep bounds how many sessions that have ended one command forgets.
const maxSweep = 100

// Place is where this member's console answers. The zero value: it has none.
type Place struct {
	Address     string // HOST:PORT
	Fingerprint string // of its certificate
}

// Calls are the calls about sessions of the console.
type Calls struct {
	*answer.Source
	Console func() Place // nil: there is none
}

// OfferSession makes a link that opens one session of the console.
func (s *Calls) OfferSession(
	ctx context.Context, request *connect.Request[berthv1.OfferSessionRequest],
) (*connect.Response[berthv1.OfferSessionResponse], error) {
	at := Place{}
	if s.Console != nil {
		at = s.Console()
	}
	if at.Address == "" {
		return nil, refusal.New(rpc.Unavailable, "coordinator/"+s.SelfName,
			"set the key listen.console in its configuration, or see in its log why it does not listen, and start it again",
			"the console of coordinator %s, which leads, is off", s.SelfName)
	}
	caller := gate.CallerOf(ctx)
	offered := session.Session{ID: answer.NewID(s.Now()), Operator: caller.ID, Key: caller.Key, Role: session.Operate}
	if request.Msg.GetReadOnly() {
		offered.Role = session.Look
	}
	text, hash := session.Draw(offered.ID, func(raw []byte) { _, _ = rand.Read(raw) })
	offered.Link = hash
	_, err := s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		if identity, known := p.Identity(caller.ID); !known || !identity.Has(caller.Key) {
			return state.Command{}, refusal.New(rpc.Unavailable, caller.String(), "try again in a few seconds",
				"%s is not on record yet, and sessions belong to an identity on record", caller)
		}
		offered.Offered, offered.Until = p.At, p.At.Add(session.LinkLife)
		command := state.Command{
			Kind: "offer session", Expect: []state.Expectation{expect(offered)}, Sessions: []session.Session{offered},
			Events: []model.Event{p.Event(ctx, "session.offered", "session/"+offered.ID, "a link to the console, %s, good for %s",
				offered.Role, session.LinkLife)},
		}
		sweep(p, &command)
		return command, bounded(p, caller)
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.OfferSessionResponse{
		SchemaVersion: wire.SchemaVersion, Address: "https://" + at.Address + "/login/" + text, Fingerprint: at.Fingerprint,
		Session: message(offered, caller.Name),
	}), nil
}

// bounded refuses one session too many.
func bounded(p *answer.Moment, caller gate.Caller) error {
	own, all := 0, 0
	for _, one := range p.Sessions() {
		if !live(p, &one) {
			continue
		}
		all++
		if one.Operator == caller.ID {
			own++
		}
	}
	if own < session.MostOfOne && all < session.Most {
		return nil
	}
	return refusal.New(rpc.Busy, caller.String(), "end one with 'berth session revoke ID'; 'berth session list' shows them",
		"%s has %d sessions of the console, and all operators together %d: at most %d and %d are kept",
		caller, own, all, session.MostOfOne, session.Most)
}

// live tells that a session or link is good, by its own time and by whose it is.
func live(p *answer.Moment, one *session.Session) bool {
	identity, known := p.Identity(one.Operator)
	return one.Good(p.At) && known && identity.Live() && identity.Has(one.Key)
}

// sweep makes the command forget what has ended.
func sweep(p *answer.Moment, command *state.Command) {
	for _, one := range p.Sessions() {
		if len(command.Delete) == maxSweep {
			return
		}
		if !live(p, &one) {
			remove(command, one)
		}
	}
}

func remove(command *state.Command, one session.Session) {
	command.Expect = append(command.Expect, expect(one))
	command.Delete = append(command.Delete, state.Record{Table: state.Sessions, ID: one.ID})
}

func expect(one session.Session) state.Expectation {
	return state.Expectation{Table: state.Sessions, ID: one.ID, Revision: one.Revision}
}

// ListSessions answers with the sessions and links that are good.
func (s *Calls) ListSessions(
	ctx context.Context, request *connect.Request[berthv1.ListSessionsRequest],
) (*connect.Response[berthv1.ListSessionsResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(p.Sessions(), func(one session.Session) bool { return !live(p, &one) })
	part, next := answer.Cut(all, page, answer.Ascending, func(one session.Session) string { return one.ID })
	response := &berthv1.ListSessionsResponse{SchemaVersion: wire.SchemaVersion, NextPageToken: next}
	for _, one := range part {
		response.Sessions = append(response.Sessions, message(one, nameOf(p, one)))
	}
	return connect.NewResponse(response), nil
}

// RevokeSession ends a session or a link.
func (s *Calls) RevokeSession(
	ctx context.Context, request *connect.Request[berthv1.RevokeSessionRequest],
) (*connect.Response[berthv1.RevokeSessionResponse], error) {
	id := request.Msg.GetId()
	var was *berthv1.Session
	_, err := s.Propose(ctx, request.Msg.GetRequestId(), func(p *answer.Moment) (state.Command, error) {
		one, known := p.Session(id)
		if !known || !live(p, &one) {
			return state.Command{}, refusal.New(rpc.NotFound, "session/"+id, "'berth session list' shows those that are good",
				"there is no session %q: it has ended, or never was", id)
		}
		was = message(one, nameOf(p, one))
		command := state.Command{
			Kind:   "revoke session",
			Events: []model.Event{p.Event(ctx, "session.revoked", "session/"+id, "the session of operator/%s has ended", was.GetOperator())},
		}
		remove(&command, one)
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RevokeSessionResponse{SchemaVersion: wire.SchemaVersion, Session: was}), nil
}

// OpenSession uses a link. Of two browsers that show the same one, one gets a session.
func (s *Calls) OpenSession(
	ctx context.Context, request *connect.Request[berthv1.OpenSessionRequest],
) (*connect.Response[berthv1.OpenSessionResponse], error) {
	q := request.Msg
	var open session.Session
	var name string
	_, err := s.Propose(ctx, q.GetRequestId(), func(p *answer.Moment) (state.Command, error) {
		offered, known := p.Session(q.GetId())
		if !known || offered.Open() || !live(p, &offered) || !session.Same(q.GetLinkHash(), offered.Link) || q.GetSecretHash() == "" {
			return state.Command{}, refusal.New(rpc.Denied, "session/"+q.GetId(), "run 'berth console' again",
				"this link was used, or has ended: it is good once, for %s", session.LinkLife)
		}
		name = nameOf(p, offered)
		open = offered.Use(q.GetSecretHash(), q.GetFrom(), q.GetBrowser(), p.At)
		return state.Command{
			Kind: "open session", Expect: []state.Expectation{expect(offered)}, Sessions: []session.Session{open},
			Events: []model.Event{{
				At: p.At, Kind: "session.opened", Subject: "session/" + open.ID, Caller: pki.Identity{Role: pki.RoleOperator, Name: name}.String(),
				CallerID: open.Operator, Message: fmt.Sprintf("the console is opened, %s, by a browser at %s", open.Role, open.From),
			}},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.OpenSessionResponse{SchemaVersion: wire.SchemaVersion, Session: message(open, name)}), nil
}

func nameOf(p *answer.Moment, one session.Session) string {
	identity, _ := p.Identity(one.Operator)
	return identity.Name
}

func message(one session.Session, operator string) *berthv1.Session {
	m := &berthv1.Session{
		Id: one.ID, Operator: operator, OperatorId: one.Operator, Role: string(one.Role), From: one.From, Browser: one.Browser,
		OfferedAt: timestamppb.New(one.Offered), Until: timestamppb.New(one.Until),
	}
	if one.Open() {
		m.OpenedAt = timestamppb.New(one.Opened)
	}
	return m
}
