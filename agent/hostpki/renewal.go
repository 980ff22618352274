package hostpki

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"berth/shared/pki"
)

// Question is what a host asks the cluster.
type Question struct {
	// Requests are for the certificates of keys, in PEM. None: only the authorities and the names are asked for.
	Requests map[pki.Purpose][]byte
	// Uses is what libvirt and QEMU use by now. None: that is not told.
	Uses map[pki.Purpose]Use
}

// Use is what is used of authorities, by their IDs.
type Use struct {
	Trusts []string
	By     string // which has signed the certificate
}

// Ask asks the cluster. The answer has no keys, and certificates only if they were requested.
type Ask func(Question) (Material, error)

// Issue gets certificates for keys. Keys that are not given are made.
func Issue(name string, keys map[pki.Purpose][]byte, ask Ask) (Material, error) {
	requests, made := map[pki.Purpose][]byte{}, map[pki.Purpose][]byte{}
	for _, purpose := range pki.Purposes {
		var err error
		if made[purpose] = keys[purpose]; made[purpose] != nil {
			requests[purpose], err = pki.RequestFor(name, made[purpose])
		} else {
			requests[purpose], made[purpose], err = pki.NewRequest(name)
		}
		if err != nil {
			return Material{}, fmt.Errorf("the %s key: %w", purpose, err)
		}
	}
	m, err := ask(Question{Requests: requests})
	m.Control.Key, m.Data.Key = made[pki.Control], made[pki.Data]
	return m, err
}

// Renewal brings a host to what the cluster has decided: its certificates, the authorities that it trusts, and the nodes that it lets in.
type Renewal struct {
	Host *Host
	Name string // of the node
	Ask  Ask
	// TakeUp has libvirt use what was written. Told: somebody was told to do that, and has not done it yet.
	TakeUp func(restart bool) (told bool, err error)
	Say    func(format string, a ...any)
}

// Once does what is due. While an authority is replaced the cluster waits for what this host says that it uses, so it is told again as soon
// as that has changed.
func (r Renewal) Once() error {
	uses, err := r.Host.Uses()
	if err != nil {
		return err
	}
	now, err := r.Ask(Question{Uses: uses})
	if err != nil {
		return err
	}
	here, err := r.Host.Material()
	if err != nil {
		return err
	}
	at := r.Host.now()
	next := here
	next.Names = now.Names
	switch {
	case mustRenew(here.Control.Certificate, now.Control.CA, at) || mustRenew(here.Data.Certificate, now.Data.CA, at):
		next, err = Issue(r.Name, map[pki.Purpose][]byte{pki.Control: here.Control.Key, pki.Data: here.Data.Key}, r.Ask)
		if err != nil {
			return err
		}
		r.Say("certificates of libvirt and QEMU are renewed")
	case !bytes.Equal(here.Control.CA, now.Control.CA) || !bytes.Equal(here.Data.CA, now.Data.CA):
		next.Control.CA, next.Data.CA = now.Control.CA, now.Data.CA
		r.Say("libvirt and QEMU trust what the cluster trusts now")
	default:
		return r.allow(now.Names, uses == nil)
	}
	restart, err := r.Host.Install(next, false)
	if err != nil {
		return err
	}
	if told, err := r.TakeUp(restart); err != nil || told {
		return err
	}
	if uses, err = r.Host.Uses(); err != nil {
		return err
	}
	_, err = r.Ask(Question{Uses: uses})
	return err
}

// allow has libvirt let in the nodes of today. Due: something was written and not taken up.
func (r Renewal) allow(names []string, due bool) error {
	restart, err := r.Host.Allow(names)
	if err != nil || !restart && !due {
		return err
	}
	if restart {
		r.Say("libvirt lets in %s", strings.Join(names, ", "))
	}
	_, err = r.TakeUp(restart)
	return err
}

// Uses is what libvirt and QEMU use by now, as far as Berth has written it; none while it was written and not taken up.
func (h *Host) Uses() (map[pki.Purpose]Use, error) {
	r, err := h.record()
	if err != nil || r.Written {
		return nil, err
	}
	m, err := h.Material()
	if err != nil {
		return nil, err
	}
	uses := map[pki.Purpose]Use{}
	for purpose, pair := range map[pki.Purpose]Pair{pki.Control: m.Control, pki.Data: m.Data} {
		ids, errIDs := pki.AuthorityIDs(pair.CA)
		leaf, errLeaf := pki.CertificateIn(pair.Certificate)
		if errIDs == nil && errLeaf == nil { // else it is mended below
			uses[purpose] = Use{Trusts: ids, By: pki.AuthorityOf(leaf)}
		}
	}
	return uses, nil
}

// mustRenew tells whether a certificate has less than a third of its time left, or is not by the first authority of a list, which signs
// now.
func mustRenew(certificate, authorities []byte, now time.Time) bool {
	leaf, err := pki.CertificateIn(certificate)
	if err != nil {
		return true
	}
	signs, err := pki.CertificateIn(authorities)
	if err != nil || leaf.CheckSignatureFrom(signs) != nil {
		return true
	}
	return leaf.NotAfter.Sub(now) < leaf.NotAfter.Sub(leaf.NotBefore)/3
}
