package api

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
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

// What somebody has made of a VM's size with virsh is in its record once somebody accepts it, in a document as well. There is nothing to be
// reverted: until then the next start has the size of the record. What was set with Berth for that is no change beside it.
func TestASizeIsAccepted(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")
	spec := model.VMSpec{Memory: units.GiB, VCPUs: 2, MaxMemory: 4 * units.GiB, MaxVCPUs: 8}
	document := "<domain type='kvm'><name>doc</name><memory unit='GiB'>1</memory><vcpu current='2'>8</vcpu></domain>"
	numa := "<domain type='kvm'><name>doc</name><memory unit='GiB'>1</memory><vcpus><vcpu id='0' enabled='yes'/></vcpus>" +
		"<vcpu>2</vcpu></domain>"
	waits := []model.PendingChange{{Field: model.VCPUsField, Was: "2", Next: "3", By: "operator/bob"}}
	var domains []*berthv1.Domain
	for _, vm := range []model.VM{
		{ID: "v1", Name: "web", Spec: spec, Ballooned: true},
		{ID: "v2", Name: "plain", Spec: spec},
		{ID: "v3", Name: "doc", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 2, XML: document}},
		{ID: "v4", Name: "parts", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 2, XML: numa}},
		{ID: "v5", Name: "set", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 3}, Pending: waits},
	} {
		vm.Desired, vm.Holder, vm.LastNode, vm.Epoch, vm.RanSize = model.Running, "n1", "n1", 3, model.Size{Memory: units.GiB, VCPUs: 2}
		d.m.addVM(vm)
		vcpus := int32(4)
		if vm.Name == "plain" {
			vcpus = 2
		}
		domains = append(domains, &berthv1.Domain{
			Uuid: vm.ID, Name: vm.Name, State: berthv1.DomainState_DOMAIN_STATE_RUNNING, MemoryBytes: 4 << 30, Vcpus: vcpus, Managed: true, Epoch: 3,
		})
	}
	session, err := d.m.inventory.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "boot-1"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	session.Report(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
		Node: &berthv1.NodeInventory{MemoryBytes: 64 << 30, Cpus: 16}, Domains: domains,
	}}})
	session.Report(&berthv1.SessionRequest{Sequence: 3, Message: &berthv1.SessionRequest_Telemetry{Telemetry: &berthv1.NodeTelemetry{
		Domains: []*berthv1.DomainTelemetry{{Uuid: "v1", BalloonBytes: new(int64(3 << 30))}, {Uuid: "v2", BalloonBytes: new(int64(1 << 30))}},
	}}})
	shown := func(name string) *berthv1.VM {
		t.Helper()
		answer, err := d.client.GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: name}))
		if err != nil {
			t.Fatal(err)
		}
		return answer.Msg.GetVm()
	}
	accept := func(vm string) error {
		_, err := d.client.AcceptDrift(t.Context(), connect.NewRequest(&berthv1.AcceptDriftRequest{Vm: vm, RequestId: "accept " + vm}))
		return err
	}
	revert := func(vm string) error {
		_, err := d.client.RevertDrift(t.Context(), connect.NewRequest(&berthv1.RevertDriftRequest{Vm: vm, RequestId: "revert " + vm}))
		return err
	}
	if is := shown("web"); is.GetRunning().GetVcpus() != 4 || is.GetRunning().GetMemoryBytes() != 3<<30 || len(is.GetNextStart()) != 2 {
		t.Errorf("it is shown with %v, and at its next start %v", is.GetRunning(), is.GetNextStart())
	}
	err = revert("web")
	wantRefusal(t, err, rpc.Conflict, "vm/web")
	if next := rpc.Detail(err).GetNextStep(); !strings.Contains(next, "berth vm set web --memory 1073741824 --vcpus 2 --now") {
		t.Errorf("its next step is %q", next)
	}
	for _, name := range []string{"web", "doc"} {
		if err := accept(name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	web, _ := d.m.store.Snapshot().VM("v1")
	if web.NextSize() != (model.Size{Memory: 3 * units.GiB, VCPUs: 4}) || web.RanSize != web.NextSize() || web.Pending != nil {
		t.Errorf("its record says %+v, ran %+v, and waits for %+v", web.NextSize(), web.RanSize, web.Pending)
	}
	if is := shown("web"); len(is.GetNextStart()) != 0 || is.GetRunning().GetVcpus() != 4 {
		t.Errorf("it was accepted, and at its next start %v", is.GetNextStart())
	}
	if doc, _ := d.m.store.Snapshot().VM("v3"); doc.Spec.VCPUs != 4 || !strings.Contains(doc.Spec.XML, "<vcpu current='4'>8</vcpu>") {
		t.Errorf("its document has %s", doc.Spec.XML)
	}
	err = accept("parts")
	wantRefusal(t, err, rpc.Conflict, "vm/parts")
	if next := rpc.Detail(err).GetNextStep(); !strings.Contains(next, "berth vm edit parts") {
		t.Errorf("its next step is %q", next)
	}
	for _, name := range []string{"plain", "set"} {
		wantRefusal(t, accept(name), rpc.Conflict, "vm/"+name)
		wantRefusal(t, revert(name), rpc.Conflict, "vm/"+name)
	}
}

// A disk that somebody has made smaller beside Berth is shown with both sizes, and has the smaller one in its record when that is accepted.
func TestASmallerDiskIsAccepted(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")
	d.m.declare(model.Resource{Kind: model.KindPool, ID: "p1", Name: "fast"})
	d.m.declare(model.Resource{
		Kind: model.KindDisk, ID: "d1", Name: "web-root", Settings: map[string]string{"size": fmt.Sprint(int64(10 * units.GiB))},
		Volume: &model.Volume{Pool: "p1", Nodes: []string{"n1"}, Name: "berth-d1.qcow2", Format: "qcow2", Capacity: 10 * units.GiB},
	})
	vm := model.VM{ID: "v1", Name: "web", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}, Disks: []string{"d1"}}
	vm.Desired, vm.Holder, vm.LastNode, vm.Epoch = model.Running, "n1", "n1", 3
	d.m.addVM(vm)
	session, err := d.m.inventory.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "boot-1"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	sequence := uint64(1)
	shows := func(size units.Bytes) *berthv1.VMDisk {
		t.Helper()
		sequence++
		session.Report(&berthv1.SessionRequest{Sequence: sequence, Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{MemoryBytes: 64 << 30, Cpus: 16}, Domains: []*berthv1.Domain{{
				Uuid: "v1", Name: "web", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, MemoryBytes: 1 << 30, Vcpus: 1, Managed: true, Epoch: 3,
				Devices: &berthv1.Devices{Devices: []*berthv1.Device{{
					Kind: "disk", Key: "vda", Source: &berthv1.DiskSource{Pool: "fast", Volume: "berth-d1.qcow2"}, CapacityBytes: int64(size),
				}}},
			}},
		}}})
		answer, err := d.client.GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: "web"}))
		if err != nil || len(answer.Msg.GetVm().GetVolumes()) != 1 {
			t.Fatal(answer, err)
		}
		return answer.Msg.GetVm().GetVolumes()[0]
	}
	accept := func(id string) error {
		_, err := d.client.AcceptDrift(t.Context(), connect.NewRequest(&berthv1.AcceptDriftRequest{Vm: "web", RequestId: id}))
		return err
	}
	d.m.control.shrunk = []string{"v1", "gone"}
	tells := func() string {
		status, err := d.client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(status.Msg.GetProblems(), "\n")
	}
	const told = "VM web: somebody has made disk web-root smaller beside Berth: it has 6 GiB, and had 10 GiB; 'berth disk grow web-root " +
		"10737418240' makes it as large again, without what was lost; 'berth vm accept web' keeps it as small"
	for _, size := range []units.Bytes{0, 10 * units.GiB} {
		if disk := shows(size); disk.GetShrunkBytes() != 0 || disk.GetCapacityBytes() != 10<<30 {
			t.Errorf("of %v it shows %v", size, disk)
		}
		if status := tells(); strings.Contains(status, "web-root") {
			t.Errorf("of %v the status says %q", size, status)
		}
		wantRefusal(t, accept(fmt.Sprint("of ", size)), rpc.Conflict, "vm/web")
	}
	if disk := shows(6 * units.GiB); disk.GetShrunkBytes() != 6<<30 || disk.GetCapacityBytes() != 10<<30 {
		t.Errorf("it shows %v", disk)
	}
	if status := tells(); !strings.Contains(status, told) {
		t.Errorf("the status says %q", status)
	}
	d.m.propose(state.Command{Kind: "restore", Meta: map[string]string{state.MetaQuarantine: "restored"}})
	if status := tells(); strings.Contains(status, "web-root") {
		t.Errorf("while no record counts the status says %q", status)
	}
	d.m.propose(state.Command{Kind: "end", Meta: map[string]string{state.MetaQuarantine: ""}})
	if err := accept("smaller"); err != nil {
		t.Fatal(err)
	}
	record, _ := d.m.store.Snapshot().Resource("d1")
	if record.Volume.Capacity != 6*units.GiB || record.Settings["size"] != fmt.Sprint(int64(6*units.GiB)) {
		t.Errorf("accepted, its record is %+v with %+v", record.Settings, record.Volume)
	}
	if disk := shows(6 * units.GiB); disk.GetShrunkBytes() != 0 || disk.GetCapacityBytes() != 6<<30 {
		t.Errorf("accepted, it shows %v", disk)
	}
	if status := tells(); strings.Contains(status, "web-root") {
		t.Errorf("accepted, the status says %q", status)
	}
}
