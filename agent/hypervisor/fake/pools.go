package fake

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"berth/agent/hypervisor"
)

// emptyVolume is what the administration of a volume takes in its pool.
const emptyVolume = 192 << 10

// pool is what one host sees of a storage pool. A shared one has its store in common with others.
type pool struct {
	hypervisor.Pool
	store *store
}

// store is the room behind a pool.
type store struct {
	capacity int64
	volumes  map[string]*volume
}

type volume struct {
	name, format, path string
	capacity           int64
	modified           time.Time
	content            []byte // what was written into it
	backing            *volume
	lockedBy           *storage          // the host that holds its lock for trying it; nil: none does
	snapshots          map[string][]byte // content by the tags of those that were taken
}

// read is what a guest would see at the beginning of its disk.
func (v *volume) read() []byte {
	if v.content == nil && v.backing != nil {
		return v.backing.read()
	}
	return v.content
}

func (v *volume) allocated() int64 { return emptyVolume + int64(len(v.content)) }

func (s *store) available() int64 {
	free := s.capacity
	for _, v := range s.volumes {
		free -= v.allocated()
	}
	return free
}

// storage is what a host sees of its pools.
type storage struct {
	*daemon
	domains *domains // which use it
	pools   map[string]*pool
	noLocks bool // its locks reach no other host, nor others' this one
}

// AddPool gives the host a pool of its own, active and empty. It replaces one of the same name.
func (h *Hypervisor) AddPool(name string, capacity int64) {
	h.wire.SharePool(name, capacity, h)
}

// SharePool gives hosts one pool together, active and empty.
func (w *Wire) SharePool(name string, capacity int64, hosts ...*Hypervisor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	common := &store{capacity: capacity, volumes: map[string]*volume{}}
	for _, h := range hosts {
		folder := "/pools/" + name
		if len(hosts) == 1 {
			folder = "/pools/" + h.Name + "/" + name
		}
		h.pools[name] = &pool{store: common, Pool: hypervisor.Pool{
			Name: name, UUID: uuidOf(h.Name + "/" + name), Type: "dir", Path: folder, Active: true, CapacityBytes: capacity,
		}}
	}
}

// write is the time of what is written now: each is a second after the one before. The wire is locked.
func (w *Wire) write() time.Time {
	w.writes++
	return time.Unix(w.writes, 0)
}

// SetPool switches a pool on or off, as a file system that vanishes and comes back does.
func (h *storage) SetPool(name string, active bool) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	h.pools[name].Active = active
	h.Publish(hypervisor.Event{Kind: hypervisor.EventChanged, Detail: "storage pool " + name})
}

// SetNetworks replaces the libvirt networks and the bridges.
func (h *Hypervisor) SetNetworks(networks []hypervisor.Network, bridges []string) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	h.networks, h.bridges = networks, bridges
	h.Publish(hypervisor.Event{Kind: hypervisor.EventChanged, Detail: "networks"})
}

// SetCPUs replaces what CPUs guests can have.
func (h *Hypervisor) SetCPUs(models []string, hostCPU string) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	h.models, h.hostCPU = models, hostCPU
}

// Volumes are the names of a pool's volumes, ascending.
func (h *storage) Volumes(name string) []string {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	return slices.Sorted(maps.Keys(h.pools[name].store.volumes))
}

// Content is what a guest would see at the beginning of a volume, nil if there is no such volume.
func (h *storage) Content(pool, name string) []byte {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	if v, found := h.pools[pool].store.volumes[name]; found {
		return bytes.Clone(v.read())
	}
	return nil
}

// WriteDisk is a guest's writing to the beginning of its volume.
func (h *storage) WriteDisk(pool, name string, content []byte) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	v := h.pools[pool].store.volumes[name]
	v.content, v.modified = bytes.Clone(content), h.wire.write()
}

