package clitest

import (
	"context"
	"errors"
	"io"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// vmFake answers about VMs: what there is of them, and what begins with them.
type vmFake struct {
	OnListVMs   func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error)
	OnLastVMs   func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error)
	OnGetVM     func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error)
	vmHistory   func(*berthv1.VMHistoryRequest) (*berthv1.VMHistoryResponse, error)
	notStarted  func(*berthv1.WhyNotStartedRequest) (*berthv1.WhyNotStartedResponse, error)
	OnAddVM     func(*berthv1.AddVMRequest) (*berthv1.AddVMResponse, error)
	changeVM    func(*berthv1.ChangeVMRequest) (*berthv1.ChangeVMResponse, error)
	OnStartVM   func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error)
	OnStartVMs  func(*berthv1.StartVMsRequest) (*berthv1.StartVMsResponse, error)
	OnStopVM    func(*berthv1.StopVMRequest) (*berthv1.StopVMResponse, error)
	OnRebootVM  func(*berthv1.RebootVMRequest) (*berthv1.RebootVMResponse, error)
	OnActOnVMs  func(*berthv1.ActOnVMsRequest) (*berthv1.ActOnVMsResponse, error)
	document    func(*berthv1.GetVMDocumentRequest) (*berthv1.GetVMDocumentResponse, error)
	OnDocument  func(*berthv1.SetVMDocumentRequest) (*berthv1.SetVMDocumentResponse, error)
	OnMigrateVM func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error)
	OnDeleteVM  func(*berthv1.DeleteVMRequest) (*berthv1.DeleteVMResponse, error)
	OnAdoptVMs  func(*berthv1.AdoptVMsRequest) (*berthv1.AdoptVMsResponse, error)
	releaseVM   func(*berthv1.ReleaseVMRequest) (*berthv1.ReleaseVMResponse, error)
	accept      func(*berthv1.AcceptDriftRequest) (*berthv1.AcceptDriftResponse, error)
	revert      func(*berthv1.RevertDriftRequest) (*berthv1.RevertDriftResponse, error)
	OnProfile   func(*berthv1.ProfileRequest) (*berthv1.ProfileResponse, error)
	OnConsole   func(stream *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error
}

