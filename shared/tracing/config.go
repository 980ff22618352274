// Package tracing sends spans to a collector of OpenTelemetry, by OTLP over HTTP in its JSON form. Nothing is sent, and nothing runs,
// unless the configuration names a collector. OpenTelemetry's own library would give an agent 5 MB more memory at rest, and its file 7 MB;
// what Berth needs of it is one request.
package tracing

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"

	"berth/shared/config"
)

// Config is the key traces of a configuration file.
type Config struct {
	Endpoint  string `yaml:"endpoint,omitempty"`   // for instance https://collector:4318; empty: nothing is traced
	TokenFile string `yaml:"token_file,omitempty"` // its first line is sent as a bearer token; empty: none is
	CAFile    string `yaml:"ca_file,omitempty"`    // PEM; whom the collector's certificate is checked against; empty: the machine's own

	headers map[string]string // sent beside; the environment alone names some
}

// ErrConfig reports a key traces that cannot be used.
var ErrConfig = errors.New("key traces")

// tracesPath is where a collector takes spans, unless the endpoint has a path.
const tracesPath = "/v1/traces"

// On tells whether spans are sent.
func (c *Config) On() bool { return c.Endpoint != "" }

// Complete fills the path in and checks the rest. Without TLS only a collector on this machine is accepted: spans name nodes and VMs.
func (c *Config) Complete() error {
	for key, path := range map[string]string{"token_file": c.TokenFile, "ca_file": c.CAFile} {
		switch {
		case path == "":
		case !c.On():
			return fmt.Errorf("%w.%s: there is no collector: give endpoint as well", ErrConfig, key)
		case !filepath.IsAbs(path):
			return fmt.Errorf("%w.%s: %q: want an absolute path", ErrConfig, key, path)
		}
	}
	if !c.On() {
		return nil
	}
	address, err := url.Parse(c.Endpoint)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" || address.User != nil {
		return fmt.Errorf("%w.endpoint: %q is no address like https://collector:4318", ErrConfig, c.Endpoint)
	}
	at := net.ParseIP(address.Hostname())
	if address.Scheme == "http" && address.Hostname() != "localhost" && (at == nil || !at.IsLoopback()) {
		return fmt.Errorf("%w.endpoint: %q would be sent the names of nodes and VMs in the clear: give an https address, "+
			"or a collector on this machine", ErrConfig, c.Endpoint)
	}
	if address.Path == "" || address.Path == "/" {
		address.Path = tracesPath
	}
	c.Endpoint = address.String()
	return nil
}

// trust is how the collector's certificate is checked.
func (c *Config) trust() (*tls.Config, error) {
	made := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile == "" {
		return made, nil
	}
	authorities, err := config.Authorities(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("%w.ca_file: %w", ErrConfig, err)
	}
	made.RootCAs = authorities
	return made, nil
}
