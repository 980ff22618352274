package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"berth/shared/config"
	"berth/shared/pki"
)

// hypervisors loads the authorities of the nodes' libvirt and QEMU. A cluster that is older than they are makes them now: all members
// make the same, because they follow from the key of the cluster's authority.
func (p place) hypervisors(cluster *pki.Authority) (pki.Hypervisors, error) {
	all := pki.Hypervisors{}
	for _, purpose := range pki.Purposes {
		path := p.hypervisorAuthority(purpose)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			text, err = p.deriveHypervisor(cluster, purpose)
		}
		if err != nil {
			return nil, err
		}
		if all[purpose], err = pki.LoadHypervisorAuthority(text); err != nil {
			return nil, fmt.Errorf("%w: %s: %w: copy it from another coordinator", ErrDamaged, path, err)
		}
	}
	return all, nil
}

func (p place) deriveHypervisor(cluster *pki.Authority, purpose pki.Purpose) ([]byte, error) {
	authority, err := cluster.Hypervisor(purpose)
	if err != nil {
		return nil, err
	}
	text, err := authority.PEM()
	if err != nil {
		return nil, err
	}
	return text, config.WriteFile(p.hypervisorAuthority(purpose), text, 0o600)
}

// foundHypervisors makes the authorities of a new cluster.
func (p place) foundHypervisors(clusterID string, now time.Time) error {
	all, err := pki.NewHypervisors(clusterID, now)
	if err != nil {
		return err
	}
	for purpose, authority := range all {
		text, err := authority.PEM()
		if err != nil {
			return err
		}
		if err := p.saveHypervisor(purpose, text); err != nil {
			return err
		}
	}
	return nil
}

// saveHypervisor keeps an authority that another member has given. A member of an earlier release gives none, and then all have those
// that follow from the cluster's key.
func (p place) saveHypervisor(purpose pki.Purpose, text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if _, err := pki.LoadHypervisorAuthority(text); err != nil {
		return err
	}
	return config.WriteFile(p.hypervisorAuthority(purpose), text, 0o600)
}
