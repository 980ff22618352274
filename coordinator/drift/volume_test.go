package drift

import (
	"strings"
	"testing"

	"berth/coordinator/estate"
	"berth/coordinator/model"
)

// pooled is an estate with a pool that all nodes see and one that each node has for itself, and a disk of Berth in that.
type pooled struct{ estate.Facts }

func (pooled) records() []model.Resource {
	return []model.Resource{
		{ID: "p1", Kind: model.KindPool, Name: "wide", Settings: map[string]string{model.SettingScope: string(model.PoolShared)}},
		{ID: "p2", Kind: model.KindPool, Name: "near", Settings: map[string]string{
			model.SettingScope: string(model.PoolLocal), model.SettingPoolSource: "fast",
		}},
		{ID: "d1", Kind: model.KindDisk, Name: "data", Volume: &model.Volume{
			Pool: "p2", Name: "berth-d1.qcow2", Format: "qcow2", Nodes: []string{"n1"},
		}},
	}
}

func (p pooled) Resource(id string) (model.Resource, bool) {
	for _, one := range p.records() {
		if one.ID == id {
			return one, true
		}
	}
	return model.Resource{}, false
}

func (p pooled) Resources(kind model.Kind) (found []model.Resource) {
	for _, one := range p.records() {
		if one.Kind == kind {
			found = append(found, one)
		}
	}
	return found
}

// A volume binds as a file does: one in a pool that only its node has binds the VM to that, unless it is a disk of Berth, which goes
// along. A volume of such a disk's name in another pool does not go along.
func TestVolumesThatBind(t *testing.T) {
	for name, tc := range map[string]struct {
		pool, volume string
		local        string
	}{
		"as recorded":                               {pool: "fast", volume: "berth-d1.qcow2"},
		"another volume of that pool":               {pool: "fast", volume: "other", local: "fast/other"},
		"a volume that all nodes see":               {pool: "wide", volume: "other"},
		"one of its name that all nodes see":        {pool: "wide", volume: "berth-d1.qcow2"},
		"one of its name in a pool of no record":    {pool: "mine", volume: "berth-d1.qcow2", local: "mine/berth-d1.qcow2"},
		"one of its name in a pool by Berth's name": {pool: "near", volume: "berth-d1.qcow2", local: "near/berth-d1.qcow2"},
	} {
		vm := model.VM{ID: uuid, Name: "web", Spec: model.VMSpec{Memory: 1 << 30, VCPUs: 1}, Disks: []string{"d1"}}
		record, err := Baseline(pooled{}, &vm)
		if err != nil {
			t.Fatal(err)
		}
		var live []model.Device
		for _, one := range record {
			device := model.Device{Kind: string(one.Kind), Key: one.Key, Source: model.DiskSource(one.Source), Format: one.Format}
			if device.Kind == "disk" {
				device.Source = model.DiskSource{Pool: tc.pool, Volume: tc.volume}
			} else {
				device.Network = one.Network
			}
			live = append(live, device)
		}
		edits := Compare(&vm, record, live, &model.NodeFacts{})
		if recorded := name == "as recorded"; recorded != (len(edits) == 0) {
			t.Fatalf("%s: it differs by %+v", name, edits)
		}
		for _, edit := range edits {
			if !strings.Contains(edit.XML, `type="volume"`) || !strings.Contains(edit.XML, `pool="`+tc.pool+`" volume="`+tc.volume+`"`) {
				t.Errorf("%s: its next start gets %s", name, edit.XML)
			}
		}
		if len(edits) > 0 {
			vm.Drift = &model.Drift{Node: "n1", Edits: edits}
		}
		local, err := LocalDisk(pooled{}, &vm, model.DefaultCluster, &model.NodeFacts{PoolsKnown: true})
		if err != nil || local != tc.local {
			t.Errorf("%s: what only its node has is %q, %v; wanted %q", name, local, err, tc.local)
		}
	}
}

// A document of its own has a volume that is swapped, and has it no more once that was taken away and accepted.
func TestVolumesOfADocument(t *testing.T) {
	vm := described("<disk type='volume' device='disk'><driver name='qemu' type='raw' cache='none'/><source pool='fast' volume='data'/>" +
		"<target dev='vdb' bus='virtio'/></disk>")
	vm.Ran = asStarted(t, vm)
	for _, tc := range []struct {
		live []model.Device
		has  string
	}{
		{[]model.Device{volume("vdb", "fast", "data2")}, `pool="fast" volume="data2"`},
		{[]model.Device{}, ""},
	} {
		edits := Compare(&vm, baseline(t, vm), tc.live, &model.NodeFacts{})
		after := vm
		after.Drift = &model.Drift{Edits: edits}
		accepted, err := Accepted(after)
		if err != nil || len(edits) != 1 {
			t.Fatalf("%+v, %v", edits, err)
		}
		if strings.Contains(accepted.Spec.XML, `volume="data"`) || strings.Contains(accepted.Spec.XML, "volume='data'") ||
			tc.has == "" && strings.Contains(accepted.Spec.XML, "<disk") || !strings.Contains(accepted.Spec.XML, tc.has) {
			t.Errorf("the document has %s", accepted.Spec.XML)
		}
		if got := compare(t, accepted, tc.live, model.NodeFacts{}); got != "" {
			t.Errorf("what was accepted differs: %s", got)
		}
		if reverted := Reverted(after); len(reverted.Edits()) != 0 || reverted.Spec.XML != vm.Spec.XML {
			t.Errorf("what was reverted is started with %+v", reverted.Edits())
		}
	}
}
