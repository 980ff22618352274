package clitest

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// memberFake answers about the coordinators themselves.
type memberFake struct {
	OnStatus  func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error)
	OnEvents  func(context.Context, *berthv1.WatchEventsRequest, func(*berthv1.WatchEventsResponse) error) error
	OnMembers func(*berthv1.ListMembersRequest) (*berthv1.ListMembersResponse, error)
	OnRemove  func(*berthv1.RemoveMemberRequest) (*berthv1.RemoveMemberResponse, error)
	OnSave    func(send func(*berthv1.SaveSnapshotResponse) error) error
	OnRestore func(data []byte) (*berthv1.RestoreSnapshotResponse, error)
	pauseHA   func(*berthv1.PauseHARequest) (*berthv1.PauseHAResponse, error)
	token     func(*berthv1.CreateTokenRequest) (*berthv1.CreateTokenResponse, error)
	tokens    func(*berthv1.ListTokensRequest) (*berthv1.ListTokensResponse, error)

	identities  func(*berthv1.ListIdentitiesRequest) (*berthv1.ListIdentitiesResponse, error)
	identity    func(*berthv1.GetIdentityRequest) (*berthv1.GetIdentityResponse, error)
	revokeToken func(*berthv1.RevokeTokenRequest) (*berthv1.RevokeTokenResponse, error)
	revoke      func(*berthv1.RevokeIdentityRequest) (*berthv1.RevokeIdentityResponse, error)
	setIdentity func(*berthv1.SetIdentityRequest) (*berthv1.SetIdentityResponse, error)
	confirm     func(*berthv1.ConfirmIdentityRequest) (*berthv1.ConfirmIdentityResponse, error)

	offerSession  func(*berthv1.OfferSessionRequest) (*berthv1.OfferSessionResponse, error)
	sessions      func(*berthv1.ListSessionsRequest) (*berthv1.ListSessionsResponse, error)
	revokeSession func(*berthv1.RevokeSessionRequest) (*berthv1.RevokeSessionResponse, error)
	OnAuthorities func(*berthv1.ListAuthoritiesRequest) (*berthv1.ListAuthoritiesResponse, error)
	OnRotate      func(*berthv1.RotateAuthorityRequest) (*berthv1.RotateAuthorityResponse, error)

	OnEnrol func(*berthv1.EnrolRequest) (*berthv1.EnrolResponse, error)
	OnRenew func(*berthv1.RenewCertificateRequest) (*berthv1.RenewCertificateResponse, error) // nil: it is of an earlier release
}

func (f *memberFake) listen(l listener) {
	unary(l, berthv1connect.BerthServiceStatusProcedure, &f.OnStatus)
	serverStream(l, berthv1connect.BerthServiceWatchEventsProcedure, &f.OnEvents)
	unary(l, berthv1connect.BerthServiceListMembersProcedure, &f.OnMembers)
	unary(l, berthv1connect.BerthServiceRemoveMemberProcedure, &f.OnRemove)
	save := func(_ context.Context, _ *berthv1.SaveSnapshotRequest, send func(*berthv1.SaveSnapshotResponse) error) error {
		return f.OnSave(send)
	}
	serverStream(l, berthv1connect.BerthServiceSaveSnapshotProcedure, &save)
	upload(
		l, berthv1connect.BerthServiceRestoreSnapshotProcedure,
		func(sent []*berthv1.RestoreSnapshotRequest) (*berthv1.RestoreSnapshotResponse, error) {
			var data []byte
			for _, part := range sent {
				data = append(data, part.GetChunk()...)
			}
			return f.OnRestore(data)
		},
	)
	unary(l, berthv1connect.BerthServicePauseHAProcedure, &f.pauseHA)
	unary(l, berthv1connect.BerthServiceCreateTokenProcedure, &f.token)
	unary(l, berthv1connect.BerthServiceListTokensProcedure, &f.tokens)
	unary(l, berthv1connect.BerthServiceListIdentitiesProcedure, &f.identities)
	unary(l, berthv1connect.BerthServiceGetIdentityProcedure, &f.identity)
	unary(l, berthv1connect.BerthServiceRevokeTokenProcedure, &f.revokeToken)
	unary(l, berthv1connect.BerthServiceListAuthoritiesProcedure, &f.OnAuthorities)
	unary(l, berthv1connect.BerthServiceRotateAuthorityProcedure, &f.OnRotate)
	unary(l, berthv1connect.BerthServiceRevokeIdentityProcedure, &f.revoke)
	unary(l, berthv1connect.BerthServiceConfirmIdentityProcedure, &f.confirm)
	unary(l, berthv1connect.BerthServiceSetIdentityProcedure, &f.setIdentity)
	unary(l, berthv1connect.BerthServiceOfferSessionProcedure, &f.offerSession)
	unary(l, berthv1connect.BerthServiceListSessionsProcedure, &f.sessions)
	unary(l, berthv1connect.BerthServiceRevokeSessionProcedure, &f.revokeSession)
	unary(l, berthv1connect.EnrolmentServiceEnrolProcedure, &f.OnEnrol)
	if f.OnRenew != nil {
		unary(l, berthv1connect.BerthServiceRenewCertificateProcedure, &f.OnRenew)
	}
}

