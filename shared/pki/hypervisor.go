package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// HypervisorValidity is how long what a hypervisor is issued for libvirt and QEMU lasts.
const HypervisorValidity = 90 * 24 * time.Hour

// Purpose is what a certificate of a hypervisor is good for.
type Purpose string

// The two purposes have an authority each, so that no key that QEMU reads opens a connection to libvirt.
const (
	Control Purpose = "control" // libvirt's daemons among themselves: whoever has one controls every hypervisor
	Data    Purpose = "data"    // QEMU's migrations and copies of disks
)

// Purposes are all of them.
var Purposes = []Purpose{Control, Data}

// HypervisorAuthority signs what libvirt or QEMU shows to others of its kind. It is none of Berth's: its certificates name no
// identity, and Berth trusts none of them.
type HypervisorAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Hypervisors are the authorities of all purposes.
type Hypervisors map[Purpose]*HypervisorAuthority

// NewHypervisors makes the authorities of a new cluster.
func NewHypervisors(clusterID string, now time.Time) (Hypervisors, error) {
	all := Hypervisors{}
	for _, purpose := range Purposes {
		authority, err := NewHypervisorAuthority(clusterID, purpose, now)
		if err != nil {
			return nil, err
		}
		all[purpose] = authority
	}
	return all, nil
}

// NewHypervisorAuthority makes the authority of one purpose for a new cluster.
func NewHypervisorAuthority(clusterID string, purpose Purpose, now time.Time) (*HypervisorAuthority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the %s authority's key: %w", purpose, err)
	}
	return hypervisorAuthority(clusterID, purpose, key, now)
}

// Hypervisor is the authority of one purpose in a cluster that was made before there were any. Its key follows from this one's by a
// one-way function, so every member makes the same without asking another.
func (a *Authority) Hypervisor(purpose Purpose) (*HypervisorAuthority, error) {
	secret, err := a.key.Bytes()
	if err != nil {
		return nil, fmt.Errorf("make the %s authority's key: %w", purpose, err)
	}
	for try := range 16 { // one of 2^32 seeds is not a key of the curve
		seed, err := hkdf.Key(sha256.New, secret, []byte(a.clusterID), fmt.Sprintf("berth hypervisor authority %s %d", purpose, try), 32)
		if err != nil {
			return nil, fmt.Errorf("make the %s authority's key: %w", purpose, err)
		}
		key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed)
		if err != nil {
			continue
		}
		return hypervisorAuthority(a.clusterID, purpose, key, a.certificate.NotBefore.Add(backdated))
	}
	return nil, fmt.Errorf("%w: no %s key follows from it", ErrAuthority, purpose)
}

// Secret follows from the authority's key by a one-way function: every member comes to the same one for a purpose, and nobody else does.
func (a *Authority) Secret(purpose string) (secret [32]byte, err error) {
	key, err := a.key.Bytes()
	if err != nil {
		return secret, fmt.Errorf("make a secret of the authority's key: %w", err)
	}
	made, err := hkdf.Key(sha256.New, key, []byte(a.clusterID), purpose, len(secret))
	if err != nil {
		return secret, fmt.Errorf("make a secret of the authority's key: %w", err)
	}
	copy(secret[:], made)
	return secret, nil
}

// hypervisorAuthority gives the same certificate for the same key and time, to the last bit.
func hypervisorAuthority(clusterID string, purpose Purpose, key *ecdsa.PrivateKey, now time.Time) (*HypervisorAuthority, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("make the %s authority: %w", purpose, err)
	}
	serial := sha256.Sum256(public)
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(serial[:15]),
		Subject:               pkix.Name{Organization: []string{"Berth"}, CommonName: "Berth " + string(purpose) + " " + clusterID},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(authorityValidity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	// Without a source of random bits the signature follows from the key and from what is signed.
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the %s authority's certificate: %w", purpose, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the %s authority's certificate: %w", purpose, err)
	}
	return &HypervisorAuthority{certificate: certificate, key: key}, nil
}

// PEM is certificate and key, for LoadHypervisorAuthority. It is the authority's secret.
func (a *HypervisorAuthority) PEM() ([]byte, error) {
	key, err := keyPEM(a.key)
	if err != nil {
		return nil, err
	}
	return append(a.CertificatePEM(), key...), nil
}

// CertificatePEM is what libvirt or QEMU trusts.
func (a *HypervisorAuthority) CertificatePEM() []byte { return certificatePEM(a.certificate.Raw) }

// LoadHypervisorAuthority reads what PEM gave. The error is ErrAuthority.
func LoadHypervisorAuthority(text []byte) (*HypervisorAuthority, error) {
	certificate, err := CertificateIn(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAuthority, err)
	}
	_, rest := pem.Decode(text)
	key, err := parseKey(rest)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAuthority, err)
	}
	if !certificate.IsCA || len(certificate.URIs) != 0 || !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, fmt.Errorf("%w: certificate and key are not those of one authority for hypervisors", ErrAuthority)
	}
	return &HypervisorAuthority{certificate: certificate, key: key}, nil
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T, want ECDSA", parsed)
	}
	return key, nil
}

// Sign makes a certificate of a hypervisor for the key of csrPEM, valid until HypervisorValidity from now. The name and its
// addresses (DNS names and IP addresses) are not taken from the request. The error is ErrRequest or ErrIdentity.
func (a *HypervisorAuthority) Sign(csrPEM []byte, name string, addresses []string, now time.Time) ([]byte, error) {
	if !word.MatchString(name) {
		return nil, fmt.Errorf("%w: name %q (want letters, digits, dot, dash and underscore)", ErrIdentity, name)
	}
	public, err := requestedKey(csrPEM)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		// One name alone: lists of who is allowed compare the whole, and libraries differ in its order.
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-backdated),
		NotAfter:  now.Add(HypervisorValidity),
		// libvirt insists on key encipherment, though TLS with such keys never uses it.
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if template.NotAfter.After(a.certificate.NotAfter) {
		template.NotAfter = a.certificate.NotAfter
	}
	for _, address := range addresses {
		if ip := net.ParseIP(address); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, address)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return certificatePEM(der), nil
}

// RequestFor is NewRequest for a key that is there already.
func RequestFor(name string, key []byte) (csrPEM []byte, err error) {
	parsed, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	return request(name, parsed)
}

// SameKey tells whether two private keys in PEM are one.
func SameKey(a, b []byte) bool {
	one, errOne := publicOf(a)
	other, errOther := publicOf(b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

// publicOf is the public key of a private one of any common kind.
func publicOf(text []byte) ([]byte, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
			if parsed, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
				return nil, errors.New("the key is of no kind that is known")
			}
		}
	}
	private, ok := parsed.(interface{ Public() crypto.PublicKey })
	if !ok {
		return nil, errors.New("the key has no public half")
	}
	return x509.MarshalPKIXPublicKey(private.Public())
}
