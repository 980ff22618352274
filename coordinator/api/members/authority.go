package members

import (
	"context"
	"errors"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/authorities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// maxAuthority bounds an authority that comes from outside, in bytes of PEM.
const maxAuthority = 64 << 10

// ListAuthorities answers with who signs certificates, and how far the replacement of one is.
func (s *Calls) ListAuthorities(
	ctx context.Context, _ *connect.Request[berthv1.ListAuthoritiesRequest],
) (*connect.Response[berthv1.ListAuthoritiesResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	response := &berthv1.ListAuthoritiesResponse{SchemaVersion: wire.SchemaVersion, Progress: progress(p)}
	depend := authorities.Dependants(p.Snapshot, p.At)
	for _, one := range authorities.Of(p.Snapshot).OrOwn(s.Authority()).All {
		ends, err := pki.AuthorityEnds([]byte(one.Certificate))
		if err != nil {
			return nil, err
		}
		response.Authorities = append(response.Authorities, &berthv1.Authority{
			Name: authorities.Cluster, Id: one.ID, State: string(one.State), Since: timestamppb.New(one.Since), Expires: timestamppb.New(ends),
			Dependants: int32(depend[one.ID]), Imported: one.Imported, By: one.By,
		})
	}
	for _, purpose := range pki.Purposes {
		if one := s.Hypervisors[purpose]; one != nil {
			response.Authorities = append(response.Authorities, &berthv1.Authority{
				Name: authorities.Called(purpose), Id: one.ID(), State: string(authorities.Issuing),
				Since: timestamppb.New(one.Begins()), Expires: timestamppb.New(one.Ends()),
			})
		}
	}
	return connect.NewResponse(response), nil
}

// progress is how far the replacement is; nil: none is under way.
func progress(p *answer.Moment) *berthv1.AuthorityProgress {
	is := authorities.ProgressOf(p.Snapshot, p.At)
	if is.New == "" {
		return nil
	}
	told := &berthv1.AuthorityProgress{
		Id: is.New, State: string(is.State), Waiting: is.Waiting, Waits: is.Names(), Passed: is.Passed, NextStep: pass(&is),
	}
	for i := range is.Waits {
		wait := &is.Waits[i]
		one := &berthv1.AuthorityWait{Subject: wait.Subject, Since: timestamppb.New(wait.Since), NextStep: fetch(wait)}
		if !wait.Until.IsZero() {
			one.Until = timestamppb.New(wait.Until)
		}
		told.Awaited = append(told.Awaited, one)
	}
	return told
}

// fetch says how somebody who is waited for is fetched, or given up.
func fetch(wait *authorities.Wait) string {
	switch wait.Kind {
	case model.IdentityOperator:
		return "have " + wait.Name + " run 'berth status', or end it with 'berth identity revoke " + wait.Subject + "'"
	case model.IdentityNode:
		return "run 'systemctl start berth-agent' on " + wait.Name + ", or 'berth node delete " + wait.Name + "'"
	default:
		return "run 'systemctl start berth-coordinator' on " + wait.Name + ", or 'berth coordinator delete " + wait.Name + "'"
	}
}

// pass says what to do so that it goes on, and what that means for those who were left behind; empty: nothing.
func pass(is *authorities.Progress) string {
	switch {
	case len(is.Waits) > 0:
		return "'berth ca rotate --force' goes on without those who are still waited for: they need a token afterwards"
	case len(is.Passed) > 0:
		return "who was left behind and does not come before the old authority is retired needs a token: 'berth token add --for operator', " +
			"then 'berth login' there; see 'berth ca rotate --help' for nodes and coordinators"
	}
	return ""
}

// RotateAuthority begins to replace the cluster's authority, goes on without somebody, or takes the beginning back.
func (s *Calls) RotateAuthority(
	ctx context.Context, request *connect.Request[berthv1.RotateAuthorityRequest],
) (*connect.Response[berthv1.RotateAuthorityResponse], error) {
	message := request.Msg
	imported := len(message.GetCertificatePem()) > 0 || len(message.GetKeyPem()) > 0
	ways := 0
	for _, way := range []bool{message.GetForce(), message.GetCancel(), imported} {
		if way {
			ways++
		}
	}
	if ways > 1 {
		return nil, unfit("give one of them", errors.New("force, cancel and an authority from outside exclude each other"))
	}
	if len(message.GetCertificatePem()) > maxAuthority || len(message.GetKeyPem()) > maxAuthority {
		return nil, unfit("give the authority and those above it alone", errors.New("the certificates or the key are too long"))
	}
	next, err := s.next(message, imported)
	if err != nil {
		return nil, err
	}
	if message.GetDryRun() {
		return s.tryRotation(ctx, message, next, imported)
	}
	if next != nil { // what is announced must not be lost with this process
		if err := s.Vault.Keep(next); err != nil {
			return nil, err
		}
	}
	p, err := s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		command, err := s.rotation(ctx, p, message, next, imported)
		for i := range command.Events {
			event := &command.Events[i]
			*event = p.Event(ctx, event.Kind, event.Subject, "%s", event.Message)
		}
		return command, err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RotateAuthorityResponse{SchemaVersion: wire.SchemaVersion, Progress: progress(p)}), nil
}

// next is the authority that is to follow; nil: a replacement is under way, and is to go on or to end.
func (s *Calls) next(message *berthv1.RotateAuthorityRequest, imported bool) (*pki.Authority, error) {
	switch {
	case message.GetForce() || message.GetCancel():
		return nil, nil
	case imported:
		next, err := pki.ImportAuthority(s.Authority().ClusterID(), message.GetCertificatePem(), message.GetKeyPem(), s.Now())
		if err != nil {
			return nil, unfit("correct it, or have the certificate issued anew", err)
		}
		return next, nil
	}
	return pki.NewAuthority(s.Authority().ClusterID(), s.Now())
}

// rotation is the change that is asked for.
func (s *Calls) rotation(
	ctx context.Context, p *answer.Moment, message *berthv1.RotateAuthorityRequest, next *pki.Authority, imported bool,
) (command state.Command, err error) {
	if p.FeatureLevel() < state.IdentityLevel {
		return command, unfit("update all coordinators first", authorities.ErrNotYet)
	}
	switch {
	case message.GetCancel():
		command, err = authorities.Cancel(p.Snapshot, p.At)
	case message.GetForce():
		command, _, err = authorities.Pass(p.Snapshot, p.At)
	default:
		command, err = authorities.Announce(p.Snapshot, s.Authority(), next, imported, gate.CallerOf(ctx).String(), p.At)
	}
	switch {
	case errors.Is(err, authorities.ErrUnderWay):
		return command, refusal.New(rpc.Conflict, "authority", "see 'berth ca list'; 'berth ca rotate --force' goes on without those "+
			"who are waited for, and 'berth ca rotate --cancel' takes back one that signs nothing yet", "%w", err)
	case errors.Is(err, authorities.ErrTooLate):
		return command, refusal.New(rpc.Conflict, "authority", "let it end, then replace it by another with 'berth ca rotate'", "%w", err)
	case errors.Is(err, authorities.ErrNothing):
		return command, refusal.New(rpc.Conflict, "authority", "'berth ca rotate' begins to replace the one that signs now", "%w", err)
	case err != nil:
		return command, refusal.New(rpc.Conflict, "authority", "see 'berth ca list'", "%w", err)
	}
	return command, nil
}

// tryRotation answers who would be waited for, and changes nothing.
func (s *Calls) tryRotation(
	ctx context.Context, message *berthv1.RotateAuthorityRequest, next *pki.Authority, imported bool,
) (*connect.Response[berthv1.RotateAuthorityResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.rotation(ctx, p, message, next, imported); err != nil {
		return nil, err
	}
	told := progress(p)
	if next != nil {
		told = &berthv1.AuthorityProgress{
			Id: next.ID(), State: string(authorities.Announced), Waits: authorities.WouldWait(p.Snapshot, p.At),
			Waiting: "until all have said that they trust it",
		}
		if !imported {
			told.Id = ""
		}
	}
	return connect.NewResponse(&berthv1.RotateAuthorityResponse{SchemaVersion: wire.SchemaVersion, Progress: told}), nil
}

func unfit(next string, err error) *connect.Error { return refusal.Invalid("authority", next, err) }

// confirm writes down that somebody has said to trust the newest authority.
func (s *Calls) confirm(ctx context.Context, who pki.Bearer, trusts []string) error {
	if _, due := authorities.Confirm(s.Present().Snapshot, who, trusts, s.Now()); !due {
		return nil
	}
	_, err := s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		command, due := authorities.Confirm(p.Snapshot, who, trusts, p.At)
		if !due {
			return state.Command{}, answer.ErrUnchanged
		}
		return command, nil
	})
	return err
}

// TakeAuthorities gives a member the authorities that it does not have yet, with their keys, as an enrolment does. Who is no member any
// more is refused before.
func (s *Calls) TakeAuthorities(
	ctx context.Context, request *connect.Request[berthv1.TakeAuthoritiesRequest],
) (*connect.Response[berthv1.TakeAuthoritiesResponse], error) {
	holds := request.Msg.GetHolds()
	if err := s.confirm(ctx, gate.CallerOf(ctx).Bearer, holds); err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	response := &berthv1.TakeAuthoritiesResponse{}
	list := authorities.Of(p.Snapshot)
	for _, id := range list.IDs() {
		one := s.Vault.Held(id)
		if one == nil || slices.Contains(holds, id) {
			continue
		}
		key, err := one.KeyPEM()
		if err != nil {
			return nil, err
		}
		response.AuthoritiesPem = append(response.AuthoritiesPem, append(one.CertificatePEM(), key...))
	}
	return connect.NewResponse(response), nil
}