func cannedMemberAnswers() memberFake {
	return memberFake{
		OnStatus: func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error) { return CannedStatus(), nil },
		OnEvents: func(_ context.Context, _ *berthv1.WatchEventsRequest, send func(*berthv1.WatchEventsResponse) error) error {
			for _, event := range CannedEvents() {
				if err := send(&berthv1.WatchEventsResponse{Event: event}); err != nil {
					return err
				}
			}
			return nil
		},
		OnMembers: func(*berthv1.ListMembersRequest) (*berthv1.ListMembersResponse, error) {
			return &berthv1.ListMembersResponse{SchemaVersion: "1", ClusterId: "3nqk7d2m0c1aa", Members: cannedMembers()}, nil
		},
		OnRemove: func(*berthv1.RemoveMemberRequest) (*berthv1.RemoveMemberResponse, error) {
			return &berthv1.RemoveMemberResponse{SchemaVersion: "1"}, nil
		},
		pauseHA: func(r *berthv1.PauseHARequest) (*berthv1.PauseHAResponse, error) {
			if !r.GetOn() {
				return &berthv1.PauseHAResponse{SchemaVersion: "1"}, nil
			}
			return &berthv1.PauseHAResponse{SchemaVersion: "1", Pause: &berthv1.HAPause{
				Reason: r.GetReason(), Caller: "operator/admin", Since: timestamppb.New(noon),
			}}, nil
		},
		token: func(*berthv1.CreateTokenRequest) (*berthv1.CreateTokenResponse, error) {
			return &berthv1.CreateTokenResponse{
				SchemaVersion: "1", Token: "berth1.agent.secret.fingerprint", ExpiresAt: timestamppb.New(noon.Add(time.Hour)),
				Command: "echo berth1.agent.secret.fingerprint | berth-agent join coord1:7420 -",
			}, nil
		},
		tokens: func(*berthv1.ListTokensRequest) (*berthv1.ListTokensResponse, error) {
			return &berthv1.ListTokensResponse{SchemaVersion: "1", Tokens: []*berthv1.Token{
				{
					Id: "0a1b2c3d", Purpose: "agent", Name: "hv*", Uses: 20, UsesLeft: 18, ExpiresAt: timestamppb.New(noon.Add(time.Hour)),
					CreatedBy: "operator/admin", UsedBy: []string{"hv1", "hv2"},
				},
				{
					Id: "9f8e7d6c", Purpose: "operator", Uses: 1, UsesLeft: 1, ExpiresAt: timestamppb.New(noon.Add(time.Hour)),
					CreatedBy: "operator/admin", Permit: "host-paths",
				},
			}}, nil
		},
		revokeToken: func(r *berthv1.RevokeTokenRequest) (*berthv1.RevokeTokenResponse, error) {
			return &berthv1.RevokeTokenResponse{SchemaVersion: "1", Token: &berthv1.Token{Id: r.GetId(), Purpose: "agent"}}, nil
		},
		identities: func(r *berthv1.ListIdentitiesRequest) (*berthv1.ListIdentitiesResponse, error) {
			all := cannedIdentities()
			if !r.GetAll() {
				all = all[:3]
			}
			return &berthv1.ListIdentitiesResponse{SchemaVersion: "1", Identities: all}, nil
		},
		identity: func(*berthv1.GetIdentityRequest) (*berthv1.GetIdentityResponse, error) {
			return &berthv1.GetIdentityResponse{SchemaVersion: "1", Identity: cannedIdentities()[2]}, nil
		},
		revoke: func(*berthv1.RevokeIdentityRequest) (*berthv1.RevokeIdentityResponse, error) {
			return &berthv1.RevokeIdentityResponse{SchemaVersion: "1", Identity: cannedIdentities()[2]}, nil
		},
		offerSession: func(*berthv1.OfferSessionRequest) (*berthv1.OfferSessionResponse, error) {
			return &berthv1.OfferSessionResponse{
				SchemaVersion: "1", Address: "https://coord1:7423/login/4c9m.secret", Fingerprint: "7e1f0c", Session: cannedSessions()[1],
			}, nil
		},
		sessions: func(*berthv1.ListSessionsRequest) (*berthv1.ListSessionsResponse, error) {
			return &berthv1.ListSessionsResponse{SchemaVersion: "1", Sessions: cannedSessions()}, nil
		},
		revokeSession: func(*berthv1.RevokeSessionRequest) (*berthv1.RevokeSessionResponse, error) {
			return &berthv1.RevokeSessionResponse{SchemaVersion: "1", Session: cannedSessions()[0]}, nil
		},
		setIdentity: func(r *berthv1.SetIdentityRequest) (*berthv1.SetIdentityResponse, error) {
			identity := cannedIdentities()[2]
			identity.Permit = r.GetPermit()
			return &berthv1.SetIdentityResponse{SchemaVersion: "1", Identity: identity}, nil
		},
		confirm: func(*berthv1.ConfirmIdentityRequest) (*berthv1.ConfirmIdentityResponse, error) {
			return &berthv1.ConfirmIdentityResponse{SchemaVersion: "1", Identity: cannedIdentities()[1]}, nil
		},
	}
}