func (f *vmFake) listen(l listener) {
	unary(l, berthv1connect.BerthServiceListVMsProcedure, &f.OnListVMs)
	unary(l, berthv1connect.BerthServiceLastKnownVMsProcedure, &f.OnLastVMs)
	unary(l, berthv1connect.BerthServiceGetVMProcedure, &f.OnGetVM)
	unary(l, berthv1connect.BerthServiceVMHistoryProcedure, &f.vmHistory)
	unary(l, berthv1connect.BerthServiceWhyNotStartedProcedure, &f.notStarted)
	unary(l, berthv1connect.BerthServiceAddVMProcedure, &f.OnAddVM)
	unary(l, berthv1connect.BerthServiceChangeVMProcedure, &f.changeVM)
	unary(l, berthv1connect.BerthServiceStartVMProcedure, &f.OnStartVM)
	unary(l, berthv1connect.BerthServiceStartVMsProcedure, &f.OnStartVMs)
	unary(l, berthv1connect.BerthServiceStopVMProcedure, &f.OnStopVM)
	unary(l, berthv1connect.BerthServiceRebootVMProcedure, &f.OnRebootVM)
	unary(l, berthv1connect.BerthServiceActOnVMsProcedure, &f.OnActOnVMs)
	unary(l, berthv1connect.BerthServiceGetVMDocumentProcedure, &f.document)
	unary(l, berthv1connect.BerthServiceSetVMDocumentProcedure, &f.OnDocument)
	unary(l, berthv1connect.BerthServiceMigrateVMProcedure, &f.OnMigrateVM)
	unary(l, berthv1connect.BerthServiceDeleteVMProcedure, &f.OnDeleteVM)
	unary(l, berthv1connect.BerthServiceAdoptVMsProcedure, &f.OnAdoptVMs)
	unary(l, berthv1connect.BerthServiceReleaseVMProcedure, &f.releaseVM)
	unary(l, berthv1connect.BerthServiceAcceptDriftProcedure, &f.accept)
	unary(l, berthv1connect.BerthServiceRevertDriftProcedure, &f.revert)
	unary(l, berthv1connect.BerthServiceProfileProcedure, &f.OnProfile)
	l.mux.Handle(berthv1connect.BerthServiceConsoleProcedure, connect.NewBidiStreamHandler(
		berthv1connect.BerthServiceConsoleProcedure,
		func(_ context.Context, stream *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error {
			first, err := stream.Receive()
			if err != nil {
				return err
			}
			l.record(first)
			return f.OnConsole(stream)
		},
	))
}

func cannedVMAnswers() vmFake {
	return vmFake{
		OnListVMs: func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
			return &berthv1.ListVMsResponse{SchemaVersion: "1", Vms: cannedVMs()}, nil
		},
		OnGetVM: func(r *berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
			if r.GetVm() == "db1" {
				return &berthv1.GetVMResponse{SchemaVersion: "1", Vm: cannedVMs()[0], NextStartRefused: noRoom, HaGaps: cannedGaps()}, nil
			}
			if r.GetVm() == "mail1" || r.GetVm() == "mail2" {
				return &berthv1.GetVMResponse{SchemaVersion: "1", Vm: cannedFound(r.GetVm())}, nil
			}
			op := CannedOperation("migrate", Done)
			op.Migration = cannedMigration()
			return &berthv1.GetVMResponse{SchemaVersion: "1", Vm: cannedVMs()[1], Operation: op}, nil
		},
		notStarted: func(r *berthv1.WhyNotStartedRequest) (*berthv1.WhyNotStartedResponse, error) {
			return CannedEvidence(r.GetVm()), nil
		},
		OnProfile: CannedProfile,
		vmHistory: func(*berthv1.VMHistoryRequest) (*berthv1.VMHistoryResponse, error) {
			return &berthv1.VMHistoryResponse{SchemaVersion: "1", Vm: "web1", Trimmed: true, Stays: []*berthv1.VMStay{
				{
					Node: "node2", Since: Ago(2 * time.Minute), CameBy: "drain", From: "node1", Caller: "operator/admin",
					OperationId: "3nqk7d2m0d1ac", DecisionId: "3nqk7d2m0d1ab", PlanId: "3nqk7d2m0d1aa",
					Reason: "node1 is drained; node2 scores 40 by rank, 10 more than node3",
				},
				{Node: "node1", Since: Ago(2 * time.Hour), Until: Ago(2 * time.Minute)},
				{Node: "node3", Since: Ago(5 * time.Hour), CameBy: "start", Reason: "decision 3nqk7d2m0d1a0 is no longer kept"},
			}}, nil
		},
		accept: func(r *berthv1.AcceptDriftRequest) (*berthv1.AcceptDriftResponse, error) {
			return &berthv1.AcceptDriftResponse{SchemaVersion: "1", Vm: r.GetVm()}, nil
		},
		revert: func(r *berthv1.RevertDriftRequest) (*berthv1.RevertDriftResponse, error) {
			return &berthv1.RevertDriftResponse{SchemaVersion: "1", Vm: r.GetVm()}, nil
		},
		OnAddVM: func(r *berthv1.AddVMRequest) (*berthv1.AddVMResponse, error) {
			if r.GetDryRun() {
				return &berthv1.AddVMResponse{SchemaVersion: "1"}, nil
			}
			return &berthv1.AddVMResponse{SchemaVersion: "1", Vm: &berthv1.VM{Name: r.GetName()}}, nil
		},
		changeVM: func(r *berthv1.ChangeVMRequest) (*berthv1.ChangeVMResponse, error) {
			if r.GetVm() == "db1" {
				return &berthv1.ChangeVMResponse{
					SchemaVersion: "1", Vm: cannedVMs()[0], NextStartRefused: noRoom,
					Changes: []*berthv1.FieldChange{{Field: "memory", From: "4 GiB", To: "8 GiB", Note: "takes effect at the next start"}},
				}, nil
			}
			if r.GetChange().GetHa() {
				return &berthv1.ChangeVMResponse{SchemaVersion: "1", Vm: cannedVMs()[1], HaGaps: cannedGaps(), Changes: []*berthv1.FieldChange{
					{Field: "ha", From: "false", To: "true"},
				}}, nil
			}
			return &berthv1.ChangeVMResponse{SchemaVersion: "1", Vm: cannedVMs()[1], Changes: []*berthv1.FieldChange{
				{
					Field: "memory", From: "512 MiB", To: "4 GiB", Note: "takes effect at the next start",
				}, {Field: "vdc", To: "acme-prod"}, {Field: "nics", From: "web-1-nic"},
			}}, nil
		},
		OnStartVM: func(r *berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
			decision := CannedDecision()
			if r.GetDryRun() {
				decision.DryRun, decision.OperationId = true, ""
				return &berthv1.StartVMResponse{SchemaVersion: "1", Decision: decision}, nil
			}
			return &berthv1.StartVMResponse{
				SchemaVersion: "1", Operation: CannedOperation("start", Running), Decision: decision, Vm: cannedVMs()[1],
			}, nil
		},
		OnStartVMs: CannedStarts,
		OnStopVM: func(r *berthv1.StopVMRequest) (*berthv1.StopVMResponse, error) {
			if r.GetWhenBack() {
				op := CannedOperation("stop", Running)
				op.Phase, op.Doing = "queued", "to stop on node1; waits until it is back: node1 is unreachable: no session for 3m12s"
				return &berthv1.StopVMResponse{SchemaVersion: "1", Operation: op}, nil
			}
			return &berthv1.StopVMResponse{SchemaVersion: "1", Operation: CannedOperation("stop", Running)}, nil
		},
		OnRebootVM: func(*berthv1.RebootVMRequest) (*berthv1.RebootVMResponse, error) {
			return &berthv1.RebootVMResponse{SchemaVersion: "1", Operation: CannedOperation("reboot", Running)}, nil
		},
		OnActOnVMs: CannedActs,
		document: func(r *berthv1.GetVMDocumentRequest) (*berthv1.GetVMDocumentResponse, error) {
			answer := &berthv1.GetVMDocumentResponse{SchemaVersion: "1", Vm: r.GetVm(), Xml: CannedDocument, Revision: 7}
			if !r.GetNext() && !r.GetRecord() {
				answer.Node = "node2"
			}
			return answer, nil
		},
		OnDocument: func(r *berthv1.SetVMDocumentRequest) (*berthv1.SetVMDocumentResponse, error) {
			return &berthv1.SetVMDocumentResponse{SchemaVersion: "1", Vm: r.GetVm(), Waits: true}, nil
		},
		OnMigrateVM: func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) {
			decision := CannedDecision()
			decision.Purpose = "migrate"
			return &berthv1.MigrateVMResponse{SchemaVersion: "1", Operation: CannedOperation("migrate", Running), Decision: decision}, nil
		},
		OnDeleteVM: func(*berthv1.DeleteVMRequest) (*berthv1.DeleteVMResponse, error) {
			return &berthv1.DeleteVMResponse{SchemaVersion: "1"}, nil
		},
		OnAdoptVMs: func(r *berthv1.AdoptVMsRequest) (*berthv1.AdoptVMsResponse, error) { return CannedAdoption(r), nil },
		releaseVM: func(*berthv1.ReleaseVMRequest) (*berthv1.ReleaseVMResponse, error) {
			op := CannedOperation("release", Running)
			op.Source, op.Target = "node2", ""
			return &berthv1.ReleaseVMResponse{SchemaVersion: "1", Operation: op}, nil
		},
		OnConsole: echo,
	}
}

