package estate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/schema"
	"berth/shared/units"
)

// ErrNoVolume is wrapped by the error about a disk that is no volume, or none yet.
var ErrNoVolume = errors.New("no volume")

// volumeFormat is what the volumes of disks are made as.
const volumeFormat = model.DiskFormat

// IsVolume tells whether a disk is a volume or is to become one. Any other disk is a file that is there.
func IsVolume(disk *model.Resource) bool { return disk.Settings[schema.SettingPath] == "" }

// Kept tells whether a disk stays when its VM is deleted.
func Kept(disk *model.Resource) bool { return disk.Settings[schema.SettingKeep] == "true" }

// volumesOf are the disks of a VM that are volumes, or are to become some, as placement looks at them.
func (w *walk) volumesOf(subject string, vm *model.VM) []placement.Disk {
	if vm.Spec.XML != "" {
		return nil
	}
	var disks []placement.Disk
	for _, id := range vm.Disks {
		if record := w.follow(subject, "disk", model.KindDisk, id); record.ID != "" && IsVolume(&record) {
			disks = append(disks, w.volume(&record))
		}
	}
	return disks
}

func (w *walk) volume(record *model.Resource) placement.Disk {
	image := w.link(*record, schema.LinkImage, model.KindImage)
	disk := placement.Disk{ID: record.ID, Name: record.Name, Size: sizeOf(record, &image), Wanted: record.Links[schema.LinkPool]}
	if made := record.Volume; made != nil {
		disk.Pool, disk.Wanted, disk.Size = made.Pool, "", made.Capacity
		if len(made.Nodes) > 0 {
			// It has all that it needs where it is, and takes it along.
			disk.Node = made.Nodes[0]
			return disk
		}
	}
	if image.Volume == nil {
		return disk
	}
	disk.Image, disk.ImagePool, disk.ImageNodes = image.Name, image.Volume.Pool, slices.Clone(image.Volume.Nodes)
	if record.Volume != nil { // it needs the place that it was copied from
		if of := image.VolumeIn(record.Volume.Backing); of != nil {
			disk.ImagePool, disk.ImageNodes = of.Pool, slices.Clone(of.Nodes)
		}
		return disk
	}
	for i := range image.Copies {
		if of := &image.Copies[i]; !of.Doomed {
			disk.ImagePlaces = append(disk.ImagePlaces, placement.ImagePlace{Pool: of.Pool, Nodes: slices.Clone(of.Nodes)})
		}
	}
	return disk
}

// SizeOf is how large a disk's volume is, or is to be; 0 if that is not known.
func SizeOf(source Source, disk *model.Resource) units.Bytes {
	image, _ := source.Resource(disk.Links[schema.LinkImage])
	return sizeOf(disk, &image)
}

// sizeOf is how large a disk's volume is, or is to be: as large as its image unless it says more. 0: nothing says.
func sizeOf(disk, image *model.Resource) units.Bytes {
	if disk.Volume != nil {
		return disk.Volume.Capacity
	}
	if wanted := SizeWanted(disk); wanted > 0 {
		return wanted
	}
	if image.Volume != nil {
		return image.Volume.Capacity
	}
	return 0
}

// SizeWanted is the size that a disk's record asks for; 0: it says none.
func SizeWanted(disk *model.Resource) units.Bytes {
	size, err := strconv.ParseInt(disk.Settings[schema.SettingSize], 10, 64)
	if err != nil {
		return 0
	}
	return units.Bytes(size)
}

// VolumesOf are the volumes that a VM's disks are: those that a start has to make in the pools that were chosen, and those
// that are there. A disk that is not there and that no pool was chosen for is in neither. A VM with user data has a seed
// image too, in the pool of its first volume: every start makes it anew, so it is in both once the VM has volumes. The error
// wraps ErrDangling or ErrNoVolume.
func VolumesOf(source Source, vm model.VM, pools []placement.PoolChoice) (toMake, there []model.VolumeOrder, err error) {
	if vm.Spec.XML != "" {
		return nil, nil, nil
	}
	w, subject := &walk{source: source}, schema.Ref(model.KindVM, vm.Name)
	var first model.VolumeOrder
	for _, id := range vm.Disks {
		record := w.follow(subject, "disk", model.KindDisk, id)
		if record.ID == "" || !IsVolume(&record) {
			continue
		}
		var order model.VolumeOrder
		if record.Volume != nil {
			order = w.order(&record, placement.PoolChoice{Pool: record.Volume.Pool})
			there = append(there, order)
		} else if choice := chosen(pools, id); choice.Pool != "" {
			order = w.order(&record, choice)
			toMake = append(toMake, order)
		}
		if first.Pool == "" {
			first = order
		}
	}
	if vm.Spec.UserData != "" && first.Pool != "" {
		toMake = append(toMake, seedIn(&vm, first))
		if len(there) > 0 {
			there = append(there, seedIn(&vm, first))
		}
	}
	if w.err != nil {
		return nil, nil, w.err
	}
	return toMake, there, nil
}

