package api

import (
	"math"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// furnished declares what the VMs of these tests link to.
func furnished(t *testing.T) *declarer {
	t.Helper()
	d := newDeclarer(t)
	type pairs = map[string]string
	d.add("customer", "acme", nil, nil)
	d.add("vdc", "prod", pairs{"customer": "acme"}, nil)
	d.add("offer", "small", nil, pairs{"for": "vm"})
	d.add("image", "debian", nil, nil)
	d.add("disk", "web-root", nil, pairs{"path": "/srv/web.qcow2", "format": "qcow2"})
	d.add("disk", "db-root", nil, pairs{"path": "/srv/db.qcow2", "format": "qcow2"})
	d.add("network", "lan", nil, pairs{"source": "default"})
	d.add("nic", "eth0", pairs{"network": "lan"}, nil)
	return d
}

func (d *declarer) id(kind model.Kind, name string) string {
	d.t.Helper()
	found, known := d.m.store.Snapshot().ResourceByName(kind, name)
	if !known {
		d.t.Fatalf("there is no %s %s", kind, name)
	}
	return found.ID
}

func TestNewVMsAreLinked(t *testing.T) {
	d := furnished(t)
	var asked []lifecycle.StartVM
	answer := model.VM{ID: "v1", Name: "web", VDC: d.id(model.KindVDC, "prod")}
	d.m.control.start = func(request lifecycle.StartVM) (lifecycle.Started, error) {
		asked = append(asked, request)
		return lifecycle.Started{Operation: operation.Operation{ID: "o1"}, VM: answer}, nil
	}
	d.m.control.add = func(request lifecycle.AddVM) (lifecycle.Added, error) {
		asked = append(asked, lifecycle.StartVM(request))
		return lifecycle.Added{VM: answer, Decision: placement.Decision{ID: "d1"}}, nil
	}
	spec := &berthv1.VMSpec{MemoryBytes: int64(units.GiB), Vcpus: 1}
	keys := []*berthv1.Key{{Class: "customer", Name: "Group1", Value: 1, Weight: -100}}
	start, err := d.client.StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{
		Name: "web",
		Vm: &berthv1.NewVM{
			Spec: spec, Vdc: "prod", Offer: "small", Image: "debian", Disks: []string{"web-root"}, Nics: []string{"eth0"}, Keys: keys,
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if vm := start.Msg.GetVm(); vm.GetVdc() != "prod" || vm.GetCustomer() != "acme" || vm.GetCluster() != "default" {
		t.Errorf("shown %v", vm)
	}
	add, err := d.client.AddVM(t.Context(), connect.NewRequest(&berthv1.AddVMRequest{
		Name: "web",
		Vm: &berthv1.NewVM{
			Spec: spec, Vdc: "prod", Offer: "small", Image: "debian", Disks: []string{"web-root"}, Nics: []string{"eth0"}, Keys: keys,
		},
	}))
	if err != nil || add.Msg.GetVm().GetName() != "web" || add.Msg.GetDecision().GetId() != "d1" {
		t.Fatalf("added %v, %v", add, err)
	}
	want := lifecycle.StartVM{
		Name: "web", Caller: "operator/alice",
		VM: &model.VM{
			Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
			VDC: d.id(model.KindVDC, "prod"), Offer: d.id(model.KindOffer, "small"), Image: d.id(model.KindImage, "debian"),
			Disks: []string{d.id(model.KindDisk, "web-root")}, NICs: []string{d.id(model.KindNIC, "eth0")},
			Keys: []model.Key{{Class: model.CustomerKey, Name: "Group1", Value: 1, Weight: -100}},
		},
	}
	if diff := cmp.Diff([]lifecycle.StartVM{want, want}, asked); diff != "" {
		t.Error(diff)
	}
	tryout := &berthv1.AddVMRequest{Name: "web", DryRun: true, Vm: &berthv1.NewVM{Spec: spec}}
	dry, err := d.client.AddVM(t.Context(), connect.NewRequest(tryout))
	if err != nil || dry.Msg.Vm != nil {
		t.Errorf("dry run: %v, %v", dry, err)
	}
	asked = nil

	for name, wanted := range map[string]*berthv1.NewVM{
		"no such VDC":              {Vdc: "test"},
		"an offer for others":      {Offer: "debian"},
		"a disk that is a NIC":     {Disks: []string{"eth0"}},
		"a disk twice":             {Disks: []string{"web-root", "web-root"}},
		"a key that is no number":  {Keys: []*berthv1.Key{{Name: "X", Value: math.NaN()}}},
		"a reserved key as system": {Keys: []*berthv1.Key{{Name: "_X", Value: 1, Weight: 1}}},
		"a file that a disk has": {
			Disks: []string{"web-root"},
			Spec:  &berthv1.VMSpec{Disks: []*berthv1.Disk{{Path: "/srv/web.qcow2", Format: "qcow2", Bus: "virtio"}}},
		},
		"no specification":          {},
		"a name that is for an ID":  {},
		"a specification of no CPU": {Spec: &berthv1.VMSpec{MemoryBytes: 1}},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			request := &berthv1.AddVMRequest{Name: "new", Vm: wanted}
			if name == "a name that is for an ID" {
				request.Name = "6c8d5f52-1111-4222-8333-444455556666"
			}
			if wanted.Spec == nil && name != "no specification" {
				wanted.Spec = spec
			} else if wanted.Spec != nil && wanted.Spec.Disks != nil {
				wanted.Spec.MemoryBytes, wanted.Spec.Vcpus = int64(units.GiB), 1
			}
			_, err := d.client.AddVM(t.Context(), connect.NewRequest(request))
			wantRefusal(t, err, rpc.Invalid, "vm/"+request.Name)
			if asked != nil {
				t.Error("control was asked all the same")
			}
		})
	}
	_, err = d.client.StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{Name: "web", Vm: &berthv1.NewVM{Vdc: "prod"}}))
	wantRefusal(t, err, rpc.Invalid, "vm/web") // nothing new that could be linked
}

