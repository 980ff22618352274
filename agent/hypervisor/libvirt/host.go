package libvirt

import (
	"context"
	"fmt"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// Host implements hypervisor.Hypervisor.
func (h *Hypervisor) Host(ctx context.Context) (hypervisor.HostInfo, error) {
	info, err := query(ctx, h.connection, readHost)
	if err != nil {
		return hypervisor.HostInfo{}, fmt.Errorf("read the node's properties: %w", err)
	}
	failed := func(reading string, err error) {
		if err != nil {
			info.Errors = append(info.Errors, hypervisor.ReadingError{Reading: reading, Err: err})
		}
	}
	info.Pools, err = h.readPools(ctx)
	failed("storage_pools", err)
	info.Networks, err = query(ctx, h.connection, readNetworks)
	failed("networks", err)
	info.Bridges, err = bridges(interfaces)
	failed("networks", err)
	cpus, err := query(ctx, h.connection, func(conn *libvirtgo.Connect) (domxml.GuestCPUs, error) {
		return h.readCPUs(conn, info.CapabilitiesXML)
	})
	failed("cpu_models", err)
	info.CPUModels, info.HostCPU = cpus.Models, cpus.Host
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

// Memory implements hypervisor.Hypervisor.
func (h *Hypervisor) Memory(ctx context.Context) (hypervisor.MemoryStats, error) {
	memory, err := query(ctx, h.connection, func(conn *libvirtgo.Connect) (hypervisor.MemoryStats, error) {
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