// cannedFound is a VM whose disk is under files that somebody has put on top of it while nobody looked; mail2 was reverted since.
func cannedFound(name string) *berthv1.VM {
	return &berthv1.VM{
		Id: "aaaaaaaa-0000-4000-8000-000000000005", Name: name, State: berthv1.VMState_VM_STATE_STOPPED, LastNode: "node1", Epoch: 4,
		Spec: &berthv1.VMSpec{
			MemoryBytes: Gib, Vcpus: 1, Disks: []*berthv1.Disk{{Path: "/srv/mail.qcow2", Format: "qcow2", Bus: "virtio"}},
		},
		Drift: &berthv1.Drift{Node: "node1", Since: Ago(2 * time.Hour), Reverted: name == "mail2", Devices: []*berthv1.DriftedDevice{
			{Kind: "disk", Key: "vda", Was: "/srv/mail.qcow2", Is: "/srv/mail.before", Found: true, Rivals: "/srv/mail.test"},
			{Kind: "disk", Key: "vdb", Is: "/srv/more.qcow2", By: "operator/alice", At: Ago(3 * time.Hour)},
		}},
	}
}

const noRoom = "no node fits: 3 nodes refused by memory-promised; node2 is the nearest, 1 GiB short"

func cannedVMs() []*berthv1.VM {
	return []*berthv1.VM{
		{
			Id: "aaaaaaaa-0000-4000-8000-000000000003", Name: "db1", State: berthv1.VMState_VM_STATE_UNKNOWN, Node: "node3",
			Spec:  &berthv1.VMSpec{MemoryBytes: 8 * Gib, Vcpus: 4},
			Epoch: 7, Condition: "node node3 is unreachable: no session for 3m12s", StartedAt: Ago(72 * time.Hour),
			Labels: []string{"acme", "tier-db"}, Migration: "manual", Preferred: []string{"node3"}, Groups: []string{"rack-7"},
			MovedAt: Ago(7 * time.Minute), Description: "orders of the shop", Ha: true, RestartPriority: "high",
			Restart: "always", RestartAfter: []string{"tier-dns"},
			Running: &berthv1.VMSize{MemoryBytes: 4 * Gib, Vcpus: 2}, NextStart: []*berthv1.PendingChange{
				{Field: "memory", Now: "4 GiB", Next: "8 GiB", SetBy: "operator/alice", SetAt: Ago(26 * time.Hour)},
				{Field: "vcpus", Now: "2", Next: "4"},
				{Field: "offer", Next: "large", SetBy: "operator/bob", SetAt: Ago(time.Hour)},
			},
			ChangedLive: []*berthv1.PendingChange{{Field: "vcpus", Now: "2", Next: "2", SetBy: "operator/carol", SetAt: Ago(3 * time.Hour)}},
			Drift: &berthv1.Drift{Node: "node3", Since: Ago(2 * time.Hour), Devices: []*berthv1.DriftedDevice{
				{Kind: "disk", Key: "vda", Was: "/srv/db1.qcow2", Is: "/srv/db1.before-upgrade"},
			}},
		},
		{
			Id: "aaaaaaaa-0000-4000-8000-000000000001", Name: "web1", State: berthv1.VMState_VM_STATE_RUNNING, Node: "node1",
			NodeId: "3nqk7d2m0n1aa", RestartPriority: "normal", Restart: "cluster",
			Spec: &berthv1.VMSpec{
				MemoryBytes: Gib / 2, Vcpus: 2, Networks: []string{"default"},
				Disks: []*berthv1.Disk{
					{Path: "/srv/web1.qcow2", Format: "qcow2", Bus: "virtio"}, {Path: "/srv/seed.iso", Format: "raw", Bus: "sata", ReadOnly: true},
				},
			},
			Epoch: 3, Discards: []*berthv1.Discard{{Node: "node3", Epoch: 2}}, LastNode: "node2", LastDecisionId: "3nqk7d2m0d1ab",
			CreatedAt: Ago(26 * time.Hour), StartedAt: Ago(5*time.Hour + 7*time.Minute),
			Telemetry: &berthv1.DomainTelemetry{
				CpuRatio: proto.Float64(0.42), RssBytes: proto.Int64(300 << 20), BalloonBytes: proto.Int64(Gib / 2),
				Pressure: &berthv1.DomainPressure{CpuSome: 1.25, CpuFull: 1, IoSome: 7.5, IoFull: 6},
			},
			Within: "pod/fra-1", Cpu: "EPYC-Rome", Volumes: []*berthv1.VMDisk{
				{Disk: "web1-root", Pool: "fast", Node: "node1", Volume: "berth-1.qcow2", CapacityBytes: 20 << 30, Image: "debian", Keep: true},
				{Disk: "web1-data", CapacityBytes: 100 << 30},
			},
			Cluster: "default", Vdc: "acme-prod", Customer: "acme", BillingEntity: "reseller", Offer: "small", Image: "debian",
			Disks: []string{"web-1-root", "web-1-data"}, Nics: []string{"web-1-nic"},
			Keys:   []*berthv1.Key{{Class: "customer", Name: "Group1", Value: 1, Weight: -100}},
			Sticky: []*berthv1.Key{{Class: "system", Name: "DS", Value: 3, Weight: 30}},
		},
		{
			Id: "aaaaaaaa-0000-4000-8000-000000000004", Name: "web2", State: berthv1.VMState_VM_STATE_STOPPED,
			Spec: &berthv1.VMSpec{MemoryBytes: Gib / 2, Vcpus: 1}, Epoch: 1, LastNode: "node1", StartedAt: Ago(time.Hour),
		},
	}
}

