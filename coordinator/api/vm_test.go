package api

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

func TestStartVM(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	m.addNode("n1", "hv1")
	var asked *lifecycle.StartVM
	m.control.start = func(request lifecycle.StartVM) (lifecycle.Started, error) {
		asked = &request
		return lifecycle.Started{
			Operation: operation.Operation{ID: "o1", Kind: operation.Start, VMName: request.Name, TargetName: "hv1"},
			Decision:  placement.Decision{ID: "d1", Outcome: placement.Placed, WinnerName: "hv1"},
			VM:        model.VM{ID: "v1", Name: request.Name},
		}, nil
	}
	start := func(request *berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		asked = nil
		answer, err := client.StartVM(t.Context(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	const mib = int64(units.MiB)

	t.Run("reaches control", func(t *testing.T) {
		answer, err := start(&berthv1.StartVMRequest{
			Name: "web", Node: "hv1", RequestId: "r1",
			Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{
				MemoryBytes: 512 * mib, Vcpus: 2, Disks: []*berthv1.Disk{{Path: "/srv/web.qcow2", Format: "qcow2", Bus: "virtio"}},
				Networks: []string{"default"},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if asked.Name != "web" || asked.Node != "n1" || asked.RequestID != "r1" || asked.Caller != "operator/alice" ||
			asked.VM.Spec.Memory != 512*units.MiB || asked.VM.Spec.VCPUs != 2 || asked.VM.Spec.Disks[0].Path != "/srv/web.qcow2" {
			t.Errorf("control was asked %+v", asked)
		}
		if answer.GetOperation().GetId() != "o1" || answer.GetDecision().GetWinner() != "hv1" || answer.GetVm().GetName() != "web" {
			t.Errorf("answered %v", answer)
		}
	})

	t.Run("is forced with a reason only", func(t *testing.T) {
		if _, err := start(&berthv1.StartVMRequest{Name: "web", Force: true, Reason: "I have pulled its plug"}); err != nil {
			t.Fatal(err)
		}
		if !asked.Force || asked.Reason != "I have pulled its plug" {
			t.Errorf("control was asked %+v", asked)
		}
		for name, request := range map[string]*berthv1.StartVMRequest{
			"no reason":    {Name: "web", Force: true, Reason: " "},
			"no force":     {Name: "web", Reason: "I have pulled its plug"},
			"two lines":    {Name: "web", Force: true, Reason: "I have\npulled its plug"},
			"a long story": {Name: "web", Force: true, Reason: strings.Repeat("x", maxReason+1)},
			"a new VM":     {Name: "web", Force: true, Reason: "I know", Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{MemoryBytes: mib, Vcpus: 1}}},
		} {
			_, err := start(request)
			wantRefusal(t, err, rpc.Invalid, "vm/web")
			if asked != nil {
				t.Errorf("%s: control was asked %+v", name, asked)
			}
		}
	})

	t.Run("takes an administrator's XML at its word", func(t *testing.T) {
		const xml = `<domain type='qemu'><name>db</name><uuid>6C8D5F52-1111-4222-8333-444455556666</uuid>
			<memory unit='MiB'>768</memory><vcpu>3</vcpu><os><type>hvm</type></os></domain>`
		if _, err := start(&berthv1.StartVMRequest{Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{Xml: xml}}}); err != nil {
			t.Fatal(err)
		}
		if asked.Name != "db" || asked.VM.ID != "6c8d5f52-1111-4222-8333-444455556666" || asked.VM.Spec.Memory != 768*units.MiB ||
			asked.VM.Spec.VCPUs != 3 {
			t.Errorf("control was asked %+v with %+v", asked, asked.VM.Spec)
		}
		for name, request := range map[string]*berthv1.StartVMRequest{
			"name":   {Name: "web", Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{Xml: xml}}},
			"memory": {Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{Xml: xml, MemoryBytes: mib}}},
			"vcpus":  {Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{Xml: xml, Vcpus: 1}}},
			"kernel": {Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{Xml: xml, Kernel: "/boot/vmlinuz"}}},
		} {
			if _, err := start(request); rpc.Detail(err).GetCode() != rpc.Invalid || asked != nil {
				t.Errorf("contradicted by %s: %v", name, err)
			}
		}
		malformed := &berthv1.VMSpec{Xml: "<domain type='qemu'>\n<name>x</name>\n<memory>"}
		_, err := start(&berthv1.StartVMRequest{Name: "x", Vm: &berthv1.NewVM{Spec: malformed}})
		wantRefusal(t, err, rpc.Invalid, "vm/x")
		if !strings.Contains(err.Error(), "line 3") {
			t.Errorf("malformed XML is refused without its line: %v", err)
		}
	})

	good := func(change func(*berthv1.VMSpec)) *berthv1.NewVM {
		spec := &berthv1.VMSpec{MemoryBytes: 512 * mib, Vcpus: 1}
		change(spec)
		return &berthv1.NewVM{Spec: spec}
	}
	for name, request := range map[string]*berthv1.StartVMRequest{
		"nothing":         {},
		"no name":         {Vm: good(func(*berthv1.VMSpec) {})},
		"a name for IDs":  {Name: "6c8d5f52-1111-4222-8333-444455556666", Vm: good(func(*berthv1.VMSpec) {})},
		"a name of signs": {Name: "../etc", Vm: good(func(*berthv1.VMSpec) {})},
		"negative memory": {Name: "x", Vm: good(func(s *berthv1.VMSpec) { s.MemoryBytes = -1 })},
		"absurd memory":   {Name: "x", Vm: good(func(s *berthv1.VMSpec) { s.MemoryBytes = 1 << 62 })},
		"no vCPUs":        {Name: "x", Vm: good(func(s *berthv1.VMSpec) { s.Vcpus = 0 })},
		"absurd vCPUs":    {Name: "x", Vm: good(func(s *berthv1.VMSpec) { s.Vcpus = 1 << 30 })},
		"relative path":   {Name: "x", Vm: good(func(s *berthv1.VMSpec) { s.Kernel = "vmlinuz" })},
		"probed format":   {Name: "x", Vm: good(func(s *berthv1.VMSpec) { s.Disks = []*berthv1.Disk{{Path: "/a", Bus: "virtio"}} })},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			_, err := start(request)
			wantRefusal(t, err, rpc.Invalid, "")
			if asked != nil {
				t.Error("control was asked all the same")
			}
		})
	}

	t.Run("refuses a node that does not exist", func(t *testing.T) {
		_, err := start(&berthv1.StartVMRequest{Name: "web", Node: "hv9"})
		wantRefusal(t, err, rpc.NotFound, "node/hv9")
	})

	t.Run("explains that no node fits", func(t *testing.T) {
		m.control.start = func(lifecycle.StartVM) (lifecycle.Started, error) {
			return lifecycle.Started{}, &lead.Error{
				Code: lead.NoNodeFits, Subject: "vm/web", Message: "no node fits", NextStep: "ask for less", Decision: &placement.Decision{
					ID: "d2", Outcome: placement.Refused,
					Nodes: []placement.NodeResult{{Name: "hv1", Constraints: []placement.ConstraintResult{{Constraint: "memory", Code: "memory_short"}}}},
				},
			}
		}
		_, err := start(&berthv1.StartVMRequest{Name: "web"})
		wantRefusal(t, err, rpc.NoNodeFits, "vm/web")
		detail := rpc.Detail(err)
		if detail.GetDecisionId() != "d2" || detail.GetDecision().GetNodes()[0].GetConstraints()[0].GetCode() != "memory_short" {
			t.Errorf("the refusal carries %v", detail)
		}
	})

	t.Run("waits for control to begin leading", func(t *testing.T) {
		calls := 0
		m.control.start = func(lifecycle.StartVM) (lifecycle.Started, error) {
			if calls++; calls < 3 {
				return lifecycle.Started{}, &lead.Error{Code: lead.NoLeader, Message: "not yet", NextStep: "wait"}
			}
			return lifecycle.Started{Operation: operation.Operation{ID: "o3"}}, nil
		}
		if answer, err := start(&berthv1.StartVMRequest{Name: "web"}); err != nil || answer.GetOperation().GetId() != "o3" {
			t.Errorf("answered %v, %v", answer, err)
		}
	})
}

