package access

import (
	"path/filepath"
	"testing"
	"time"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/cli/term"
	"berth/shared/pki"
)

// Somebody who logs in again keeps the name of the context; another cluster gets another one.
func TestTheNameOfANewContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.yaml")
	authority, err := pki.NewAuthority("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	request, key, err := pki.NewRequest("admin")
	if err != nil {
		t.Fatal(err)
	}
	id := pki.Identity{Role: pki.RoleOperator, ID: "admin", Name: "admin", ClusterID: "c1"}
	certificate, err := authority.Sign(request, id, nil, time.Now(), pki.DefaultValidity)
	if err != nil {
		t.Fatal(err)
	}
	store := func(name string) {
		credentials := clientconfig.Credentials{CA: authority.CertificatePEM(), Certificate: certificate, Key: key}
		if err := clientconfig.Store(path, name, []string{"a:7420"}, credentials); err != nil {
			t.Fatal(err)
		}
	}
	a := term.New("")
	if got := contextFor(a, path, "c1"); got != "default" {
		t.Errorf("the first context is called %q", got)
	}
	store("prod")
	if got := contextFor(a, path, "c1"); got != "prod" {
		t.Errorf("a known cluster is called %q", got)
	}
	store("default")
	if got := contextFor(a, path, "c2"); got != "c2" {
		t.Errorf("another cluster is called %q", got)
	}
}
