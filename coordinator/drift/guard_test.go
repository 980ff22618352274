package drift

import (
	"strings"
	"testing"

	"berth/coordinator/model"
	"berth/shared/domxml"
	"berth/shared/domxml/guard"
)

// What somebody has attached beside Berth and what is not permitted is asked about, by both versions; everything else is taken over.
func TestWhatIsNotPermittedIsAskedAbout(t *testing.T) {
	disk := func(target, path string) model.DeviceEdit {
		return model.DeviceEdit{
			Kind: "disk", Key: target, Is: path, Source: model.DiskSource{Path: path},
			XML: "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='" + path + "'/><target dev='" + target +
				"'/></disk>",
		}
	}
	vm := &model.VM{Name: "web", Drift: &model.Drift{Node: "n1"}}
	baseline := []domxml.Device{{Kind: domxml.DiskDevice, Key: "vda", Source: domxml.Source{Path: "/srv/vms/web.qcow2"}}}
	edits := []model.DeviceEdit{disk("vdb", "/srv/vms/more.raw"), disk("vdc", "/etc/shadow")}
	edits[1].Was = "/srv/vms/c.raw"
	vm.Drift.Edits = Judged(edits, baseline, guard.Permitted{})
	if vm.Drift.Edits[0].Needs != "" || vm.Drift.Edits[1].Needs != "host-paths" {
		t.Fatalf("needs %q and %q", vm.Drift.Edits[0].Needs, vm.Drift.Edits[1].Needs)
	}
	asked := Asked(vm, nil)
	for _, part := range []string{"vdc", "/srv/vms/c.raw", "/etc/shadow", "host-paths"} {
		if !strings.Contains(asked, part) {
			t.Errorf("asks %q, without %s", asked, part)
		}
	}
	if strings.Contains(asked, "vdb") {
		t.Errorf("asks about what needs nothing: %q", asked)
	}
	permits := &model.Resource{Settings: map[string]string{model.SettingPermit: "host-devices,host-paths"}}
	if asked := Asked(vm, permits); asked != "" {
		t.Errorf("asks about what is permitted: %q", asked)
	}
	if is, err := Accepted(*vm); err != nil || Asked(&is, nil) != "" || is.Lacks(nil) != "" {
		t.Errorf("asks about what was accepted: %v, %v", Asked(&is, nil), err)
	}
	if is := Reverted(*vm); Asked(&is, nil) != "" {
		t.Errorf("asks about what is not started: %q", Asked(&is, nil))
	}
	vm.Drift.Edits[1].By = "operator/alice"
	if Asked(vm, nil) != "" {
		t.Error("asks about what was done with Berth, which was judged then")
	}
}
