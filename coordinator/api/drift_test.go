package api

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// What was found on top of a disk, and what somebody has changed while a guest ran, is given up by nobody who was not told what is lost.
func TestRevertingNamesWhatIsLost(t *testing.T) {
	d := newDeclarer(t)
	edit := model.DeviceEdit{
		Kind: "disk", Key: "vda", Was: "/srv/web.qcow2", Is: "/srv/web.before", Source: model.DiskSource{Path: "/srv/web.before"}, XML: "<disk/>",
	}
	found := edit
	found.Found = true
	attached := edit
	attached.Key, attached.Was, attached.Is, attached.Source.Path = "vdb", "", "/srv/more.qcow2", "/srv/more.qcow2"
	for _, vm := range []model.VM{
		{ID: "v1", Name: "found", Drift: &model.Drift{Node: "n1", Edits: []model.DeviceEdit{found}}},
		{ID: "v2", Name: "seen", Drift: &model.Drift{Node: "n1", Edits: []model.DeviceEdit{edit}}},
		{ID: "v3", Name: "attached", Drift: &model.Drift{Node: "n1", Edits: []model.DeviceEdit{attached}}},
		{ID: "v4", Name: "plain"},
	} {
		vm.Desired, vm.LastNode, vm.Epoch = model.Stopped, "n1", 3
		d.m.addVM(vm)
	}
	revert := func(vm string, without bool) error {
		_, err := d.client.RevertDrift(t.Context(), connect.NewRequest(&berthv1.RevertDriftRequest{
			Vm: vm, RequestId: fmt.Sprint("revert ", vm, without), WithoutWrites: without,
		}))
		return err
	}
	reverted := func(id string) bool {
		t.Helper()
		vm, known := d.m.store.Snapshot().VM(id)
		if !known || vm.Drift == nil {
			t.Fatalf("its record is %+v", vm)
		}
		return vm.Drift.Reverted
	}
	for vm, says := range map[string][]string{
		"found": {"/srv/web.before is on top of it", "qemu-img commit /srv/web.before"},
		"seen":  {"what the guest has written there is not in /srv/web.qcow2", "virsh blockcommit seen vda"},
	} {
		err := revert(vm, false)
		wantRefusal(t, err, rpc.Conflict, "vm/"+vm)
		for _, words := range append(says, "--without-writes") {
			if text := err.Error() + "; " + rpc.Detail(err).GetNextStep(); !strings.Contains(text, words) {
				t.Errorf("%s: it does not say %q: %s", vm, words, text)
			}
		}
	}
	if reverted("v1") || reverted("v2") {
		t.Error("it is reverted although that was refused")
	}
	for _, vm := range []string{"found", "seen"} {
		if err := revert(vm, true); err != nil {
			t.Errorf("%s: %v", vm, err)
		}
	}
	if err := revert("attached", false); err != nil { // nothing that the record has is older for it
		t.Error(err)
	}
	for _, id := range []string{"v1", "v2", "v3"} {
		if !reverted(id) {
			t.Errorf("%s is not reverted", id)
		}
	}
	wantRefusal(t, revert("plain", true), rpc.Conflict, "vm/plain")
	wantRefusal(t, revert("mail", true), rpc.NotFound, "vm/mail")
}
