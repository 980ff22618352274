// Package keyring keeps the authorities of the nodes' libvirt and QEMU on a coordinator: the one of each that signs, those that are to sign
// later, and which ones hosts are to trust. It follows what the cluster has decided.
package keyring

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"berth/coordinator/authorities"
	"berth/shared/config"
	"berth/shared/pki"
)

// ErrDamaged says that a file does not have what it should.
var ErrDamaged = errors.New("an authority of libvirt or QEMU cannot be read")

// Ring has the authorities. It is safe for concurrent use.
type Ring struct {
	dir string // empty: nothing is kept

	mu    sync.Mutex
	parts map[pki.Purpose]*part
	held  map[string]*pki.HypervisorAuthority // that are to sign later, by ID
}

// part is what there is for one purpose.
type part struct {
	issuing *pki.HypervisorAuthority
	trusted []byte // PEM; the one that signs is the first
}

// New is a ring in memory.
func New(all pki.Hypervisors) *Ring {
	r := &Ring{parts: map[pki.Purpose]*part{}, held: map[string]*pki.HypervisorAuthority{}}
	for purpose, authority := range all {
		r.parts[purpose] = &part{issuing: authority, trusted: authority.CertificatePEM()}
	}
	return r
}

// Open loads the ring of a folder. A cluster that is older than these authorities makes them now: all members make the same, because they
// follow from the key of the cluster's authority. The error is ErrDamaged where it is not of the file system.
func Open(dir string, cluster *pki.Authority) (*Ring, error) {
	all := pki.Hypervisors{}
	for _, purpose := range pki.Purposes {
		text, err := os.ReadFile(signs(dir, purpose))
		if errors.Is(err, fs.ErrNotExist) {
			text, err = derive(dir, cluster, purpose)
		}
		if err != nil {
			return nil, err
		}
		if all[purpose], err = pki.LoadHypervisorAuthority(text); err != nil {
			return nil, fmt.Errorf("%w: %s: %w: copy it from another coordinator", ErrDamaged, signs(dir, purpose), err)
		}
	}
	r := New(all)
	r.dir = dir
	for purpose, is := range r.parts {
		text, err := os.ReadFile(trusts(r.dir, purpose))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids, err := pki.AuthorityIDs(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w: copy it from another coordinator, or remove it", ErrDamaged, trusts(r.dir, purpose), err)
		}
		if slices.Contains(ids, is.issuing.ID()) { // else somebody was killed between two files, and follows again
			is.trusted = text
		}
	}
	paths, err := filepath.Glob(r.later("*"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		one, err := pki.LoadHypervisorAuthority(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w: copy it from another coordinator, or remove it", ErrDamaged, path, err)
		}
		r.held[one.ID()] = one
	}
	return r, nil
}

// signs is the file of the authority that signs, certificate and key.
func signs(dir string, purpose pki.Purpose) string {
	return filepath.Join(dir, "hypervisor-"+string(purpose)+".pem")
}

// trusts is the file of those that hosts are to trust.
func trusts(dir string, purpose pki.Purpose) string {
	return filepath.Join(dir, "hypervisor-"+string(purpose)+"-trusted.pem")
}

// later is the file of one that is to sign later.
func (r *Ring) later(id string) string { return filepath.Join(r.dir, "hypervisor-next-"+id+".pem") }

func derive(dir string, cluster *pki.Authority, purpose pki.Purpose) ([]byte, error) {
	authority, err := cluster.Hypervisor(purpose)
	if err != nil {
		return nil, err
	}
	text, err := authority.PEM()
	if err != nil {
		return nil, err
	}
	return text, config.WriteFile(signs(dir, purpose), text, 0o600)
}

// Found makes the authorities of a new cluster.
func Found(dir, clusterID string, now time.Time) error {
	all, err := pki.NewHypervisors(clusterID, now)
	if err != nil {
		return err
	}
	for purpose, authority := range all {
		text, err := authority.PEM()
		if err != nil {
			return err
		}
		if err := Save(dir, purpose, text, authority.CertificatePEM()); err != nil {
			return err
		}
	}
	return nil
}

// Save keeps an authority that another member has given, and those that hosts trust. A member of an earlier release gives none, and then
// all have those that follow from the cluster's key.
func Save(dir string, purpose pki.Purpose, text, trusted []byte) error {
	if len(text) == 0 {
		return nil
	}
	if _, err := pki.LoadHypervisorAuthority(text); err != nil {
		return err
	}
	if err := config.WriteFile(signs(dir, purpose), text, 0o600); err != nil || len(trusted) == 0 {
		return err
	}
	return config.WriteFile(trusts(dir, purpose), trusted, 0o600)
}

// Issuing is the authority that signs for a purpose; nil: there is none.
func (r *Ring) Issuing(purpose pki.Purpose) *pki.HypervisorAuthority {
	r.mu.Lock()
	defer r.mu.Unlock()
	if is := r.parts[purpose]; is != nil {
		return is.issuing
	}
	return nil
}

// Trusted are those that hosts are to trust for a purpose, PEM. The one that signs is the first.
func (r *Ring) Trusted(purpose pki.Purpose) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if is := r.parts[purpose]; is != nil {
		return slices.Clone(is.trusted)
	}
	return nil
}

