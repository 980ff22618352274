package api

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

const someDocument = "<domain type='kvm'><name>web</name><memory unit='MiB'>64</memory><vcpu>1</vcpu><devices/></domain>"

// A document is what the next start has, and nothing that somebody else has changed meanwhile is overwritten.
func TestTheDocumentOfAVM(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.addNode("n1", "hv1")
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 3, Spec: model.VMSpec{
		Memory: 64 << 20, VCPUs: 1, XML: someDocument,
	}})
	const plain = "6e0f5d0a-3b51-4c8e-9d27-5d8f8a3f0002"
	m.addVM(model.VM{ID: plain, Name: "plain", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, Kernel: "/vmlinuz"}})
	read := func(vm string, next, record bool) (*berthv1.GetVMDocumentResponse, error) {
		answer, err := m.operator().GetVMDocument(t.Context(), connect.NewRequest(&berthv1.GetVMDocumentRequest{
			Vm: vm, Next: next, Record: record,
		}))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	if is, err := read("web", false, false); err != nil || is.GetNode() != "hv1" || !strings.Contains(is.GetXml(), "as it runs") {
		t.Errorf("as it runs: %v, %v", is, err)
	}
	is, err := read("plain", false, false)
	if err != nil || is.GetNode() != "" || !strings.Contains(is.GetXml(), "<kernel>/vmlinuz</kernel>") {
		t.Errorf("of a stopped VM: %v, %v", is, err)
	}
	_, err = read("plain", false, true)
	if rpc.Detail(err).GetCode() != rpc.Conflict || !strings.Contains(err.Error(), "no document of its own") {
		t.Errorf("of a VM that has none: %v", err)
	}
	record, err := read("web", false, true)
	if err != nil || record.GetXml() != someDocument {
		t.Fatalf("its record has %v, %v", record, err)
	}
	write := func(text string, revision uint64, dry bool) error {
		_, err := m.operator().SetVMDocument(t.Context(), connect.NewRequest(&berthv1.SetVMDocumentRequest{
			Vm: "web", Xml: text, Revision: revision, DryRun: dry,
		}))
		return err
	}
	larger := strings.Replace(someDocument, ">64<", ">128<", 1)
	now := func() model.VM {
		vm, _ := m.store.Snapshot().VM("v1")
		return vm
	}
	if err := write(larger, record.GetRevision(), true); err != nil || now().Spec.XML != someDocument {
		t.Errorf("a dry run: %v", err)
	}
	for what, text := range map[string]string{
		"another name": strings.Replace(larger, "web", "mail", 1), "no XML": "<domain", "no memory": "<domain type='kvm'/>",
		"another UUID": strings.Replace(larger, "<name>", "<uuid>"+plain+"</uuid><name>", 1),
	} {
		if err := write(text, record.GetRevision(), false); rpc.Detail(err).GetCode() != rpc.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := write(larger, record.GetRevision(), false); err != nil {
		t.Fatal(err)
	}
	if vm := now(); vm.Spec.XML != larger || vm.Spec.Memory != 128<<20 || len(vm.Pending) != 2 || vm.RanSize.Memory != 64<<20 {
		t.Errorf("it has %+v", vm)
	}
	if err := write(larger, record.GetRevision(), false); err != nil {
		t.Errorf("once more: %v", err)
	}
	if err := write(someDocument, record.GetRevision(), false); rpc.Detail(err).GetCode() != rpc.Conflict {
		t.Errorf("of an earlier revision: %v", err)
	}
}

// A document takes no disk that is another's, and leaves none behind that has snapshots of the VM.
func TestADocumentTakesAndLeavesNoDisk(t *testing.T) {
	const id = "6e0f5d0a-3b51-4c8e-9d27-5d8f8a3f0003"
	m := newCloud(t, 1).members[0]
	with := func(files ...string) string {
		var disks strings.Builder
		for i, file := range files {
			disks.WriteString("<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='" + file + "'/><target dev='vd" +
				string(rune('a'+i)) + "' bus='virtio'/></disk>")
		}
		return strings.Replace(someDocument, "<devices/>", "<devices>"+disks.String()+"</devices>", 1)
	}
	m.addVM(model.VM{
		ID: id, Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: with("/srv/a", "/srv/b")},
		Snapshots: []model.Snapshot{{Name: "weekly", Disks: []model.SnapshotDisk{{Target: "vda", Source: model.DiskSource{Path: "/srv/a"}}}}},
	})
	for _, c := range []struct{ text, says, next string }{
		{with("/srv/a", "/srv/taken"), `is one of VM "mail"`, "detach it there"},
		{with("/srv/b"), `without disk vda, which has the snapshot "weekly"`, "'berth vm snapshot delete web --name weekly'"},
		{with("/srv/b", "/srv/a"), "", ""},
		{with("/srv/a"), "", ""},
	} {
		for _, dry := range []bool{true, false} {
			_, err := m.operator().SetVMDocument(t.Context(), connect.NewRequest(&berthv1.SetVMDocumentRequest{Vm: "web", Xml: c.text, DryRun: dry}))
			switch {
			case c.says == "" && err != nil:
				t.Errorf("%s: %v", c.text, err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(rpc.Detail(err).GetNextStep(), c.next)):
				t.Errorf("%v, want %q", err, c.says)
			}
		}
	}
}

// A disk leaves its VM only once no snapshot of the VM is in its file.
func TestADiskWithASnapshotStaysLinked(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.declare(model.Resource{ID: "d1", Kind: model.KindDisk, Name: "data", Settings: map[string]string{"path": "/srv/a", "format": "qcow2"}})
	m.declare(model.Resource{ID: "d2", Kind: model.KindDisk, Name: "more", Settings: map[string]string{"path": "/srv/b", "format": "qcow2"}})
	m.addVM(model.VM{
		ID: "v1", Name: "web", Desired: model.Stopped, Disks: []string{"d1", "d2"}, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1},
		Snapshots: []model.Snapshot{{Name: "weekly", Disks: []model.SnapshotDisk{{Target: "vda", Source: model.DiskSource{Path: "/srv/a"}}}}},
	})
	attach := func(disks ...string) error {
		_, err := m.operator().ChangeVM(t.Context(), connect.NewRequest(&berthv1.ChangeVMRequest{
			Vm: "web", Change: &berthv1.VMChange{Disks: &berthv1.Names{Names: disks}},
		}))
		return err
	}
	if err := attach("more"); err == nil || !strings.Contains(err.Error(), `disk/data has the snapshot "weekly"`) ||
		!strings.Contains(err.Error(), "berth vm snapshot delete web --name weekly") {
		t.Errorf("without it: %v", err)
	}
	if err := attach("data"); err != nil {
		t.Errorf("without the other: %v", err)
	}
}
