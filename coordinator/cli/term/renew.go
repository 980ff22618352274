package term

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/renewal"
)

const (
	renewLimit = 10 * time.Second // of a renewal in all
	afterwards = 2 * time.Second  // that it is waited for once the command's own work is done and printed
)

// beside is work that goes on beside a command's own.
type beside struct {
	done   chan struct{}
	cancel context.CancelFunc
}

// renewBeside has the operator's certificate renewed if its time has come, beside the calls of the session. What becomes of it changes
// nothing for these. Authorities are those that an answer has named as trusted, the one that signs first; nil: there is no answer yet.
func (a *App) renewBeside(files pki.Files, s *Session, authorities []string) {
	a.renewal.Lock()
	defer a.renewal.Unlock()
	pair, err := pki.LoadPair(files)
	if now := a.Now(); a.renewing != nil || err != nil || now.After(pair.Certificate.NotAfter) ||
		!pair.Due("", now) && !renewal.Stale(files, authorities) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), renewLimit)
	a.renewing = &beside{done: make(chan struct{}), cancel: cancel}
	clients := s.clients
	go func() {
		defer close(a.renewing.done)
		_, a.unrenewed = renewal.Once(ctx, files, a.Now(), func(ctx context.Context, question renewal.Question) (renewal.Answer, error) {
			return askRenewal(ctx, clients, question)
		})
		if a.unrenewed != nil && pki.Late(pair.Certificate, a.Now()) {
			a.unrenewed = fmt.Errorf("your certificate ends on %s and could not be renewed: %w",
				pair.Certificate.NotAfter.In(a.Now().Location()).Format(time.DateOnly), a.unrenewed)
		} else {
			a.unrenewed = nil // there is time
		}
	}()
}

func askRenewal(ctx context.Context, clients []Client, question renewal.Question) (renewal.Answer, error) {
	var failures []error
	for _, client := range clients {
		answer, err := client.RenewCertificate(ctx, connect.NewRequest(&berthv1.RenewCertificateRequest{
			CsrPem: question.Request, Trusts: question.Trusts,
		}))
		if err == nil {
			return renewal.Answer{
				Certificate: answer.Msg.GetCertificatePem(), Trusted: answer.Msg.GetCaPem(), Authority: answer.Msg.GetAuthority(),
			}, nil
		}
		failures = append(failures, renewal.Refused(err, berthv1connect.BerthServiceRenewCertificateProcedure))
	}
	return renewal.Answer{}, errors.Join(failures...)
}

// Finish ends what goes on beside the command, when its own work is done.
func (a *App) Finish() {
	a.renewal.Lock()
	defer a.renewal.Unlock()
	if a.renewing == nil {
		return
	}
	select {
	case <-a.renewing.done:
	case <-time.After(afterwards): // the next command tries again
	}
	a.renewing.cancel()
	<-a.renewing.done
	if a.unrenewed != nil {
		a.note(a.unrenewed.Error())
	}
}
