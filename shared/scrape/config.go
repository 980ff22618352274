// Package scrape is the listener that a program's figures are read from: /metrics, for Prometheus.
//
// It is for this machine alone unless the configuration gives another address, and then it wants a token or a certificate of whoever reads.
package scrape

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"berth/shared/config"
)

// The ports that the programs serve their figures on.
const (
	PortCoordinator = 7424
	PortAgent       = 7425
)

// Off is the address of a program that serves no figures.
const Off = "off"

// Config is the key metrics of a configuration file.
type Config struct {
	Listen    string `yaml:"listen,omitempty"`     // HOST:PORT, or Off; default: 127.0.0.1 and the program's port
	TokenFile string `yaml:"token_file,omitempty"` // its first line is the token that readers have to show; empty: none is asked for

	CertificateFile string `yaml:"certificate_file,omitempty"` // PEM; with KeyFile the listener speaks TLS alone
	KeyFile         string `yaml:"key_file,omitempty"`         // PEM, of CertificateFile
	ClientCAFile    string `yaml:"client_ca_file,omitempty"`   // PEM; readers show a certificate that is signed by one of these, or the token
}

// ErrConfig reports a key metrics that cannot be used.
var ErrConfig = errors.New("key metrics")

// Complete fills the address in and checks the rest. Where readers show neither a token nor a certificate only this machine's own address
// is accepted, because the figures name nodes and VMs.
func (c *Config) Complete(port int) error {
	if c.Listen == "" {
		c.Listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	if c.Listen == Off {
		return nil
	}
	host, text, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("%w.listen: %q is not HOST:PORT or off", ErrConfig, c.Listen)
	}
	if number, err := strconv.ParseUint(text, 10, 16); err != nil || number == 0 {
		return fmt.Errorf("%w.listen: %q has no port from 1 to 65535", ErrConfig, c.Listen)
	}
	if c.TokenFile != "" && !filepath.IsAbs(c.TokenFile) {
		return fmt.Errorf("%w.token_file: %q: want an absolute path", ErrConfig, c.TokenFile)
	}
	if c.open() && !loopback(host) {
		return fmt.Errorf("%w.listen: %q is reached from other machines, where everybody could read the names of nodes and VMs: "+
			"give token_file as well, or listen on 127.0.0.1:%s", ErrConfig, c.Listen, text)
	}
	return c.completeTLS()
}

// open tells that readers show nothing.
func (c *Config) open() bool { return c.TokenFile == "" && c.ClientCAFile == "" }

// Port is the port at which other machines read the figures; 0: none does.
func (c *Config) Port() int {
	host, text, err := net.SplitHostPort(c.Listen)
	if err != nil || loopback(host) {
		return 0
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(port)
}

func loopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// admits tells why a request is not answered; nil: it is. The files are read each time, so that a token and authorities are changed without
// a restart. A fault is this side's.
func (c *Config) admits(r *http.Request, now time.Time) (refused, fault error) {
	if c.open() {
		return nil, nil
	}
	certified, refused, fault := c.certified(r, now)
	if certified && refused == nil && fault == nil {
		return nil, nil
	}
	if c.TokenFile == "" {
		if !certified {
			refused = errNoCertificate
		}
		return refused, fault
	}
	token, err := config.Secret("@"+c.TokenFile, nil)
	if err != nil {
		return nil, errors.Join(fault, fmt.Errorf("%w.token_file: %w", ErrConfig, err))
	}
	shown, bears := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if bears && subtle.ConstantTimeCompare([]byte(shown), []byte(token)) == 1 {
		return nil, nil
	}
	if refused == nil {
		refused = errNoToken
	}
	return refused, fault
}

// What a reader does not show.
var (
	errNoToken       = errors.New("send the token of metrics.token_file as 'Authorization: Bearer TOKEN'")
	errNoCertificate = errors.New("show a certificate that is signed for clients by an authority of metrics.client_ca_file")
)
