package domxml

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// Spec is what a VM is made of. Either XML is set, and everything else is in it, or the other fields are.
type Spec struct {
	MemoryBytes int64
	VCPUs       int
	Kernel      string // paths on the node
	Initrd      string
	Cmdline     string
	Disks       []Disk
	Networks    []string // libvirt network names, or bridge:NAME
	Machine     string   // machine type; empty: the node's
	Firmware    string   // FirmwareBIOS, FirmwareEFI; empty: what the machine type has by default
	CPU         string   // CPUHostPassthrough, or a model by libvirt's name; empty: one that the node chooses
	XML         string

	// MaxMemoryBytes and MaxVCPUs are how large it can become while it runs; what is not more than its size changes nothing.
	MaxMemoryBytes int64
	MaxVCPUs       int
}

// Words of a Spec's firmware and CPU.
const (
	FirmwareBIOS       = "bios"
	FirmwareEFI        = "efi"
	CPUHostPassthrough = "host-passthrough"
)

// Disk is one block device: a file or block device of the node, by its path, or a volume of one of its pools.
type Disk struct {
	Path     string
	Pool     string // libvirt's names of a volume; then there is no path
	Volume   string
	Format   string // raw or qcow2; never probed, because a guest can write what a probe would believe
	Bus      string // virtio, sata or scsi; empty: virtio
	ReadOnly bool
	Serial   string // what the guest knows it by wherever it runs, at most 20 characters; empty: nothing
}

// ErrSpec is the cause of every refusal of a Spec.
var ErrSpec = errors.New("VM cannot be rendered")

// Render writes the domain document of a VM for a node. The same arguments give the same document, MAC addresses
// included, so that a VM keeps them from start to start.
func Render(spec Spec, id Identity, machine Machine) (string, error) {
	if spec.XML != "" {
		if _, err := Parse(spec.XML); err != nil {
			return "", err
		}
		return WithIdentity(spec.XML, id)
	}
	if err := id.check(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if err := spec.check(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrSpec, err)
	}
	cpu, err := spec.cpu(machine)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSpec, err)
	}
	devices, err := spec.devices(id.UUID, machine)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSpec, err)
	}
	boot, err := spec.boot(machine)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSpec, err)
	}
	domain := libvirtxml.Domain{
		Type:     machine.DomainType,
		Name:     id.Name,
		UUID:     id.UUID,
		Metadata: &libvirtxml.DomainMetadata{XML: id.Mark.element()},
		Memory:   &libvirtxml.DomainMemory{Value: kib(max(spec.MaxMemoryBytes, spec.MemoryBytes)), Unit: "KiB"},
		VCPU:     &libvirtxml.DomainVCPU{Value: uint(max(spec.MaxVCPUs, spec.VCPUs))},
		OS:       boot,
		CPU:      cpu,
		Clock:    machine.clock(),
		// A guest that ends itself is gone; what becomes of it then is decided by the coordinator, not on the node.
		OnPoweroff: "destroy", OnReboot: "restart", OnCrash: "destroy",
		Devices: devices,
	}
	if spec.MaxMemoryBytes > spec.MemoryBytes {
		domain.CurrentMemory = &libvirtxml.DomainCurrentMemory{Value: kib(spec.MemoryBytes), Unit: "KiB"}
	}
	if spec.MaxVCPUs > spec.VCPUs {
		domain.VCPU.Current = uint(spec.VCPUs)
	}
	if machine.x86() {
		domain.Features = &libvirtxml.DomainFeatureList{ACPI: &libvirtxml.DomainFeature{}, APIC: &libvirtxml.DomainFeatureAPIC{}}
	}
	text, err := domain.Marshal()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return text, nil
}

// kib is a size as libvirt counts it, rounded up.
func kib(bytes int64) uint { return uint(bytes+1023) / 1024 }