func TestChangeVM(t *testing.T) {
	d := furnished(t)
	vm := model.VM{
		ID: "v1", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
		Disks: []string{d.id(model.KindDisk, "web-root")},
	}
	d.m.addVM(vm)
	vm.ID, vm.Name, vm.Disks = "v2", "db", []string{d.id(model.KindDisk, "db-root")}
	d.m.addVM(vm)
	d.m.addVM(model.VM{ID: "v3", Name: "xml", Desired: model.Stopped, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, XML: "<domain/>"}})
	change := func(request *berthv1.ChangeVMRequest) (*berthv1.ChangeVMResponse, error) {
		answer, err := d.client.ChangeVM(t.Context(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}

	t.Run("links, unlinks and resizes", func(t *testing.T) {
		answer, err := change(&berthv1.ChangeVMRequest{
			Vm: "web",
			Change: &berthv1.VMChange{
				Vdc: new("prod"), Offer: new("small"), Nics: &berthv1.Names{Names: []string{"eth0"}}, MemoryBytes: new(2 * int64(units.GiB)),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := answer.GetVm()
		if got.GetVdc() != "prod" || got.GetOffer() != "small" || got.GetNics()[0] != "eth0" || got.GetDisks()[0] != "web-root" ||
			got.GetSpec().GetMemoryBytes() != 2*int64(units.GiB) || got.GetSpec().GetVcpus() != 1 {
			t.Errorf("changed to %v", got)
		}
		var fields []string
		for _, f := range answer.GetChanges() {
			fields = append(fields, f.GetField()+" "+f.GetFrom()+" "+f.GetTo())
		}
		if diff := cmp.Diff([]string{"vdc  prod", "offer  small", "memory 1G 2G", "nics  eth0"}, fields); diff != "" {
			t.Error(diff)
		}
		if answer, err = change(&berthv1.ChangeVMRequest{
			Vm:     "v1",
			Change: &berthv1.VMChange{Offer: new(""), Disks: &berthv1.Names{}},
		}); err != nil || answer.GetVm().GetOffer() != "" ||
			len(answer.GetVm().GetDisks()) != 0 || answer.GetVm().GetVdc() != "prod" {
			t.Errorf("unlinked: %v, %v", answer, err)
		}
		before := d.index()
		if answer, err := change(
			&berthv1.ChangeVMRequest{Vm: "web", Change: &berthv1.VMChange{Vdc: new("prod")}},
		); err != nil || len(answer.GetChanges()) != 0 || d.index() != before {
			t.Errorf("a change that changes nothing: %v, %v", answer, err)
		}
	})

	for name, request := range map[string]*berthv1.ChangeVMRequest{
		"no such offer":           {Vm: "web", Change: &berthv1.VMChange{Offer: new("large")}},
		"another VM's disk":       {Vm: "web", Change: &berthv1.VMChange{Disks: &berthv1.Names{Names: []string{"db-root"}}}},
		"no memory":               {Vm: "web", Change: &berthv1.VMChange{MemoryBytes: new(int64(0))}},
		"absurd vCPUs":            {Vm: "web", Change: &berthv1.VMChange{Vcpus: new(int32(1 << 30))}},
		"another size than XML's": {Vm: "xml", Change: &berthv1.VMChange{Vcpus: new(int32(2))}},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			before := d.index()
			_, err := change(request)
			wantRefusal(t, err, rpc.Invalid, "vm/"+request.GetVm())
			if d.index() != before {
				t.Error("something was written all the same")
			}
		})
	}

	t.Run("says which VM has the disk", func(t *testing.T) {
		_, err := change(&berthv1.ChangeVMRequest{Vm: "web", Change: &berthv1.VMChange{Disks: &berthv1.Names{Names: []string{"db-root"}}}})
		if want := "vm/web: disk/db-root is attached to vm/db already"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	})

	t.Run("leaves a running VM in its cluster", func(t *testing.T) {
		d.m.addNode("n1", "hv1")
		d.add("cluster", "west", nil, nil)
		d.add("vdc", "away", map[string]string{"customer": "acme", "cluster": "west"}, nil)
		d.m.addVM(model.VM{
			ID: "v4", Name: "runs", Desired: model.Running, Holder: "n1", Epoch: 1, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
		})
		_, err := change(&berthv1.ChangeVMRequest{Vm: "runs", Change: &berthv1.VMChange{Vdc: new("away")}})
		wantRefusal(t, err, rpc.Invalid, "vm/runs")
		answer, err := change(&berthv1.ChangeVMRequest{Vm: "runs", Change: &berthv1.VMChange{Vdc: new("prod")}})
		if err != nil || answer.GetChanges()[0].GetNote() == "" {
			t.Errorf("into another VDC of its cluster: %v, %v", answer, err)
		}
	})

	t.Run("leaves alone what an operation works on, or what is not there", func(t *testing.T) {
		d.m.begin(operation.Operation{ID: "o1", Kind: operation.Start, VM: "v9", VMName: "mail", Phase: operation.Dispatched})
		_, err := change(&berthv1.ChangeVMRequest{Vm: "mail", Change: &berthv1.VMChange{Offer: new("small")}})
		wantRefusal(t, err, rpc.Busy, "vm/mail")
		_, err = change(&berthv1.ChangeVMRequest{Vm: "none", Change: &berthv1.VMChange{Offer: new("small")}})
		wantRefusal(t, err, rpc.NotFound, "vm/none")
	})

	t.Run("leaves a history", func(t *testing.T) {
		if history := d.history(); !strings.Contains(
			history, "vm.changed vm/web by operator/alice: vdc: prod; offer: small; memory: 1G → 2G; nics: eth0",
		) {
			t.Errorf("the history is\n%s", history)
		}
	})
}

func TestMigrationsAskForAGain(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")
	d.m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 1})
	var gain float64
	d.m.control.migrate = func(request lifecycle.MigrateVM) (lifecycle.Migration, error) {
		gain = request.IfBetter
		return lifecycle.Migration{Decision: placement.Decision{Outcome: placement.Stay}}, nil
	}
	migrate := func(request *berthv1.MigrateVMRequest) error {
		request.Vm = "web"
		_, err := d.client.MigrateVM(t.Context(), connect.NewRequest(request))
		return err
	}
	if err := migrate(&berthv1.MigrateVMRequest{IfBetter: 2.5}); err != nil || gain != 2.5 {
		t.Errorf("control was asked for a gain of %g, %v", gain, err)
	}
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		wantRefusal(t, migrate(&berthv1.MigrateVMRequest{IfBetter: bad}), rpc.Invalid, "vm/web")
	}
	wantRefusal(t, migrate(&berthv1.MigrateVMRequest{IfBetter: 1, Node: "hv1"}), rpc.Invalid, "vm/web")
}

