package pki

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Role is what a certificate's holder may be.
type Role string

// The roles. A peer is a coordinator.
const (
	RolePeer     Role = "peer"
	RoleAgent    Role = "agent"
	RoleOperator Role = "operator"
)

// ErrIdentity reports a certificate, or a request for one, without a proper identity of Berth.
var ErrIdentity = errors.New("not an identity of Berth")

// Identity is who holds a certificate.
type Identity struct {
	Role      Role
	ID        string // member, node or operator ID
	Name      string // for people; not unique over time
	ClusterID string
}

// String is ROLE/NAME, for instance "operator/admin".
func (i Identity) String() string { return string(i.Role) + "/" + i.Name }

// Bearer is somebody with a certificate: who that says it is, the key that it is for, and when it ends.
type Bearer struct {
	Identity
	Key       string // KeyHash of the certificate
	Until     time.Time
	Authority string // which authority signed it, as AuthorityOf tells
}

// BearerOf reads a certificate as IdentityOf does.
func BearerOf(cert *x509.Certificate) (Bearer, error) {
	identity, err := IdentityOf(cert)
	if err != nil {
		return Bearer{}, err
	}
	return Bearer{Identity: identity, Key: KeyHash(cert), Until: cert.NotAfter, Authority: AuthorityOf(cert)}, nil
}

// KeyHash is the lower-case hex SHA-256 of a certificate's public key with its algorithm.
func KeyHash(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// AuthorityOf is which authority signed a certificate, in hex: the identifier of that authority's key.
func AuthorityOf(cert *x509.Certificate) string { return hex.EncodeToString(cert.AuthorityKeyId) }

// BearerOfPEM reads the first certificate of a text as BearerOf does.
func BearerOfPEM(text []byte) (Bearer, error) {
	cert, err := CertificateIn(text)
	if err != nil {
		return Bearer{}, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	return BearerOf(cert)
}

const scheme = "berth"

// word is what may stand between the slashes of the identity's URI.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func (i Identity) check() error {
	switch {
	case i.Role != RolePeer && i.Role != RoleAgent && i.Role != RoleOperator:
		return fmt.Errorf("%w: role %q", ErrIdentity, i.Role)
	case !word.MatchString(i.ID):
		return fmt.Errorf("%w: ID %q (want letters, digits, dot, dash and underscore)", ErrIdentity, i.ID)
	case !word.MatchString(i.ClusterID):
		return fmt.Errorf("%w: cluster ID %q", ErrIdentity, i.ClusterID)
	case !word.MatchString(i.Name):
		return fmt.Errorf("%w: name %q (want letters, digits, dot, dash and underscore)", ErrIdentity, i.Name)
	}
	return nil
}

func (i Identity) uri() *url.URL {
	return &url.URL{Scheme: scheme, Host: i.ClusterID, Path: "/" + string(i.Role) + "/" + i.ID}
}

// IdentityOf reads who a certificate names. It does not verify the certificate: that is TLS's work. The error is
// ErrIdentity.
func IdentityOf(cert *x509.Certificate) (Identity, error) {
	if cert == nil {
		return Identity{}, fmt.Errorf("%w: no certificate", ErrIdentity)
	}
	var found *url.URL
	for _, uri := range cert.URIs {
		if uri.Scheme != scheme {
			continue
		}
		if found != nil {
			return Identity{}, fmt.Errorf("%w: the certificate has two", ErrIdentity)
		}
		found = uri
	}
	if found == nil {
		return Identity{}, fmt.Errorf("%w: the certificate has no %s:// name", ErrIdentity, scheme)
	}
	role, id, _ := strings.Cut(strings.TrimPrefix(found.Path, "/"), "/")
	identity := Identity{Role: Role(role), ID: id, Name: cert.Subject.CommonName, ClusterID: found.Host}
	if err := identity.check(); err != nil {
		return Identity{}, err
	}
	return identity, nil
}
