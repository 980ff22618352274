package pki

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// held is a certificate in files, with the authority that signed it.
func held(t *testing.T, a *Authority, id Identity, at time.Time, life time.Duration) (Files, Pair) {
	t.Helper()
	request, key, err := NewRequest(id.Name)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := a.Sign(request, id, nil, at, life)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := Files{CA: filepath.Join(dir, "ca"), Certificate: filepath.Join(dir, "certificate"), Key: filepath.Join(dir, "key")}
	for path, data := range map[string][]byte{files.CA: a.CertificatePEM(), files.Certificate: certificate, files.Key: key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := LoadPair(files)
	if err != nil {
		t.Fatal(err)
	}
	return files, pair
}

func founded(t *testing.T, at time.Time) *Authority {
	t.Helper()
	a, err := NewAuthority("c1", at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Certificates are renewed a little before two thirds of their life, each at a moment of its own, and one of an earlier release as soon.
func TestCertificatesAreRenewedBeforeTwoThirdsOfTheirLife(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	a := founded(t, at)
	moments := map[time.Time]bool{}
	for range 20 {
		for _, life := range []time.Duration{CertificateLife, UnrenewedLife} {
			_, pair := held(t, a, Identity{Role: RoleAgent, ID: "n1", Name: "hv1", ClusterID: "c1"}, at, life)
			due := RenewAt(pair.Certificate)
			if passed := due.Sub(at); passed < CertificateLife/2 || passed > CertificateLife*2/3 {
				t.Errorf("one of %s is renewed after %s", life, passed)
			}
			moments[due] = true
			if Late(pair.Certificate, due) {
				t.Errorf("one of %s is late when it is due", life)
			}
			if late := pair.Certificate.NotAfter.Add(-life / 4); !Late(pair.Certificate, late) {
				t.Errorf("one of %s is not late when a quarter is left", life)
			}
		}
	}
	if len(moments) < 35 {
		t.Errorf("40 certificates are renewed at %d moments", len(moments))
	}
}

func TestOnlyARenewalOfTheSameHolderAndKeyIsOne(t *testing.T) {
	at := time.Now()
	a, foreign := founded(t, at), founded(t, at)
	id := Identity{Role: RoleAgent, ID: "n1", Name: "hv1", ClusterID: "c1"}
	_, pair := held(t, a, id, at, CertificateLife)
	request, err := pair.Request()
	if err != nil {
		t.Fatal(err)
	}
	another, _, err := NewRequest("hv1")
	if err != nil {
		t.Fatal(err)
	}
	sign := func(a *Authority, request []byte, id Identity) []byte {
		certificate, err := a.Sign(request, id, nil, at, CertificateLife)
		if err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	if err := pair.Check(sign(a, request, id), a.CertificatePEM()); err != nil {
		t.Errorf("a renewal: %v", err)
	}
	both := append(a.CertificatePEM(), foreign.CertificatePEM()...)
	if err := pair.Check(sign(foreign, request, id), both); err != nil {
		t.Errorf("a renewal by the next authority: %v", err)
	}
	other := id
	other.ID = "n2"
	for what, certificate := range map[string][]byte{
		"another's": sign(a, request, other), "for another key": sign(a, another, id), "by a foreign authority": sign(foreign, request, id),
		"none": nil, "no certificate": []byte("x"),
	} {
		if err := pair.Check(certificate, a.CertificatePEM()); !errors.Is(err, ErrRenewal) {
			t.Errorf("%s is taken for a renewal: %v", what, err)
		}
	}
	if err := pair.CheckTrusted(foreign.CertificatePEM()); !errors.Is(err, ErrRenewal) {
		t.Errorf("a list without the own authority is taken: %v", err)
	}
	if err := pair.CheckTrusted(both); err != nil {
		t.Errorf("a list of two: %v", err)
	}
}

// RequestedKey is what a coordinator compares with the key of the certificate that a request came with.
// One that is good for long is due as soon as another authority signs.
func TestACertificateIsDueByTimeOrByAuthority(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	a, next := founded(t, at), founded(t, at)
	_, pair := held(t, a, Identity{Role: RoleAgent, ID: "n1", Name: "hv1", ClusterID: "c1"}, at, CertificateLife)
	for _, is := range []struct {
		authority string
		passed    time.Duration
		due       bool
	}{
		{"", time.Hour, false},
		{a.ID(), time.Hour, false},
		{next.ID(), time.Hour, true},
		{"", CertificateLife * 2 / 3, true},
		{a.ID(), CertificateLife * 2 / 3, true},
	} {
		if due := pair.Due(is.authority, at.Add(is.passed)); due != is.due {
			t.Errorf("after %s, when %q signs, it is due: %t", is.passed, is.authority, due)
		}
	}
}

func TestARequestTellsItsKey(t *testing.T) {
	_, pair := held(t, founded(t, time.Now()), Identity{Role: RoleAgent, ID: "n1", Name: "hv1", ClusterID: "c1"}, time.Now(), time.Hour)
	request, err := pair.Request()
	if err != nil {
		t.Fatal(err)
	}
	if key, err := RequestedKey(request); err != nil || key != KeyHash(pair.Certificate) {
		t.Errorf("%s, %v", key, err)
	}
	if _, err := RequestedKey([]byte("x")); !errors.Is(err, ErrRequest) {
		t.Errorf("no request: %v", err)
	}
}
