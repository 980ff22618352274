package libvirt

import (
	"context"
	"fmt"

	libvirtgo "libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// Host implements hypervisor.Hypervisor.
func (h *Hypervisor) Host(ctx context.Context) (hypervisor.HostInfo, error) {
	info, err := query(ctx, h, readHost)
	if err != nil {
		return hypervisor.HostInfo{}, fmt.Errorf("read the node's properties: %w", err)
	}
	if info.Pools, err = query(ctx, h, readPools); err != nil {
		info.Errors = append(info.Errors, hypervisor.ReadingError{Reading: "storage_pools", Err: err})
	}
	if info.Networks, err = query(ctx, h, readNetworks); err != nil {
		info.Errors = append(info.Errors, hypervisor.ReadingError{Reading: "networks", Err: err})
	}
	return info, nil
}

func readHost(conn *libvirtgo.Connect) (hypervisor.HostInfo, error) {
	var info hypervisor.HostInfo
	var err error
	if info.CapabilitiesXML, err = conn.GetCapabilities(); err != nil {
		return info, err
	}
	capabilities, err := domxml.ParseCapabilities(info.CapabilitiesXML)
	if err != nil {
		return info, err
	}
	info.HostUUID = capabilities.HostUUID
	if info.HostName, err = conn.GetHostname(); err != nil {
		info.Errors = append(info.Errors, hypervisor.ReadingError{Reading: "host_name", Err: explain(err)})
	}
	node, err := conn.GetNodeInfo()
	if err != nil {
		return info, err
	}
	info.MemoryBytes, info.CPUs = int64(node.Memory)<<10, int(node.Cpus)
	library, err := conn.GetLibVersion()
	if err != nil {
		return info, err
	}
	info.LibVersion = versionText(library)
	// A driver without a hypervisor process has no version of its own.
	if version, err := conn.GetVersion(); err == nil {
		info.HypervisorVersion = versionText(version)
	}
	return info, nil
}

func readPools(conn *libvirtgo.Connect) ([]hypervisor.Pool, error) {
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
		text, err := list[i].GetXMLDesc(0)
		if err != nil {
			return nil, err
		}
		var model libvirtxml.StoragePool
		if err := model.Unmarshal(text); err != nil {
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

// Memory implements hypervisor.Hypervisor.
func (h *Hypervisor) Memory(ctx context.Context) (hypervisor.MemoryStats, error) {
	memory, err := query(ctx, h, func(conn *libvirtgo.Connect) (hypervisor.MemoryStats, error) {
		stats, err := conn.GetMemoryStats(libvirtgo.NODE_MEMORY_STATS_ALL_CELLS, 0)
		if err != nil {
			return hypervisor.MemoryStats{}, err
		}
		if !stats.TotalSet || !stats.FreeSet {
			return hypervisor.MemoryStats{}, fmt.Errorf("libvirt tells neither total nor free memory")
		}
		memory := hypervisor.MemoryStats{TotalBytes: int64(stats.Total) << 10, FreeBytes: int64(stats.Free) << 10}
		if stats.AvailableSet {
			available := int64(stats.Available) << 10
			memory.AvailableBytes = &available
		}
		return memory, nil
	})
	if err != nil {
		return hypervisor.MemoryStats{}, fmt.Errorf("read the node's memory: %w", err)
	}
	return memory, nil
}
