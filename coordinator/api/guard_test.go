package api

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

const hostDevice = `<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='1' slot='0' function='0'/></source></hostdev>`

// Every way in which somebody gives a document, a path or a bridge leads through the guard, and what its cluster permits goes through.
func TestWhatPutsSomethingOntoAHostIsRefusedHoweverItComes(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.guard("yes")
	m.addNode("n1", "hv1")
	const id = "6e0f5d0a-3b51-4c8e-9d27-5d8f8a3f0001"
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: someDocument}})
	m.addVM(model.VM{ID: id, Name: "plain", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1}})
	operator := m.operator()
	hostile := strings.Replace(someDocument, "<devices/>", "<devices>"+hostDevice+"</devices>", 1)
	started := func(spec *berthv1.VMSpec, dry bool) error {
		spec.MemoryBytes, spec.Vcpus = 64<<20, 1
		if spec.GetXml() != "" {
			spec.MemoryBytes, spec.Vcpus = 0, 0
		}
		_, err := operator.StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{
			Name: "new", DryRun: dry, Vm: &berthv1.NewVM{Spec: spec},
		}))
		return err
	}
	added := func(spec *berthv1.VMSpec) error {
		spec.MemoryBytes, spec.Vcpus = 64<<20, 1
		_, err := operator.AddVM(t.Context(), connect.NewRequest(&berthv1.AddVMRequest{Name: "new", Vm: &berthv1.NewVM{Spec: spec}}))
		return err
	}
	applied := func(document string) error {
		_, err := operator.ApplyEstate(t.Context(), connect.NewRequest(&berthv1.ApplyEstateRequest{Document: []byte(document), DryRun: true}))
		return err
	}
	declared := func(kind string, settings map[string]string) error {
		_, err := operator.AddResource(t.Context(), connect.NewRequest(&berthv1.AddResourceRequest{Kind: kind, Name: "one", Settings: settings}))
		return err
	}
	documented := func(text string) error {
		_, err := operator.SetVMDocument(t.Context(), connect.NewRequest(&berthv1.SetVMDocumentRequest{Vm: "web", Xml: text, DryRun: true}))
		return err
	}
	named := strings.Replace(hostile, "<name>web</name>", "", 1)
	disk := func(path string) []*berthv1.Disk { return []*berthv1.Disk{{Path: path, Format: "raw", Bus: "virtio"}} }
	ways := []struct {
		name, needs string
		try         func() error
	}{
		{"a new VM's document", "host-devices", func() error { return started(&berthv1.VMSpec{Xml: named}, false) }},
		{"a dry run", "host-devices", func() error { return started(&berthv1.VMSpec{Xml: named}, true) }},
		{"a new VM's disk", "host-paths", func() error { return started(&berthv1.VMSpec{Disks: disk("/etc/shadow")}, false) }},
		{"a VM's disk that is only made", "host-paths", func() error { return added(&berthv1.VMSpec{Disks: disk("/dev/sda")}) }},
		{"a kernel", "host-paths", func() error { return added(&berthv1.VMSpec{Kernel: "/etc/shadow"}) }},
		{"a bridge", "host-network", func() error { return added(&berthv1.VMSpec{Networks: []string{"bridge:br9"}}) }},
		{"a changed document", "host-devices", func() error { return documented(hostile) }},
		{"an image", "host-paths", func() error { return declared("image", map[string]string{"path": "/etc/shadow", "format": "raw"}) }},
		{"a disk", "host-paths", func() error { return declared("disk", map[string]string{"path": "/dev/sda", "format": "raw"}) }},
		{"a network", "host-network", func() error { return declared("network", map[string]string{"source": "bridge:br9"}) }},
		{"an estate", "host-paths", func() error {
			return applied("format: berth/estate/v1\nimages:\n- name: one\n  path: /etc/shadow\n  format: raw\n")
		}},
	}
	for _, way := range ways {
		err := way.try()
		if rpc.Detail(err).GetCode() != rpc.Denied || !strings.Contains(err.Error(), way.needs) ||
			!strings.Contains(rpc.Detail(err).GetNextStep(), "--permit "+way.needs) {
			t.Errorf("%s: %v, %v", way.name, err, rpc.Detail(err))
		}
	}
	if _, made := m.store.Snapshot().VMByName("new"); made {
		t.Error("a VM was made that was refused")
	}
	actions := []*berthv1.ActOnVMsRequest{
		{Vms: []string{"plain"}, Action: &berthv1.ActOnVMsRequest_Attach{Attach: &berthv1.AttachAction{
			Device: &berthv1.AttachAction_Disk{Disk: disk("/etc/shadow")[0]},
		}}},
		{Vms: []string{"plain"}, Action: &berthv1.ActOnVMsRequest_Attach{Attach: &berthv1.AttachAction{
			Device: &berthv1.AttachAction_Network{Network: "bridge:br9"},
		}}},
	}
	for _, action := range actions {
		answer, err := operator.ActOnVMs(t.Context(), connect.NewRequest(action))
		if err != nil || answer.Msg.GetActed()[0].GetError().GetCode() != rpc.Denied {
			t.Errorf("%v: %v, %v", action, answer, err)
		}
	}
	// What the cluster permits goes through, and nothing else does.
	_, err := operator.ChangeResource(t.Context(), connect.NewRequest(&berthv1.ChangeResourceRequest{
		Kind: "cluster", Name: model.DefaultCluster, Settings: map[string]string{
			model.SettingPermit: "host-devices", model.SettingImageFolders: "/srv/images",
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := documented(hostile); err != nil {
		t.Errorf("a permitted document: %v", err)
	}
	if err := declared("image", map[string]string{"path": "/srv/images/a.raw", "format": "raw"}); err != nil {
		t.Errorf("a disk in an image folder: %v", err)
	}
	if err := added(&berthv1.VMSpec{Disks: disk("/var/lib/libvirt/images/a.raw")}); rpc.Detail(err).GetCode() != rpc.Denied {
		t.Errorf("a disk in what is an image folder no more: %v", err)
	}
}

// A site that an earlier release began goes on as before, and is told how to say what it permits.
func TestASiteOfAnEarlierReleasePermitsEverythingUntilItSaysWhat(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.addNode("n1", "hv1")
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: someDocument}})
	write := func() error {
		hostile := strings.Replace(someDocument, "<devices/>", "<devices>"+hostDevice+"</devices>", 1)
		_, err := m.operator().SetVMDocument(t.Context(), connect.NewRequest(&berthv1.SetVMDocumentRequest{
			Vm: "web", Xml: hostile, DryRun: true,
		}))
		return err
	}
	told := func() bool {
		status, err := m.operator().Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		return err == nil && slices.ContainsFunc(status.Msg.GetProblems(), func(line string) bool {
			return strings.Contains(line, "--permit none")
		})
	}
	if err := write(); err != nil || !told() {
		t.Errorf("before: %v, told: %v", err, told())
	}
	_, err := m.operator().ChangeResource(t.Context(), connect.NewRequest(&berthv1.ChangeResourceRequest{
		Kind: "cluster", Name: model.DefaultCluster, Settings: map[string]string{model.SettingPermit: "none"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := write(); rpc.Detail(err).GetCode() != rpc.Denied || told() {
		t.Errorf("since: %v, told: %v", err, told())
	}
}
