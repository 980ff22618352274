package members

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// life is how long the certificate is good that an enrolment gets. It is long for who does not renew it, and as long as nobody's can be
// renewed, because not all coordinators know of records.
func (e *enrolment) life(p *answer.Moment) time.Duration {
	if !e.message.GetRenews() || p.FeatureLevel() < state.IdentityLevel {
		return pki.UnrenewedLife
	}
	return pki.CertificateLife
}

// ended tells when the last certificate of a live identity has ended; zero: it has not, or that is not known.
func ended(p *answer.Moment, identity *model.Identity) time.Time {
	until := identity.ValidUntil()
	if !identity.Live() || until.IsZero() || p.At.Before(until) {
		return time.Time{}
	}
	return until
}

// Renew gives somebody whose certificate counts another one for the same key, and writes down how long that is good. Nobody gets one for
// another's key or name: those come from the record.
func (s *Calls) Renew(ctx context.Context, who pki.Bearer, request *berthv1.RenewRequest) (*berthv1.RenewResponse, error) {
	response := &berthv1.RenewResponse{CaPem: s.Vault.Trusted(), Authority: s.Authority().ID()}
	csr, subject := request.GetCsrPem(), "identity/"+who.Name
	if err := s.confirm(ctx, who, request.GetTrusts()); err != nil {
		return nil, err
	}
	if len(csr) == 0 {
		return response, nil
	}
	if len(csr) > MaxRequest {
		err := fmt.Errorf("a certificate request of %d bytes is larger than %d", len(csr), MaxRequest)
		return nil, refusal.Invalid(subject, "make a smaller one", err)
	}
	key, err := pki.RequestedKey(csr)
	if err != nil {
		return nil, refusal.Invalid(subject, "correct the request", err)
	}
	if key != who.Key {
		return nil, refusal.New(rpc.Denied, subject, "enrol anew with a token to have another key",
			"the request is for another key than that of the certificate which it came with")
	}
	_, err = s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		identity, known := p.IdentityByKey(key)
		if standing := identities.Judge(p.Snapshot, who, p.At); !known || standing != identities.Recorded {
			return state.Command{}, refusal.New(rpc.Unavailable, subject, "ask again in a minute",
				"the certificate of %s cannot be renewed: %s", who.Name, why(standing))
		}
		response.CertificatePem, err = s.Authority().Sign(csr, pki.Identity{
			Role: pki.Role(identity.Role), ID: identity.ID, Name: identity.Name, ClusterID: s.Authority().ClusterID(),
		}, nil, p.At, pki.CertificateLife)
		if err != nil {
			return state.Command{}, refusal.Invalid(subject, "correct the request", err)
		}
		renewed, err := pki.BearerOfPEM(response.CertificatePem)
		if err != nil {
			return state.Command{}, err
		}
		// Which authority signed is written down when the certificate is seen in use.
		renewed.Authority = ""
		command, due := identities.Renewed(p.Snapshot, renewed, p.At)
		if !due {
			return state.Command{}, answer.ErrUnchanged
		}
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// why says what is wrong with a standing for a renewal.
func why(standing identities.Standing) string {
	if standing == identities.Unrecorded {
		return "its key is not on record yet"
	}
	return "it " + standing.Why()
}

// RenewCertificate is Renew for operators.
func (s *Calls) RenewCertificate(
	ctx context.Context, request *connect.Request[berthv1.RenewCertificateRequest],
) (*connect.Response[berthv1.RenewCertificateResponse], error) {
	answer, err := s.Renew(ctx, gate.CallerOf(ctx).Bearer, &berthv1.RenewRequest{
		CsrPem: request.Msg.GetCsrPem(), Trusts: request.Msg.GetTrusts(),
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RenewCertificateResponse{
		CertificatePem: answer.GetCertificatePem(), CaPem: answer.GetCaPem(), Authority: answer.GetAuthority(),
	}), nil
}
