package adversary

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

// signs gives somebody whose key is known a certificate by an authority. Beside it the client sends what else is trusted.
func (c *coordinator) signs(by *pki.Authority, whose pki.Files, beside ...[]byte) pki.Files {
	c.Helper()
	pair, err := pki.LoadPair(whose)
	c.check(err)
	keyPEM, err := os.ReadFile(whose.Key)
	c.check(err)
	block, _ := pem.Decode(keyPEM)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	c.check(err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	c.check(err)
	request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	certificate, err := by.Sign(request, pair.Identity, []string{"127.0.0.1"}, time.Now(), time.Hour)
	c.check(err)
	return c.files(slices.Concat(append([][]byte{by.CertificatePEM()}, beside...)...), certificate, keyPEM)
}

// shut tells that nobody gets in anywhere with what these files have, and why at each listener.
func (c *coordinator) shut(what, why string, operator, agent, peer pki.Files) {
	c.Helper()
	pair, err := pki.LoadPair(agent)
	c.check(err)
	for port, ask := range map[string]func() error{
		"the API":          func() error { return c.status(operator) },
		"the agents' port": func() error { _, err := c.session(agent, pair.Identity.ID); return err },
		"the Raft port":    func() error { return c.knock(peer) },
	} {
		if err := answer(why, ask); err == nil || !strings.Contains(err.Error(), why) {
			c.Errorf("%s: %s answers %v, want %q", what, port, err, why)
		}
	}
}

// answer asks until it is told why not: a client that still writes when the connection is closed does not read that.
func answer(why string, ask func() error) error {
	err := ask()
	for range 50 {
		if err == nil || strings.Contains(err.Error(), why) {
			break
		}
		err = ask()
	}
	return err
}

// renew takes up what the cluster trusts and who signs.
func (c *coordinator) renew(files pki.Files) {
	c.Helper()
	key, err := os.ReadFile(files.Key)
	c.check(err)
	request, err := pki.RequestFor("x", key)
	c.check(err)
	for range 2 { // the second time with what it has by then, which is written down
		text, err := os.ReadFile(files.CA)
		c.check(err)
		trusts, err := pki.AuthorityIDs(text)
		c.check(err)
		answer, err := c.api(files).RenewCertificate(c.Context(), connect.NewRequest(&berthv1.RenewCertificateRequest{
			CsrPem: request, Trusts: trusts,
		}))
		c.check(err)
		c.check(os.WriteFile(files.CA, answer.Msg.GetCaPem(), 0o600))
		c.check(os.WriteFile(files.Certificate, answer.Msg.GetCertificatePem(), 0o600))
	}
}

// rotate asks for a step in the replacement of the authority, and waits until the authorities are in these states.
func (c *coordinator) rotate(request *berthv1.RotateAuthorityRequest, want string) {
	c.Helper()
	_, err := c.api(c.admin).RotateAuthority(c.Context(), connect.NewRequest(request))
	c.check(err)
	c.stand(want)
}

// stand waits until the authorities are in these states, and this coordinator's files have those that are trusted.
func (c *coordinator) stand(want string) {
	c.Helper()
	c.eventually(want, func() bool {
		answer, err := c.api(c.admin).ListAuthorities(c.Context(), connect.NewRequest(&berthv1.ListAuthoritiesRequest{}))
		c.check(err)
		var are []string
		trusted, signs := 0, ""
		for _, one := range answer.Msg.GetAuthorities() {
			if one.GetName() == "cluster" {
				if are = append(are, one.GetState()); one.GetState() != "retired" {
					trusted++
				}
				if one.GetState() == "issuing" {
					signs = one.GetId()
				}
			}
		}
		text, err := os.ReadFile(filepath.Join(c.config.DataDir, "tls", "ca.pem"))
		c.check(err)
		ids, err := pki.AuthorityIDs(text)
		return err == nil && len(ids) == trusted && ids[0] == signs && strings.Join(are, " ") == want
	})
}

func imported(c *coordinator, authority *pki.Authority) *berthv1.RotateAuthorityRequest {
	key, err := authority.KeyPEM()
	c.check(err)
	return &berthv1.RotateAuthorityRequest{CertificatePem: authority.CertificatePEM(), KeyPem: key}
}

// The key of an authority makes nobody before it signs for the cluster, and not even those who are on record once it was taken back or
// retired. Who is revoked meanwhile stays out in every phase.
func TestAnAuthoritySignsForNobodyBeforeOrAfterItsTime(t *testing.T) {
	const unknown = "unknown certificate authority"
	c := coordinate(t)
	hv1, agent := c.enrol("agent", "hv1")
	_, alice := c.enrol("operator", "alice") // she sleeps, and holds it up
	_, bob := c.enrol("operator", "bob")
	own := filepath.Join(c.config.DataDir, "tls")
	peer := c.signs(c.authority, pki.Files{
		CA: filepath.Join(own, "ca.pem"), Certificate: filepath.Join(own, "peer.pem"), Key: filepath.Join(own, "peer.key"),
	})
	next, err := pki.NewAuthority(c.clusterID, time.Now())
	c.check(err)
	c.check(c.status(alice))
	c.check(c.status(bob))
	c.check(c.knock(peer))
	by := func(authority *pki.Authority, beside ...[]byte) (operator, node, coordinator pki.Files) {
		return c.signs(authority, alice, beside...), c.signs(authority, agent, beside...), c.signs(authority, peer, beside...)
	}
	nobody := func(what string, beside ...[]byte) {
		t.Helper()
		forged := func(role pki.Role, id string) pki.Files {
			return c.signs(next, c.forge(next, role, id, time.Now(), time.Hour), beside...)
		}
		c.shut(what, "", forged(pki.RoleOperator, "unheard"), forged(pki.RoleAgent, "unheard"), forged(pki.RolePeer, c.id))
	}

	trial := imported(c, next)
	trial.DryRun = true
	c.rotate(trial, "issuing")
	operator, node, coordinator := by(next)
	c.shut("before it is announced", unknown, operator, node, coordinator)

	c.rotate(imported(c, next), "issuing announced")
	nobody("announced")
	c.rotate(&berthv1.RotateAuthorityRequest{Cancel: true}, "issuing retired")
	operator, node, coordinator = by(next)
	c.shut("taken back", unknown, operator, node, coordinator)
	proof, err := c.authority.Endorse(next, time.Now())
	c.check(err)
	nobody("taken back, with the proof of the one before", proof)

	next, err = pki.NewAuthority(c.clusterID, time.Now())
	c.check(err)
	c.rotate(imported(c, next), "issuing retired announced")
	c.renew(c.admin)
	_, err = c.api(c.admin).RevokeIdentity(t.Context(), connect.NewRequest(&berthv1.RevokeIdentityRequest{
		Identity: "operator/bob", Reason: "lost", RequestId: "r1",
	}))
	c.check(err)
	out := func(what string) {
		t.Helper()
		for name, files := range map[string]pki.Files{"his own": bob, "one by the new authority": c.signs(next, bob)} {
			if c.status(files) == nil {
				t.Errorf("%s: who was revoked is answered with %s", what, name)
			}
			if _, err := c.renewAs(files, files.Key); err == nil {
				t.Errorf("%s: who was revoked renews %s", what, name)
			}
		}
	}
	out("announced")
	c.rotate(&berthv1.RotateAuthorityRequest{Force: true}, "outgoing retired issuing")
	out("issuing")
	c.check(c.status(alice)) // she was left behind, and comes in time
	c.renew(c.admin)
	c.rotate(&berthv1.RotateAuthorityRequest{Force: true}, "retired retired issuing")
	out("retired")
	c.shut("retired", unknown, alice, agent, peer)
	operator, node, coordinator = by(c.authority)
	c.shut("what the retired one signs anew", unknown, operator, node, coordinator)
	c.check(c.status(c.admin))
	c.keyIsReplaced(next, hv1, agent)
}

// keyIsReplaced has a node come back with a token, as itself and with another key. The key before is nobody's then, also in a certificate
// by the authority that counts.
func (c *coordinator) keyIsReplaced(by *pki.Authority, node string, before pki.Files) {
	c.Helper()
	id, now := c.enrol("agent", "hv1")
	if id != node {
		c.Fatalf("it comes back as %s, and was %s", id, node)
	}
	for _, files := range []pki.Files{now, c.signs(by, now)} { // so that nothing but the key is wrong below
		if removed, err := c.session(files, node); err != nil || removed {
			c.Errorf("the node that is back: %v", err)
		}
	}
	for why, files := range map[string]pki.Files{"unknown certificate authority": before, "not on record": c.signs(by, before)} {
		for what, ask := range map[string]func() error{
			"session":     func() error { _, err := c.session(files, node); return err },
			"certificate": func() error { _, err := c.renewAs(files, files.Key); return err },
		} {
			if err := answer(why, ask); err == nil || !strings.Contains(err.Error(), why) {
				c.Errorf("a %s with the key of before: %v, want %q", what, err, why)
			}
		}
	}
	if removed, err := c.session(now, node); err != nil || removed {
		c.Errorf("who has its key of before puts the node out: %v", err)
	}
}
