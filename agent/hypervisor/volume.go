package hypervisor

import (
	"strconv"
	"strings"
	"time"

	"libvirt.org/go/libvirtxml"
)

// VolumeIn reads a volume as libvirt describes it.
func VolumeIn(text string) (Volume, error) {
	var model libvirtxml.StorageVolume
	if err := model.Unmarshal(text); err != nil {
		return Volume{}, err
	}
	volume := Volume{Name: model.Name, Path: model.Key}
	if model.Target != nil {
		volume.Path = model.Target.Path
		if model.Target.Format != nil {
			volume.Format = model.Target.Format.Type
		}
		if model.Target.Timestamps != nil {
			volume.ModifiedAt = moment(model.Target.Timestamps.Mtime)
		}
	}
	if model.Capacity != nil {
		volume.CapacityBytes = int64(model.Capacity.Value)
	}
	if model.Allocation != nil {
		volume.AllocationBytes = int64(model.Allocation.Value)
	}
	if model.BackingStore != nil {
		volume.BackingPath = model.BackingStore.Path
		volume.Empty = isEmpty(&model)
	}
	return volume, nil
}

// moment is a time in seconds and their fraction, as libvirt writes it; zero for what is none.
func moment(text string) time.Time {
	whole, fraction, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}
	}
	nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, nanos)
}

// isEmpty tells by the length of a qcow2 file that no guest has written into it. It then has a header, a table and a block of references,
// and the table of all tables. What is written first takes one more table.
func isEmpty(model *libvirtxml.StorageVolume) bool {
	if model.Target == nil || model.Target.Format == nil || model.Target.Format.Type != FormatQCOW2 || model.Physical == nil ||
		model.Capacity == nil {
		return false
	}
	cluster := uint64(64 << 10)
	if size := model.Target.ClusterSize; size != nil && size.Value != 0 && (size.Unit == "" || size.Unit == "B" || size.Unit == "bytes") {
		cluster = size.Value
	}
	tables := cluster / 8 * cluster // bytes of the guest's disk that one table is for
	top := (model.Capacity.Value + tables - 1) / tables * 8
	return model.Physical.Value <= 3*cluster+(top+cluster-1)/cluster*cluster
}