func TestAPausedVMIsNotRebooted(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	m.addNode("n1", "hv1")
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 3})
	m.control.act = func(request lifecycle.ActOnVM) (operation.Operation, error) {
		return operation.Operation{ID: "o1", Kind: request.Kind}, nil
	}
	session, err := m.inventory.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "boot-1"}, 1)
	m.cloud.check(err)
	shows := func(sequence uint64, state berthv1.DomainState) {
		session.Report(&berthv1.SessionRequest{Sequence: sequence, Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30}, Domains: []*berthv1.Domain{{Uuid: "v1", State: state, Managed: true, Epoch: 3}},
		}}})
	}
	shows(2, berthv1.DomainState_DOMAIN_STATE_PAUSED)
	_, err = client.RebootVM(ctx, connect.NewRequest(&berthv1.RebootVMRequest{Vm: "web"}))
	wantRefusal(t, err, rpc.Conflict, "vm/web")
	if next := rpc.Detail(err).GetNextStep(); next != "let it run first: 'berth vm resume web'" {
		t.Errorf("next step %q", next)
	}
	shows(3, berthv1.DomainState_DOMAIN_STATE_RUNNING)
	if _, err := client.RebootVM(ctx, connect.NewRequest(&berthv1.RebootVMRequest{Vm: "web"})); err != nil {
		t.Errorf("when it runs again: %v", err)
	}
}

