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
