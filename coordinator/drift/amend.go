package drift

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/shared/domxml"
)

// Guest is what is known of the devices of a VM: those that its record has, and those that its node shows while it runs.
type Guest struct {
	VM       *model.VM
	Baseline []domxml.Device
	Live     []model.Device // nil: it does not run, or they are not known
}

// NotThereError says that a VM has no such device, and which it has.
type NotThereError struct{ Has []string }

func (e *NotThereError) Error() string {
	if len(e.Has) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(e.Has, ", ")
}

// AttachDisk is the edit that gives a VM a disk, under the first target that nothing of it has, now or at its next start.
func (g *Guest) AttachDisk(disk model.Disk) (model.DeviceEdit, error) {
	made, err := domxml.NewDisk(domxml.Disk{
		Path: disk.Path, Pool: disk.Pool, Volume: disk.Volume, Format: disk.Format, Bus: disk.Bus, ReadOnly: disk.ReadOnly,
		Serial: disk.Serial(),
	}, g.taken(domxml.DiskDevice))
	if err != nil {
		return model.DeviceEdit{}, err
	}
	return editOf(&made), nil
}

// AttachInterface is the edit that gives a VM a network interface, under the first address of its own that nothing of it has.
func (g *Guest) AttachInterface(network string) (model.DeviceEdit, error) {
	made, err := domxml.NewInterface(network, g.VM.ID, g.taken(domxml.InterfaceDevice))
	if err != nil {
		return model.DeviceEdit{}, err
	}
	return editOf(&made), nil
}

// Detach is the edit that takes a device from a VM. The error is *NotThereError.
func (g *Guest) Detach(kind domxml.DeviceKind, key string) (model.DeviceEdit, error) {
	device, found := g.find(kind, key)
	if !found {
		return model.DeviceEdit{}, &NotThereError{g.names(func(d *model.Device) bool { return d.Kind == string(kind) })}
	}
	return model.DeviceEdit{Kind: device.Kind, Key: device.Key, Was: ran(&device).text(), Media: device.Media}, nil
}

// Medium is the edit that puts a file or a volume into a drive of a VM, or takes out what is in it. Without a target the VM has to have one
// drive alone. The error is *NotThereError, or wraps domxml.ErrInvalid.
func (g *Guest) Medium(target string, medium model.DiskSource) (model.DeviceEdit, error) {
	var drives []model.Device
	for _, one := range g.all() {
		if one.Media && (target == "" || one.Key == target) {
			drives = append(drives, one)
		}
	}
	if len(drives) != 1 {
		return model.DeviceEdit{}, &NotThereError{g.names(func(d *model.Device) bool { return d.Media })}
	}
	drive := drives[0]
	after := drive
	after.Source, after.Network, after.Format = medium, "", "raw"
	old := drive.XML
	if old == "" {
		at := slices.IndexFunc(g.Baseline, func(d domxml.Device) bool { return is(&d, drive.Kind, drive.Key) })
		if at >= 0 {
			old = g.Baseline[at].XML
		}
	}
	text, err := domxml.MakeDevice(old, domxml.Device{
		Kind: domxml.DiskDevice, Key: drive.Key, Source: domxml.Source(medium), Format: after.Format, Media: true,
	})
	if err != nil {
		return model.DeviceEdit{}, fmt.Errorf("drive %s: %w", drive.Key, err)
	}
	return model.DeviceEdit{
		Kind: drive.Kind, Key: drive.Key, Was: ran(&drive).text(), Is: ran(&after).text(), Source: medium, Media: true, XML: text,
	}, nil
}

// all are the devices that the VM has: as it runs, or as its next start has them. What somebody has just changed of a guest that runs with
// Berth its node shows some seconds later. What is changed beside Berth after that replaces the edit in its record.
func (g *Guest) all() []model.Device {
	if g.Live != nil {
		return edited(g.Live, slices.DeleteFunc(slices.Clone(g.VM.Edits()), func(e model.DeviceEdit) bool { return e.By == "" }))
	}
	var all []model.Device
	for i := range g.Baseline {
		d := &g.Baseline[i]
		all = append(all, model.Device{
			Kind: string(d.Kind), Key: d.Key, Source: model.DiskSource(d.Source), Format: d.Format, Network: d.Network, Media: d.Media,
			XML: d.XML,
		})
	}
	return edited(all, g.VM.Edits())
}

// edited are devices after edits. One that is already as its edit says stays as it is.
func edited(devices []model.Device, edits []model.DeviceEdit) []model.Device {
	all := slices.Clone(devices)
	for _, edit := range edits {
		if slices.ContainsFunc(all, func(d model.Device) bool { return edit.Names(d.Kind, d.Key) && ran(&d).text() == edit.Is }) {
			continue
		}
		all = slices.DeleteFunc(all, func(d model.Device) bool { return edit.Names(d.Kind, d.Key) })
		if edit.Is == "" {
			continue
		}
		device := model.Device{Kind: edit.Kind, Key: edit.Key, Source: edit.Source, Media: edit.Media, XML: edit.XML}
		if edit.Kind == string(domxml.InterfaceDevice) {
			device.Network = edit.Is
		}
		all = append(all, device)
	}
	return all
}

func (g *Guest) find(kind domxml.DeviceKind, key string) (model.Device, bool) {
	for _, one := range g.all() {
		if one.Kind == string(kind) && strings.EqualFold(one.Key, key) {
			return one, true
		}
	}
	return model.Device{}, false
}

// names are the devices of which is says so, for people.
func (g *Guest) names(is func(*model.Device) bool) (names []string) {
	for _, one := range g.all() {
		if is(&one) {
			names = append(names, fmt.Sprintf("%s (%s)", one.Key, ran(&one).text()))
		}
	}
	return names
}

// taken tells whether a name of this kind has a device: as the VM runs, as it was started, or by its record.
func (g *Guest) taken(kind domxml.DeviceKind) func(key string) bool {
	return func(key string) bool {
		_, has := g.find(kind, key)
		return has || slices.ContainsFunc(g.Baseline, func(d domxml.Device) bool { return is(&d, string(kind), key) }) ||
			slices.ContainsFunc(g.VM.Ran, func(d model.RanDevice) bool { return d.Kind == string(kind) && strings.EqualFold(d.Key, key) }) ||
			slices.ContainsFunc(g.VM.Drifted(), func(e model.DeviceEdit) bool { return e.Names(string(kind), key) })
	}
}

// editOf is the edit that attaches a device.
func editOf(made *domxml.Device) model.DeviceEdit {
	device := model.Device{Kind: string(made.Kind), Key: made.Key, Source: model.DiskSource(made.Source), Network: made.Network}
	return model.DeviceEdit{Kind: device.Kind, Key: device.Key, Is: ran(&device).text(), Source: device.Source, XML: made.XML}
}
