package members

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// whoImports is why it takes all permissions to bring an authority. Replacing one takes none: its key leaves no coordinator.
const whoImports = "who has the key of an authority passes for a coordinator with agents"

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
	response := &berthv1.ListAuthoritiesResponse{SchemaVersion: wire.SchemaVersion, Progress: progress(p, authorities.Cluster)}
	depend := authorities.Dependants(p.Snapshot, p.At)
	for _, one := range authorities.Of(p.Snapshot).OrOwn(authorities.Own(s.Authority())).All {
		shown, err := authority(authorities.Cluster, &one)
		if err != nil {
			return nil, err
		}
		shown.Dependants = int32(depend[one.ID])
		response.Authorities = append(response.Authorities, shown)
	}
	hypervisors, err := s.hypervisorAuthorities(p)
	if err != nil {
		return nil, err
	}
	response.Authorities = append(response.Authorities, hypervisors...)
	for _, purpose := range pki.Purposes {
		if is := progress(p, authorities.Called(purpose)); is != nil {
			response.Hypervisors = append(response.Hypervisors, is)
		}
	}
	return connect.NewResponse(response), nil
}

// authority is one as a message.
func authority(name string, one *authorities.Authority) (*berthv1.Authority, error) {
	ends, err := pki.AuthorityEnds([]byte(one.Certificate))
	if err != nil {
		return nil, err
	}
	return &berthv1.Authority{
		Name: name, Id: one.ID, State: string(one.State), Since: timestamppb.New(one.Since), Expires: timestamppb.New(ends),
		Imported: one.Imported, By: one.By,
	}, nil
}

// progress is how far the replacement of the authority of a name is; nil: none is under way.
func progress(p *answer.Moment, name string) *berthv1.AuthorityProgress {
	is := authorities.ProgressOf(p.Snapshot, name, p.At)
	if is.New == "" {
		return nil
	}
	told := &berthv1.AuthorityProgress{
		Name: name, Id: is.New, State: string(is.State), Waiting: is.Waiting, Waits: is.Names(), Passed: is.Passed, NextStep: pass(&is),
	}
	for i := range is.Waits {
		wait := &is.Waits[i]
		one := &berthv1.AuthorityWait{Subject: wait.Subject, Since: timestamppb.New(wait.Since), NextStep: fetch(name, wait)}
		if !wait.Until.IsZero() {
			one.Until = timestamppb.New(wait.Until)
		}
		told.Awaited = append(told.Awaited, one)
	}
	return told
}

// fetch says how somebody who is waited for is fetched, or given up.
func fetch(name string, wait *authorities.Wait) string {
	if name != authorities.Cluster && wait.Kind == model.IdentityNode {
		return "run 'berth-agent libvirt-tls renew' on " + wait.Name + ", or 'berth node delete " + wait.Name + "'"
	}
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
	case is.Name != authorities.Cluster && len(is.Waits) > 0:
		return "'berth ca rotate " + is.Name + " --force' goes on without those who are still waited for: guests move to and from such a node " +
			"again once it has renewed, which it does by itself when it is up"
	case is.Name != authorities.Cluster:
		return ""
	case len(is.Waits) > 0:
		return "'berth ca rotate --force' goes on without those who are still waited for: they need a token afterwards"
	case len(is.Passed) > 0:
		return "who was left behind and does not come before the old authority is retired needs a token: 'berth token add --for operator', " +
			"then 'berth login' there; see 'berth ca rotate --help' for nodes and coordinators"
	}
	return ""
}

// RotateAuthority begins to replace an authority, goes on without somebody, or takes the beginning back.
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
	name := cmp.Or(message.GetName(), authorities.Cluster)
	if !slices.Contains(authorities.Names, name) {
		return nil, unfit("name cluster, libvirt or qemu", fmt.Errorf("there is no authority %q", name))
	}
	if imported {
		if err := s.takesAll(ctx, "authority", whoImports); err != nil {
			return nil, err
		}
	}
	next, err := s.next(message, name, imported)
	if err != nil {
		return nil, err
	}
	if message.GetDryRun() {
		return s.tryRotation(ctx, message, name, next)
	}
	if next != nil { // what is announced must not be lost with this process
		if err := next.keep(); err != nil {
			return nil, err
		}
	}
	p, err := s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		command, err := rotation(ctx, p, message, name, next)
		if imported && err == nil {
			err = p.HasAll(ctx, "authority", whoImports)
			asRead(p, &command, gate.CallerOf(ctx).ID)
		}
		for i := range command.Events {
			event := &command.Events[i]
			*event = p.Event(ctx, event.Kind, event.Subject, "%s", event.Message)
		}
		return command, err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RotateAuthorityResponse{SchemaVersion: wire.SchemaVersion, Progress: progress(p, name)}), nil
}

// successor is the authority that is to follow another.
type successor struct {
	id       string // empty: another is made when it is announced
	keep     func() error
	announce func(p *answer.Moment, by string) (state.Command, error)
}

