package pki

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

// LeastLife is how long an authority from outside has to be good at least: two lives of what it signs.
const LeastLife = 2 * CertificateLife

// AuthorityNotice is how long before the end of an authority people are told.
const AuthorityNotice = 180 * 24 * time.Hour

// AuthorityIDs are the IDs of the authorities in a list of certificates, in its order, each once. The error is ErrAuthority.
func AuthorityIDs(caPEM []byte) ([]string, error) {
	certificates, err := parseCertificates(caPEM)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAuthority, err)
	}
	var ids []string
	for _, one := range certificates {
		if id := hex.EncodeToString(one.SubjectKeyId); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// SplitAuthorities are the certificates of a list by the IDs of their authorities, PEM. Of one with several it is the first. The error is
// ErrAuthority.
func SplitAuthorities(caPEM []byte) (map[string][]byte, error) {
	certificates, err := parseCertificates(caPEM)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAuthority, err)
	}
	split := make(map[string][]byte)
	for _, one := range slices.Backward(certificates) {
		split[hex.EncodeToString(one.SubjectKeyId)] = certificatePEM(one.Raw)
	}
	return split, nil
}

// Ends is when the authority's certificate ends. Nothing that it signs is good for longer.
func (a *Authority) Ends() time.Time { return a.certificate.NotAfter }

// LoadAuthorityPair reads certificate and key of an authority from one text. The error is ErrAuthority.
func LoadAuthorityPair(clusterID string, text []byte) (*Authority, error) {
	_, key := pem.Decode(text)
	return LoadAuthorityOf(clusterID, text[:len(text)-len(key)], key)
}

// Begins is when the authority was made.
func (a *Authority) Begins() time.Time { return a.certificate.NotBefore.Add(backdated).UTC() }

// AuthorityEnds is when the first certificate of a text ends. The error is ErrAuthority.
func AuthorityEnds(caPEM []byte) (time.Time, error) {
	certificate, err := CertificateIn(caPEM)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", ErrAuthority, err)
	}
	return certificate.NotAfter, nil
}

// Ends is when the authority's certificate ends.
func (a *HypervisorAuthority) Ends() time.Time { return a.certificate.NotAfter }

// Begins is when the authority was made.
func (a *HypervisorAuthority) Begins() time.Time { return a.certificate.NotBefore.Add(backdated).UTC() }

// ID is the identifier of the authority's key in hex.
func (a *HypervisorAuthority) ID() string { return hex.EncodeToString(a.certificate.SubjectKeyId) }

// EndorsementLife is how long an authority vouches for its successor at most. It bounds what the key of one is worth that was taken back.
const EndorsementLife = 3 * CertificateLife

// Endorse signs the key of this authority's successor, so that who has pinned this one, or trusts it alone because he was away, accepts
// what that one signs. It ends with the first of the two, and after EndorsementLife.
func (a *Authority) Endorse(successor *Authority, now time.Time) ([]byte, error) {
	template := &x509.Certificate{
		Subject: successor.certificate.Subject, SubjectKeyId: successor.certificate.SubjectKeyId,
		NotBefore: now.Add(-backdated), NotAfter: now.Add(EndorsementLife),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	for _, end := range []time.Time{a.certificate.NotAfter, successor.certificate.NotAfter} {
		if end.Before(template.NotAfter) {
			template.NotAfter = end
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, successor.key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("endorse the next authority: %w", err)
	}
	return certificatePEM(der), nil
}

// ImportAuthority reads an authority from outside, which is to sign for a cluster: an intermediate of somebody's own authority, say. After
// its certificate may stand those of the authorities above it, each signed by the next. The error is ErrAuthority, and names what does
// not fit.
func ImportAuthority(clusterID string, certPEM, keyPEM []byte, now time.Time) (*Authority, error) {
	authority, err := LoadAuthorityOf(clusterID, certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	chain, err := parseCertificates(certPEM)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAuthority, err)
	}
	if !chain[0].Equal(authority.certificate) {
		return nil, fmt.Errorf("%w: the key does not belong to the first certificate: put the one that is to sign first", ErrAuthority)
	}
	for i, one := range chain {
		if err := above(one, i, now); err != nil {
			return nil, err
		}
		if i+1 < len(chain) {
			if err := one.CheckSignatureFrom(chain[i+1]); err != nil {
				return nil, fmt.Errorf("%w: certificate %d of the file is not signed by the one after it: %w", ErrAuthority, i+1, err)
			}
		}
	}
	switch own := authority.certificate; {
	case len(own.SubjectKeyId) == 0:
		return nil, fmt.Errorf("%w: the certificate has no subject key identifier: have it issued with one", ErrAuthority)
	case own.NotAfter.Before(now.Add(LeastLife)):
		return nil, fmt.Errorf("%w: the certificate ends at %s, and it has to be good for %d days at least: have a later one issued",
			ErrAuthority, own.NotAfter.UTC().Format(time.RFC3339), int(LeastLife/(24*time.Hour)))
	}
	return authority, authority.try(now)
}

// above judges one certificate of a chain of authorities; below it stand as many as depth says.
func above(one *x509.Certificate, depth int, now time.Time) error {
	name := fmt.Sprintf("certificate %d of the file (%s)", depth+1, one.Subject)
	switch {
	case !one.BasicConstraintsValid || !one.IsCA:
		return fmt.Errorf("%w: %s is not that of an authority: have it issued with CA:TRUE", ErrAuthority, name)
	case one.KeyUsage&x509.KeyUsageCertSign == 0:
		return fmt.Errorf("%w: %s may not sign certificates: have it issued with key usage keyCertSign", ErrAuthority, name)
	case one.MaxPathLen >= 0 && (one.MaxPathLen > 0 || one.MaxPathLenZero) && one.MaxPathLen < depth:
		return fmt.Errorf("%w: %s has path length %d, and %d authorities are below it", ErrAuthority, name, one.MaxPathLen, depth)
	case now.Before(one.NotBefore):
		return fmt.Errorf("%w: %s is good from %s on", ErrAuthority, name, one.NotBefore.UTC().Format(time.RFC3339))
	case now.After(one.NotAfter):
		return fmt.Errorf("%w: %s has ended at %s", ErrAuthority, name, one.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// try signs what a coordinator needs, and verifies it as others will: limits on names and uses that a certificate may have are found so.
func (a *Authority) try(now time.Time) error {
	request, _, err := NewRequest("trial")
	if err != nil {
		return err
	}
	who := Identity{Role: RolePeer, ID: "trial", Name: "trial", ClusterID: a.clusterID}
	signed, err := a.Sign(request, who, []string{"127.0.0.1", "trial.example.com"}, now, time.Hour)
	if err != nil {
		return err
	}
	certificate, err := CertificateIn(signed)
	if err != nil {
		return err
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		options := x509.VerifyOptions{Roots: pool(a.certificate), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := certificate.Verify(options); err != nil {
			return fmt.Errorf("%w: what it signs is not good for coordinators: %w: have it issued without limits on names and uses",
				ErrAuthority, err)
		}
	}
	return nil
}
