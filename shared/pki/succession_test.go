package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

// house is an authority of somebody's own, which issues others.
type house struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newHouse(t *testing.T, now time.Time) *house {
	t.Helper()
	h := &house{t: t}
	h.certificate, h.key = h.sign(func(c *x509.Certificate) { c.MaxPathLen = 1 }, now)
	return h
}

// sign makes an authority below this one, or the first.
func (h *house) sign(change func(*x509.Certificate), now time.Time) (*x509.Certificate, *ecdsa.PrivateKey) {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "bank"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(3, 0, 0), KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	change(template)
	parent, by := h.certificate, h.key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		h.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		h.t.Fatal(err)
	}
	return certificate, key
}

func TestAnAuthorityFromOutsideIsJudgedBeforeItSigns(t *testing.T) {
	now := time.Now()
	h := newHouse(t, now)
	for name, is := range map[string]struct {
		change func(*x509.Certificate)
		want   string // part of the refusal; empty: it is taken
	}{
		"good":         {func(c *x509.Certificate) { c.MaxPathLenZero = true }, ""},
		"no authority": {func(c *x509.Certificate) { c.IsCA, c.KeyUsage = false, 0 }, "not one of an authority"},
		"may not sign": {func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }, "keyCertSign"},
		"ended":        {func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Minute) }, "has ended"},
		"ends soon":    {func(c *x509.Certificate) { c.NotAfter = now.Add(LeastLife - time.Hour) }, "60 days at least"},
		"not yet":      {func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }, "is good from"},
		"for mail": {func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection}
		}, "without limits"},
		"for other names":    {func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"bank.example"} }, "without limits"},
		"of another cluster": {func(c *x509.Certificate) { c.URIs = append(c.URIs, Identity{ClusterID: "c2"}.uri()) }, "this is cluster c1"},
	} {
		certificate, key := h.sign(is.change, now)
		keyText, err := keyPEM(key)
		if err != nil {
			t.Fatal(err)
		}
		chain := append(certificatePEM(certificate.Raw), certificatePEM(h.certificate.Raw)...)
		authority, err := ImportAuthority("c1", chain, keyText, now)
		switch {
		case is.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case is.want == "":
			if authority.ClusterID() != "c1" || string(authority.CertificatePEM()) != string(certificatePEM(certificate.Raw)) {
				t.Errorf("%s: it is %s of %s", name, authority.ID(), authority.ClusterID())
			}
		case !errors.Is(err, ErrAuthority) || !strings.Contains(err.Error(), is.want):
			t.Errorf("%s: %v, want %q", name, err, is.want)
		}
	}
}

func TestTheChainAndTheKeyOfAnAuthorityFromOutsideFit(t *testing.T) {
	now := time.Now()
	h, other := newHouse(t, now), newHouse(t, now)
	certificate, key := h.sign(func(*x509.Certificate) {}, now)
	_, wrong := h.sign(func(*x509.Certificate) {}, now)
	text := func(certificates ...*x509.Certificate) []byte {
		var all []byte
		for _, one := range certificates {
			all = append(all, certificatePEM(one.Raw)...)
		}
		return all
	}
	for want, is := range map[string]struct {
		chain []byte
		key   *ecdsa.PrivateKey
	}{
		"does not belong to the certificate": {text(certificate), wrong},
		"put the one that is to sign first":  {text(h.certificate, certificate), key},
		"not signed by the one after it":     {text(certificate, other.certificate), key},
	} {
		keyText, err := keyPEM(is.key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ImportAuthority("c1", is.chain, keyText, now); !errors.Is(err, ErrAuthority) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Who has a token that pins an authority is let in by its successor, and by nobody else.
func TestWhoPinsAnAuthorityAcceptsItsSuccessor(t *testing.T) {
	now := time.Now()
	var all []*Authority
	for range 3 {
		authority, err := NewAuthority("c1", now)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, authority)
	}
	first, next, stranger := all[0], all[1], all[2]
	pin := fingerprint(first.certificate)
	endorsed := func(a *Authority) *x509.Certificate {
		text, err := first.Endorse(a, now)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := CertificateIn(text)
		if err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	leaf := func(a *Authority) *x509.Certificate {
		request, _, err := NewRequest("m1")
		if err != nil {
			t.Fatal(err)
		}
		text, err := a.Sign(request, Identity{Role: RolePeer, ID: "m1", Name: "m1", ClusterID: "c1"}, nil, now, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := CertificateIn(text)
		if err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	if err := checkPinned([]*x509.Certificate{leaf(next), next.certificate, first.certificate, endorsed(next)}, pin); err != nil {
		t.Error(err)
	}
	for name, chain := range map[string][]*x509.Certificate{
		"without an endorsement":   {leaf(next), next.certificate, first.certificate},
		"that is endorsed by none": {leaf(stranger), stranger.certificate, first.certificate, endorsed(next)},
		"without the pinned one":   {leaf(next), next.certificate, endorsed(next)},
	} {
		if err := checkPinned(chain, pin); !errors.Is(err, ErrPeer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	list := slices.Concat(next.CertificatePEM(), first.CertificatePEM(), certificatePEM(endorsed(next).Raw))
	if ids, err := AuthorityIDs(list); err != nil || !slices.Equal(ids, []string{next.ID(), first.ID()}) {
		t.Errorf("the list has %v, %v", ids, err)
	}
}

// Who was away trusts the authority of before alone. He takes a certificate of the next one, as long as the proof is good that comes along,
// and no other: neither of one that somebody else vouches for, nor of one further on.
func TestWhoWasAwayTakesACertificateOfTheSuccessor(t *testing.T) {
	before, after, third := newAuthority(t, "c1"), newAuthority(t, "c1"), newAuthority(t, "c1")
	proof := func(by, of *Authority, at time.Time) []byte {
		text, err := by.Endorse(of, at)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	now := time.Now()
	old := files(t, before, RolePeer, "coord1", "127.0.0.1")
	for name, is := range map[string]struct {
		by     *Authority
		proofs []byte
		good   bool
	}{
		"with the proof":      {after, proof(before, after, now), true},
		"without":             {after, before.CertificatePEM(), false},
		"of somebody else":    {after, proof(third, after, now), false},
		"with one that ended": {after, proof(before, after, now.Add(-EndorsementLife-time.Hour)), false},
		"two further on":      {third, slices.Concat(proof(before, after, now), proof(after, third, now)), false},
	} {
		own := files(t, is.by, RolePeer, "coord2", "127.0.0.1")
		write(t, own.CA, slices.Concat(is.by.CertificatePEM(), before.CertificatePEM(), is.proofs))
		server := serverConfig(t, old, tls.RequireAndVerifyClientCert)
		if err, _, _ := handshake(t, server, clientConfig(t, own, RolePeer)); (err == nil) != is.good {
			t.Errorf("%s, as a server: %v", name, err)
		}
		server = serverConfig(t, own, tls.RequireAndVerifyClientCert)
		if _, err, _ := handshake(t, server, clientConfig(t, old, RolePeer)); (err == nil) != is.good {
			t.Errorf("%s, as a client: %v", name, err)
		}
	}
}