// next is the authority that is to follow; nil: a replacement is under way, and is to go on or to end.
func (s *Calls) next(message *berthv1.RotateAuthorityRequest, name string, imported bool) (*successor, error) {
	if message.GetForce() || message.GetCancel() {
		return nil, nil
	}
	if purpose, is := authorities.PurposeOf(name); is {
		return s.nextHypervisor(purpose, imported)
	}
	var one *pki.Authority
	var err error
	is := &successor{
		keep: func() error { return s.Vault.Keep(one) },
		announce: func(p *answer.Moment, by string) (state.Command, error) {
			return authorities.Announce(p.Snapshot, s.Authority(), one, imported, by, p.At)
		},
	}
	if !imported {
		one, err = pki.NewAuthority(s.Authority().ClusterID(), s.Now())
		return is, err
	}
	one, err = pki.ImportAuthority(s.Authority().ClusterID(), message.GetCertificatePem(), message.GetKeyPem(), s.Now())
	if err != nil {
		return nil, unfit("correct it, or have the certificate issued anew", err)
	}
	is.id = one.ID()
	return is, nil
}

// rotation is the change that is asked for.
func rotation(
	ctx context.Context, p *answer.Moment, message *berthv1.RotateAuthorityRequest, name string, next *successor,
) (command state.Command, err error) {
	if p.FeatureLevel() < state.IdentityLevel {
		return command, unfit("update all coordinators first", authorities.ErrNotYet)
	}
	switch {
	case message.GetCancel():
		command, err = authorities.Cancel(p.Snapshot, name, p.At)
	case message.GetForce():
		command, _, err = authorities.Pass(p.Snapshot, name, p.At)
	default:
		command, err = next.announce(p, gate.CallerOf(ctx).String())
	}
	rotate := "berth ca rotate"
	if name != authorities.Cluster {
		rotate += " " + name
	}
	switch {
	case errors.Is(err, authorities.ErrUnderWay):
		return command, refusal.New(rpc.Conflict, "authority", "see 'berth ca list'; '"+rotate+" --force' goes on without those "+
			"who are waited for, and '"+rotate+" --cancel' takes back one that signs nothing yet", "%w", err)
	case errors.Is(err, authorities.ErrTooLate):
		return command, refusal.New(rpc.Conflict, "authority", "let it end, then replace it by another with '"+rotate+"'", "%w", err)
	case errors.Is(err, authorities.ErrNothing):
		return command, refusal.New(rpc.Conflict, "authority", "'"+rotate+"' begins to replace the one that signs now", "%w", err)
	case err != nil:
		return command, refusal.New(rpc.Conflict, "authority", "see 'berth ca list'", "%w", err)
	}
	return command, nil
}

// tryRotation answers who would be waited for, and changes nothing.
func (s *Calls) tryRotation(
	ctx context.Context, message *berthv1.RotateAuthorityRequest, name string, next *successor,
) (*connect.Response[berthv1.RotateAuthorityResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := rotation(ctx, p, message, name, next); err != nil {
		return nil, err
	}
	told := progress(p, name)
	if next != nil {
		told = &berthv1.AuthorityProgress{
			Name: name, Id: next.id, State: string(authorities.Announced), Waits: authorities.WouldWait(p.Snapshot, name, p.At),
			Waiting: authorities.UntilTrusted(name),
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
	who := gate.CallerOf(ctx).Bearer
	if err := s.confirm(ctx, who, holds); err != nil {
		return nil, err
	}
	if err := s.FollowHypervisor(ctx, who, authorities.Holding(holds)); err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	response := &berthv1.TakeAuthoritiesResponse{}
	response.AuthoritiesPem, response.HypervisorsPem, err = s.keys(p.Snapshot, func(id string) bool { return !slices.Contains(holds, id) })
	return connect.NewResponse(response), err
}

// HandAuthorities gives the leader keys that it lacks. It was passed over when they were handed out, and was elected all the same. Who was
// removed before an authority was announced gets no key of it: whoever has such a key has applied the log until there, and knows that.
func (s *Calls) HandAuthorities(
	ctx context.Context, request *connect.Request[berthv1.HandAuthoritiesRequest],
) (*connect.Response[berthv1.HandAuthoritiesResponse], error) {
	caller := gate.CallerOf(ctx).Identity.ID
	if leader, known := s.Consensus.Leader(); !known || leader != caller {
		return nil, refusal.New(rpc.Unavailable, "authority", "ask the leader with TakeAuthorities",
			"only the leader is handed keys, and as far as this coordinator knows that is %q and not %q", leader, caller)
	}
	response := &berthv1.HandAuthoritiesResponse{}
	var err error
	lacks := request.Msg.GetLacks()
	wanted := func(id string) bool { return slices.Contains(lacks, id) }
	response.AuthoritiesPem, response.HypervisorsPem, err = s.keys(s.Present().Snapshot, wanted)
	return connect.NewResponse(response), err
}

// keys are those of the authorities that are trusted, or are to be, as far as they are here and wanted: certificate and key, PEM, in one.
func (s *Calls) keys(x *state.Snapshot, wanted func(id string) bool) (cluster, hypervisors [][]byte, err error) {
	list := authorities.Of(x)
	for _, id := range list.IDs() {
		one := s.Vault.Held(id)
		if one == nil || !wanted(id) {
			continue
		}
		key, err := one.KeyPEM()
		if err != nil {
			return nil, nil, err
		}
		cluster = append(cluster, append(one.CertificatePEM(), key...))
	}
	for _, list := range authorities.OfHypervisors(x) {
		for _, id := range list.IDs() {
			one := s.Hypervisors.Held(id)
			if one == nil || !wanted(id) {
				continue
			}
			text, err := one.PEM()
			if err != nil {
				return nil, nil, err
			}
			hypervisors = append(hypervisors, text)
		}
	}
	return cluster, hypervisors, nil
}
