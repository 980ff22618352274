package daemon

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"berth/coordinator/authorities"
	"berth/shared/config"
	"berth/shared/pause"
	"berth/shared/pki"
)

// How often a member looks at its certificate, and whether the record of it is that of the present one.
const (
	renewLook  = time.Hour
	recordLook = 5 * time.Second
)

// renew signs another certificate for this member's key if the time has come. A coordinator needs nobody for that, because it has the
// authority: so one that was off for months comes back by itself. What lets it in is its key, which is on record.
func (p place) renew(c Config, now time.Time) (renewed bool, err error) {
	pair, err := pki.LoadPair(p.tls())
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	authority, err := p.authority()
	if err != nil {
		return false, err
	}
	trusted, err := os.ReadFile(p.tls().CA)
	if err != nil {
		return false, err
	}
	if !pair.Due(authority.ID(), now) {
		return false, nil
	}
	request, err := pair.Request()
	if err != nil {
		return false, err
	}
	addresses := append(certificateAddresses(c), pair.Certificate.DNSNames...)
	for _, address := range pair.Certificate.IPAddresses {
		addresses = append(addresses, address.String())
	}
	slices.Sort(addresses)
	certificate, err := authority.Sign(request, pair.Identity, slices.Compact(addresses), now, pki.CertificateLife)
	if err != nil {
		return false, err
	}
	if err := pair.Check(certificate, trusted); err != nil {
		return false, err
	}
	return true, config.WriteFile(p.tls().Certificate, certificate, 0o600)
}

// keepCertificate renews this member's certificate for as long as the context lasts. The record of it follows from the calls that it
// makes to the leader, which need new connections for that.
func (d *daemon) keepCertificate(ctx context.Context) {
	next := time.Now().Add(rand.N(renewLook))
	for pause.For(ctx, recordLook) {
		if now := time.Now(); !now.Before(next) {
			next = now.Add(renewLook/2 + rand.N(renewLook/2))
			renewed, err := d.home.renew(d.config, now)
			switch {
			case err != nil:
				d.log.Error("this coordinator's certificate could not be renewed; it is tried again", "error", err)
			case renewed:
				d.log.Info("this coordinator's certificate is renewed")
			}
		}
		if who, err := d.bearer(); err == nil {
			if _, due := authorities.Seen(d.store.Snapshot(), who, time.Now()); due {
				d.peers.CloseIdleConnections()
				d.asking.CloseIdleConnections()
			}
		}
	}
}