// What waits for the next start of a VM that runs is told beside what it runs with, with who has set it.
func TestAChangeOfAVMThatRunsWaits(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")
	d.m.reportIdle("n1", 4*units.GiB)
	d.m.addVM(model.VM{
		ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 1, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}, HA: true,
	})
	asked := 0
	d.m.control.judge = func(vm model.VM, purpose placement.Purpose) (placement.Decision, error) {
		if asked++; purpose != placement.ForStart || vm.ID != "v1" {
			t.Errorf("judged %s of %+v", purpose, vm)
		}
		if vm.Spec.Memory > 4*units.GiB {
			return placement.Decision{Outcome: placement.Refused, Reason: "no node fits: too large"}, nil
		}
		return placement.Decision{Outcome: placement.Placed}, nil
	}
	set := func(change *berthv1.VMChange) *berthv1.ChangeVMResponse {
		t.Helper()
		answer, err := d.client.ChangeVM(t.Context(), connect.NewRequest(&berthv1.ChangeVMRequest{Vm: "web", Change: change}))
		if err != nil {
			t.Fatal(err)
		}
		return answer.Msg
	}
	if answer := set(&berthv1.VMChange{Labels: &berthv1.Names{Names: []string{"red"}}}); asked > 0 || len(answer.GetVm().GetNextStart()) > 0 {
		t.Errorf("a label counts at once: %v", answer)
	}
	answer := set(&berthv1.VMChange{MemoryBytes: new(900 * int64(units.GiB))})
	if answer.GetNextStartRefused() != "no node fits: too large" {
		t.Errorf("warned of %q", answer.GetNextStartRefused())
	}
	shown, err := d.client.GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: "web"}))
	if err != nil {
		t.Fatal(err)
	}
	vm := shown.Msg.GetVm()
	waits := vm.GetNextStart()
	if vm.GetRunning().GetMemoryBytes() != int64(units.GiB) || vm.GetSpec().GetMemoryBytes() != 900*int64(units.GiB) || len(waits) != 1 ||
		shown.Msg.GetNextStartRefused() == "" {
		t.Fatalf("shown as %v", shown.Msg)
	}
	if one := waits[0]; one.GetField() != "memory" || one.GetNow() != "1 GiB" || one.GetNext() != "900 GiB" ||
		one.GetSetBy() != "operator/alice" || one.GetSetAt() == nil {
		t.Errorf("what waits: %v", one)
	}
	if record, _ := d.m.store.Snapshot().VM("v1"); record.RanSize != (model.Size{Memory: units.GiB, VCPUs: 1}) {
		t.Errorf("an earlier release has started it, and it is kept as %+v", record.RanSize)
	}
	if answer := set(&berthv1.VMChange{MemoryBytes: new(int64(units.GiB))}); len(answer.GetVm().GetNextStart()) > 0 ||
		answer.GetNextStartRefused() != "" {
		t.Errorf("as it was: %v", answer)
	}
	if _, err := d.client.SetKey(t.Context(), connect.NewRequest(&berthv1.SetKeyRequest{
		Kind: "vm", Name: "web", Key: &berthv1.Key{Class: "customer", Name: "Group1", Value: 1, Weight: -100},
	})); err != nil {
		t.Fatal(err)
	}
	record, _ := d.m.store.Snapshot().VM("v1")
	if len(record.Pending) != 1 || !strings.Contains(record.Pending[0].Field, "Group1") {
		t.Errorf("a key waits as well: %+v", record.Pending)
	}
}
