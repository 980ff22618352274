package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The tests dial real connections, which are judged by the real clock.
var now = time.Now()

func newAuthority(t *testing.T, clusterID string) *Authority {
	t.Helper()
	authority, err := NewAuthority(clusterID, now)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func sign(t *testing.T, a *Authority, role Role, id string, addresses ...string) (certPEM, keyPEM []byte) {
	t.Helper()
	csr, key, err := NewRequest(id)
	if err != nil {
		t.Fatal(err)
	}
	identity := Identity{Role: role, ID: "id-" + id, Name: id, ClusterID: a.ClusterID()}
	cert, err := a.Sign(csr, identity, addresses, now, DefaultValidity)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func files(t *testing.T, a *Authority, role Role, id string, addresses ...string) Files {
	t.Helper()
	folder := t.TempDir()
	f := Files{
		CA:          filepath.Join(folder, "ca.pem"),
		Certificate: filepath.Join(folder, "it.pem"),
		Key:         filepath.Join(folder, "it.key"),
	}
	cert, key := sign(t, a, role, id, addresses...)
	write(t, f.CA, a.CertificatePEM())
	write(t, f.Certificate, cert)
	write(t, f.Key, key)
	return f
}

func parse(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	cert, err := CertificateIn(text)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestAuthoritySurvivesItsFiles(t *testing.T) {
	made := newAuthority(t, "c1")
	key, err := made.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadAuthority(made.CertificatePEM(), key)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.ClusterID() != "c1" {
		t.Errorf("cluster %q, want c1", loaded.ClusterID())
	}
	cert, _ := sign(t, loaded, RoleAgent, "node1")
	if err := parse(t, cert).CheckSignatureFrom(parse(t, made.CertificatePEM())); err != nil {
		t.Errorf("signed by another authority: %v", err)
	}
	otherKey, err := newAuthority(t, "c1").KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	leaf, leafKey := sign(t, made, RolePeer, "coord1")
	for name, pair := range map[string][2][]byte{
		"another's key":  {made.CertificatePEM(), otherKey},
		"no certificate": {nil, key},
		"no key":         {made.CertificatePEM(), nil},
		"a leaf":         {leaf, leafKey},
	} {
		if _, err := LoadAuthority(pair[0], pair[1]); !errors.Is(err, ErrAuthority) {
			t.Errorf("%s: got %v, want ErrAuthority", name, err)
		}
	}
}

func TestSignedCertificateSaysWhoAndForHowLong(t *testing.T) {
	authority := newAuthority(t, "c1")
	csr, _, err := NewRequest("whatever the request says")
	if err != nil {
		t.Fatal(err)
	}
	want := Identity{Role: RolePeer, ID: "m1", Name: "coord1", ClusterID: "c1"}
	text, err := authority.Sign(csr, want, []string{"coord1.example", "10.0.0.1", "fd00::1"}, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert := parse(t, text)
	got, err := IdentityOf(cert)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.String() != "peer/coord1" {
		t.Errorf("String() = %q, want peer/coord1", got)
	}
	for _, host := range []string{"coord1.example", "10.0.0.1", "fd00::1"} {
		if err := cert.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if cert.VerifyHostname("coord2.example") == nil {
		t.Error("valid for a host that was not named")
	}
	if d := now.Sub(cert.NotBefore); d < 9*time.Minute || d > 11*time.Minute {
		t.Errorf("dated back by %v, want 10 minutes", d)
	}
	if d := cert.NotAfter.Sub(now); d < 59*time.Minute || d > time.Hour {
		t.Errorf("valid for %v, want an hour", d)
	}
}

func TestOnlyPeersMayServe(t *testing.T) {
	authority := newAuthority(t, "c1")
	for role, servers := range map[Role]bool{RolePeer: true, RoleAgent: false, RoleOperator: false} {
		text, _ := sign(t, authority, role, "x")
		_, err := parse(t, text).Verify(x509.VerifyOptions{
			Roots: pool(authority.certificate), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		if (err == nil) != servers {
			t.Errorf("%s: may serve is %v, want %v", role, err == nil, servers)
		}
	}
}

func TestSignedCertificateDiesWithTheAuthority(t *testing.T) {
	authority := newAuthority(t, "c1")
	csr, _, err := NewRequest("x")
	if err != nil {
		t.Fatal(err)
	}
	identity := Identity{Role: RoleAgent, ID: "n1", Name: "node1", ClusterID: "c1"}
	text, err := authority.Sign(csr, identity, nil, now, 2*authorityValidity)
	if err != nil {
		t.Fatal(err)
	}
	if end := parse(t, text).NotAfter; !end.Equal(authority.certificate.NotAfter) {
		t.Errorf("valid until %v, the authority until %v", end, authority.certificate.NotAfter)
	}
}

func TestSignRefuses(t *testing.T) {
	authority := newAuthority(t, "c1")
	csr, _, err := NewRequest("x")
	if err != nil {
		t.Fatal(err)
	}
	good := Identity{Role: RoleAgent, ID: "n1", Name: "node1", ClusterID: "c1"}
	with := func(change func(*Identity)) Identity {
		identity := good
		change(&identity)
		return identity
	}
	block, _ := pem.Decode(csr)
	block.Bytes[len(block.Bytes)-1] ^= 1
	forged := pem.EncodeToMemory(block)
	for _, c := range []struct {
		name     string
		csr      []byte
		identity Identity
		validity time.Duration
		want     error
	}{
		{"a role that does not exist", csr, with(func(i *Identity) { i.Role = "root" }), time.Hour, ErrIdentity},
		{"an ID that leaves its place", csr, with(func(i *Identity) { i.ID = "n1/../x" }), time.Hour, ErrIdentity},
		{"no ID", csr, with(func(i *Identity) { i.ID = "" }), time.Hour, ErrIdentity},
		{"a name with a line break", csr, with(func(i *Identity) { i.Name = "a\nb" }), time.Hour, ErrIdentity},
		{"another cluster", csr, with(func(i *Identity) { i.ClusterID = "c2" }), time.Hour, ErrIdentity},
		{"no request", nil, good, time.Hour, ErrRequest},
		{"a request not signed by its key", forged, good, time.Hour, ErrRequest},
		{"no validity", csr, good, 0, ErrRequest},
	} {
		if _, err := authority.Sign(c.csr, c.identity, nil, now, c.validity); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestIdentityOfRefuses(t *testing.T) {
	if _, err := IdentityOf(nil); !errors.Is(err, ErrIdentity) {
		t.Errorf("nil: %v", err)
	}
	if _, err := IdentityOf(newAuthority(t, "c1").certificate); !errors.Is(err, ErrIdentity) {
		t.Errorf("the authority itself: %v", err)
	}
	text, _ := sign(t, newAuthority(t, "c1"), RoleAgent, "node1")
	cert := parse(t, text)
	cert.URIs = append(cert.URIs, cert.URIs[0])
	if _, err := IdentityOf(cert); !errors.Is(err, ErrIdentity) {
		t.Errorf("two identities: %v", err)
	}
}

// handshake connects both ends over loopback under the host name 127.0.0.1 and returns what each saw of the other.
func handshake(t *testing.T, server, client *tls.Config) (serverErr, clientErr error, seen *x509.Certificate) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			done <- err
			return
		}
		defer conn.Close()
		secure := tls.Server(conn, server)
		err = secure.Handshake()
		if certs := secure.ConnectionState().PeerCertificates; err == nil && len(certs) > 0 {
			seen = certs[0]
		}
		if err == nil {
			_, err = secure.Write([]byte("x"))
		}
		done <- err
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client = client.Clone()
	client.ServerName = "127.0.0.1"
	secure := tls.Client(conn, client)
	// In TLS 1.3 the client learns with its first read that the server refused its certificate.
	if clientErr = secure.Handshake(); clientErr == nil {
		_, clientErr = secure.Read(make([]byte, 1))
	}
	if clientErr != nil {
		_ = conn.Close()
	}
	serverErr = <-done
	return serverErr, clientErr, seen
}

func serverConfig(t *testing.T, f Files, auth tls.ClientAuthType) *tls.Config {
	t.Helper()
	config, err := ServerConfig(f, auth)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func clientConfig(t *testing.T, f Files, want Role) *tls.Config {
	t.Helper()
	config, err := ClientConfig(f, want)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestMutualTLS(t *testing.T) {
	ours, theirs := newAuthority(t, "c1"), newAuthority(t, "c2")
	namesake := newAuthority(t, "c1")
	server := serverConfig(t, files(t, ours, RolePeer, "coord1", "127.0.0.1"), tls.RequireAndVerifyClientCert)
	agent := files(t, ours, RoleAgent, "node1")

	serverErr, clientErr, seen := handshake(t, server, clientConfig(t, agent, RolePeer))
	if serverErr != nil || clientErr != nil {
		t.Fatalf("server %v, client %v", serverErr, clientErr)
	}
	if identity, err := IdentityOf(seen); err != nil || identity.String() != "agent/node1" {
		t.Errorf("the server saw %v (%v)", identity, err)
	}

	elsewhere := serverConfig(t, files(t, ours, RolePeer, "coord2", "10.9.9.9"), tls.NoClientCert)
	if _, err, _ := handshake(t, elsewhere, clientConfig(t, agent, RolePeer)); !errors.As(err, new(x509.HostnameError)) {
		t.Errorf("a server for another host: got %v", err)
	}
	if _, err, _ := handshake(t, server, clientConfig(t, agent, RoleAgent)); !errors.Is(err, ErrPeer) {
		t.Errorf("a server in another role: got %v", err)
	}
	impostor := serverConfig(t, files(t, ours, RoleAgent, "node2", "127.0.0.1"), tls.NoClientCert)
	if _, err, _ := handshake(t, impostor, clientConfig(t, agent, RolePeer)); err == nil {
		t.Error("an agent served as a coordinator")
	}
	for name, authority := range map[string]*Authority{"another cluster": theirs, "another authority for the same cluster ID": namesake} {
		stranger := files(t, authority, RoleOperator, "eve")
		if _, err, _ := handshake(t, server, clientConfig(t, stranger, RolePeer)); err == nil {
			t.Errorf("%s: the client trusted the server", name)
		}
		blind := clientConfig(t, stranger, RolePeer)
		blind.InsecureSkipVerify, blind.VerifyConnection = true, nil
		if err, _, _ := handshake(t, server, blind); err == nil {
			t.Errorf("%s: the server took its certificate", name)
		}
	}
	old := clientConfig(t, agent, RolePeer)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, err, _ := handshake(t, server, old); err == nil {
		t.Error("TLS 1.2 was accepted")
	}
}

func TestPinnedClient(t *testing.T) {
	ours, theirs := newAuthority(t, "c1"), newAuthority(t, "c2")
	pin, err := Fingerprint(ours.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	good := serverConfig(t, files(t, ours, RolePeer, "coord1", "some.other.name"), tls.VerifyClientCertIfGiven)
	for _, text := range []string{pin, strings.ToUpper(pin)} {
		if serverErr, clientErr, _ := handshake(t, good, PinnedClientConfig(text)); serverErr != nil || clientErr != nil {
			t.Errorf("server %v, client %v", serverErr, clientErr)
		}
	}
	other := serverConfig(t, files(t, theirs, RolePeer, "coord1", "127.0.0.1"), tls.NoClientCert)
	if _, err, _ := handshake(t, other, PinnedClientConfig(pin)); !errors.Is(err, ErrPeer) {
		t.Errorf("another cluster: got %v", err)
	}
	agent := serverConfig(t, files(t, ours, RoleAgent, "node1", "127.0.0.1"), tls.NoClientCert)
	if _, err, _ := handshake(t, agent, PinnedClientConfig(pin)); !errors.Is(err, ErrPeer) {
		t.Errorf("an agent as coordinator: got %v", err)
	}
	// The right authority's certificate is public: sending it along must not help a stranger.
	forged := other.Clone()
	forged.GetConfigForClient = nil
	forged.Certificates[0].Certificate[1] = ours.certificate.Raw
	if _, err, _ := handshake(t, forged, PinnedClientConfig(pin)); !errors.Is(err, ErrPeer) {
		t.Errorf("a stranger with our authority's certificate: got %v", err)
	}
}

func TestReplacedFilesAreTakenUp(t *testing.T) {
	authority := newAuthority(t, "c1")
	f := files(t, authority, RolePeer, "before", "127.0.0.1")
	server := serverConfig(t, files(t, authority, RolePeer, "coord1", "127.0.0.1"), tls.RequireAndVerifyClientCert)
	client := clientConfig(t, f, RolePeer)
	name := func() string {
		t.Helper()
		serverErr, clientErr, seen := handshake(t, server, client)
		if serverErr != nil || clientErr != nil {
			t.Fatalf("server %v, client %v", serverErr, clientErr)
		}
		return seen.Subject.CommonName
	}
	if got := name(); got != "before" {
		t.Errorf("got %q, want before", got)
	}
	cert, key := sign(t, authority, RolePeer, "after", "127.0.0.1")
	write(t, f.Certificate, cert)
	if got := name(); got != "before" {
		t.Errorf("half replaced: got %q, want before", got)
	}
	write(t, f.Key, key)
	if got := name(); got != "after" {
		t.Errorf("replaced: got %q, want after", got)
	}
	if err := os.Remove(f.Key); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "after" {
		t.Errorf("removed: got %q, want after", got)
	}
}

func TestUnusableFilesAreNamed(t *testing.T) {
	ours, theirs := newAuthority(t, "c1"), newAuthority(t, "c2")
	for _, c := range []struct {
		name  string
		spoil func(f *Files)
		say   string
	}{
		{"missing", func(f *Files) { f.Key += ".none" }, "it.key.none"},
		{"another's key", func(f *Files) { f.Key = files(t, ours, RoleAgent, "x").Key }, "it.key"},
		{"another's authority", func(f *Files) { write(t, f.CA, theirs.CertificatePEM()) }, "is not signed by"},
		{"garbage", func(f *Files) { write(t, f.CA, []byte("x")) }, "ca.pem"},
	} {
		f := files(t, ours, RoleAgent, "node1")
		c.spoil(&f)
		_, serverErr := ServerConfig(f, tls.NoClientCert)
		_, clientErr := ClientConfig(f, RolePeer)
		for _, err := range []error{serverErr, clientErr} {
			if !errors.Is(err, ErrFiles) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%s: got %v, want ErrFiles that says %q", c.name, err, c.say)
			}
		}
	}
}

func TestTokens(t *testing.T) {
	pin, err := Fingerprint(newAuthority(t, "c1").CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	for _, purpose := range []string{PurposeAgent, PurposeCoordinator, PurposeOperator} {
		text, hash, err := NewToken(purpose, pin)
		if err != nil {
			t.Fatal(err)
		}
		token, err := ParseToken(" " + text + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if token.Purpose != purpose || token.CAFingerprint != pin || HashSecret(token.Secret) != hash {
			t.Errorf("got %+v with hash %s, want purpose %s, fingerprint %s", token, hash, purpose, pin)
		}
		if strings.Contains(text, hash) || len(token.Secret) != 52 {
			t.Errorf("secret %q: want 256 bits, and its hash not in the token", token.Secret)
		}
		// However much is cut off at either end, it is noticed.
		for i := 1; i < len(text); i++ {
			for _, cut := range []string{text[:i], text[i:]} {
				if _, err := ParseToken(cut); !errors.Is(err, ErrToken) {
					t.Fatalf("cut token %q: got %v, want ErrToken", cut, err)
				}
			}
		}
	}
	if _, _, err := NewToken("root", pin); err == nil {
		t.Error("a token for a purpose that does not exist")
	}
	if _, _, err := NewToken(PurposeAgent, pin[1:]); err == nil {
		t.Error("a token with half a fingerprint")
	}
}
