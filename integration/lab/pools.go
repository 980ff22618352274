package lab

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Where the storage pools of every host keep their volumes. What the pool "shared" has is the same on all hosts, what
// "local" and "default" have is each host's own.
const (
	SharedPoolDir = SharedDir + "/images"
	LocalPoolDir  = "/var/lib/libvirt/local"
)

// AddPool gives the host one more storage pool, a directory, and starts it. A directory below SharedDir is the same on all
// hosts that have the pool.
func (h *Host) AddPool(ctx context.Context, name, directory string) error {
	const script = `set -e
mkdir -p "$2"
virsh -q pool-define-as "$1" dir --target "$2"
virsh -q pool-autostart "$1"
virsh -q pool-start "$1"`
	_, err := h.Exec(ctx, "sh", "-c", script, "add-pool", name, directory)
	return err
}

// Volumes lists what is in the active storage pools of the host, as libvirt sees it now: POOL/NAME, in order. It may have to be asked
// again: it looks into no pool while it makes a volume there.
func (h *Host) Volumes(ctx context.Context) ([]string, error) {
	listed, err := h.Exec(ctx, "sh", "-c", `set -e
for pool in $(virsh -q pool-list --name); do
	timeout 10 sh -c 'until virsh -q pool-refresh "$0" >&2; do sleep 0.2; done' "$pool"
	virsh -q vol-list "$pool" | while read -r name path; do
		echo "$pool/$name"
	done
done`)
	if err != nil {
		return nil, fmt.Errorf("list the volumes of %s: %w", h.Name, err)
	}
	volumes := strings.Fields(listed)
	slices.Sort(volumes)
	return volumes, nil
}

// Volumes lists what is in the active storage pools of all hosts: HOST/POOL/NAME, in order. A volume that several hosts
// see is listed for each.
func (l *Lab) Volumes(ctx context.Context) ([]string, error) {
	var all []string
	for _, h := range l.Hosts {
		volumes, err := h.Volumes(ctx)
		if err != nil {
			return nil, err
		}
		for _, volume := range volumes {
			all = append(all, path.Join(h.Name, volume))
		}
	}
	return all, nil
}