// What keeps a VM where it is stands on its page, and the answer to a stop says what it breaks.
func TestWhatKeepsAVMIsShown(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	m.addNode("n1", "hv1")
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 3})
	m.control.act = func(request lifecycle.ActOnVM) (operation.Operation, error) {
		if !request.InterruptBackup {
			t.Errorf("control was asked %+v", request)
		}
		return operation.Operation{ID: "o1", Kind: request.Kind}, nil
	}
	session, err := m.inventory.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "boot-1"}, 1)
	m.cloud.check(err)
	session.Report(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
		Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30}, Domains: []*berthv1.Domain{{
			Uuid: "v1", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, Managed: true, Epoch: 3,
			Bindings: &berthv1.Bindings{Bindings: []*berthv1.Binding{
				{Kind: berthv1.BindingKind_BINDING_KIND_FILESYSTEM, What: "virtiofs", Name: "share0"},
				{Kind: berthv1.BindingKind_BINDING_KIND_BLOCK_JOB, What: "copy", Name: "vda"},
			}},
		}},
	}}})
	one, err := client.GetVM(ctx, connect.NewRequest(&berthv1.GetVMRequest{Vm: "web"}))
	want := []string{
		"has virtiofs tag share0, which libvirt does not migrate: shut it down to move it",
		"has a block copy of disk vda by somebody else, which runs since some time ago: " +
			"wait until it ends, or end it with 'virsh blockjob web vda --abort'",
	}
	if err != nil || !slices.Equal(one.Msg.GetVm().GetImmovable(), want) {
		t.Errorf("shown %q, %v", one.Msg.GetVm().GetImmovable(), err)
	}
	stop, err := client.StopVM(ctx, connect.NewRequest(&berthv1.StopVMRequest{Vm: "web", InterruptBackup: true}))
	want = []string{
		"it has a block copy of disk vda by somebody else, which runs since some time ago: the copy of disk vda does not finish",
	}
	if err != nil || !slices.Equal(stop.Msg.GetInterrupted(), want) {
		t.Errorf("answered %v, %v", stop, err)
	}
}