func chosen(pools []placement.PoolChoice, disk string) placement.PoolChoice {
	for i := range pools {
		if pools[i].Disk == disk {
			return pools[i]
		}
	}
	return placement.PoolChoice{}
}

// seedIn is the seed image of a VM, in the pool of one of its volumes.
func seedIn(vm *model.VM, volume model.VolumeOrder) model.VolumeOrder {
	return model.VolumeOrder{
		DiskName: vm.Name + "-seed", Pool: volume.Pool, PoolName: volume.PoolName, Shared: volume.Shared,
		Name: model.VolumeName(model.SeedID(vm.ID), model.SeedSuffix), Format: model.SeedFormat, Capacity: model.SeedCapacity,
	}
}

// order is a disk's or an image's volume in a pool. Of one that is still to be made it says what it is a copy of.
func (w *walk) order(record *model.Resource, choice placement.PoolChoice) model.VolumeOrder {
	subject := schema.Ref(record.Kind, record.Name)
	pool := w.follow(subject, schema.LinkPool, model.KindPool, choice.Pool)
	settings := model.PoolSettingsOf(&pool)
	order := model.VolumeOrder{
		Disk: record.ID, DiskName: record.Name, Pool: pool.ID, PoolName: settings.Source, Shared: settings.Scope == model.PoolShared,
		Name: model.VolumeName(record.ID, volumeFormat), Format: volumeFormat,
	}
	if made := record.VolumeIn(choice.Pool); made != nil {
		order.Name, order.Format, order.Capacity = made.Name, made.Format, made.Capacity
		return order
	}
	image := w.link(*record, schema.LinkImage, model.KindImage)
	order.Capacity = sizeOf(record, &image)
	if record.Links[schema.LinkImage] == "" || w.err != nil {
		return order
	}
	if image.Volume == nil || image.Volume.Doomed {
		w.err = fmt.Errorf("%s: its image %s has %w: import it with 'berth image import'",
			subject, schema.Ref(image.Kind, image.Name), ErrNoVolume)
		return order
	}
	backing := image.Volume
	if choice.ImagePool != "" {
		order.BackedIn = choice.ImagePool
		if backing = image.VolumeIn(choice.ImagePool); backing == nil || backing.Doomed {
			w.err = fmt.Errorf("%s: its image %s has %w in the pool that was chosen (any more)",
				subject, schema.Ref(image.Kind, image.Name), ErrNoVolume)
			return order
		}
	}
	imagePool := w.follow(schema.Ref(image.Kind, image.Name), schema.LinkPool, model.KindPool, backing.Pool)
	order.BackingPool = model.PoolSettingsOf(&imagePool).Source
	order.BackingName, order.BackingFormat = backing.Name, backing.Format
	return order
}

// NewDiskOrder is the volume that a disk which is made now gets in a pool. The error wraps ErrDangling.
func NewDiskOrder(source Source, disk model.Resource, choice placement.PoolChoice) (model.VolumeOrder, error) {
	w := &walk{source: source}
	order := w.order(&disk, choice)
	return order, w.err
}

// DiskOrder is the volume that a disk or an image has in a pool, by the pool's ID. The error wraps ErrNoVolume or ErrDangling.
func DiskOrder(source Source, disk model.Resource, pool string) (model.VolumeOrder, error) {
	if disk.VolumeIn(pool) == nil {
		return model.VolumeOrder{}, fmt.Errorf("%s has %w", schema.Ref(disk.Kind, disk.Name), ErrNoVolume)
	}
	w := &walk{source: source}
	order := w.order(&disk, placement.PoolChoice{Pool: pool})
	if w.err != nil {
		return model.VolumeOrder{}, w.err
	}
	return order, nil
}