func (s Spec) check() error {
	switch {
	case s.MemoryBytes <= 0:
		return fmt.Errorf("memory is %d bytes", s.MemoryBytes)
	case s.VCPUs <= 0:
		return fmt.Errorf("%d vCPUs", s.VCPUs)
	case s.Kernel == "" && (s.Initrd != "" || s.Cmdline != ""):
		return errors.New("an initrd or a kernel command line without a kernel")
	}
	for _, path := range []string{s.Kernel, s.Initrd} {
		if path != "" && !strings.HasPrefix(path, "/") {
			return fmt.Errorf("path %q is not absolute", path)
		}
	}
	return nil
}

func (m Machine) x86() bool { return m.Arch == "x86_64" || m.Arch == "i686" }

func (m Machine) clock() *libvirtxml.DomainClock {
	clock := &libvirtxml.DomainClock{Offset: "utc"}
	if m.x86() && m.DomainType == VirtKVM {
		// Without these a guest's clock drifts when its timer ticks come late.
		clock.Timer = []libvirtxml.DomainTimer{
			{Name: "rtc", TickPolicy: "catchup"}, {Name: "pit", TickPolicy: "delay"}, {Name: "hpet", Present: "no"},
		}
	}
	return clock
}

func (s Spec) boot(m Machine) (*libvirtxml.DomainOS, error) {
	os := &libvirtxml.DomainOS{
		Type:   &libvirtxml.DomainOSType{Type: "hvm", Arch: m.Arch, Machine: m.Type},
		Kernel: s.Kernel, Initrd: s.Initrd, Cmdline: s.Cmdline,
	}
	if s.Machine != "" {
		os.Type.Machine = s.Machine
	}
	switch {
	case s.Firmware == FirmwareEFI, s.Firmware == "" && s.Kernel == "" && m.Arch == "aarch64": // there is no other way to boot a disk
		os.Firmware = FirmwareEFI // which file that is, libvirt finds on each node
	case s.Firmware == FirmwareBIOS && !m.x86():
		return nil, fmt.Errorf("firmware bios: machines of architecture %s have none: write efi", m.Arch)
	case s.Firmware != "" && s.Firmware != FirmwareBIOS: // the BIOS is what x86 machines have without being told
		return nil, fmt.Errorf("firmware %q: write bios or efi", s.Firmware)
	}
	return os, nil
}

func (s Spec) devices(uuid string, machine Machine) (*libvirtxml.DomainDeviceList, error) {
	port := uint(0)
	devices := &libvirtxml.DomainDeviceList{
		Controllers: []libvirtxml.DomainController{{Type: "usb", Model: "none"}},
		Serials: []libvirtxml.DomainSerial{{
			Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
			Target: &libvirtxml.DomainSerialTarget{Port: &port},
		}},
		Consoles: []libvirtxml.DomainConsole{{
			Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
			Target: &libvirtxml.DomainConsoleTarget{Type: "serial", Port: &port},
		}},
		// Where an agent of the guest listens, if it has one. libvirt chooses the socket, on each node anew.
		Channels: []libvirtxml.DomainChannel{{
			Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{}},
			Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: "org.qemu.guest_agent.0"}},
		}},
		// The guest's own view of its memory comes with the balloon's statistics, read by the agent, never set.
		MemBalloon: &libvirtxml.DomainMemBalloon{Model: "virtio", Stats: &libvirtxml.DomainMemBalloonStats{Period: 10}},
		RNGs: []libvirtxml.DomainRNG{{
			Model:   "virtio",
			Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
		}},
	}
	if machine.x86() {
		devices.Panics = []libvirtxml.DomainPanic{{Model: "isa"}}
	}
	for i, disk := range s.Disks {
		device, err := disk.device(s.Disks[:i])
		if err != nil {
			return nil, err
		}
		if i == 0 && s.Kernel == "" {
			device.Boot = &libvirtxml.DomainDeviceBoot{Order: 1}
		}
		devices.Disks = append(devices.Disks, device)
	}
	for i, network := range s.Networks {
		device, err := interfaceDevice(network, uuid, i)
		if err != nil {
			return nil, err
		}
		devices.Interfaces = append(devices.Interfaces, device)
	}
	return devices, nil
}

// bus is where the disk is plugged in, and what its device names begin with.
func (d Disk) bus() (bus, prefix string, err error) {
	switch d.Bus {
	case "", "virtio":
		return "virtio", "vd", nil
	case "sata", "scsi":
		return d.Bus, "sd", nil
	default:
		return "", "", fmt.Errorf("disk %s: bus %q: write virtio, sata or scsi", d.name(), d.Bus)
	}
}