// listPools is what the host reports. The wire is locked.
func (h *storage) listPools() []hypervisor.Pool {
	var list []hypervisor.Pool
	for _, p := range h.pools {
		one := p.Pool
		if one.AvailableBytes = p.store.available(); !one.Active {
			one.CapacityBytes, one.AvailableBytes = 0, 0
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b hypervisor.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func (h *storage) pool(name string) (*pool, error) {
	p, found := h.pools[name]
	if !found {
		return nil, fmt.Errorf("%w: %q", hypervisor.ErrNoPool, name)
	}
	if !p.Active {
		return nil, fmt.Errorf("%w: %q is not active", hypervisor.ErrNoPool, name)
	}
	return p, nil
}

func (h *storage) volume(pool, name string) (*pool, *volume, error) {
	p, err := h.pool(pool)
	if err != nil {
		return nil, nil, err
	}
	v, found := p.store.volumes[name]
	if !found {
		return nil, nil, fmt.Errorf("%w: %s in pool %s", hypervisor.ErrNoVolume, name, pool)
	}
	return p, v, nil
}

// add puts a new volume into a pool if there is room.
func (h *storage) add(name string, v *volume) error {
	p, err := h.pool(name)
	if err != nil {
		return err
	}
	if _, taken := p.store.volumes[v.name]; taken {
		return fmt.Errorf("%w: %s", hypervisor.ErrExists, v.name)
	}
	if free := p.store.available(); v.allocated() > free {
		return fmt.Errorf("%w: pool %s has %d bytes", hypervisor.ErrNoSpace, name, free)
	}
	v.path, v.modified = path.Join(p.Path, v.name), h.wire.write()
	p.store.volumes[v.name] = v
	return nil
}

// users are the paths that domains have, thin copies followed down. The wire is locked.
func (h *storage) users() map[string]string {
	users := map[string]string{}
	for uuid, d := range h.domains.all {
		for _, disk := range d.disks {
			if disk.Source.Path != "" {
				users[disk.Source.Path] = uuid
			}
			for v := h.behind(disk.Source); v != nil; v = v.backing {
				users[v.path] = uuid
			}
		}
	}
	return users
}

// behind is the volume that a source names, by name or by path; nil if it is none of this host's. The wire is locked.
func (h *storage) behind(source hypervisor.Source) *volume {
	if p, found := h.pools[source.Pool]; found && source.Pool != "" {
		return p.store.volumes[source.Volume]
	}
	for _, p := range h.pools {
		if v, found := p.store.volumes[path.Base(source.Path)]; found && source.Path != "" && v.path == source.Path {
			return v
		}
	}
	return nil
}

// checkDisks refuses a domain whose volumes are not there. Files outside of pools are not looked at. The wire is locked.
func (h *storage) checkDisks(d *domain) error {
	for _, disk := range d.disks {
		if disk.Source.Pool == "" {
			continue
		}
		if _, _, err := h.volume(disk.Source.Pool, disk.Source.Volume); err != nil {
			return err
		}
	}
	return nil
}

// diskCopy is a disk whose content goes along with a migration.
type diskCopy struct{ from, to *volume }

// copies pairs the disks that are to be copied with the volumes for them on the target. The wire is locked.
func (h *Hypervisor) copies(d, incoming *domain, target *Hypervisor, options hypervisor.MigrateOptions) ([]diskCopy, error) {
	if err := target.checkDisks(incoming); err != nil {
		return nil, err
	}
	for _, disk := range d.disks {
		v := h.behind(disk.Source)
		if v == nil || slices.Contains(options.CopyDisks, disk.Target) || options.SharedDisks || target.holds(v) {
			continue
		}
		return nil, fmt.Errorf("%w: disk %s is not on shared storage", hypervisor.ErrUnsafe, disk.Target)
	}
	var copies []diskCopy
	for _, name := range options.CopyDisks {
		named := func(disk hypervisor.Disk) bool { return disk.Target == name }
		i, j := slices.IndexFunc(d.disks, named), slices.IndexFunc(incoming.disks, named)
		if i < 0 || j < 0 {
			return nil, fmt.Errorf("no disk %s", name)
		}
		from, to := h.behind(d.disks[i].Source), target.behind(incoming.disks[j].Source)
		switch {
		case from == nil || to == nil:
			return nil, fmt.Errorf("%w: disk %s is not a volume on both sides", hypervisor.ErrNoVolume, name)
		case to.capacity < from.capacity:
			return nil, fmt.Errorf("%w: the target of disk %s is smaller than the disk", hypervisor.ErrUnsupported, name)
		}
		copies = append(copies, diskCopy{from, to})
	}
	return copies, nil
}

// holds tells whether the host sees a volume. The wire is locked.
func (h *storage) holds(v *volume) bool {
	for _, p := range h.pools {
		if p.store.volumes[v.name] == v {
			return true
		}
	}
	return false
}

func bytesOf(copies []diskCopy) int64 {
	var sum int64
	for _, c := range copies {
		sum += c.from.capacity
	}
	return sum
}

// header reads what a qcow2 file says of itself.
func header(data []byte) (format string, capacity int64, is bool) {
	const size, sizeAt = 32, 24
	if len(data) < size || !bytes.HasPrefix(data, []byte("QFI\xfb")) {
		return "", 0, false
	}
	for _, b := range data[sizeAt:size] {
		capacity = capacity<<8 | int64(b)
	}
	return hypervisor.FormatQCOW2, capacity, true
}
