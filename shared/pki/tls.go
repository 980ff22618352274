package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Files are the paths of what one holder of a certificate needs.
type Files struct {
	CA          string // the authorities that the cluster trusts, one or several
	Certificate string
	Key         string
}

// The causes for which a connection is refused or not made.
var (
	ErrFiles = errors.New("certificate files are not usable")
	ErrPeer  = errors.New("the other side is not who it should be")
)

// ServerConfig serves with the pair in f and judges client certificates by the authorities in f, as auth says. Replaced
// files are taken up with the next connection; files that do not fit together are not, and the old ones stay in use.
// The authorities' certificates are sent along, so that a machine with nothing but a token can check it. The error is
// ErrFiles.
func ServerConfig(f Files, auth tls.ClientAuthType) (*tls.Config, error) {
	watched, err := watch(f)
	if err != nil {
		return nil, err
	}
	build := func(m material) *tls.Config {
		return &tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: []tls.Certificate{m.chain()},
			ClientAuth:   auth,
			ClientCAs:    pool(m.trusted...),
			NextProtos:   []string{"h2", "http/1.1"},
			// A resumed session would skip the look at a certificate that has been replaced or revoked since.
			SessionTicketsDisabled: true,
		}
	}
	config := build(watched.current())
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return build(watched.current()), nil
	}
	return config, nil
}

// ClientConfig dials with the pair in f, taken up again when the files change. It accepts only a server whose
// certificate one of the authorities in f signed, for the host that is dialled, in the role want and in the same cluster.
// The error is ErrFiles; a refused server's is ErrPeer or that of package x509. The authorities are those of today: what
// runs for long asks Client. Where several are trusted, their certificates are sent along: one of them may prove to a
// server that was away, and trusts an earlier one alone, who has signed the pair.
func ClientConfig(f Files, want Role) (*tls.Config, error) {
	client, err := Client(f, want)
	if err != nil {
		return nil, err
	}
	return client(), nil
}

// Client gives what ClientConfig does, each time with the authorities that the files have then.
func Client(f Files, want Role) (func() *tls.Config, error) {
	watched, err := watch(f)
	if err != nil {
		return nil, err
	}
	own, err := IdentityOf(watched.current().pair.Leaf)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFiles, f.Certificate, err)
	}
	return func() *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS13,
			RootCAs:    pool(watched.current().trusted...),
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				m := watched.current()
				if len(m.trusted) > 1 {
					m.pair = m.chain()
				}
				return &m.pair, nil
			},
			VerifyConnection: func(state tls.ConnectionState) error {
				return checkServer(state.PeerCertificates, want, own.ClusterID)
			},
		}
	}, nil
}

// PinnedClientConfig is for enrolment: it has no certificate yet and trusts only a coordinator whose authority has the
// fingerprint of the token. The host name is not compared: every coordinator of the cluster is equally good for this, and
// the administrator may reach it by a name that its certificate does not have.
func PinnedClientConfig(caFingerprint string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// The normal check needs roots in advance. VerifyConnection below does the same with the pinned one.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return checkPinned(state.PeerCertificates, strings.ToLower(caFingerprint))
		},
	}
}

// checkPinned accepts a server whose certificate is by the pinned authority, or by one that the pinned one has endorsed as its successor.
func checkPinned(chain []*x509.Certificate, want string) error {
	if len(chain) == 0 {
		return fmt.Errorf("%w: it sent no certificate", ErrPeer)
	}
	for _, authority := range chain[1:] {
		if fingerprint(authority) != want {
			continue
		}
		trusted := []*x509.Certificate{authority}
		for _, other := range chain[1:] {
			if other.IsCA && other.CheckSignatureFrom(authority) == nil {
				trusted = append(trusted, other)
			}
		}
		_, err := chain[0].Verify(x509.VerifyOptions{
			Roots:     pool(trusted...),
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPeer, err)
		}
		return checkServer(chain, RolePeer, "")
	}
	return fmt.Errorf("%w: it belongs to another cluster than the token", ErrPeer)
}

// checkServer looks at the role, and at the cluster unless that is empty.
func checkServer(chain []*x509.Certificate, want Role, clusterID string) error {
	if len(chain) == 0 {
		return fmt.Errorf("%w: it sent no certificate", ErrPeer)
	}
	identity, err := IdentityOf(chain[0])
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrPeer, err)
	case identity.Role != want:
		return fmt.Errorf("%w: it is %s, want a %s", ErrPeer, identity, want)
	case clusterID != "" && identity.ClusterID != clusterID:
		return fmt.Errorf("%w: it belongs to cluster %s, want %s", ErrPeer, identity.ClusterID, clusterID)
	}
	return nil
}

// pool has the authorities that a connection is judged by. An authority signs no other ones but its successor (Endorse), which is good for
// who trusts it alone, because he was away. Their path length forbids that: it is from before there were successors.
func pool(authorities ...*x509.Certificate) *x509.CertPool {
	roots := x509.NewCertPool()
	for _, authority := range authorities {
		if authority.MaxPathLenZero {
			longer := *authority
			longer.MaxPathLen, longer.MaxPathLenZero = 1, false
			authority = &longer
		}
		roots.AddCert(authority)
	}
	return roots
}

// material is one consistent reading of Files.
type material struct {
	pair    tls.Certificate
	trusted []*x509.Certificate
}

// chain is the pair with the authorities' certificates after it.
func (m *material) chain() tls.Certificate {
	pair := m.pair
	pair.Certificate = slices.Clone(pair.Certificate)
	for _, authority := range m.trusted {
		pair.Certificate = append(pair.Certificate, authority.Raw)
	}
	return pair
}

// watcher reads Files again when one of them is another file, or has another size or time of change, than before.
type watcher struct {
	files Files

	mu    sync.Mutex
	seen  [3]os.FileInfo
	value material
}

func watch(f Files) (*watcher, error) {
	seen, err := stat(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFiles, err)
	}
	value, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFiles, err)
	}
	return &watcher{files: f, seen: seen, value: value}, nil
}

func (w *watcher) current() material {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, err := stat(w.files)
	if err != nil || !changed(w.seen, seen) {
		return w.value
	}
	// Between the replacement of two files they do not fit together: then the old material serves on, and the next
	// connection looks again.
	if value, err := read(w.files); err == nil {
		w.seen, w.value = seen, value
	}
	return w.value
}

func stat(f Files) (infos [3]os.FileInfo, err error) {
	for i, path := range []string{f.CA, f.Certificate, f.Key} {
		if infos[i], err = os.Stat(path); err != nil {
			return infos, err
		}
	}
	return infos, nil
}

func changed(before, now [3]os.FileInfo) bool {
	for i := range before {
		if !os.SameFile(before[i], now[i]) || before[i].Size() != now[i].Size() ||
			!before[i].ModTime().Equal(now[i].ModTime()) {
			return true
		}
	}
	return false
}

func read(f Files) (material, error) {
	caPEM, err := os.ReadFile(f.CA)
	if err != nil {
		return material{}, err
	}
	trusted, err := parseCertificates(caPEM)
	if err != nil {
		return material{}, fmt.Errorf("%s: %w", f.CA, err)
	}
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return material{}, fmt.Errorf("%s and %s: %w", f.Certificate, f.Key, err)
	}
	if err := signedByOne(pair.Leaf, trusted); err != nil {
		return material{}, fmt.Errorf("%s is not signed by %s: %w", f.Certificate, f.CA, err)
	}
	return material{pair: pair, trusted: trusted}, nil
}
