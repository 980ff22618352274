package domxml

import (
	"errors"
	"fmt"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// DeviceKind says what a Device is.
type DeviceKind string

// The kinds of device that people attach and detach while a guest runs.
const (
	DiskDevice      DeviceKind = "disk"
	InterfaceDevice DeviceKind = "interface"
)

// Device is a disk or a network interface of a domain.
type Device struct {
	Kind     DeviceKind
	Key      string // what it is known by: a disk's target (vda), an interface's MAC address in small letters
	Source   Source // of a disk; the zero value: none, or neither a file, a device nor a volume
	Format   string // of a disk
	Network  string // of an interface: a libvirt network's name, or bridge:NAME; of a disk that comes over a network: rbd:POOL/IMAGE
	ReadOnly bool   // a disk that the guest cannot write to
	Unsafe   bool   // a disk whose writes are not flushed when the guest asks for that
	Media    bool   // a disk that is a drive for media: what is in it changes all the time
	XML      string // the element, as a domain can be started with it on any node
}

// MaxDevice is how long the element of a device may be.
const MaxDevice = 16 << 10

// Devices lists the disks and network interfaces of a domain document. What libvirt has written into the elements of a running domain, and
// finds out anew at every start, is left out: addresses, aliases, backing chains.
func Devices(text string) ([]Device, error) {
	var domain libvirtxml.Domain
	if err := domain.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	// libvirt shows an interface in one of its networks as what that comes to on the host, a bridge or a device, with the network's name.
	document, err := scan(text)
	if err != nil {
		return nil, err
	}
	networks := map[string]string{} // by MAC address
	for _, one := range document.interfaces {
		mac, source := one.parts["mac"], one.parts["source"]
		if network := source.attribute("network"); network != "" {
			networks[strings.ToLower(mac.attribute("address"))] = network
		}
	}
	return devicesOf(&domain, networks)
}

func devicesOf(domain *libvirtxml.Domain, networks map[string]string) ([]Device, error) {
	if domain.Devices == nil {
		return nil, nil
	}
	devices := make([]Device, 0, len(domain.Devices.Disks)+len(domain.Devices.Interfaces))
	for i := range domain.Devices.Disks {
		one, err := diskDevice(&domain.Devices.Disks[i])
		if err != nil {
			return nil, err
		}
		devices = append(devices, one)
	}
	for i := range domain.Devices.Interfaces {
		one, err := networkDevice(&domain.Devices.Interfaces[i], networks)
		if err != nil {
			return nil, err
		}
		devices = append(devices, one)
	}
	return devices, nil
}

// Devices lists the disks and network interfaces that a VM is rendered with.
func (s Spec) Devices(uuid string) ([]Device, error) {
	if s.XML != "" {
		return Devices(s.XML)
	}
	list, err := s.devices(uuid, Machine{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return devicesOf(&libvirtxml.Domain{Devices: list}, nil)
}

func diskDevice(disk *libvirtxml.DomainDisk) (Device, error) {
	disk.Alias, disk.Address, disk.BackingStore, disk.Mirror = nil, nil, nil, nil
	one := Device{Kind: DiskDevice, Media: disk.Device == "cdrom" || disk.Device == "floppy"}
	one.ReadOnly = disk.ReadOnly != nil
	if disk.Target != nil {
		one.Key = disk.Target.Dev
	}
	if disk.Driver != nil {
		one.Format, one.Unsafe = disk.Driver.Type, disk.Driver.Cache == "unsafe"
	}
	if source := disk.Source; source != nil {
		source.Index = 0
		one.Source = sourceOfDisk(source)
		if source.Network != nil {
			one.Network = source.Network.Protocol + ":" + source.Network.Name
		}
	}
	var err error
	one.XML, err = disk.Marshal()
	return one, err
}

// sourceOfDisk is what is behind a disk; the zero value: neither a file, a device nor a volume.
func sourceOfDisk(source *libvirtxml.DomainDiskSource) Source {
	switch {
	case source.File != nil:
		return Source{Path: source.File.File}
	case source.Block != nil:
		return Source{Path: source.Block.Dev}
	case source.Volume != nil:
		return Source{Pool: source.Volume.Pool, Volume: source.Volume.Volume}
	default:
		return Source{}
	}
}

func networkDevice(device *libvirtxml.DomainInterface, networks map[string]string) (Device, error) {
	device.Alias, device.Address, device.Script, device.DownScript = nil, nil, nil, nil // libvirtd would run a script
	if device.Target != nil && strings.HasPrefix(device.Target.Dev, "vnet") {
		device.Target = nil // libvirt's own name for the host's end
	}
	one := Device{Kind: InterfaceDevice}
	if device.MAC != nil {
		one.Key = strings.ToLower(device.MAC.Address)
	}
	if network := networks[one.Key]; network != "" {
		device.Source, device.VirtualPort = sourceOfInterface(network), nil
	}
	if source := device.Source; source != nil {
		switch {
		case source.Network != nil:
			source.Network.PortID, source.Network.Bridge = "", ""
			one.Network = source.Network.Network
		case source.Bridge != nil:
			one.Network = "bridge:" + source.Bridge.Bridge
		}
	}
	var err error
	one.XML, err = device.Marshal()
	return one, err
}

// DeviceEdit changes one device of a domain document.
type DeviceEdit struct {
	Kind DeviceKind
	Key  string
	XML  string // the element that it becomes; empty: it is taken away
}

// element is the device as it is written into a document. It may come from another node: only the one device is taken of it.
func (e *DeviceEdit) element() (string, error) {
	if len(e.XML) > MaxDevice {
		return "", fmt.Errorf("%w: %s %s has %d bytes, at most %d are taken", ErrInvalid, e.Kind, e.Key, len(e.XML), MaxDevice)
	}
	if e.XML == "" {
		return "", nil
	}
	found, err := DeviceOf(e.XML)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", e.Kind, e.Key, err)
	}
	if found.Kind != e.Kind || found.Key != e.Key {
		return "", fmt.Errorf("%w: the element of %s %s is not one such device", ErrInvalid, e.Kind, e.Key)
	}
	return found.XML, nil
}

// DeviceOf reads the element of one device. The error wraps ErrInvalid, also if it is none or there are several.
func DeviceOf(element string) (Device, error) {
	found, err := Devices("<domain><devices>" + element + "</devices></domain>")
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%w: not one device", ErrInvalid)
	}
	if err != nil {
		return Device{}, err
	}
	return found[0], nil
}

// EditDevices writes changed devices into a domain document. One that is there takes the place of the old, one that is not comes last.
// Every other byte stays as it was.
func EditDevices(text string, changes []DeviceEdit) (string, error) {
	if len(changes) == 0 {
		return text, nil
	}
	document, err := scan(text)
	if err != nil {
		return "", err
	}
	if document.devices.whole.end == 0 || document.devices.inner.end == document.devices.inner.start {
		return "", fmt.Errorf("%w: it has no devices", ErrInvalid)
	}
	var edits []edit
	var added strings.Builder
	for _, change := range changes {
		element, err := change.element()
		if err != nil {
			return "", err
		}
		if old, found := document.device(change.Kind, change.Key); found {
			edits = append(edits, edit{old, element})
		} else {
			added.WriteString(element)
		}
	}
	if added.Len() > 0 {
		edits = append(edits, edit{span{document.devices.inner.end, document.devices.inner.end}, added.String()})
	}
	text = splice(text, edits)
	if len(text) > MaxBytes {
		return "", errors.Join(ErrInvalid, fmt.Errorf("with its changed devices it has %d bytes, at most %d are taken", len(text), MaxBytes))
	}
	return text, nil
}

// device finds a device by what it is known by.
func (d *document) device(kind DeviceKind, key string) (span, bool) {
	list, part, attribute := d.disks, "target", "dev"
	if kind == InterfaceDevice {
		list, part, attribute = d.interfaces, "mac", "address"
	}
	for _, one := range list {
		known := one.parts[part]
		if strings.EqualFold(known.attribute(attribute), key) {
			return one.whole, true
		}
	}
	return span{}, false
}

// MakeDevice writes the element of a device of which its own is not known. Old is the element that it takes the place of; empty: there is
// none, and what is not known of the device is as Berth renders it.
func MakeDevice(old string, device Device) (string, error) {
	if device.Kind == InterfaceDevice {
		made := libvirtxml.DomainInterface{Model: &libvirtxml.DomainInterfaceModel{Type: "virtio"}}
		if old != "" {
			if err := made.Unmarshal(old); err != nil {
				return "", fmt.Errorf("%w: %w", ErrInvalid, err)
			}
		}
		made.MAC, made.Source = &libvirtxml.DomainInterfaceMAC{Address: device.Key}, sourceOfInterface(device.Network)
		return made.Marshal()
	}
	made := libvirtxml.DomainDisk{
		Device: "disk", Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Cache: "none"},
		Target: &libvirtxml.DomainDiskTarget{Dev: device.Key},
	}
	if device.Media {
		made.Device, made.Driver.Cache, made.ReadOnly = "cdrom", "", &libvirtxml.DomainDiskReadOnly{}
	}
	if old != "" {
		if err := made.Unmarshal(old); err != nil {
			return "", fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if made.Driver != nil {
		made.Driver.Type = device.Format
	}
	switch {
	case device.Source == (Source{}) && device.Network != "":
		return "", fmt.Errorf("%w: nobody has told how disk %s reaches %s", ErrInvalid, device.Key, device.Network)
	case device.Source == (Source{}):
		made.Source = nil
	case device.Source.Volume != "":
		made.Source = &libvirtxml.DomainDiskSource{
			Volume: &libvirtxml.DomainDiskSourceVolume{Pool: device.Source.Pool, Volume: device.Source.Volume},
		}
	case strings.HasPrefix(device.Source.Path, "/dev/"):
		made.Source = &libvirtxml.DomainDiskSource{Block: &libvirtxml.DomainDiskSourceBlock{Dev: device.Source.Path}}
	default:
		made.Source = &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: device.Source.Path}}
	}
	return made.Marshal()
}

func sourceOfInterface(network string) *libvirtxml.DomainInterfaceSource {
	if bridge, is := strings.CutPrefix(network, "bridge:"); is {
		return &libvirtxml.DomainInterfaceSource{Bridge: &libvirtxml.DomainInterfaceSourceBridge{Bridge: bridge}}
	}
	return &libvirtxml.DomainInterfaceSource{Network: &libvirtxml.DomainInterfaceSourceNetwork{Network: network}}
}
