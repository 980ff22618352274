package drift

import (
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/shared/units"
)

// disks are records of disks by ID.
type disks map[string]model.Resource

func (d disks) Resource(id string) (model.Resource, bool) {
	found, known := d[id]
	return found, known
}

// Somebody has resized a disk if its guest shows it, under the name of its volume and where that is, in another size than its record, and
// nothing of Berth's explains that.
func TestWhichDisksAreResizedBesideBerth(t *testing.T) {
	const gib = units.GiB
	record := model.Resource{ID: "d1", Name: "root", Volume: &model.Volume{Name: "berth-d1.qcow2", Capacity: 10 * gib}}
	record.Settings = map[string]string{"size": "10737418240"}
	shown := volume("vda", "fast", "berth-d1.qcow2")
	for name, c := range map[string]struct {
		is      units.Bytes
		change  func(disk *model.Resource, shown *model.Device, vm *model.VM)
		resized bool
	}{
		"larger":      {20 * gib, nil, true},
		"smaller":     {5 * gib, nil, true},
		"as recorded": {10 * gib, nil, false},
		"not told":    {0, nil, false},
		"named by path": {20 * gib, func(_ *model.Resource, d *model.Device, _ *model.VM) {
			d.Source = model.DiskSource{Path: "/srv/berth-d1.qcow2"}
		}, true},
		"another volume": {20 * gib, func(_ *model.Resource, d *model.Device, _ *model.VM) { d.Source.Volume = "berth-d2.qcow2" }, false},
		"an ISO":         {20 * gib, func(_ *model.Resource, d *model.Device, _ *model.VM) { d.Media = true }, false},
		"not made yet":   {20 * gib, func(r *model.Resource, _ *model.Device, _ *model.VM) { r.Volume = nil }, false},
		"being removed":  {20 * gib, func(r *model.Resource, _ *model.Device, _ *model.VM) { r.Volume.Doomed = true }, false},
		"being grown":    {20 * gib, func(r *model.Resource, _ *model.Device, _ *model.VM) { r.Settings["size"] = "21474836480" }, false},
		"on its node":    {20 * gib, func(r *model.Resource, _ *model.Device, _ *model.VM) { r.Volume.Nodes = []string{"n1"} }, true},
		"on another one": {20 * gib, func(r *model.Resource, _ *model.Device, _ *model.VM) { r.Volume.Nodes = []string{"n2"} }, false},
		"a newer file in its place": {20 * gib, func(_ *model.Resource, _ *model.Device, vm *model.VM) {
			vm.Drift = &model.Drift{Edits: []model.DeviceEdit{{Kind: "disk", Key: "vda", Is: "/other/berth-d1.qcow2"}}}
		}, false},
		"rounded up to KiB":    {gib + 1024, func(r *model.Resource, _ *model.Device, _ *model.VM) { r.Volume.Capacity = gib + 3 }, false},
		"rounded up to sector": {gib + 512, func(r *model.Resource, _ *model.Device, _ *model.VM) { r.Volume.Capacity = gib + 3 }, false},
		"one sector more":      {10*gib + 512, nil, true},
	} {
		disk, device, vm := record, shown, model.VM{Name: "web", Disks: []string{"d1", "d0"}}
		made := *record.Volume
		disk.Volume, disk.Settings, device.Capacity = &made, map[string]string{"size": record.Settings["size"]}, c.is
		if c.change != nil {
			c.change(&disk, &device, &vm)
		}
		resized := ResizedBeside(disks{"d1": disk}, &vm, "n1", []model.Device{volume("vdb", "fast", "other"), device})
		if (len(resized) == 1) != c.resized || len(resized) > 1 || len(resized) == 1 && resized[0].Is != c.is {
			t.Errorf("%s: %+v", name, resized)
		}
	}
}

func TestWhatIsSaidOfAResizedDisk(t *testing.T) {
	disk := model.Resource{Name: "root", Volume: &model.Volume{Capacity: 10 * units.GiB}}
	for is, want := range map[units.Bytes]string{
		20 * units.GiB:      "somebody has made disk root larger beside Berth: it has 20 GiB, and had 10 GiB",
		5 * units.GiB:       "somebody has made disk root smaller beside Berth: it has 5 GiB, and had 10 GiB",
		10*units.GiB + 1024: "somebody has made disk root larger beside Berth: it has 10737419264 bytes, and had 10737418240 bytes",
	} {
		one := Resized{Disk: disk, Is: is}
		if text := one.Text(); text != want {
			t.Errorf("said is %q, want %q", text, want)
		}
		if taken := one.Taken(); taken.Volume.Capacity != is || taken.Settings != nil || disk.Volume.Capacity != 10*units.GiB {
			t.Errorf("taken over it is %+v with %+v", taken.Volume, taken.Settings)
		}
	}
	small := Resized{Disk: disk, Is: 5 * units.GiB}
	if next, want := small.Next(&model.VM{Name: "web"}), "'berth disk grow root 10737418240' makes it as large again, without what was lost; "+
		"'berth vm accept web' keeps it as small"; next != want {
		t.Errorf("the next step is %q, want %q", next, want)
	}
	at := time.Unix(5, 0)
	one := Resized{Disk: disk, Is: 20 * units.GiB}
	if e := one.Event(&model.VM{Name: "web"}, at, "berth"); e.Subject != "disk/root" || e.Kind != "disk.changed-beside" || !e.At.Equal(at) {
		t.Errorf("the event is %+v", e)
	}
}
