package hypervisor

import (
	"fmt"

	"libvirt.org/go/libvirtxml"
)

// XML describes a new volume to libvirt; backing is what it is a thin copy of, or nil. Nothing of it is allocated
// beforehand. ErrUnsupported for what cannot be made.
func (volume NewVolume) XML(backing *Volume) (string, error) {
	model := libvirtxml.StorageVolume{
		Name:       volume.Name,
		Capacity:   &libvirtxml.StorageVolumeSize{Unit: "bytes", Value: uint64(volume.CapacityBytes)},
		Allocation: &libvirtxml.StorageVolumeSize{Unit: "bytes"},
		Target:     &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: volume.Format}},
	}
	if volume.Readable {
		model.Target.Permissions = &libvirtxml.StorageVolumeTargetPermissions{Mode: "0644"}
	}
	switch {
	case volume.CapacityBytes <= 0:
		return "", fmt.Errorf("%w: a volume of %d bytes", ErrUnsupported, volume.CapacityBytes)
	case volume.Format == FormatQCOW2:
		model.Target.Compat = "1.1" // libvirt's default is that of 2010, without cheap discards
	case volume.Format != FormatRaw:
		return "", fmt.Errorf("%w: format %q: write raw or qcow2", ErrUnsupported, volume.Format)
	}
	if backing != nil {
		switch {
		case volume.Format != FormatQCOW2:
			return "", fmt.Errorf("%w: a thin copy of format %s: write qcow2", ErrUnsupported, volume.Format)
		case volume.BackingFormat != FormatRaw && volume.BackingFormat != FormatQCOW2:
			return "", fmt.Errorf("%w: a thin copy of a volume of format %q: write raw or qcow2", ErrUnsupported, volume.BackingFormat)
		case volume.CapacityBytes < backing.CapacityBytes:
			return "", fmt.Errorf(
				"%w: %d bytes are less than the %d of %s", ErrUnsupported, volume.CapacityBytes, backing.CapacityBytes, backing.Name,
			)
		}
		model.BackingStore = &libvirtxml.StorageVolumeBackingStore{
			Path: backing.Path, Format: &libvirtxml.StorageVolumeTargetFormat{Type: volume.BackingFormat},
		}
	}
	return model.Marshal()
}
