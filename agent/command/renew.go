package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/renewal"
	"berth/shared/rpc"
)

// renewLimit bounds one renewal with one coordinator.
const renewLimit = 20 * time.Second

// asking asks the coordinators in turn until one leads. Each time it makes connections of its own: they show the present certificate.
func asking(settings *Settings) renewal.Ask {
	return func(ctx context.Context, question renewal.Question) (renewal.Answer, error) {
		tlsConfig, err := pki.ClientConfig(settings.files(), pki.RolePeer)
		if err != nil {
			return renewal.Answer{}, err
		}
		client := rpc.NewHTTPClient(tlsConfig)
		defer client.CloseIdleConnections()
		var failures []error
		for _, address := range settings.members() {
			answer, err := askOne(ctx, client, address, question)
			if err == nil {
				return answer, nil
			}
			failures = append(failures, fmt.Errorf("coordinator %s: %w", address, err))
		}
		return renewal.Answer{}, errors.Join(failures...)
	}
}

func askOne(ctx context.Context, client *http.Client, address string, question renewal.Question) (renewal.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	// The agents' port takes framed messages only, which gRPC's are.
	service := berthv1connect.NewAgentServiceClient(client, "https://"+address, connect.WithGRPC())
	response, err := service.Renew(ctx, connect.NewRequest(&berthv1.RenewRequest{CsrPem: question.Request, Trusts: question.Trusts}))
	if err != nil {
		return renewal.Answer{}, renewal.Refused(err, berthv1connect.AgentServiceRenewProcedure)
	}
	return renewal.Answer{
		Certificate: response.Msg.GetCertificatePem(), Trusted: response.Msg.GetCaPem(), Authority: response.Msg.GetAuthority(),
	}, nil
}

// expired says what to do about a certificate that has ended; empty: it has not.
func expired(settings *Settings, name string, now time.Time) (what, next string) {
	pair, err := pki.LoadPair(settings.files())
	if err != nil || !now.After(pair.Certificate.NotAfter) {
		return "", ""
	}
	return "the certificate ended on " + pair.Certificate.NotAfter.Local().Format(time.DateOnly) + ", as if this host had been off for long",
		fmt.Sprintf("check the clock; then, with a token from 'berth token add --for agent --name %s': "+
			"systemctl stop berth-agent; berth-agent join --force --name %s COORDINATOR TOKEN; systemctl start berth-agent", name, name)
}
