package hypervisor

import (
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"berth/shared/domxml"
)

// Disk is a domain's disk as its XML names it.
type Disk struct {
	Target string   // vda, sdb ...
	Source Source   // the zero value: an empty drive, or something that is neither a file, a device nor a volume
	Others []Source // what it is a thin copy of, as far as the XML tells, and what it is being copied to
}

// Source is what is behind a disk: a path, or a volume by its name.
type Source struct {
	Path         string
	Pool, Volume string
}

// Disks reads the disks of a domain's XML.
func Disks(xml string) ([]Disk, error) {
	var domain libvirtxml.Domain
	if err := domain.Unmarshal(xml); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidXML, err)
	}
	if domain.Devices == nil {
		return nil, nil
	}
	disks := make([]Disk, 0, len(domain.Devices.Disks))
	for _, model := range domain.Devices.Disks {
		disk := Disk{Source: sourceOf(model.Source)}
		if model.Target != nil {
			disk.Target = model.Target.Dev
		}
		disk.add(model.BackingStore)
		if mirror := model.Mirror; mirror != nil {
			disk.Others = append(disk.Others, sourceOf(mirror.Source))
			disk.add(mirror.BackingStore)
		}
		disks = append(disks, disk)
	}
	return disks, nil
}

// MaxSources is how many sources of a domain are told.
const MaxSources = 64

// maxSource is how long a path or a name of a source may be that is told.
const maxSource = 1024

// MaxDevices is how many devices of a domain are told. Of one that has more none are.
const MaxDevices = 128

// Attached is what a domain has in devices that people attach and detach while it runs.
type Attached struct {
	// Written are the sources that the domain writes to and no other may: those of its disks that are neither read-only, nor shared by its
	// owner's wish, nor removable; at most MaxSources.
	Written []Source
	Devices []domxml.Device // nil: too many, or too long
	// Bindings are what keeps the domain on its host while it runs; at most MaxBindings. Nil: not known.
	Bindings []domxml.Binding
}

// Snapshots tells whether the hypervisor keeps snapshots of the domain.
func (a *Attached) Snapshots() bool {
	return slices.ContainsFunc(a.Bindings, func(b domxml.Binding) bool { return b.Kind == domxml.SnapshotsBinding })
}

// MaxBindings is how many bindings of a domain are told. One suffices to keep it where it is.
const MaxBindings = 32

// AttachedIn reads what a domain of this XML has.
func AttachedIn(xml string) (Attached, error) {
	var domain libvirtxml.Domain
	if err := domain.Unmarshal(xml); err != nil {
		return Attached{}, fmt.Errorf("%w: %w", ErrInvalidXML, err)
	}
	attached := Attached{Written: written(&domain)}
	devices, err := domxml.Devices(xml)
	if err != nil {
		return Attached{}, fmt.Errorf("%w: %w", ErrInvalidXML, err)
	}
	long := func(one domxml.Device) bool {
		return len(one.XML) > domxml.MaxDevice ||
			max(len(one.Key), len(one.Source.Path), len(one.Source.Pool), len(one.Source.Volume), len(one.Network)) > maxSource
	}
	if len(devices) <= MaxDevices && !slices.ContainsFunc(devices, long) {
		attached.Devices = append([]domxml.Device{}, devices...)
	}
	bindings, err := domxml.Bindings(xml)
	if err != nil {
		return Attached{}, fmt.Errorf("%w: %w", ErrInvalidXML, err)
	}
	attached.Bindings = append([]domxml.Binding{}, bindings[:min(len(bindings), MaxBindings)]...)
	for i := range attached.Bindings {
		one := &attached.Bindings[i]
		one.What, one.Name = short(one.What), short(one.Name)
		one.Source = domxml.Source{Path: short(one.Source.Path), Pool: short(one.Source.Pool), Volume: short(one.Source.Volume)}
	}
	return attached, nil
}

// short is a text as long as one may be that is told.
func short(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxSource)], "") }

func written(domain *libvirtxml.Domain) (sources []Source) {
	if domain.Devices == nil {
		return nil
	}
	for _, disk := range domain.Devices.Disks {
		source := sourceOf(disk.Source)
		removable := disk.Device != "" && disk.Device != "disk" && disk.Device != "lun"
		long := max(len(source.Path), len(source.Pool), len(source.Volume)) > maxSource
		if source == (Source{}) || removable || disk.ReadOnly != nil || disk.Shareable != nil || long || len(sources) == MaxSources {
			continue
		}
		sources = append(sources, source)
	}
	return sources
}

func (d *Disk) add(chain *libvirtxml.DomainDiskBackingStore) {
	for ; chain != nil; chain = chain.BackingStore {
		if source := sourceOf(chain.Source); source != (Source{}) {
			d.Others = append(d.Others, source)
		}
	}
}

func sourceOf(model *libvirtxml.DomainDiskSource) Source {
	switch {
	case model == nil:
		return Source{}
	case model.File != nil:
		return Source{Path: model.File.File}
	case model.Block != nil:
		return Source{Path: model.Block.Dev}
	case model.Volume != nil:
		return Source{Pool: model.Volume.Pool, Volume: model.Volume.Volume}
	default:
		return Source{}
	}
}
