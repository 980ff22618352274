package domxml

import (
	"errors"
	"fmt"
)

// maxIndex bounds the search for a free name: no guest has as many devices.
const maxIndex = 1024

// errNoName says that a guest has no name free.
var errNoName = errors.New("no name is free")

// NewDisk is a disk that is attached to a domain, under the first name that is not taken there. The error wraps ErrSpec.
func NewDisk(disk Disk, taken func(target string) bool) (Device, error) {
	element, err := disk.device(nil)
	if err != nil {
		return Device{}, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	_, prefix, err := disk.bus()
	if err != nil {
		return Device{}, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	for index := range maxIndex {
		if element.Target.Dev = prefix + letters(index); !taken(element.Target.Dev) {
			return diskDevice(&element)
		}
	}
	return Device{}, fmt.Errorf("%w: %w for a disk on bus %s", ErrSpec, errNoName, disk.Bus)
}

// NewInterface is a network interface that is attached to the domain of a VM, under the first address of the VM that is not taken. The
// error wraps ErrSpec.
func NewInterface(network, uuid string, taken func(address string) bool) (Device, error) {
	for index := range maxIndex {
		element, err := interfaceDevice(network, uuid, index)
		if err != nil {
			return Device{}, fmt.Errorf("%w: %w", ErrSpec, err)
		}
		if !taken(element.MAC.Address) {
			return networkDevice(&element, nil)
		}
	}
	return Device{}, fmt.Errorf("%w: %w for an interface", ErrSpec, errNoName)
}
