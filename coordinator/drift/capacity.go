package drift

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/shared/units"
)

// Resized is a disk of Berth's that somebody has made larger or smaller beside Berth: its guest has it in another size than its record.
type Resized struct {
	Disk model.Resource // as its record is
	Is   units.Bytes    // as its guest sees it
}

// Shrunk tells whether it is smaller than its record says. What was behind that is lost, and nobody takes that over by itself.
func (r *Resized) Shrunk() bool { return r.Is < r.Disk.Volume.Capacity }

// Text says what somebody has done, for people.
func (r *Resized) Text() string {
	what := "larger"
	if r.Shrunk() {
		what = "smaller"
	}
	had := r.Disk.Volume.Capacity
	return fmt.Sprintf("somebody has made disk %s %s beside Berth: it has %s, and had %s", r.Disk.Name, what, exactly(r.Is, had),
		exactly(had, r.Is))
}

// Next says what somebody may do about one that was made smaller. VM is the one that runs with it.
func (r *Resized) Next(vm *model.VM) string {
	return fmt.Sprintf("'berth disk grow %s %d' makes it as large again, without what was lost; 'berth vm accept %s' keeps it as small",
		r.Disk.Name, r.Disk.Volume.Capacity, model.Argument(vm.Name))
}

// exactly is a size for people that can be told from another one.
func exactly(size, other units.Bytes) string {
	if size.String() == other.String() {
		return fmt.Sprintf("%d bytes", size)
	}
	return size.String()
}

// Taken is the record of a disk that somebody has made larger, with the size that it has.
func (r *Resized) Taken() model.Resource {
	disk, volume := r.Disk, *r.Disk.Volume
	volume.Capacity = r.Is
	disk.Volume = &volume
	if _, says := disk.Settings[schema.SettingSize]; says {
		disk.Settings = maps.Clone(disk.Settings)
		disk.Settings[schema.SettingSize] = strconv.FormatInt(int64(r.Is), 10)
	}
	return disk
}

// Event tells of it.
func (r *Resized) Event(vm *model.VM, at time.Time, caller string) model.Event {
	return model.Event{At: at, Kind: "disk.changed-beside", Subject: "disk/" + r.Disk.Name, Caller: caller, Message: fmt.Sprintf(
		"its guest, VM %s, has %s of it, and its record had %s: the record has what the guest has from now on", vm.Name,
		exactly(r.Is, r.Disk.Volume.Capacity), exactly(r.Disk.Volume.Capacity, r.Is))}
}

// ResizedBeside are the disks of a VM that somebody has resized beside Berth, in the order of its disks, by the devices that its guest
// shows on a node. One that Berth is making larger is none of them, and neither is one of which nothing tells.
func ResizedBeside(records interface {
	Resource(id string) (model.Resource, bool)
}, vm *model.VM, node string, live []model.Device,
) []Resized {
	var resized []Resized
	for _, id := range vm.Disks {
		disk, _ := records.Resource(id)
		if is := SizeShown(vm, &disk, node, live); is > 0 && !sameSize(is, disk.Volume.Capacity) {
			resized = append(resized, Resized{Disk: disk, Is: is})
		}
	}
	return resized
}

// SizeShown is how large a disk of Berth's is, as the guest of its VM shows it on a node; 0: nothing tells, it is another disk that the
// guest shows in its place, or Berth is making it larger.
func SizeShown(vm *model.VM, disk *model.Resource, node string, live []model.Device) units.Bytes {
	made := disk.Volume
	if made == nil || made.Doomed || estate.SizeWanted(disk) > made.Capacity || len(made.Nodes) > 0 && !slices.Contains(made.Nodes, node) {
		return 0
	}
	at := slices.IndexFunc(live, func(d model.Device) bool {
		edited := func(e model.DeviceEdit) bool { return e.Names(d.Kind, d.Key) }
		return !d.Media && d.Source.FileName() == made.Name && !slices.ContainsFunc(vm.Drifted(), edited)
	})
	if at < 0 {
		return 0
	}
	return live[at].Capacity
}

// sameSize tells whether a volume that was made with a capacity has this size: libvirt and QEMU make whole sectors, or whole KiB, of it.
func sameSize(is, made units.Bytes) bool {
	for _, unit := range []units.Bytes{1, 512, units.KiB} {
		if is == (made+unit-1)/unit*unit {
			return true
		}
	}
	return false
}
