package connected_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/connected"
	"berth/coordinator/model"
	"berth/shared/domxml"
)

const (
	first = "52:54:00:00:00:01"
	xml   = "<domain><devices><interface type='network'><mac address='" + first + "'/><source network='lan'/></interface>" +
		"<interface type='bridge'><source bridge='br0'/></interface><interface type='direct'><source dev='eth0'/></interface></devices></domain>"
)

func nic(key, was, is string) model.DeviceEdit {
	return model.DeviceEdit{Kind: "interface", Key: key, Was: was, Is: is}
}

func changed(edits ...model.DeviceEdit) *model.Drift { return &model.Drift{Edits: edits} }

// An interface counts wherever it stands: in the record, in the VM's own XML, or in what somebody has changed later.
func TestAllInterfacesOfAVMCount(t *testing.T) {
	rendered, err := domxml.Spec{Networks: []string{"default"}}.Devices("3d3a1f34-8f63-4c0e-9e3c-3b2a9a0a1b11")
	if err != nil {
		t.Fatal(err)
	}
	ofRecord := rendered[0].Key
	reverted := changed(nic("52:54:00:00:00:09", "", "far"))
	reverted.Reverted = true
	ran := []model.RanDevice{{Kind: "interface", Key: first, Network: "old"}, {Kind: "disk", Key: "vda", Network: "rbd:pool/image"}}
	for name, c := range map[string]struct {
		vm             model.VM
		named          []string
		start, running []string
	}{
		"none":          {},
		"of the record": {named: []string{"lan", "default", "lan"}, start: []string{"default", "lan"}, running: []string{"default", "lan"}},
		"of its own XML": {
			vm: model.VM{Spec: model.VMSpec{XML: xml}}, start: []string{"bridge:br0", "lan"}, running: []string{"bridge:br0", "lan"},
		},
		"links beside XML":  {vm: model.VM{Spec: model.VMSpec{XML: "<domain/>"}}, named: []string{"default"}},
		"a document for no": {vm: model.VM{Spec: model.VMSpec{XML: "<domain"}}, named: []string{"default"}},
		"attached": {
			vm:    model.VM{Drift: changed(nic("52:54:00:00:00:09", "", "far"), model.DeviceEdit{Kind: "disk", Key: "vdb", Is: "/srv/b"})},
			named: []string{"default"}, start: []string{"default", "far"}, running: []string{"default", "far"},
		},
		"attached to nothing": {vm: model.VM{Drift: changed(nic("52:54:00:00:00:09", "", connected.Nowhere))}},
		"detached": {
			vm: model.VM{Drift: changed(nic(ofRecord, "default", ""))}, named: []string{"default", "lan"},
			start: []string{"lan"}, running: []string{"lan"},
		},
		"changed in XML": {
			vm:    model.VM{Spec: model.VMSpec{XML: xml}, Drift: changed(nic(first, "lan", "far"))},
			start: []string{"bridge:br0", "far"}, running: []string{"bridge:br0", "far"},
		},
		"reverted at the next start": {
			vm: model.VM{Drift: reverted}, named: []string{"default"},
			start: []string{"default"}, running: []string{"default", "far"},
		},
		"another record since it was started": {
			vm: model.VM{Ran: ran}, named: []string{"new"},
			start: []string{"new"}, running: []string{"old"},
		},
		"attached to what it was started with": {
			vm:    model.VM{Ran: ran, Drift: changed(nic("52:54:00:00:00:09", "", "far"))},
			start: []string{"far"}, running: []string{"far", "old"},
		},
	} {
		c.vm.ID = "3d3a1f34-8f63-4c0e-9e3c-3b2a9a0a1b11"
		if diff := cmp.Diff(c.start, connected.AtStart(&c.vm, c.named)); diff != "" {
			t.Errorf("%s, at its start:\n%s", name, diff)
		}
		if diff := cmp.Diff(c.running, connected.Running(&c.vm, c.named)); diff != "" {
			t.Errorf("%s, while it runs:\n%s", name, diff)
		}
	}
}
