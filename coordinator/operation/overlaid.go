package operation

import (
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/shared/domxml"
)

// Overlay is a file that a node has found on top of a disk of a VM, and into which was written after the disk.
type Overlay struct {
	Target, Path    string // of the disk
	Overlay, Format string
	Rivals          []string // paths of others, on which that does not stand
}

// overlaid ends a start that was refused because somebody had taken a snapshot of a disk while nobody looked. Which of the two files is
// right a person decides: no other node would say more.
func overlaid(t *transition, answer Answer) {
	order := startOrder(&t.Operation, &t.VM)
	devices, _ := Devices(&order.Spec, t.VM.ID) // the node has read the same
	var edits []model.DeviceEdit
	for _, one := range answer.Overlays {
		edit := model.DeviceEdit{
			Kind: string(domxml.DiskDevice), Key: one.Target, Was: one.Path, Is: one.Overlay, Source: model.DiskSource{Path: one.Overlay},
			Found: true, Rivals: strings.Join(one.Rivals, ", "),
		}
		element := ""
		if at := slices.IndexFunc(devices, func(d domxml.Device) bool { return edit.Names(string(d.Kind), d.Key) }); at >= 0 {
			source := model.DiskSource(devices[at].Source)
			element, edit.Was = devices[at].XML, source.Text()
		}
		if at := slices.IndexFunc(order.Edits, func(e model.DeviceEdit) bool { return edit.Names(e.Kind, e.Key) }); at >= 0 {
			element = order.Edits[at].XML
		}
		made, err := domxml.MakeDevice(element, domxml.Device{
			Kind: domxml.DiskDevice, Key: one.Target, Source: domxml.Source{Path: one.Overlay}, Format: one.Format,
		})
		if err == nil {
			edit.XML = made
		}
		edits = append(edits, edit)
	}
	t.VM.Amend(edits, t.Operation.Target, t.at)
	if t.VM.Drift != nil {
		t.VM.Drift.Accepted, t.VM.Drift.Reverted = false, false
	}
	t.Operation.Code = Overlaid
	t.notStarted()
	t.VM.Condition = model.Condition{
		Kind: model.RestartRefused, About: t.Operation.Target,
		Text: "it is not started before somebody has decided what is right: " + answer.Error,
	}
	t.end(Failed, answer.Error)
}
