package answer

import (
	"fmt"
	"slices"
	"sync"

	"berth/shared/pki"
)

// Vault has the keys of the cluster's authorities on this member, and whom it trusts. It is safe for concurrent use.
type Vault struct {
	save func(*pki.Authority) error

	mu      sync.Mutex
	issuing *pki.Authority
	trusted []byte
	ids     []string
	held    []*pki.Authority
}

// NewVault makes a vault with the authority that signs, the list of those that are trusted (PEM) and others whose keys are here. An
// authority that comes later is saved before it is held.
func NewVault(issuing *pki.Authority, trusted []byte, held []*pki.Authority, save func(*pki.Authority) error) (*Vault, error) {
	v := &Vault{save: save, held: held}
	return v, v.Become(issuing, trusted)
}

// Issuing is the authority that signs.
func (v *Vault) Issuing() *pki.Authority {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.issuing
}

// Trusted are the certificates of those that this member trusts, PEM.
func (v *Vault) Trusted() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.trusted)
}

// IDs are those of Trusted, in its order.
func (v *Vault) IDs() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.ids)
}

// Held is the authority with an ID if its key is here; nil: it is not.
func (v *Vault) Held(id string) *pki.Authority {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range append(slices.Clone(v.held), v.issuing) {
		if one.ID() == id {
			return one
		}
	}
	return nil
}

// Keep saves the key of an authority that is to sign later.
func (v *Vault) Keep(authority *pki.Authority) error {
	if v.Held(authority.ID()) != nil {
		return nil
	}
	if err := v.save(authority); err != nil {
		return fmt.Errorf("keep the next authority's key: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held = append(v.held, authority)
	return nil
}

// Become makes an authority the one that signs, and the list that of those that are trusted. Other keys are forgotten unless their
// authorities are trusted.
func (v *Vault) Become(issuing *pki.Authority, trusted []byte) error {
	ids, err := pki.AuthorityIDs(trusted)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.issuing, v.trusted, v.ids = issuing, slices.Clone(trusted), ids
	v.held = slices.DeleteFunc(v.held, func(a *pki.Authority) bool { return a.ID() == issuing.ID() || !slices.Contains(ids, a.ID()) })
	return nil
}
