package model

import (
	"iter"
	"path"
	"strconv"
	"strings"

	"berth/shared/units"
)

// Volume is where the content of a disk or of an image is, once Berth has made it: a volume of a storage pool, by libvirt's
// storage API. A disk that is a file which was there before Berth has none.
type Volume struct {
	Pool     string      `json:"pool"`               // resource ID
	Nodes    []string    `json:"nodes,omitempty"`    // of a local pool: node IDs that have it, ascending; a disk is on one
	Name     string      `json:"name"`               // in the pool: VolumeName
	Format   string      `json:"format"`             // qcow2 or raw
	Capacity units.Bytes `json:"capacity"`           // as the guest sees it
	Checksum string      `json:"checksum,omitempty"` // of an image: SHA-256 of the imported file, hex
	// Doomed tells that it is being removed: nothing may use it any more, and removing it again finishes that.
	Doomed bool `json:"doomed,omitempty"`
	// Backing is the pool, by resource ID, of the image's volume that this one is a thin copy of; empty: it is whole, or the
	// image was in one pool only when it was made.
	Backing string `json:"backing,omitempty"`
}

// Volumes are where the content of a disk or an image is: none, or the first place and then the copies.
func (r *Resource) Volumes() iter.Seq[*Volume] {
	return func(yield func(*Volume) bool) {
		if r.Volume != nil && !yield(r.Volume) {
			return
		}
		for i := range r.Copies {
			if !yield(&r.Copies[i]) {
				return
			}
		}
	}
}

// VolumeIn is the volume in a pool, by the pool's ID; nil: there is none.
func (r *Resource) VolumeIn(pool string) *Volume {
	for volume := range r.Volumes() {
		if volume.Pool == pool {
			return volume
		}
	}
	return nil
}

// VolumeName is what the volume of a disk or image is called in its pool. It follows from the ID alone, so that making or
// removing it again after a crash finds the same one.
func VolumeName(id, format string) string { return "berth-" + id + "." + format }

// Serial is what a guest knows a disk by that Berth has made: the ID that its volume is named by; empty: it has none.
func (d *Disk) Serial() string {
	const most = 20 // characters that virtio's block device has room for
	id, ours := strings.CutPrefix(strings.TrimSuffix(d.Volume, path.Ext(d.Volume)), "berth-")
	if !ours || len(id) > most {
		return ""
	}
	return id
}

// DiskFormat is what the volumes of disks are made as: thin, and copies of images without copying them.
const DiskFormat = "qcow2"

// VolumeOrder is one volume that a node's agent is to make, to copy or to remove. Names are libvirt's.
type VolumeOrder struct {
	Disk     string      `json:"disk,omitempty"`      // resource ID; empty: the seed of cloud-init, which no record has
	DiskName string      `json:"disk_name,omitempty"` // for people
	Pool     string      `json:"pool"`                // resource ID
	PoolName string      `json:"pool_name"`           // of libvirt's pool on the nodes
	Name     string      `json:"name"`
	Format   string      `json:"format"`
	Capacity units.Bytes `json:"capacity"`
	Shared   bool        `json:"shared,omitempty"` // all nodes of the cluster see the same volume

	// Backing is the volume that this one is a thin copy of; empty: none. It is never written.
	BackingPool   string `json:"backing_pool,omitempty"` // libvirt's name
	BackingName   string `json:"backing_name,omitempty"`
	BackingFormat string `json:"backing_format,omitempty"`
	// BackedIn is the pool of Backing as a resource ID, where the image is in several; empty: in its only one.
	BackedIn string `json:"backed_in,omitempty"`
}

// PoolScope says who sees a pool's volumes.
type PoolScope string

// The scopes of a storage pool.
const (
	PoolShared PoolScope = "shared" // all nodes of its cluster: a common directory, NFS
	PoolLocal  PoolScope = "local"  // each node has its own of that name
)

// Names of a pool's settings.
const (
	SettingScope            = "scope"
	SettingPoolSource       = "source" // libvirt's name of the pool on the nodes; the pool's own name if left out
	SettingOverProvisioning = "over_provisioning"
	SettingHAWithoutLock    = "ha_without_lock"
)

// Sizes of a volume.
const (
	MinVolume = units.MiB
	MaxVolume = 1024 * units.TiB
)

// Bounds and defaults of a pool's settings.
const (
	DefaultOverProvisioning = 1.0
	MaxOverProvisioning     = 100.0
)

// PoolSettings are those of a pool with every default filled in.
type PoolSettings struct {
	Scope            PoolScope
	Source           string  // libvirt's name of the pool on the nodes
	OverProvisioning float64 // how much of its capacity is promised: 2 promises it twice
	HAWithoutLock    bool    // VMs with ha may have disks there although locks of files do not reach all nodes
}

// PoolSettingsOf reads the settings of a pool's record; what it does not set, or sets to what cannot be read, is as by
// default. Records are validated where they come in.
func PoolSettingsOf(record *Resource) PoolSettings {
	settings := PoolSettings{Scope: PoolLocal, Source: record.Name, OverProvisioning: DefaultOverProvisioning}
	if record.Settings[SettingScope] == string(PoolShared) {
		settings.Scope = PoolShared
	}
	if source := record.Settings[SettingPoolSource]; source != "" {
		settings.Source = source
	}
	if f, err := strconv.ParseFloat(record.Settings[SettingOverProvisioning], 64); err == nil {
		settings.OverProvisioning = f
	}
	settings.HAWithoutLock = record.Settings[SettingHAWithoutLock] == "true"
	return settings
}

// SeedID is what the seed image of a VM is called by in place of a disk's ID: see VolumeName.
func SeedID(vm string) string { return vm + "-seed" }

// What the seed image of cloud-init is.
const (
	SeedFormat   = "raw"     // what is in it is an ISO 9660 file system
	SeedSuffix   = "iso"     // of its name
	SeedCapacity = units.MiB // user data of MaxUserData and what belongs to it fit
)
