package scrape

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"berth/shared/config"
)

// completeTLS checks the keys about certificates.
func (c *Config) completeTLS() error {
	for key, path := range map[string]string{
		"certificate_file": c.CertificateFile, "key_file": c.KeyFile, "client_ca_file": c.ClientCAFile,
	} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("%w.%s: %q: want an absolute path", ErrConfig, key, path)
		}
	}
	switch {
	case c.CertificateFile != "" && c.KeyFile == "":
		return fmt.Errorf("%w.key_file is missing: give the private key of certificate_file as well", ErrConfig)
	case c.CertificateFile == "" && c.KeyFile != "":
		return fmt.Errorf("%w.certificate_file is missing: give the certificate of key_file as well", ErrConfig)
	case c.CertificateFile == "" && c.ClientCAFile != "":
		return fmt.Errorf("%w.client_ca_file asks readers for certificates, which needs TLS: give certificate_file and key_file as well",
			ErrConfig)
	}
	return nil
}

// identity is the certificate that the listener shows. Its files are read when a reader connects, so that a renewed certificate counts
// without a restart. It is safe for concurrent use.
type identity struct {
	config *Config
	log    hclog.Logger

	mu     sync.Mutex
	last   *tls.Certificate
	failed rate.Sometimes // of the log
}

// load reads the files.
func (i *identity) load() (*tls.Certificate, error) {
	certificate, err := config.PEM(i.config.CertificateFile)
	if err != nil {
		return nil, fmt.Errorf("%w.certificate_file: %w", ErrConfig, err)
	}
	key, err := config.PEM(i.config.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w.key_file: %w", ErrConfig, err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %s and %s are no certificate with its key: %w", ErrConfig, i.config.CertificateFile, i.config.KeyFile, err)
	}
	return &pair, nil
}

// show is the certificate for one connection. While its files cannot be used, as in the middle of a renewal, it is the last that could.
func (i *identity) show(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair, err := i.load()
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		i.failed.Do(func() { i.log.Error("the certificate from before is shown to who reads figures", "error", err) })
		return i.last, nil
	}
	i.last = pair
	return pair, nil
}

// secure is the listener's side of TLS; nil: it has none. A reader's certificate is looked at when it asks for something, not here: so it
// is told in words what is wrong with it.
func (s *Server) secure() (*tls.Config, error) {
	if s.Config.CertificateFile == "" {
		return nil, nil //nolint:nilnil // nothing is wrong with a listener without TLS
	}
	if _, err := s.Config.authorities(); err != nil {
		return nil, err
	}
	shown := &identity{config: &s.Config, log: s.Log, failed: rate.Sometimes{Interval: time.Minute}}
	pair, err := shown.load()
	if err != nil {
		return nil, err
	}
	shown.last = pair
	made := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: shown.show}
	if s.Config.ClientCAFile != "" {
		made.ClientAuth = tls.RequestClientCert
	}
	return made, nil
}

// authorities are those that sign for readers; nil: readers need no certificate.
func (c *Config) authorities() (*x509.CertPool, error) {
	if c.ClientCAFile == "" {
		return nil, nil //nolint:nilnil // as it says
	}
	pool, err := config.Authorities(c.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("%w.client_ca_file: %w", ErrConfig, err)
	}
	return pool, nil
}

// errReader is why a reader's certificate is not taken.
var errReader = errors.New("your certificate is not taken")

// certified tells what is wrong with the certificate that a reader shows. False: it shows none.
func (c *Config) certified(r *http.Request, now time.Time) (shown bool, problem, fault error) {
	if c.ClientCAFile == "" || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false, nil, nil
	}
	authorities, err := c.authorities()
	if err != nil {
		return true, nil, err
	}
	between := x509.NewCertPool()
	for _, one := range r.TLS.PeerCertificates[1:] {
		between.AddCert(one)
	}
	own := r.TLS.PeerCertificates[0]
	_, err = own.Verify(x509.VerifyOptions{
		Roots: authorities, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return true, fmt.Errorf("%w: it is that of %q, valid until %s: %w; show one that is signed for clients by an authority of "+
			"metrics.client_ca_file", errReader, own.Subject, own.NotAfter.UTC().Format(time.DateOnly), err), nil
	}
	return true, nil, nil
}