// MaxSerial is how many characters virtio's block device has room for.
const MaxSerial = 20

// name is what errors call the disk.
func (d Disk) name() string {
	if d.Volume != "" {
		return d.Pool + "/" + d.Volume
	}
	return d.Path
}

func (d Disk) device(before []Disk) (libvirtxml.DomainDisk, error) {
	if d.Volume == "" && !strings.HasPrefix(d.Path, "/") {
		return libvirtxml.DomainDisk{}, fmt.Errorf("disk path %q is not absolute", d.Path)
	}
	if d.Volume != "" && d.Pool == "" {
		return libvirtxml.DomainDisk{}, fmt.Errorf("disk volume %q has no pool", d.Volume)
	}
	if d.Format != "raw" && d.Format != "qcow2" {
		return libvirtxml.DomainDisk{}, fmt.Errorf("disk %s: format %q: write raw or qcow2", d.name(), d.Format)
	}
	if len(d.Serial) > MaxSerial {
		return libvirtxml.DomainDisk{}, fmt.Errorf("disk %s: serial %q is longer than %d characters", d.name(), d.Serial, MaxSerial)
	}
	bus, prefix, err := d.bus()
	if err != nil {
		return libvirtxml.DomainDisk{}, err
	}
	index := 0
	for _, other := range before {
		if _, p, err := other.bus(); err == nil && p == prefix {
			index++
		}
	}
	device := libvirtxml.DomainDisk{
		Device: "disk",
		// Without the page cache a migration needs no trust in when the source's kernel writes back.
		Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: d.Format, Cache: "none", Discard: "unmap"},
		Source: &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: d.Path}},
		Target: &libvirtxml.DomainDiskTarget{Dev: prefix + letters(index), Bus: bus},
		Serial: d.Serial,
	}
	switch {
	case d.Volume != "":
		device.Source = &libvirtxml.DomainDiskSource{Volume: &libvirtxml.DomainDiskSourceVolume{Pool: d.Pool, Volume: d.Volume}}
	case strings.HasPrefix(d.Path, "/dev/"):
		device.Source = &libvirtxml.DomainDiskSource{Block: &libvirtxml.DomainDiskSourceBlock{Dev: d.Path}}
	}
	if d.ReadOnly {
		// An image that nobody writes may sit on any file system, also one without direct I/O.
		device.Driver.Cache, device.Driver.Discard = "", ""
		device.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
		if bus == "sata" {
			device.Device = "cdrom" // a SATA disk cannot be read-only
		}
	}
	return device, nil
}

// letters counts a, b ... z, aa, ab ... as disk names do.
func letters(index int) string {
	text := ""
	for index >= 0 {
		text = string(rune('a'+index%26)) + text
		index = index/26 - 1
	}
	return text
}

func interfaceDevice(network, uuid string, index int) (libvirtxml.DomainInterface, error) {
	device := libvirtxml.DomainInterface{
		MAC:   &libvirtxml.DomainInterfaceMAC{Address: macAddress(uuid, index)},
		Model: &libvirtxml.DomainInterfaceModel{Type: "virtio"},
	}
	bridge, isBridge := strings.CutPrefix(network, "bridge:")
	switch {
	case network == "" || isBridge && bridge == "":
		return device, fmt.Errorf("network %q: write a libvirt network's name or bridge:NAME", network)
	case isBridge:
		device.Source = &libvirtxml.DomainInterfaceSource{Bridge: &libvirtxml.DomainInterfaceSourceBridge{Bridge: bridge}}
	default:
		device.Source = &libvirtxml.DomainInterfaceSource{Network: &libvirtxml.DomainInterfaceSourceNetwork{Network: network}}
	}
	return device, nil
}

// macAddress derives an address in QEMU's own range from the VM and the place of the interface, so that it is the same
// at every start and on every node.
func macAddress(uuid string, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", strings.ToLower(uuid), index))
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", sum[0], sum[1], sum[2])
}
