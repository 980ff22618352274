package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of authorities that cannot be used says its name and why.
func TestAuthoritiesThatAreNone(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"empty":       "",
		"not PEM":     "hello",
		"a key":       "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"a wrong one": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"too large":   strings.Repeat("x", mostPEM+1),
	} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		pool, err := Authorities(path)
		if err == nil || pool != nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v; want an error that names the file", name, pool, err)
		}
	}
	if _, err := Authorities(filepath.Join(folder, "missing")); !os.IsNotExist(err) {
		t.Errorf("a missing file: %v", err)
	}
}
