// Package clientconfig is the configuration of the command line: named contexts, each with the coordinators of a cluster
// and the certificate with which to speak to them. `berth coordinator init` and `berth login` write it.
package clientconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"berth/shared/config"
	"berth/shared/pki"
)

// SystemPath is where the configuration for everybody on a machine is.
const SystemPath = "/etc/berth/client.yaml"

// Variable names a configuration file in the environment.
const Variable = "BERTH_CONFIG"

// The causes for which there is no context.
var (
	ErrNone    = errors.New("no client configuration")
	ErrContext = errors.New("no such context")
	ErrInvalid = errors.New("client configuration is not complete")
)

// Config is the content of one file.
type Config struct {
	Current  string             `yaml:"current"`
	Contexts map[string]Context `yaml:"contexts"`
}

// Context is one cluster. Paths that are not absolute start at the folder of the file.
type Context struct {
	Coordinators []string `yaml:"coordinators"` // HOST:PORT
	CA           string   `yaml:"ca"`
	Certificate  string   `yaml:"certificate"`
	Key          string   `yaml:"key"`
}

// Places are the files in which a configuration is looked for, the first one that exists counts. A file named by the
// flag or by the environment is the only place.
func Places(flag string, env func(string) string) []string {
	switch {
	case flag != "":
		return []string{flag}
	case env(Variable) != "":
		return []string{env(Variable)}
	}
	if user := userPath(env); user != "" {
		return []string{user, SystemPath}
	}
	return []string{SystemPath}
}

// userPath is empty when there is no home.
func userPath(env func(string) string) string {
	folder := env("XDG_CONFIG_HOME")
	if folder == "" && env("HOME") != "" {
		folder = filepath.Join(env("HOME"), ".config")
	}
	if !filepath.IsAbs(folder) {
		return "" // the XDG specification: a relative path is to be ignored
	}
	return filepath.Join(folder, "berth", "client.yaml")
}

// Find loads the first of the places that exists. When none does, the error is ErrNone and names them all.
func Find(places []string) (*Config, string, error) {
	for _, path := range places {
		loaded, err := Load(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return loaded, path, err
	}
	return nil, "", fmt.Errorf("%w: looked for %s", ErrNone, strings.Join(places, " and "))
}

// Load reads one file.
func Load(path string) (*Config, error) {
	var c Config
	if err := config.Load(path, &c); err != nil {
		return nil, err
	}
	return &c, nil
}

// Save writes the file atomically.
func (c *Config) Save(path string) error { return config.Write(path, c, 0o644) }

// Names are those of the contexts, sorted.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }

// Context finds a context by name; an empty name means the current one. Its paths are completed with the folder of the
// file. The error is ErrContext or ErrInvalid.
func (c *Config) Context(name, file string) (Context, string, error) {
	if name == "" {
		name = c.Current
	}
	switch {
	case len(c.Contexts) == 0:
		return Context{}, "", fmt.Errorf("%w: %s has no context", ErrContext, file)
	case name == "" && len(c.Contexts) == 1:
		name = c.Names()[0]
	case name == "":
		return Context{}, "", fmt.Errorf("%w: %s has no current one, only %s", ErrContext, file, strings.Join(c.Names(), ", "))
	}
	found, ok := c.Contexts[name]
	if !ok {
		return Context{}, "", fmt.Errorf("%w: %q, %s has %s", ErrContext, name, file, strings.Join(c.Names(), ", "))
	}
	for _, key := range []struct {
		name    string
		missing bool
	}{
		{"coordinators", len(found.Coordinators) == 0},
		{"ca", found.CA == ""},
		{"certificate", found.Certificate == ""},
		{"key", found.Key == ""},
	} {
		if key.missing {
			return Context{}, "", fmt.Errorf("%w: %s: context %q has no key %q", ErrInvalid, file, name, key.name)
		}
	}
	for _, path := range []*string{&found.CA, &found.Certificate, &found.Key} {
		if !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(file), *path)
		}
	}
	return found, name, nil
}

// Files are the context's for TLS.
func (c Context) Files() pki.Files {
	return pki.Files{CA: c.CA, Certificate: c.Certificate, Key: c.Key}
}

// Credentials are what somebody who was let in got.
type Credentials struct {
	CA, Certificate, Key []byte // PEM
}

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Store adds a context to the file at path, or replaces the one of that name, and makes it the current one. The
// credentials go into client/NAME/ in the folder of the file; the key is readable by its owner only.
func Store(path, name string, coordinators []string, credentials Credentials) error {
	if !contextName.MatchString(name) {
		return fmt.Errorf("%w: %q, want 1 to 64 letters, digits, dots, underscores or dashes", ErrContext, name)
	}
	c, err := Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		c, err = &Config{}, nil
	}
	if err != nil {
		return err
	}
	folder := filepath.Join("client", name)
	added := Context{
		Coordinators: coordinators,
		CA:           filepath.Join(folder, "ca.pem"),
		Certificate:  filepath.Join(folder, "certificate.pem"),
		Key:          filepath.Join(folder, "key.pem"),
	}
	for _, file := range []struct {
		path string
		data []byte
		mode os.FileMode
	}{
		{added.Key, credentials.Key, 0o600},
		{added.Certificate, credentials.Certificate, 0o644},
		{added.CA, credentials.CA, 0o644},
	} {
		if err := config.WriteFile(filepath.Join(filepath.Dir(path), file.path), file.data, file.mode); err != nil {
			return err
		}
	}
	if c.Contexts == nil {
		c.Contexts = map[string]Context{}
	}
	c.Contexts[name], c.Current = added, name
	return c.Save(path)
}

// SetCoordinators changes the coordinators of a context, and nothing else.
func SetCoordinators(path, name string, coordinators []string) error {
	c, err := Load(path)
	if err != nil {
		return err
	}
	context, there := c.Contexts[name]
	if !there {
		return fmt.Errorf("%w: %q in %s", ErrContext, name, path)
	}
	context.Coordinators = coordinators
	c.Contexts[name] = context
	return c.Save(path)
}