func TestVMs(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	ctx := t.Context()
	m.addNode("n1", "hv1")
	m.addVM(model.VM{
		ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 3, LastNode: "n1", Spec: model.VMSpec{XML: "<domain/>"},
	})
	m.addVM(model.VM{ID: "v2", Name: "db", Desired: model.Stopped})

	t.Run("are listed and shown", func(t *testing.T) {
		list, err := client.ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		vms := list.Msg.GetVms()
		if len(vms) != 2 || vms[0].GetName() != "db" || vms[0].GetState() != berthv1.VMState_VM_STATE_STOPPED ||
			vms[1].GetNode() != "hv1" || vms[1].GetState() != berthv1.VMState_VM_STATE_UNKNOWN || vms[1].GetSpec().GetXml() != "" {
			t.Errorf("listed %v", vms)
		}
		list, err = client.ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{Node: "hv1"}))
		if err != nil || len(list.Msg.GetVms()) != 1 {
			t.Errorf("on hv1: %v, %v", list, err)
		}
		_, err = client.ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{Node: "hv9"}))
		wantRefusal(t, err, rpc.NotFound, "node/hv9")
		one, err := client.GetVM(ctx, connect.NewRequest(&berthv1.GetVMRequest{Vm: "v1"}))
		if err != nil || one.Msg.GetVm().GetSpec().GetXml() != "<domain/>" || one.Msg.GetVm().GetEpoch() != 3 {
			t.Errorf("shown %v, %v", one, err)
		}
		_, err = client.GetVM(ctx, connect.NewRequest(&berthv1.GetVMRequest{Vm: "mail"}))
		wantRefusal(t, err, rpc.NotFound, "vm/mail")
	})

	t.Run("are stopped and migrated by control", func(t *testing.T) {
		m.control.act = func(request lifecycle.ActOnVM) (operation.Operation, error) {
			if request.Kind != operation.Stop || request.VM != "v1" || request.Grace.Seconds() != 1.5 || request.Caller != "operator/alice" {
				t.Errorf("control was asked %+v", request)
			}
			return operation.Operation{ID: "o1", Kind: operation.Stop}, nil
		}
		stop, err := client.StopVM(ctx, connect.NewRequest(&berthv1.StopVMRequest{Vm: "web", GraceSeconds: 1.5}))
		if err != nil || stop.Msg.GetOperation().GetKind() != "stop" {
			t.Errorf("stop: %v, %v", stop, err)
		}
		_, err = client.StopVM(ctx, connect.NewRequest(&berthv1.StopVMRequest{Vm: "web", GraceSeconds: -1}))
		wantRefusal(t, err, rpc.Invalid, "vm/web")
		m.control.act = func(request lifecycle.ActOnVM) (operation.Operation, error) {
			want := lifecycle.ActOnVM{Kind: operation.Reboot, VM: "v1", Force: true, RequestID: "r", Caller: "operator/alice"}
			if !reflect.DeepEqual(request, want) {
				t.Errorf("control was asked %+v", request)
			}
			return operation.Operation{ID: "o2", Kind: operation.Reboot, SourceName: "hv1"}, nil
		}
		reboot, err := client.RebootVM(ctx, connect.NewRequest(&berthv1.RebootVMRequest{Vm: "web", Force: true, RequestId: "r"}))
		if err != nil || reboot.Msg.GetOperation().GetKind() != "reboot" || reboot.Msg.GetOperation().GetDoing() != "rebooting on hv1" {
			t.Errorf("reboot: %v, %v", reboot, err)
		}
		_, err = client.RebootVM(ctx, connect.NewRequest(&berthv1.RebootVMRequest{Vm: "mail"}))
		wantRefusal(t, err, rpc.NotFound, "vm/mail")
		m.control.migrate = func(request lifecycle.MigrateVM) (lifecycle.Migration, error) {
			if request.VM != "v1" || request.Node != "n1" || request.Bandwidth != units.MiB {
				t.Errorf("control was asked %+v", request)
			}
			return lifecycle.Migration{Decision: placement.Decision{Outcome: placement.Stay}}, nil
		}
		move, err := client.MigrateVM(ctx, connect.NewRequest(&berthv1.MigrateVMRequest{Vm: "web", Node: "hv1", BandwidthBps: int64(units.MiB)}))
		if err != nil || move.Msg.Operation != nil || move.Msg.GetDecision().GetOutcome() != berthv1.DecisionOutcome_DECISION_OUTCOME_STAY {
			t.Errorf("migrate: %v, %v", move, err)
		}
		m.control.migrate = func(lifecycle.MigrateVM) (lifecycle.Migration, error) {
			return lifecycle.Migration{Decision: placement.Decision{
				Outcome: placement.Placed, Winner: "n9", Request: placement.Request{Memory: 4 * units.GiB},
			}}, nil
		}
		tried := func(request *berthv1.MigrateVMRequest) *berthv1.MigrationPrediction {
			request.Vm, request.DryRun = "web", true
			move, err := client.MigrateVM(ctx, connect.NewRequest(request))
			if err != nil {
				t.Fatal(err)
			}
			return move.Msg.GetPredicted()
		}
		if told := tried(&berthv1.MigrateVMRequest{BandwidthBps: int64(units.GiB)}); told.GetElapsedSeconds() <= 0 ||
			told.GetMostSeconds() < told.GetElapsedSeconds() || len(told.GetBy()) != 2 || told.GetOf() != 0 {
			t.Errorf("the first migration is to take %v", told)
		}
		if told := tried(&berthv1.MigrateVMRequest{}); told != nil {
			t.Errorf("where nothing tells how fast it goes it is to take %v", told)
		}
		_, err = client.MigrateVM(ctx, connect.NewRequest(&berthv1.MigrateVMRequest{Vm: "web", BandwidthBps: -1}))
		wantRefusal(t, err, rpc.Invalid, "vm/web")
		_, err = client.MigrateVM(ctx, connect.NewRequest(&berthv1.MigrateVMRequest{Vm: "web", Node: "hv9"}))
		wantRefusal(t, err, rpc.NotFound, "node/hv9")
	})

	t.Run("are deleted when they are stopped", func(t *testing.T) {
		remove := func(vm, request string) error {
			_, err := client.DeleteVM(ctx, connect.NewRequest(&berthv1.DeleteVMRequest{Vm: vm, RequestId: request}))
			return err
		}
		wantRefusal(t, remove("web", "r1"), rpc.Conflict, "vm/web")
		m.begin(operation.Operation{ID: "o9", Kind: operation.Start, VM: "v3", VMName: "mail", Phase: operation.Dispatched})
		wantRefusal(t, remove("mail", "r2"), rpc.Busy, "vm/mail")
		if err := remove("db", "r3"); err != nil {
			t.Fatal(err)
		}
		if _, still := m.store.Snapshot().VMByName("db"); still {
			t.Error("it is still there")
		}
		if err := remove("db", "r3"); err != nil {
			t.Errorf("the same request again: %v", err)
		}
		wantRefusal(t, remove("db", "r4"), rpc.NotFound, "vm/db")
	})

	// The answer to a stop comes before the news that the domain is gone.
	t.Run("are deleted right after a stop", func(t *testing.T) {
		session, err := m.inventory.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "boot-1"}, 1)
		m.cloud.check(err)
		shows := func(sequence uint64, domains ...*berthv1.Domain) {
			session.Report(&berthv1.SessionRequest{
				Sequence: sequence,
				Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
					Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30}, Domains: domains,
				}},
			})
		}
		m.addVM(model.VM{ID: "v7", Name: "stopped", LastNode: "n1", Epoch: 1})
		remove := func() error {
			_, err := client.DeleteVM(ctx, connect.NewRequest(&berthv1.DeleteVMRequest{Vm: "stopped"}))
			return err
		}
		shows(2, &berthv1.Domain{Uuid: "v7", Name: "stopped", State: berthv1.DomainState_DOMAIN_STATE_RUNNING})
		wantRefusal(t, remove(), rpc.Conflict, "vm/stopped")
		time.AfterFunc(200*time.Millisecond, func() { shows(3) })
		if err := remove(); err != nil {
			t.Errorf("while the news are on their way: %v", err)
		}
	})
}
