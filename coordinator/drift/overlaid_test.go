package drift

import (
	"testing"
	"time"

	"berth/coordinator/model"
)

// overlaid is a VM of which a newer file was found on top of its disk.
func overlaid(rivals string) model.VM {
	return model.VM{Name: "web1", Epoch: 3, Unwatched: 3, Drift: &model.Drift{Node: "n1", Edits: []model.DeviceEdit{{
		Kind: "disk", Key: "vda", Was: "/srv/web1.qcow2", Is: "/srv/web1.snap", Source: model.DiskSource{Path: "/srv/web1.snap"},
		XML:   "<disk type='file'><source file='/srv/web1.snap'/><target dev='vda' bus='virtio'/></disk>",
		Found: true, Rivals: rivals,
	}}}}
}

// Both versions are told until somebody decides, and never a permission that nobody asked for.
func TestWhatWasFoundOnTopOfADiskIsAsked(t *testing.T) {
	const one = "disk vda is /srv/web1.qcow2, and /srv/web1.snap is on top of it and was written later"
	vm := overlaid("")
	if got := Asked(&vm, nil); got != one+": somebody took a snapshot while nobody looked" {
		t.Error(got)
	}
	vm = overlaid("/srv/web1.other")
	const two = one + ", and so is /srv/web1.other: one of them can be right: somebody took a snapshot while nobody looked"
	if got := Asked(&vm, nil); got != two {
		t.Error(got)
	}
	vm.Condition = model.Condition{Kind: model.RestartRefused, Text: "it is not started before somebody has decided what is right"}
	accepted, err := Accepted(vm)
	reverted := Reverted(vm)
	if accepted.Condition != (model.Condition{}) || reverted.Condition != (model.Condition{}) {
		t.Errorf("somebody has decided, and its condition is %+v and %+v", accepted.Condition, reverted.Condition)
	}
	if err != nil || Asked(&accepted, nil) != "" || Asked(&reverted, nil) != "" {
		t.Error("it is asked about although somebody has decided", err)
	}
	if len(accepted.Edits()) != 1 || len(reverted.Edits()) != 0 {
		t.Errorf("%+v, %+v", accepted.Edits(), reverted.Edits())
	}
	events := Events(&model.VM{Name: "web1"}, &vm, time.Time{}, "berth")
	if len(events) != 1 || events[0].Message != two+": it is not started before somebody has decided what is right" {
		t.Errorf("%+v", events)
	}
}

// Once it runs with what was accepted, that stays accepted: its node shows the same file.
func TestWhatWasAcceptedStaysSoOnceItRuns(t *testing.T) {
	vm, err := Accepted(overlaid("/srv/web1.other"))
	if err != nil {
		t.Fatal(err)
	}
	shown := vm.Drift.Edits[0]
	shown.Found, shown.Rivals = false, ""
	after, _ := After(vm, []model.DeviceEdit{shown}, "n2", time.Time{})
	if after.Drift == nil || !after.Drift.Accepted {
		t.Errorf("%+v", after.Drift)
	}
}