// CannedAdoption answers an adoption, of which some fail.
func CannedAdoption(request *berthv1.AdoptVMsRequest) *berthv1.AdoptVMsResponse {
	answer := &berthv1.AdoptVMsResponse{SchemaVersion: "1"}
	db := &berthv1.AdoptedVM{
		Vm: "db", VmId: "u1", Node: "node1",
		Note: "it stays on its node: disk /var/lib/db.img is in no storage pool that Berth knows as shared",
	}
	web := &berthv1.AdoptedVM{Vm: "web", VmId: "u2", Node: "node2"}
	if !request.GetDryRun() {
		db.Operation, web.Operation = CannedOperation("adopt", Done), CannedOperation("adopt", Done)
	}
	answer.Vms = append(answer.Vms, db, web)
	if request.GetAll() {
		answer.Vms = append(
			answer.Vms,
			&berthv1.AdoptedVM{
				Vm: "old", VmId: "u3", Node: "node2", Problem: "it is paused (user)", NextStep: "let it run with 'virsh resume old' on node2",
			},
		)
	}
	return answer
}

// CannedStarts starts all that it is asked for, and places web1 and db1 together.
func CannedStarts(r *berthv1.StartVMsRequest) (*berthv1.StartVMsResponse, error) {
	answer := &berthv1.StartVMsResponse{SchemaVersion: "1"}
	for _, name := range r.GetVms() {
		op, decision := CannedOperation("start", Running), CannedDecision()
		op.Vm, decision.Vm = name, name
		started := &berthv1.StartedVM{Vm: name, Operation: op, Decision: decision}
		if name == "db1" {
			started.Unit = []string{"web1"}
		}
		if r.GetDryRun() {
			started.Operation = nil
		}
		answer.Started = append(answer.Started, started)
	}
	return answer, nil
}

