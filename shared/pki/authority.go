package pki

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Validity of what is signed.
const (
	DefaultValidity = 365 * 24 * time.Hour
	// CertificateLife is how long a certificate is good whose holder renews it, and UnrenewedLife that of one who cannot.
	CertificateLife   = 30 * 24 * time.Hour
	UnrenewedLife     = 5 * 365 * 24 * time.Hour
	authorityValidity = 10 * 365 * 24 * time.Hour
	backdated         = 10 * time.Minute
)

// The causes for which an authority refuses.
var (
	ErrAuthority = errors.New("not a certificate authority of Berth")
	ErrRequest   = errors.New("not a valid certificate request")
)

// Authority signs the certificates of one cluster. It is safe for use by several goroutines.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	clusterID   string
}

// NewAuthority makes the authority of a new cluster, valid for ten years from now.
func NewAuthority(clusterID string, now time.Time) (*Authority, error) {
	if !word.MatchString(clusterID) {
		return nil, fmt.Errorf("%w: cluster ID %q", ErrAuthority, clusterID)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"Berth"}, CommonName: "Berth cluster " + clusterID},
		URIs:                  []*url.URL{{Scheme: scheme, Host: clusterID}},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(authorityValidity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	// With no serial number in the template, a random one is made.
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	return &Authority{certificate: certificate, key: key, clusterID: clusterID}, nil
}

// LoadAuthority reads what CertificatePEM and KeyPEM gave. Of several certificates it takes the first that is of the key. The error is
// ErrAuthority.
func LoadAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	authority, err := loadAuthority(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	if authority.clusterID == "" {
		return nil, fmt.Errorf("%w: the certificate names no cluster", ErrAuthority)
	}
	return authority, nil
}

// LoadAuthorityOf is LoadAuthority for a cluster. An authority that comes from outside names no cluster, and is taken for this one.
func LoadAuthorityOf(clusterID string, certPEM, keyPEM []byte) (*Authority, error) {
	authority, err := loadAuthority(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	if named := authority.clusterID; named != "" && named != clusterID {
		return nil, fmt.Errorf("%w: the certificate is of cluster %s, this is cluster %s", ErrAuthority, named, clusterID)
	}
	authority.clusterID = clusterID
	return authority, nil
}

// loadAuthority leaves the cluster empty if the certificate names none.
func loadAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	certificates, err := parseCertificates(certPEM)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAuthority, err)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAuthority, err)
	}
	i := slices.IndexFunc(certificates, func(c *x509.Certificate) bool { return key.PublicKey.Equal(c.PublicKey) })
	if i < 0 {
		return nil, fmt.Errorf("%w: the key does not belong to the certificate", ErrAuthority)
	}
	authority := &Authority{certificate: certificates[i], key: key}
	if !authority.certificate.IsCA {
		return nil, fmt.Errorf("%w: the certificate is not one of an authority", ErrAuthority)
	}
	for _, uri := range authority.certificate.URIs {
		if uri.Scheme == scheme {
			authority.clusterID = uri.Host
		}
	}
	return authority, nil
}

// ID is the identifier of the authority's key, which AuthorityOf tells of what it has signed.
func (a *Authority) ID() string { return hex.EncodeToString(a.certificate.SubjectKeyId) }

// ClusterID is the cluster whose authority this is.
func (a *Authority) ClusterID() string { return a.clusterID }

// CertificatePEM is the certificate that everybody in the cluster trusts.
func (a *Authority) CertificatePEM() []byte { return certificatePEM(a.certificate.Raw) }

// KeyPEM is the authority's secret: its holder can sign for the whole cluster.
func (a *Authority) KeyPEM() ([]byte, error) { return keyPEM(a.key) }

// Sign makes a certificate for the key of csrPEM, valid from ten minutes before now for validity, but never longer than
// the authority. Everything in it but the key comes from id and addresses (DNS names and IP addresses of a server), not
// from the request. Peers get a certificate for servers and clients, the others one for clients only. The error is
// ErrRequest or ErrIdentity.
func (a *Authority) Sign(
	csrPEM []byte, id Identity, addresses []string, now time.Time, validity time.Duration,
) ([]byte, error) {
	if err := id.check(); err != nil {
		return nil, err
	}
	if id.ClusterID != a.clusterID {
		return nil, fmt.Errorf("%w: cluster %s, this is the authority of %s", ErrIdentity, id.ClusterID, a.clusterID)
	}
	if validity <= 0 {
		return nil, fmt.Errorf("%w: validity %v", ErrRequest, validity)
	}
	public, err := requestedKey(csrPEM)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{Organization: []string{"Berth"}, CommonName: id.Name},
		URIs:                  []*url.URL{id.uri()},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if template.NotAfter.After(a.certificate.NotAfter) {
		template.NotAfter = a.certificate.NotAfter
	}
	if id.Role == RolePeer {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
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

func requestedKey(csrPEM []byte) (crypto.PublicKey, error) {
	block, _ := pem.Decode(csrPEM)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, fmt.Errorf("%w: not PEM", ErrRequest)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	key, ok := request.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: the key is not ECDSA P-256", ErrRequest)
	}
	return key, nil
}

// NewRequest makes a key and a request to sign it. The name is a hint for people who look at the request.
func NewRequest(name string) (csrPEM, keyOfIt []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	if csrPEM, err = request(name, key); err != nil {
		return nil, nil, err
	}
	keyOfIt, err = keyPEM(key)
	if err != nil {
		return nil, nil, err
	}
	return csrPEM, keyOfIt, nil
}

func request(name string, key *ecdsa.PrivateKey) ([]byte, error) {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// Fingerprint is the SHA-256 of the certificate (of its DER form) in lower-case hex. The error is ErrAuthority.
func Fingerprint(caPEM []byte) (string, error) {
	certificate, err := CertificateIn(caPEM)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrAuthority, err)
	}
	return fingerprint(certificate), nil
}

func fingerprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// CertificateIn is the first certificate of a text in PEM.
func CertificateIn(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("the certificate is not PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// parseCertificates reads a list of certificates, one after the other. There is at least one.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it has a %s, and only certificates belong there", strings.ToLower(block.Type))
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, errors.New("the certificate is not PEM")
	}
	return all, nil
}

// signedByOne tells whether one of the authorities has signed a certificate.
func signedByOne(certificate *x509.Certificate, authorities []*x509.Certificate) error {
	var first error
	for _, authority := range authorities {
		err := certificate.CheckSignatureFrom(authority)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