// cannedIdentities are three that count, and one that was revoked.
func cannedIdentities() []*berthv1.Identity {
	made := timestamppb.New(noon.Add(-24 * time.Hour))
	key := func(hash string) []*berthv1.IdentityKey {
		return []*berthv1.IdentityKey{{Hash: hash, AddedAt: made, ValidUntil: timestamppb.New(noon.Add(29 * 24 * time.Hour))}}
	}
	all := []*berthv1.Identity{
		{Id: "m1", Kind: "coordinator", Name: "coord1", Role: "peer", CreatedAt: made, Keys: key("11aa")},
		{Id: "n3", Kind: "node", Name: "node3", Role: "agent", CreatedAt: made, Keys: key("22bb"), Unconfirmed: "restored from a backup"},
		{Id: "o1", Kind: "operator", Name: "alice", Role: "operator", CreatedAt: made, Keys: key("33cc"), Permit: "host-devices"},
		{
			Id: "o2", Kind: "operator", Name: "bob", Role: "operator", CreatedAt: made, Keys: key("44dd"), RevokedAt: timestamppb.New(noon),
			Permit: "none", RevokedBy: "operator/alice", RevokedReason: "left",
		},
	}
	for _, one := range all {
		one.ValidUntil = one.GetKeys()[0].GetValidUntil()
	}
	return all
}

func cannedMembers() []*berthv1.Member {
	return []*berthv1.Member{
		{
			Id: "m1", Name: "coord1", Address: "coord1:7422", ApiAddress: "coord1:7420", AgentAddress: "coord1:7421", Voter: true,
			Leader: true, Self: true, Reachable: true, LastIndex: 1042, Healthy: true, Version: "1.2.3", FeatureLevel: 2,
			MetricsAddress: "coord1:7424",
		},
		{
			Id: "m2", Name: "coord2", Address: "coord2:7422", ApiAddress: "coord2:7420", AgentAddress: "coord2:7421", Voter: true,
			Reachable: true, LastIndex: 1000, LastContactSeconds: proto.Float64(0.043), Healthy: true, Behind: 42, Version: "1.2.3",
			FeatureLevel: 2,
		},
		{Id: "m3", Name: "coord3", Address: "coord3:7422", ApiAddress: "coord3:7420", AgentAddress: "coord3:7421", LastIndex: 17},
	}
}

// CannedStatus is the status of three coordinators.
func CannedStatus() *berthv1.StatusResponse {
	return &berthv1.StatusResponse{
		SchemaVersion: "1", ClusterId: "3nqk7d2m0c1aa", Version: "1.2.3", Leader: "coord1", Term: 4, AppliedIndex: 1042, Members: cannedMembers(),
		NodesUp: 2, NodesTotal: 3, VmsRunning: 1, VmsTotal: 3, OperationsRunning: 1, AnsweredBy: "coord2",
		Problems: []string{
			"VM web1: somebody has made disk web1-root smaller beside Berth: it has 8 GiB, and had 10 GiB; 'berth disk grow web1-root " +
				"10737418240' makes it as large again, without what was lost; 'berth vm accept web1' keeps it as small",
			"node node3 is unreachable: no session for 3m12s", "coordinator coord3 is not reachable",
		},
	}
}

// CannedEvents are events of several kinds.
func CannedEvents() []*berthv1.Event {
	return []*berthv1.Event{
		{
			Index: 1001, At: Ago(2 * time.Minute), Kind: "vm.started", Subject: "vm/web1", Message: "on node2", Caller: "operator/admin",
			OperationId: "3nqk7d2m0x1ab", DecisionId: "3nqk7d2m0d1ab",
		},
		{Index: 1001, At: Ago(2 * time.Minute), Kind: "vm.placed", Subject: "vm/web1", Message: "by decision 3nqk7d2m0d1ab"},
		{At: Ago(time.Minute), Kind: "node.unreachable", Subject: "node/node3", Message: "no session for 10s"},
	}
}

func cannedSessions() []*berthv1.Session {
	return []*berthv1.Session{
		{
			Id: "4c9k", Operator: "alice", OperatorId: "o1", Role: "operator", From: "192.0.2.7", Browser: "Mozilla/5.0 Firefox/150.0",
			OfferedAt: timestamppb.New(noon), OpenedAt: timestamppb.New(noon), Until: timestamppb.New(noon.Add(12 * time.Hour)),
		},
		{
			Id: "4c9m", Operator: "bob", OperatorId: "o2", Role: "read-only", OfferedAt: timestamppb.New(noon),
			Until: timestamppb.New(noon.Add(time.Minute)),
		},
	}
}