// All are those that sign.
func (r *Ring) All() pki.Hypervisors {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := pki.Hypervisors{}
	for purpose, is := range r.parts {
		all[purpose] = is.issuing
	}
	return all
}

// IDs are those of all authorities whose keys are here, in order.
func (r *Ring) IDs() []string {
	var ids []string
	for _, one := range r.All() {
		ids = append(ids, one.ID())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.held {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Held is the authority with an ID if its key is here; nil: it is not.
func (r *Ring) Held(id string) *pki.HypervisorAuthority {
	for _, one := range r.All() {
		if one.ID() == id {
			return one
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[id]
}

// Keep saves the key of an authority that is to sign later.
func (r *Ring) Keep(authority *pki.HypervisorAuthority) error {
	if r.Held(authority.ID()) != nil {
		return nil
	}
	text, err := authority.PEM()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dir != "" {
		if err := config.WriteFile(r.later(authority.ID()), text, 0o600); err != nil {
			return fmt.Errorf("keep the next authority's key: %w", err)
		}
	}
	r.held[authority.ID()] = authority
	return nil
}

// Signer is the authority that signs for a purpose by what the cluster has decided, with those that hosts are to trust. False: this member
// does not have its key, or has files that are newer than the list.
func (r *Ring) Signer(purpose pki.Purpose, list *authorities.List) (signer *pki.HypervisorAuthority, trusted []byte, ok bool) {
	if len(list.All) == 0 {
		return r.Issuing(purpose), r.Trusted(purpose), r.Issuing(purpose) != nil
	}
	is := list.In(authorities.Issuing)
	if is == nil || r.outdated(purpose, list) {
		return nil, nil, false
	}
	signer = r.Held(is.ID)
	return signer, list.Trusted(), signer != nil
}

// outdated tells that a list is older than the files.
func (r *Ring) outdated(purpose pki.Purpose, list *authorities.List) bool {
	issuing := r.Issuing(purpose)
	if issuing == nil {
		return false
	}
	trusted, err := pki.AuthorityIDs(r.Trusted(purpose))
	return err != nil || list.OlderThan(issuing.ID(), trusted)
}

// Lacks are the IDs of the authorities of a list that sign, or are to, and whose keys are not here.
func (r *Ring) Lacks(list *authorities.List) []string {
	return list.Lacking(func(id string) bool { return r.Held(id) != nil })
}

// LacksAny is Lacks for all lists.
func (r *Ring) LacksAny(lists authorities.Hypervisors) (ids []string) {
	for _, list := range lists {
		ids = append(ids, r.Lacks(&list)...)
	}
	return ids
}

// Take keeps the key of an authority that another member has given, if one of the lists trusts it, or is to.
func (r *Ring) Take(lists authorities.Hypervisors, text []byte) error {
	one, err := pki.LoadHypervisorAuthority(text)
	if err != nil {
		return err
	}
	for _, list := range lists {
		if slices.Contains(list.IDs(), one.ID()) {
			return r.Keep(one)
		}
	}
	return nil
}

// Follow brings the files of a purpose to what the cluster has decided. It waits for a key that is not here yet. It tells whether another
// authority signs since.
func (r *Ring) Follow(purpose pki.Purpose, list *authorities.List) (changed bool, err error) {
	if len(list.All) == 0 || r.Issuing(purpose) == nil || r.outdated(purpose, list) {
		return false, nil
	}
	next, trusted := r.Held(list.In(authorities.Issuing).ID), list.Trusted()
	if next == nil {
		return false, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	is := r.parts[purpose]
	changed = is.issuing.ID() != next.ID()
	if changed || !bytes.Equal(is.trusted, trusted) {
		if err := r.write(purpose, next, trusted); err != nil {
			return false, err
		}
		is.issuing, is.trusted = next, trusted
	}
	r.forget(list)
	return changed, nil
}

// write puts the files in their places. The caller holds mu.
func (r *Ring) write(purpose pki.Purpose, signer *pki.HypervisorAuthority, trusted []byte) error {
	if r.dir == "" {
		return nil
	}
	text, err := signer.PEM()
	if err != nil {
		return err
	}
	if err := config.WriteFile(signs(r.dir, purpose), text, 0o600); err != nil {
		return err
	}
	return config.WriteFile(trusts(r.dir, purpose), trusted, 0o600)
}

// forget removes the keys of those in a list that are not to sign later: the one that signs has a file of its own, and the others never
// will. The caller holds mu.
func (r *Ring) forget(list *authorities.List) {
	for i := range list.All {
		one := &list.All[i]
		if _, here := r.held[one.ID]; !here || one.State == authorities.Announced {
			continue
		}
		delete(r.held, one.ID)
		if r.dir != "" {
			_ = os.Remove(r.later(one.ID)) // what is left over is removed at the next change
		}
	}
}
