package telemetry

import (
	"context"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/agent/hoststat"
	"berth/agent/hypervisor"
	"berth/shared/buildinfo"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// Collector makes inventories. Not safe for concurrent use.
type Collector struct {
	Hypervisor   hypervisor.Hypervisor
	Identity     hoststat.Identity
	MigrationURI string
	// MigrationAddress is where guests' memory is to be sent. Empty: the host of MigrationURI.
	MigrationAddress string
	// DomainTypes limits what the capabilities offer, for a node where one is there and of no use. Empty: no limit.
	DomainTypes []string
	// MetricsPort is where other machines read the agent's figures; 0: none does.
	MetricsPort int
	// Expected are the UUIDs of the guests that this node may have: of one that is not listed a machine scope may be left. Nil:
	// only those that were listed before.
	Expected func() []string

	last   hypervisor.HostInfo
	lister hypervisor.Lister
}

// Inventory reads the whole node. A part that fails is named; a failed listing of domains is said to be unknown, because
// an empty one would read as "nothing runs here".
func (c *Collector) Inventory(ctx context.Context) *berthv1.InventoryReport {
	report := &berthv1.InventoryReport{Node: c.node(ctx)}
	var expected []string
	if c.Expected != nil {
		expected = c.Expected()
	}
	domains, err := c.lister.List(ctx, c.Hypervisor, expected)
	if err != nil {
		report.DomainsUnknown, report.DomainsError = true, err.Error()
		return report
	}
	for _, domain := range domains {
		report.Domains = append(report.Domains, Domain(domain))
	}
	return report
}

func (c *Collector) node(ctx context.Context) *berthv1.NodeInventory {
	out := &berthv1.NodeInventory{
		HostName: c.Identity.HostName, MachineId: c.Identity.MachineID, BootId: c.Identity.BootID,
		AgentVersion: buildinfo.Version(), MigrationUri: c.MigrationURI, MigrationAddress: c.MigrationAddress,
		CollectedAt: timestamppb.New(time.Now()), MetricsPort: int32(c.MetricsPort),
	}
	failed := func(reading string, err error) {
		out.Errors = append(out.Errors, &berthv1.ReadingError{Reading: reading, Message: err.Error()})
	}
	info, err := c.Hypervisor.Host(ctx)
	if err != nil {
		failed("host", err)
		if c.last.CapabilitiesXML == "" {
			return out
		}
		// What the node is does not change while libvirt is away; a node without memory would be a worse report.
		info = c.last
		info.Errors = nil
	}
	c.last = info
	for _, failure := range info.Errors {
		failed(failure.Reading, failure.Err)
	}
	out.HostUuid = info.HostUUID
	out.LibvirtVersion, out.HypervisorVersion = info.LibVersion, info.HypervisorVersion
	out.MemoryBytes, out.Cpus = info.MemoryBytes, int32(info.CPUs)
	out.CapabilitiesXml = info.CapabilitiesXML
	for _, pool := range info.Pools {
		out.StoragePools = append(out.StoragePools, &berthv1.StoragePool{
			Name: pool.Name, Uuid: pool.UUID, Type: pool.Type, Active: pool.Active, Path: pool.Path,
			CapacityBytes: pool.CapacityBytes, AvailableBytes: pool.AvailableBytes,
		})
	}
	for _, network := range info.Networks {
		out.Networks = append(out.Networks, &berthv1.Network{
			Name: network.Name, Uuid: network.UUID, Active: network.Active, Bridge: network.Bridge, ForwardMode: network.ForwardMode,
		})
	}
	out.Bridges, out.CpuModels, out.HostCpu = info.Bridges, info.CPUModels, info.HostCPU
	caps, err := domxml.ParseCapabilities(info.CapabilitiesXML)
	if err != nil {
		failed("capabilities", err)
		return out
	}
	out.Arch, out.CpuModel, out.CpuVendor, out.CpuFeatures = caps.Arch, caps.CPUModel, caps.CPUVendor, caps.CPUFeatures
	out.Sockets, out.CoresPerSocket, out.ThreadsPerCore = int32(caps.Sockets), int32(caps.CoresPerSocket), int32(caps.ThreadsPerCore)
	out.NumaCells = int32(caps.NUMACells)
	out.DomainTypes, out.MachineTypes = c.usable(caps.DomainTypes), caps.MachineTypes
	return out
}

func (c *Collector) usable(offered []string) []string {
	if len(c.DomainTypes) == 0 {
		return offered
	}
	var both []string
	for _, domainType := range offered {
		for _, wanted := range c.DomainTypes {
			if domainType == wanted {
				both = append(both, domainType)
			}
		}
	}
	return both
}

// Domain is a domain as reports show it.
func Domain(d hypervisor.Domain) *berthv1.Domain {
	var sources []*berthv1.DiskSource
	for _, source := range d.Sources {
		sources = append(sources, diskSource(domxml.Source(source)))
	}
	return &berthv1.Domain{
		Uuid: d.UUID, Name: d.Name, State: State(d.State), StateReason: d.Reason, MemoryBytes: d.MemoryBytes,
		Vcpus: int32(d.VCPUs), Persistent: d.Persistent, Managed: d.Managed, Epoch: d.Epoch, OperationId: d.OperationID,
		JobActive: d.JobActive, Autostart: d.Autostart, Saved: d.Saved,
		ProcessId: int64(d.PID), Sources: sources, Devices: Devices(d.Devices, d.DiskSizes, false), Bindings: bindings(d.Bindings),
	}
}

// bindings are what keeps a domain on its host as reports show it; nil: not known.
func bindings(bindings []domxml.Binding) *berthv1.Bindings {
	if bindings == nil {
		return nil
	}
	shown := &berthv1.Bindings{}
	for _, one := range bindings {
		binding := &berthv1.Binding{Kind: bindingKinds[one.Kind], What: one.What, Name: one.Name, Count: int32(min(one.Count, math.MaxInt32))}
		if one.Source != (domxml.Source{}) {
			binding.Source = diskSource(one.Source)
		}
		if !one.Since.IsZero() {
			binding.Since = timestamppb.New(one.Since)
		}
		shown.Bindings = append(shown.Bindings, binding)
	}
	return shown
}

var bindingKinds = map[domxml.BindingKind]berthv1.BindingKind{
	domxml.HostDeviceBinding:   berthv1.BindingKind_BINDING_KIND_HOST_DEVICE,
	domxml.FilesystemBinding:   berthv1.BindingKind_BINDING_KIND_FILESYSTEM,
	domxml.SharedMemoryBinding: berthv1.BindingKind_BINDING_KIND_SHARED_MEMORY,
	domxml.GraphicsBinding:     berthv1.BindingKind_BINDING_KIND_GRAPHICS,
	domxml.MediaBinding:        berthv1.BindingKind_BINDING_KIND_MEDIA,
	domxml.TransientBinding:    berthv1.BindingKind_BINDING_KIND_TRANSIENT,
	domxml.CPUBinding:          berthv1.BindingKind_BINDING_KIND_CPU,
	domxml.SnapshotsBinding:    berthv1.BindingKind_BINDING_KIND_SNAPSHOTS,
	domxml.JobBinding:          berthv1.BindingKind_BINDING_KIND_JOB,
	domxml.BlockJobBinding:     berthv1.BindingKind_BINDING_KIND_BLOCK_JOB,
}

// Devices are a domain's devices as reports show them, with their elements or without; nil: not known. Sizes are those of its disks in
// bytes, by target, as far as they are known.
func Devices(devices []domxml.Device, sizes map[string]int64, elements bool) *berthv1.Devices {
	if devices == nil {
		return nil
	}
	shown := &berthv1.Devices{}
	for _, one := range devices {
		device := &berthv1.Device{Kind: string(one.Kind), Key: one.Key, Format: one.Format, Network: one.Network, Media: one.Media}
		if one.Source != (domxml.Source{}) {
			device.Source = diskSource(one.Source)
		}
		if one.Kind == domxml.DiskDevice && !one.Media {
			device.CapacityBytes = sizes[one.Key]
		}
		if elements {
			device.Xml = one.XML
		}
		shown.Devices = append(shown.Devices, device)
	}
	return shown
}

// State is a domain's state as reports show it. What has no word of its own is unknown, never absent.
func State(s hypervisor.State) berthv1.DomainState {
	switch s {
	case hypervisor.Absent:
		return berthv1.DomainState_DOMAIN_STATE_ABSENT
	case hypervisor.Running:
		return berthv1.DomainState_DOMAIN_STATE_RUNNING
	case hypervisor.Paused:
		return berthv1.DomainState_DOMAIN_STATE_PAUSED
	case hypervisor.PausedMigration:
		return berthv1.DomainState_DOMAIN_STATE_PAUSED_MIGRATION
	case hypervisor.Shutoff:
		return berthv1.DomainState_DOMAIN_STATE_SHUTOFF
	case hypervisor.Orphan:
		return berthv1.DomainState_DOMAIN_STATE_ORPHAN
	case hypervisor.Crashed:
		return berthv1.DomainState_DOMAIN_STATE_CRASHED
	default:
		return berthv1.DomainState_DOMAIN_STATE_UNKNOWN
	}
}

func diskSource(source domxml.Source) *berthv1.DiskSource {
	return &berthv1.DiskSource{Path: source.Path, Pool: source.Pool, Volume: source.Volume}
}
