package daemon

import (
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

// reissue gives this machine's coordinator another certificate for its key.
func (m *machine) reissue(at time.Time, life time.Duration) pki.Pair {
	m.t.Helper()
	home := place{m.data}
	authority, err := home.authority()
	m.check(err)
	pair, err := pki.LoadPair(home.tls())
	m.check(err)
	request, err := pair.Request()
	m.check(err)
	certificate, err := authority.Sign(request, pair.Identity, []string{"127.0.0.1", "other.example.com"}, at, life)
	m.check(err)
	m.check(config.WriteFile(home.tls().Certificate, certificate, 0o600))
	pair, err = pki.LoadPair(home.tls())
	m.check(err)
	return pair
}

// A coordinator that was off for two months has a certificate that has ended. It signs itself another one for its key, which is on record,
// and comes back without a token. So does one with a certificate for years, of an earlier release.
func TestACoordinatorThatWasOffForMonthsComesBack(t *testing.T) {
	m := newMachine(t, "c1")
	m.init()
	m.run()
	m.status("", led)
	m.halt()
	for name, is := range map[string]struct {
		at   time.Time
		life time.Duration
	}{
		"ended":                 {time.Now().AddDate(0, -2, 0), pki.CertificateLife},
		"of an earlier release": {time.Now().AddDate(0, -2, 0), pki.UnrenewedLife},
	} {
		before := m.reissue(is.at, is.life)
		m.run()
		m.status("", led)
		pair, err := pki.LoadPair(place{m.data}.tls())
		m.check(err)
		left := time.Until(pair.Certificate.NotAfter)
		sameKey := pki.KeyHash(pair.Certificate) == pki.KeyHash(before.Certificate)
		if left > pki.CertificateLife || left < pki.CertificateLife-time.Hour || !sameKey {
			t.Errorf("%s: it is good for %s", name, left)
		}
		if pair.Certificate.VerifyHostname("other.example.com") != nil || pair.Certificate.VerifyHostname("127.0.0.1") != nil {
			t.Errorf("%s: it is for %v %v", name, pair.Certificate.DNSNames, pair.Certificate.IPAddresses)
		}
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			answer, err := m.operator("").GetIdentity(t.Context(), connect.NewRequest(&berthv1.GetIdentityRequest{Identity: "coordinator/c1"}))
			m.check(err)
			if keys := answer.Msg.GetIdentity().GetKeys(); len(keys) == 1 && !keys[0].GetValidUntil().AsTime().Before(pair.Certificate.NotAfter) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: on record is %v", name, answer.Msg.GetIdentity())
			}
		}
		m.halt()
	}
}

// When no operator has a certificate any more, root of a coordinator makes one.
func TestRootOfACoordinatorNeedsNoToken(t *testing.T) {
	m := newMachine(t, "c1")
	m.init()
	m.run()
	m.status("", led)
	old := m.client
	m.client = filepath.Join(t.TempDir(), "client.yaml")
	if out, err := m.verb("", "login", "--config", m.config, "--client-config", m.client); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) { // a new leader writes down who was there before
		answer, err := m.operator("").ListIdentities(t.Context(), connect.NewRequest(&berthv1.ListIdentitiesRequest{}))
		m.check(err)
		if len(answer.Msg.GetIdentities()) == 3 {
			for _, one := range answer.Msg.GetIdentities() {
				if one.GetKind() == "operator" && one.GetPermit() != "all" { // there has to be somebody who can give permissions
					t.Errorf("%s of root has %q", one.GetName(), one.GetPermit())
				}
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("on record are %v", answer.Msg.GetIdentities())
		}
	}
	// Once more under the same name is refused: that one's certificate is good.
	m.client = old
	if out, err := m.verb("", "login", "--config", m.config, "--client-config", old); err == nil {
		t.Errorf("two of one name: %s", out)
	}
	if out, err := m.verb("", "login", "--config", m.config, "--client-config", old, "--name", "root2"); err != nil {
		t.Errorf("%s: %v", out, err)
	}
}
