package guard

import (
	"slices"
	"strings"
)

// Permission lets a document have what the guard refuses otherwise.
type Permission string

// The permissions.
const (
	HostDevices     Permission = "host-devices"
	HostPaths       Permission = "host-paths"
	HostNetwork     Permission = "host-network"
	HostSockets     Permission = "host-sockets"
	HostPrograms    Permission = "host-programs"
	HostTuning      Permission = "host-tuning"
	SharedFolders   Permission = "shared-folders"
	Firmware        Permission = "firmware"
	Unconfined      Permission = "unconfined"
	QEMUCommandline Permission = "qemu-commandline"
	UnknownElements Permission = "unknown-elements"
)

// docs say what each permission lets through, in the order in which people read them.
var docs = []struct {
	permission Permission
	doc        string
}{
	{HostDevices, "devices of the host: PCI, USB, SCSI, NVMe, mediated, vDPA, TPM, sound and input devices"},
	{HostPaths, "files and block devices outside of the image folders and of declared pools, also kernels and media"},
	{HostNetwork, "bridges, interfaces and VLANs of the host that are no declared network"},
	{HostSockets, "sockets, pipes and addresses that QEMU opens: character devices, network disks, vhost-user, vsock, displays for others"},
	{HostPrograms, "programs that run on the host: another emulator, scripts of interfaces, an emulated TPM"},
	{HostTuning, "how the host runs the guest: pinning, priorities, huge pages, locked or shared memory"},
	{SharedFolders, "folders and memory that guest and host share: virtiofs, 9p, ivshmem"},
	{Firmware, "firmware, its variables and ACPI tables from files outside of the folders where distributions have them"},
	{Unconfined, "a guest without the confinement of SELinux, AppArmor and file owners that libvirt gives by itself"},
	{QEMUCommandline, "arguments and environment of QEMU, and what else is in libvirt's namespace for QEMU"},
	{UnknownElements, "elements, attributes and values that the guard does not know"},
}

// Words of a list of permissions that stand for all of them, and for none.
const (
	All  = "all"
	None = "none"
)

// Permissions are all that there are.
func Permissions() []Permission {
	all := make([]Permission, 0, len(docs))
	for _, one := range docs {
		all = append(all, one.permission)
	}
	return all
}

// Doc says what a permission lets through; empty: there is no such permission.
func (p Permission) Doc() string {
	for _, one := range docs {
		if one.permission == p {
			return one.doc
		}
	}
	return ""
}

// Split reads a list of permissions with commas between. Bad is the first word that is none; empty: all are.
func Split(list string) (permissions []Permission, bad string) {
	switch list {
	case All:
		return Permissions(), ""
	case None:
		return nil, ""
	}
	for word := range strings.SplitSeq(list, ",") {
		one := Permission(strings.TrimSpace(word))
		if one.Doc() == "" {
			return nil, cut(word)
		}
		if !slices.Contains(permissions, one) {
			permissions = append(permissions, one)
		}
	}
	return permissions, ""
}

// Common is what two lists of permissions, as settings have them, have both.
func Common(a, b string) string {
	if a == b || b == All {
		return a
	}
	if a == All {
		return b
	}
	one, _ := Split(a)
	other, _ := Split(b)
	both := slices.DeleteFunc(one, func(p Permission) bool { return !slices.Contains(other, p) })
	if len(both) == 0 {
		return None
	}
	return Join(both)
}

// Join writes a list of permissions as settings have it, in the order of Permissions.
func Join(permissions []Permission) string { return strings.Join(words(permissions), ",") }

// Listed is Join for people: lines may end between two permissions.
func Listed(permissions []Permission) string { return strings.Join(words(permissions), ", ") }

func words(permissions []Permission) []string {
	var words []string
	for _, one := range Permissions() {
		if slices.Contains(permissions, one) {
			words = append(words, string(one))
		}
	}
	return words
}
