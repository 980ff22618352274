package daemon

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"berth/shared/config"
	"berth/shared/pki"
)

// The causes for which a data directory does not fit.
var (
	ErrNotEmpty       = errors.New("the data directory is not empty")
	ErrNotInitialised = errors.New("this coordinator is not part of a cluster yet")
	ErrDamaged        = errors.New("the data directory is damaged")
	ErrExpired        = errors.New("this coordinator's certificate is out of date")
)

// place is a coordinator's data directory.
type place struct{ dir string }

func (p place) file(names ...string) string {
	return filepath.Join(append([]string{p.dir}, names...)...)
}

func (p place) tls() pki.Files {
	return pki.Files{CA: p.file("tls", "ca.pem"), Certificate: p.file("tls", "peer.pem"), Key: p.file("tls", "peer.key")}
}

func (p place) authorityKey() string { return p.file("tls", "ca.key") }

func (p place) raft() string         { return p.file("raft") }
func (p place) history() string      { return p.file("history") }
func (p place) addresses() string    { return p.file("addresses.yaml") }
func (p place) imports() string      { return p.file("imports") }
func (p place) identityFile() string { return p.file("cluster.json") }

// identity is who this member is. It is written last when a member is made: a data directory without it is not one.
type identity struct {
	ClusterID string `json:"cluster_id"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	// Contacts are API addresses of members that were there when this one enrolled. They are asked to take it in.
	Contacts []string `json:"contacts,omitempty"`
	// Invited are the hashes of the keys of the coordinators that were there when this one enrolled.
	Invited []string `json:"invited,omitempty"`
	// Founders are the certificates that 'init' made, of this member and the first operator. They are recorded when it first leads.
	Founders []string `json:"founders,omitempty"`
}

// claim makes sure that the directory is there and empty, and returns how to empty it again.
func (p place) claim() (undo func(), err error) {
	found, err := os.ReadDir(p.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("look into the data directory: %w", err)
	case len(found) > 0:
		return nil, fmt.Errorf("%w: %s has %s%s", ErrNotEmpty, p.dir, found[0].Name(), p.verdict())
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	return func() {
		made, _ := os.ReadDir(p.dir)
		for _, entry := range made {
			_ = os.RemoveAll(p.file(entry.Name()))
		}
	}, nil
}

// verdict says what a directory that is not empty is.
func (p place) verdict() string {
	if who, err := p.identity(); err == nil {
		return fmt.Sprintf(": coordinator %s of cluster %s lives there; start it with 'berth coordinator run', "+
			"or name another directory with --data-dir", who.Name, who.ClusterID)
	}
	return ": remove what is left of an earlier try, or name another directory with --data-dir"
}

// identity reads who this member is. The error is ErrNotInitialised or ErrDamaged.
func (p place) identity() (identity, error) {
	var who identity
	data, err := os.ReadFile(p.identityFile())
	if errors.Is(err, fs.ErrNotExist) {
		return who, fmt.Errorf("%w: %s has no cluster.json: run 'berth coordinator init' on the first machine of a cluster, "+
			"'berth coordinator join' on the others", ErrNotInitialised, p.dir)
	}
	if err != nil {
		return who, fmt.Errorf("read who this coordinator is: %w", err)
	}
	if err := json.Unmarshal(data, &who); err != nil {
		return who, fmt.Errorf("%w: %s: %w", ErrDamaged, p.identityFile(), err)
	}
	if who.ClusterID == "" || who.ID == "" || who.Name == "" {
		return who, fmt.Errorf("%w: %s does not tell cluster, ID and name", ErrDamaged, p.identityFile())
	}
	return who, nil
}

func (p place) saveIdentity(who identity) error {
	data, err := json.MarshalIndent(who, "", "  ")
	if err != nil {
		return err
	}
	return config.WriteFile(p.identityFile(), append(data, '\n'), 0o600)
}

// saveKeys writes a certificate with its key and the authority. Only the owner reads any of them.
func (p place) saveKeys(certificate, key, authority, authorityKey []byte) error {
	if err := os.MkdirAll(p.file("tls"), 0o700); err != nil {
		return err
	}
	files := p.tls()
	for _, file := range []struct {
		path string
		data []byte
	}{
		{files.CA, authority}, {p.authorityKey(), authorityKey}, {files.Certificate, certificate}, {files.Key, key},
	} {
		if err := config.WriteFile(file.path, file.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// authority loads the cluster's authority.
func (p place) authority() (*pki.Authority, error) {
	certificate, err := os.ReadFile(p.tls().CA)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(p.authorityKey())
	if err != nil {
		return nil, err
	}
	load := pki.LoadAuthority
	if who, err := p.identity(); err == nil {
		load = func(certificate, key []byte) (*pki.Authority, error) {
			return pki.LoadAuthorityOf(who.ClusterID, certificate, key)
		}
	}
	authority, err := load(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, p.file("tls"), err)
	}
	return authority, nil
}

// checkCertificate makes sure that this member's certificate is its own and good today. A connection would only be
// refused, at the other end.
func (p place) checkCertificate(who identity, now time.Time) error {
	files := p.tls()
	pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	if err != nil {
		return fmt.Errorf("%w: %s and %s: %w", ErrDamaged, files.Certificate, files.Key, err)
	}
	named, err := pki.IdentityOf(pair.Leaf)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, files.Certificate, err)
	}
	if named.Role != pki.RolePeer || named.ID != who.ID || named.ClusterID != who.ClusterID {
		return fmt.Errorf("%w: %s is for %s (%s) of cluster %s, and this is coordinator %s (%s) of cluster %s", ErrDamaged,
			files.Certificate, named, named.ID, named.ClusterID, who.Name, who.ID, who.ClusterID)
	}
	if now.Before(pair.Leaf.NotBefore) || now.After(pair.Leaf.NotAfter) {
		return fmt.Errorf("%w: %s is good from %s to %s, and now is %s: set the clock, or remove this coordinator with "+
			"'berth coordinator delete %s' and join again", ErrExpired, files.Certificate, pair.Leaf.NotBefore.Format(time.RFC3339),
			pair.Leaf.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339), who.Name)
	}
	return nil
}
