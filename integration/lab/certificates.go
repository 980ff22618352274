package lab

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/agent/hostpki"
	"berth/shared/pki"
)

// certifyBare gives the libvirtds and QEMUs of a lab without Berth what `berth-agent join` gives to nodes, by the same code.
func (r raising) certifyBare() error {
	authorities, err := pki.NewHypervisors("lab", time.Now())
	if err != nil {
		return err
	}
	var names []string
	for _, h := range r.Hosts {
		names = append(names, h.Name)
	}
	for _, h := range r.Hosts {
		pairs := map[pki.Purpose]hostpki.Pair{}
		for purpose, authority := range authorities {
			request, key, err := pki.NewRequest(h.Name)
			if err != nil {
				return err
			}
			certificate, err := authority.Sign(request, h.Name, []string{h.Name, h.Address}, time.Now())
			if err != nil {
				return err
			}
			pairs[purpose] = hostpki.Pair{CA: authority.CertificatePEM(), Certificate: certificate, Key: key}
		}
		material := hostpki.Material{Control: pairs[pki.Control], Data: pairs[pki.Data], Names: names}
		if _, err := (&hostpki.Host{Root: h.dir(), Daemon: Libvirtd}).Install(material, false); err != nil {
			return err
		}
	}
	return nil
}

// RenewTLS has every host that is up ask the cluster for certificates and names, and restarts the libvirtds, as systemd does for a
// service and a timer on real hosts.
func (l *Lab) RenewTLS(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, h := range l.Hosts {
		if !h.Running() {
			continue
		}
		all.Go(func() error {
			if _, err := h.Exec(ctx, "berth-agent", "libvirt-tls", "renew"); err != nil {
				return err
			}
			return h.RestartLibvirtd(ctx)
		})
	}
	return all.Wait()
}
