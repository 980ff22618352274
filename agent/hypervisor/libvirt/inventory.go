package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	libvirtgo "libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"berth/agent/hypervisor"
)

// interfaces is where Linux shows the network interfaces of the node.
const interfaces = "/sys/class/net"

// refreshInterval bounds how often the files of all pools are looked at: it costs libvirt opening each.
const refreshInterval = 20 * time.Second

// overduePatience is how long somebody waits for a listing of pools that others have waited for in vain.
const overduePatience = 100 * time.Millisecond

// readPools lists the storage pools. While one of them hangs there is no list, which holds up nothing else: the next one
// who asks waits for the same answer.
func (h *volumes) readPools(ctx context.Context) ([]hypervisor.Pool, error) {
	if err := h.watch.state(); err != nil {
		return nil, err
	}
	result := h.listing.DoChan("", func() (any, error) {
		defer h.overdue.Store(false)
		// No deadline here: who waits has one, and a second call would hang as well.
		pools, _, err := ask(context.Background(), &h.storage, h.listPools)
		return pools, err
	})
	patience := queryTimeout
	if h.overdue.Load() {
		patience = overduePatience
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case r := <-result:
		pools, _ := r.Val.([]hypervisor.Pool)
		return pools, r.Err
	case <-limit.C:
		h.overdue.Store(true)
		return nil, fmt.Errorf("%w: libvirtd has not listed the storage pools: one of them may hang", hypervisor.ErrUnavailable)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", hypervisor.ErrUnavailable, ctx.Err())
	}
}

// listPools has libvirt look at the pools of files first: how full one is, and that it is gone, it finds out only then.
func (h *volumes) listPools(conn *libvirtgo.Connect) ([]hypervisor.Pool, error) {
	if time.Since(h.refreshed) > refreshInterval {
		if err := refreshPools(conn); err != nil {
			return nil, err
		}
		h.refreshed = time.Now()
	}
	list, err := conn.ListAllStoragePools(0)
	if is(err, libvirtgo.ERR_NO_SUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pools []hypervisor.Pool
	for i := range list {
		defer func() { _ = list[i].Free() }()
		info, err := list[i].GetInfo()
		if is(err, libvirtgo.ERR_NO_STORAGE_POOL) {
			continue
		}
		if err != nil {
			return nil, err
		}
		model, err := poolModel(&list[i])
		if err != nil {
			return nil, err
		}
		pool := hypervisor.Pool{
			Name: model.Name, UUID: model.UUID, Type: model.Type, Active: info.State == libvirtgo.STORAGE_POOL_RUNNING,
			CapacityBytes: int64(info.Capacity), AvailableBytes: int64(info.Available),
		}
		if model.Target != nil {
			pool.Path = model.Target.Path
		}
		pools = append(pools, pool)
	}
	return pools, nil
}

// refreshPools leaves it to the listing to find out what became of each. A pool in which a volume is being made refuses, and
// is in order; one that cannot be read is stopped by libvirt.
func refreshPools(conn *libvirtgo.Connect) error {
	active, err := conn.ListAllStoragePools(libvirtgo.CONNECT_LIST_STORAGE_POOLS_ACTIVE |
		libvirtgo.CONNECT_LIST_STORAGE_POOLS_DIR | libvirtgo.CONNECT_LIST_STORAGE_POOLS_FS | libvirtgo.CONNECT_LIST_STORAGE_POOLS_NETFS)
	if is(err, libvirtgo.ERR_NO_SUPPORT) {
		return nil
	}
	for i := range active {
		_ = active[i].Refresh(0)
		_ = active[i].Free()
	}
	return err
}

func readNetworks(conn *libvirtgo.Connect) ([]hypervisor.Network, error) {
	list, err := conn.ListAllNetworks(0)
	if is(err, libvirtgo.ERR_NO_SUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var networks []hypervisor.Network
	for i := range list {
		defer func() { _ = list[i].Free() }()
		active, err := list[i].IsActive()
		if is(err, libvirtgo.ERR_NO_NETWORK) {
			continue
		}
		if err != nil {
			return nil, err
		}
		text, err := list[i].GetXMLDesc(0)
		if err != nil {
			return nil, err
		}
		var model libvirtxml.Network
		if err := model.Unmarshal(text); err != nil {
			return nil, err
		}
		network := hypervisor.Network{Name: model.Name, UUID: model.UUID, Active: active}
		if model.Bridge != nil {
			network.Bridge = model.Bridge.Name
		}
		if model.Forward != nil {
			network.ForwardMode = model.Forward.Mode
		}
		networks = append(networks, network)
	}
	return networks, nil
}

// bridges are the interfaces that are bridges, by name.
func bridges(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("list the bridges: %w", err)
	}
	var names []string
	for _, entry := range entries {
		_, err := os.Stat(filepath.Join(root, entry.Name(), "bridge"))
		switch {
		case err == nil:
			names = append(names, entry.Name())
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("list the bridges: %w", err)
		}
	}
	return names, nil
}
