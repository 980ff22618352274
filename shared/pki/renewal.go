package pki

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"time"
)

// A certificate is renewed a little before two thirds of its life have passed, at a moment that follows from its key: so holders that
// enrolled together do not come together. One of an earlier release, which is good for years, is renewed as if it were good for
// CertificateLife.
const (
	renewedAfter = 19.0 / 30 // of its life
	spread       = 2.5 / 30  // of its life, earlier
	lateAfter    = 21.0 / 30 // of its life: by then it should have been renewed
)

// ErrRenewal reports an answer that is no renewal of the certificate that is there.
var ErrRenewal = errors.New("not a renewal of this certificate")

// RenewAt is when a certificate is to be renewed.
func RenewAt(certificate *x509.Certificate) time.Time {
	life := min(certificate.NotAfter.Sub(certificate.NotBefore), CertificateLife)
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	earlier := float64(binary.BigEndian.Uint64(sum[:8])) / math.MaxUint64 * spread
	return certificate.NotBefore.Add(time.Duration(float64(life) * (renewedAfter - earlier)))
}

// Late tells that a certificate has less than a third of its life left, and so should have been renewed long ago.
func Late(certificate *x509.Certificate, now time.Time) bool {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return now.After(certificate.NotBefore.Add(time.Duration(float64(life) * lateAfter)))
}

// Pair is a certificate with its key, as its files have them.
type Pair struct {
	Certificate *x509.Certificate
	Identity    Identity
	key         []byte // PEM
}

// LoadPair reads certificate and key of f. The error is ErrFiles.
func LoadPair(f Files) (Pair, error) {
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return Pair{}, fmt.Errorf("%w: %s and %s: %w", ErrFiles, f.Certificate, f.Key, err)
	}
	who, err := IdentityOf(pair.Leaf)
	if err != nil {
		return Pair{}, fmt.Errorf("%w: %s: %w", ErrFiles, f.Certificate, err)
	}
	key, err := os.ReadFile(f.Key)
	if err != nil {
		return Pair{}, fmt.Errorf("%w: %w", ErrFiles, err)
	}
	return Pair{Certificate: pair.Leaf, Identity: who, key: key}, nil
}

// Request asks for another certificate for the same key. The key stays because others know it: its hash is on record, copies of the
// files are in use, and connections that are open were proved with it.
func (p Pair) Request() ([]byte, error) { return RequestFor(p.Identity.Name, p.key) }

// Due tells whether the certificate is to be renewed: its time has come, or another authority signs now. An empty authority is not known.
func (p Pair) Due(authority string, now time.Time) bool {
	return !now.Before(RenewAt(p.Certificate)) || authority != "" && authority != AuthorityOf(p.Certificate)
}

// Check makes sure that a certificate is a renewal of this one: for the same holder and key, good for longer or by another authority, and
// signed by one of the authorities in trusted. The error is ErrRenewal.
func (p Pair) Check(certificate, trusted []byte) error {
	renewed, err := CertificateIn(certificate)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRenewal, err)
	}
	who, err := IdentityOf(renewed)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRenewal, err)
	}
	who.Name = p.Identity.Name // people may have given it another
	switch {
	case who != p.Identity:
		return fmt.Errorf("%w: it is for %s (%s) of cluster %s", ErrRenewal, who, who.ID, who.ClusterID)
	case KeyHash(renewed) != KeyHash(p.Certificate):
		return fmt.Errorf("%w: it is for another key", ErrRenewal)
	}
	return trustedFor(renewed, trusted, "it")
}

// CheckTrusted makes sure that a list of authorities has one that has signed this certificate. The error is ErrRenewal.
func (p Pair) CheckTrusted(trusted []byte) error {
	return trustedFor(p.Certificate, trusted, "the certificate that is here")
}

// trustedFor makes sure that one of the authorities in trusted has signed a certificate.
func trustedFor(certificate *x509.Certificate, trusted []byte, what string) error {
	authorities, err := parseCertificates(trusted)
	if err != nil {
		return fmt.Errorf("%w: the authorities: %w", ErrRenewal, err)
	}
	if err := signedByOne(certificate, authorities); err != nil {
		return fmt.Errorf("%w: none of the trusted authorities has signed %s: %w", ErrRenewal, what, err)
	}
	return nil
}

// RequestedKey is the KeyHash of the key that a request is for. The error is ErrRequest.
func RequestedKey(csrPEM []byte) (string, error) {
	key, err := requestedKey(csrPEM)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return KeyHash(&x509.Certificate{RawSubjectPublicKeyInfo: der}), nil
}