// echo is a guest that repeats what is typed and says bye at the end of it, or when it is told to stop.
func echo(stream *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error {
	for {
		typed, err := stream.Receive()
		if errors.Is(err, io.EOF) || string(typed.GetData()) == "stop\r" {
			return stream.Send(&berthv1.ConsoleResponse{Data: []byte("bye")})
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&berthv1.ConsoleResponse{Data: typed.GetData()}); err != nil {
			return err
		}
	}
}

// CannedEvidence is what is known of a VM: db may run on a node that is silent, and any other runs.
func CannedEvidence(vm string) *berthv1.WhyNotStartedResponse {
	word := func(node, boot, standing, why string, ago time.Duration) *berthv1.NodeWord {
		return &berthv1.NodeWord{Node: node, Standing: standing, Why: why, At: Ago(ago), Boot: boot}
	}
	blocking := func(word *berthv1.NodeWord, next string) *berthv1.NodeWord {
		word.InTheWay, word.NextStep = true, next
		return word
	}
	second := word("node2", "b2", "does not have it", "listed its domains 12s ago, and does not have it", 12*time.Second)
	if vm != "db" {
		first := blocking(word("node1", "b1", "shows it", "shows it running", 20*time.Second), "stop it first with 'berth vm stop "+vm+"'")
		return &berthv1.WhyNotStartedResponse{
			SchemaVersion: "1", Vm: vm, Runs: true, Proof: "it runs on node1", Nodes: []*berthv1.NodeWord{first, second},
		}
	}
	const next = "wait until node3 answers, or prove that it is off with 'berth node fence node3' (--confirmed-off if you have seen it)"
	return &berthv1.WhyNotStartedResponse{
		SchemaVersion: "1", Vm: vm, Missing: "node3 is silent for 1h0m0s", NextStep: next,
		Condition: "out of band: node1 does not run it any more, and node3, where somebody may have moved it, cannot be asked: " +
			"'berth vm why-not-started db' says what is missing",
		Nodes: []*berthv1.NodeWord{
			word("node1", "b1", "does not have it", "listed its domains 20s ago, and does not have it", 20*time.Second), second,
			blocking(word("node3", "b3", "silent", "is silent for 1h0m0s", time.Hour), next),
		},
	}
}

func cannedGaps() []string {
	return []string{
		"if node3 fell silent: nothing can prove that it is off; 'berth node set node3 --fence METHOD' names a device that proves it",
		"without node3: 0 of 2 nodes fit",
	}
}

// CannedDocument is the document of every VM.
const CannedDocument = `<domain type='kvm'>
  <name>web1</name>
  <memory unit='KiB'>524288</memory>
  <vcpu>2</vcpu>
</domain>
`
