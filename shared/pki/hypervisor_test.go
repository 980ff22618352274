package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"testing"
	"time"
)

func TestControlAndDataTrustNothingOfEachOther(t *testing.T) {
	made, err := NewHypervisors("c1", now)
	if err != nil {
		t.Fatal(err)
	}
	older, follow := newAuthority(t, "c1"), Hypervisors{}
	for _, purpose := range Purposes {
		if follow[purpose], err = older.Hypervisor(purpose); err != nil {
			t.Fatal(err)
		}
	}
	for cluster, authorities := range map[string]Hypervisors{"a new cluster": made, "one that is older than they are": follow} {
		t.Run(cluster, func(t *testing.T) { trustNothingOfEachOther(t, authorities) })
	}
}

func trustNothingOfEachOther(t *testing.T, authorities Hypervisors) {
	t.Helper()
	if authorities[Control].key.Equal(authorities[Data].key) {
		t.Error("one key signs for both")
	}
	csr, _, err := NewRequest("whoever")
	if err != nil {
		t.Fatal(err)
	}
	for signer, authority := range authorities {
		text, err := authority.Sign(csr, "hv1", []string{"hv1", "hv1.example.com", "10.0.0.1"}, now)
		if err != nil {
			t.Fatal(err)
		}
		cert := parse(t, text)
		if got := cert.Subject.String(); got != "CN=hv1" {
			t.Errorf("subject %q, want the name alone: libvirt compares all of it", got)
		}
		if _, err := IdentityOf(cert); err == nil {
			t.Error("it names an identity of Berth")
		}
		for judge, by := range authorities {
			for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
				_, err := cert.Verify(x509.VerifyOptions{Roots: pool(by.certificate), DNSName: "hv1.example.com", KeyUsages: []x509.ExtKeyUsage{usage}})
				if trusted := err == nil; trusted != (judge == signer) {
					t.Errorf("signed by %s, judged by %s: %v", signer, judge, err)
				}
			}
		}
		if err := cert.VerifyHostname("10.0.0.1"); err != nil {
			t.Error(err)
		}
		if left := cert.NotAfter.Sub(now); left > HypervisorValidity || left < HypervisorValidity-time.Minute {
			t.Errorf("valid for %v", left)
		}
	}
	if _, err := authorities[Control].Sign(csr, "hv1,CN=hv2", nil, now); !errors.Is(err, ErrIdentity) {
		t.Errorf("a name that is two: %v", err)
	}
}

func TestMembersOfAnOldClusterMakeTheSameAuthorities(t *testing.T) {
	made := newAuthority(t, "c1")
	key, err := made.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	other, err := LoadAuthority(made.CertificatePEM(), key)
	if err != nil {
		t.Fatal(err)
	}
	var seen [][]byte
	for _, purpose := range Purposes {
		mine, err := made.Hypervisor(purpose)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := other.Hypervisor(purpose)
		if err != nil {
			t.Fatal(err)
		}
		text, err := mine.PEM()
		if err != nil {
			t.Fatal(err)
		}
		same, err := theirs.PEM()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, same) {
			t.Errorf("two members have two %s authorities", purpose)
		}
		loaded, err := LoadHypervisorAuthority(text)
		if err != nil || !loaded.certificate.Equal(mine.certificate) {
			t.Errorf("%s does not survive its file: %v", purpose, err)
		}
		if loaded.key.Equal(made.key) {
			t.Errorf("the %s authority has Berth's own key", purpose)
		}
		seen = append(seen, text)
	}
	if bytes.Equal(seen[0], seen[1]) {
		t.Error("control and data are one authority")
	}
	leaf, leafKey := sign(t, made, RolePeer, "coord1")
	for name, text := range map[string][]byte{
		"Berth's own": append(made.CertificatePEM(), key...), "a leaf": append(leaf, leafKey...), "nothing": nil,
		"no key": made.CertificatePEM(),
	} {
		if _, err := LoadHypervisorAuthority(text); !errors.Is(err, ErrAuthority) {
			t.Errorf("%s: got %v, want ErrAuthority", name, err)
		}
	}
}

func TestARequestForAKeyThatIsThere(t *testing.T) {
	csr, key, err := NewRequest("hv1")
	if err != nil {
		t.Fatal(err)
	}
	again, err := RequestFor("hv1", key)
	if err != nil {
		t.Fatal(err)
	}
	first, err := requestedKey(csr)
	if err != nil {
		t.Fatal(err)
	}
	second, err := requestedKey(again)
	if err != nil || !first.(*ecdsa.PublicKey).Equal(second) {
		t.Errorf("another key: %v", err)
	}
	_, other, err := NewRequest("hv1")
	if err != nil {
		t.Fatal(err)
	}
	if !SameKey(key, key) || SameKey(key, other) || SameKey(nil, nil) {
		t.Error("keys are not told apart")
	}
}
