package clitest

import (
	"context"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Gib is a gibibyte.
const Gib = int64(1) << 30

// Ago is a time before noon, which commands believe it is.
func Ago(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(-d)) }

func settings() *berthv1.NodeSettings {
	return &berthv1.NodeSettings{RamRatio: proto.Float64(1.5), CpuRatio: proto.Float64(8), OverheadBytes: proto.Int64(Gib)}
}

// cannedNodes are one that is well, one in maintenance that reads little, and one that is silent.
func cannedNodes() []*berthv1.Node {
	return []*berthv1.Node{
		{
			Id: "3nqk7d2m0n1aa", Name: "node1", Cluster: "default", State: berthv1.NodeState_NODE_STATE_UP,
			Settings: settings(), OwnSettings: &berthv1.NodeSettings{RamRatio: proto.Float64(1.5)},
			Inventory: &berthv1.NodeInventory{
				HostName: "node1", HostUuid: "11111111-2222-3333-4444-555555555555", AgentVersion: "1.2.3", LibvirtVersion: "9.0.0",
				HypervisorVersion: "7.2.0", MemoryBytes: 64 * Gib, Cpus: 16, Sockets: 1, CoresPerSocket: 8, ThreadsPerCore: 2, NumaCells: 1,
				CpuModel: "EPYC", CpuVendor: "AMD", Arch: "x86_64", DomainTypes: []string{"kvm", "qemu"},
				StoragePools: []*berthv1.StoragePool{{
					Name: "default", Active: true, Type: "dir", CapacityBytes: 1000 * Gib, AvailableBytes: 400 * Gib,
				}},
				Networks:     []*berthv1.Network{{Name: "default", Active: true, Bridge: "virbr0", ForwardMode: "nat"}},
				MigrationUri: "qemu+tls://node1/system", CollectedAt: Ago(20 * time.Second),
			},
			Telemetry: &berthv1.NodeTelemetry{
				MemoryTotalBytes: proto.Int64(64 * Gib), MemoryFreeBytes: proto.Int64(30 * Gib), MemoryAvailableBytes: proto.Int64(41 * Gib),
				KsmSavedBytes: proto.Int64(Gib / 2), Load1: proto.Float64(1.25), Load5: proto.Float64(0.9), Load15: proto.Float64(0.5),
				CpuBusyRatio: proto.Float64(0.31), CpuStealRatio: proto.Float64(0), CpuPressure: &berthv1.Pressure{SomeAvg10: 1.5},
			},
			TelemetryAgeSeconds: proto.Float64(1.2),
			Ledgers: &berthv1.NodeLedgers{
				PromisedLimitBytes: 96 * Gib, PromisedUsedBytes: 20*Gib + Gib/2, PromisedFreeBytes: 75*Gib + Gib/2,
				PhysicalFreeBytes: proto.Int64(40 * Gib), VcpusLimit: 128, VcpusUsed: 11, Vms: 3,
				BorrowedBytes: Gib / 2,
			},
			Keys: map[string]float64{"Premium": 1, "DS": 0, "_ssd": 1}, OwnKeys: []string{"Premium"},
			Vms: []string{"db1", "web1"}, EnrolledAt: Ago(48 * time.Hour),
			Labels: []string{"rack-7"}, Management: true,
			Fence: &berthv1.FenceDevice{
				Method: "command", Program: "fence_ipmilan", TimeoutSeconds: 30,
				Arguments: map[string]string{"ip": "10.0.0.9", "password": "***", "username": "berth"},
			},
			Fencing: &berthv1.Fencing{
				Phase: "failed", Method: "command", Attempt: 2, Caller: "berth", AskedAt: Ago(50 * time.Second), EndedAt: Ago(40 * time.Second),
				Message: "fence_ipmilan: no answer within 30s",
			},
		},
		{
			Id: "3nqk7d2m0n2aa", Name: "node2", Cluster: "default", State: berthv1.NodeState_NODE_STATE_UP, Maintenance: true,
			MaintenanceReason: "new memory", Settings: settings(), OwnSettings: &berthv1.NodeSettings{},
			Telemetry:           &berthv1.NodeTelemetry{Errors: []*berthv1.ReadingError{{Reading: "memory", Message: "libvirt: timed out"}}},
			TelemetryAgeSeconds: proto.Float64(0.4), Ledgers: &berthv1.NodeLedgers{PromisedLimitBytes: 96 * Gib, VcpusLimit: 128},
		},
		{
			Id: "3nqk7d2m0n3aa", Name: "node3", Cluster: "default", State: berthv1.NodeState_NODE_STATE_UNREACHABLE,
			StateReason: "no session for 3m12s", Settings: settings(), OwnSettings: &berthv1.NodeSettings{},
			Maintenance: true, PlanId: "3nqk7d2m0p1ab", Unbalanced: true,
		},
	}
}

func cannedDomains() []*berthv1.Domain {
	return []*berthv1.Domain{
		{
			Name: "web1", Uuid: "aaaaaaaa-0000-4000-8000-000000000001", State: berthv1.DomainState_DOMAIN_STATE_RUNNING,
			MemoryBytes: Gib / 2, Vcpus: 2, Managed: true, Epoch: 3, OperationId: "3nqk7d2m0x1ab",
		},
		{
			Name: "old\x1b[31mbackup\tbox", Uuid: "bbbbbbbb-0000-4000-8000-000000000002", State: berthv1.DomainState_DOMAIN_STATE_PAUSED,
			MemoryBytes: 16 * Gib, Vcpus: 8,
		},
	}
}

func cannedVMs() []*berthv1.VM {
	return []*berthv1.VM{
		{
			Id: "aaaaaaaa-0000-4000-8000-000000000003", Name: "db1", State: berthv1.VMState_VM_STATE_UNKNOWN, Node: "node3",
			Spec:  &berthv1.VMSpec{MemoryBytes: 8 * Gib, Vcpus: 4},
			Epoch: 7, Condition: "node node3 is unreachable: no session for 3m12s", StartedAt: Ago(72 * time.Hour),
			Labels: []string{"acme", "tier-db"}, Migration: "manual", Preferred: []string{"node3"}, Groups: []string{"rack-7"},
			MovedAt: Ago(7 * time.Minute),
		},
		{
			Id: "aaaaaaaa-0000-4000-8000-000000000001", Name: "web1", State: berthv1.VMState_VM_STATE_RUNNING, Node: "node1",
			NodeId: "3nqk7d2m0n1aa",
			Spec: &berthv1.VMSpec{
				MemoryBytes: Gib / 2, Vcpus: 2, Networks: []string{"default"},
				Disks: []*berthv1.Disk{
					{Path: "/srv/web1.qcow2", Format: "qcow2", Bus: "virtio"}, {Path: "/srv/seed.iso", Format: "raw", Bus: "sata", ReadOnly: true},
				},
			},
			Epoch: 3, Discards: []*berthv1.Discard{{Node: "node3", Epoch: 2}}, LastNode: "node2", LastDecisionId: "3nqk7d2m0d1ab",
			CreatedAt: Ago(26 * time.Hour), StartedAt: Ago(5*time.Hour + 7*time.Minute),
			Telemetry: &berthv1.DomainTelemetry{CpuRatio: proto.Float64(0.42), RssBytes: proto.Int64(300 << 20), BalloonBytes: proto.Int64(Gib / 2)},
			Within:    "pod/fra-1", Cpu: "EPYC-Rome", Volumes: []*berthv1.VMDisk{
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

// CannedDecision has two candidates and a refused node.
func CannedDecision() *berthv1.Decision {
	system := func(key string, raw, proximity, weight float64) *berthv1.ScoreTerm {
		return &berthv1.ScoreTerm{
			Weigher: "system-keys", Key: key, Raw: raw, Proximity: &proximity, Weight: weight, Contribution: proximity * weight,
			Wanted: proto.Float64(0), Class: "system", Level: "cluster",
		}
	}
	passed := func(available float64) []*berthv1.ConstraintResult {
		return []*berthv1.ConstraintResult{
			{Constraint: "running", Passed: true},
			{
				Constraint: "memory-physical", Passed: true, Needed: proto.Float64(1.5 * float64(Gib)), Available: proto.Float64(available),
				Unit: "bytes", InputAgeSeconds: proto.Float64(1.2),
			},
		}
	}
	return &berthv1.Decision{
		Id: "3nqk7d2m0d1ab", Purpose: "start", Vm: "web1", Policy: "affinity", MadeAt: Ago(90 * time.Second), Caller: "operator/admin",
		Outcome: berthv1.DecisionOutcome_DECISION_OUTCOME_PLACED, Winner: "node2", WinnerId: "3nqk7d2m0n2aa", Margin: 100,
		Reason:         "node2 is the best of 2 nodes of round 1 by customer keys, 100 more than node1",
		Counterfactual: "without key Group1, node1 or node2 by lot",
		Seed:           42, OperationId: "3nqk7d2m0x1ab", Cluster: "default", Round: 1, Kept: 3,
		Request: &berthv1.DecisionRequest{
			MemoryBytes: Gib / 2, Vcpus: 2,
			SystemKeys: []*berthv1.CompiledKey{
				{Name: "#CPU", Weight: 30, Class: "system", Level: "cluster"},
				{Name: "#LOAD", Weight: 20, Class: "system", Level: "cluster"},
				{Name: "#RAM", Weight: 50, Class: "system", Level: "cluster"},
			},
			CustomerKeys: []*berthv1.CompiledKey{{Name: "Group1", Value: 1, Weight: -100, Class: "customer", Level: "vm"}},
		},
		Order: "first-fit: 2 nodes in 1 tier", Gate: "round 1 of 10, threshold 80: 2 nodes", Selector: "customer score",
		Nodes: []*berthv1.DecisionNode{
			{
				Node: "node2", NodeId: "3nqk7d2m0n2aa", Admitted: true, SystemScore: 93.1, Rank: 1, Tier: 1, Band: 1,
				Constraints: passed(40 * float64(Gib)),
				Terms:       []*berthv1.ScoreTerm{system("#RAM", 0.25, 0.95, 50), system("#CPU", 0.1, 0.9, 30), system("#LOAD", 0.02, 0.93, 20)},
			},
			{
				Node: "node1", NodeId: "3nqk7d2m0n1aa", Admitted: true, SystemScore: 88.9, CustomerScore: -100, Score: -100, Rank: 2, Tier: 1, Band: 1,
				Constraints: passed(30 * float64(Gib)),
				Terms: []*berthv1.ScoreTerm{
					system("#RAM", 0.5, 0.85, 50), system("#CPU", 0.2, 0.9, 30), system("#LOAD", 0.05, 0.97, 20),
					{
						Weigher: "customer-keys", Key: "Group1", Raw: 1, Wanted: proto.Float64(1), Proximity: proto.Float64(1), Weight: -100,
						Contribution: -100,
						Count:        1, Class: "customer", Level: "vm",
					},
				},
			},
			cannedRefusedNodes()[1],
		},
	}
}

// cannedOldDecision is as the first release recorded it: one score, and neither rounds nor customer keys.
func cannedOldDecision() *berthv1.Decision {
	d := CannedDecision()
	d.Round, d.Kept, d.Margin, d.Cluster, d.Policy = 0, 0, 4.2, "", "fco"
	d.Reason, d.Counterfactual, d.Gate, d.Selector = "node2 scores 93.1, 4.2 more than node1; 1 of 3 nodes refused",
		"without #RAM, node1 would win", "off", "raw score of system-keys"
	d.Request.SystemKeys, d.Request.CustomerKeys = nil, nil
	for _, node := range d.GetNodes()[:2] {
		node.Score, node.SystemScore, node.CustomerScore, node.Band = node.GetSystemScore(), 0, 0, 0
		node.Terms = node.GetTerms()[:3]
		for _, term := range node.GetTerms() {
			term.Wanted, term.Class, term.Level = nil, "", ""
		}
	}
	return d
}

// CannedBandRefusal has nodes that no constraint refuses, and no system round that any of them passes.
func CannedBandRefusal() *berthv1.Decision {
	d := CannedDecision()
	d.Outcome, d.Winner, d.WinnerId, d.Margin, d.Round, d.FailedPhase = berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED, "", "",
		0, 0, "system"
	d.Reason, d.Counterfactual = "no node is good enough: the best of 2 candidates is node2 with -20, and the last threshold is -10", ""
	d.Changes = []string{"without key Licence of vdc/acme-prod, node2", "final_msav of cluster/default at -21, node2"}
	for i, node := range d.GetNodes()[:2] {
		node.Admitted, node.Band, node.Rank, node.SystemScore, node.Score, node.CustomerScore = false, 0, 0, -20-float64(i), 0, 0
		node.Constraints = append(node.Constraints, &berthv1.ConstraintResult{
			Constraint: "bands", Code: "below_final", Message: "system score " + strconv.FormatFloat(
				node.GetSystemScore(), 'g', -1, 64,
			) + " does not exceed -10",
			Needed: proto.Float64(-10), Available: proto.Float64(node.GetSystemScore()), Unit: "score",
		})
	}
	return d
}

func cannedRefusedNodes() []*berthv1.DecisionNode {
	return []*berthv1.DecisionNode{
		{Node: "node1", NodeId: "3nqk7d2m0n1aa", Constraints: []*berthv1.ConstraintResult{
			{Constraint: "running", Passed: true},
			{
				Constraint: "memory-promised", Code: "short",
				Message: "75.5 GiB are not promised yet, more than 257 GiB is needed (VM 256 GiB, overhead 1 GiB)",
				Needed:  proto.Float64(257 * float64(Gib)), Available: proto.Float64(75.5 * float64(Gib)), Unit: "bytes",
			},
			{
				Constraint: "memory-physical", Code: "short",
				Message: "40 GiB are physically free, more than 257 GiB is needed (VM 256 GiB, overhead 1 GiB)",
				Needed:  proto.Float64(257 * float64(Gib)), Available: proto.Float64(40 * float64(Gib)), Unit: "bytes",
				InputAgeSeconds: proto.Float64(1.2),
			},
		}},
		{Node: "node3", NodeId: "3nqk7d2m0n3aa", Constraints: []*berthv1.ConstraintResult{
			{Constraint: "running", Code: "unreachable", Message: "the node is unreachable: no session for 3m12s"},
		}},
	}
}

// CannedRefusal is a decision that found no node.
func CannedRefusal() *berthv1.Decision {
	return &berthv1.Decision{
		Id: "3nqk7d2m0d9zz", Purpose: "start", Vm: "big", Policy: "affinity", MadeAt: Ago(time.Second), Caller: "operator/admin",
		Outcome: berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED, Nodes: cannedRefusedNodes(),
		Reason:      "no node fits: of 2 nodes, running refuses 1, memory-promised refuses 1, memory-physical refuses 1; nearest is node1",
		FailedPhase: "constraint", Cluster: "default",
		Changes: []string{"a VM of 39 GiB would fit on node1", "with vm/db1 (8 GiB) moved from node1 to node2, node1"},
		Request: &berthv1.DecisionRequest{MemoryBytes: 256 * Gib, Vcpus: 2},
	}
}

// CannedOperation is an operation on web1.
func CannedOperation(kind string, result berthv1.OperationResult) *berthv1.Operation {
	op := &berthv1.Operation{
		Id: "3nqk7d2m0x1ab", Kind: kind, Vm: "web1", VmId: "aaaaaaaa-0000-4000-8000-000000000001", Caller: "operator/admin",
		Target: "node2", Phase: "ordered", Result: result, Attempt: 1, Epoch: 3, DecisionId: "3nqk7d2m0d1ab",
		CreatedAt: Ago(10 * time.Second), UpdatedAt: Ago(8 * time.Second),
		Evidence: []string{"begun on decision 3nqk7d2m0d1ab", "node2 answered: done"},
	}
	switch kind {
	case "stop":
		op.Source, op.Target = "node2", ""
	case "migrate":
		op.Source = "node1"
	}
	if result != berthv1.OperationResult_OPERATION_RESULT_RUNNING {
		op.EndedAt = Ago(7900 * time.Millisecond)
		op.Phase = "ended"
	}
	return op
}

// The results of operations, under names short enough for tables of cases.
const (
	Running = berthv1.OperationResult_OPERATION_RESULT_RUNNING
	Done    = berthv1.OperationResult_OPERATION_RESULT_DONE
	Failed  = berthv1.OperationResult_OPERATION_RESULT_FAILED
	Parked  = berthv1.OperationResult_OPERATION_RESULT_PARKED
)

func cannedMigration() *berthv1.MigrationStats {
	return &berthv1.MigrationStats{
		ElapsedSeconds: 1.9, DataTotalBytes: 132 << 20, DataProcessedBytes: 132 << 20, MemoryBps: 70 << 20, Iteration: 3,
		DowntimeSeconds: proto.Float64(0.185), HandoverSeconds: proto.Float64(0.045),
	}
}

func cannedMembers() []*berthv1.Member {
	return []*berthv1.Member{
		{
			Id: "m1", Name: "coord1", Address: "coord1:7422", ApiAddress: "coord1:7420", AgentAddress: "coord1:7421", Voter: true,
			Leader: true, Self: true, Reachable: true, LastIndex: 1042, Healthy: true, Version: "1.2.3", FeatureLevel: 2,
		},
		{
			Id: "m2", Name: "coord2", Address: "coord2:7422", ApiAddress: "coord2:7420", AgentAddress: "coord2:7421", Voter: true,
			Reachable: true, LastIndex: 1000, LastContactSeconds: proto.Float64(0.043), Healthy: true, Behind: 42, Version: "1.2.3",
			FeatureLevel: 2,
		},
		{Id: "m3", Name: "coord3", Address: "coord3:7422", ApiAddress: "coord3:7420", AgentAddress: "coord3:7421", LastIndex: 17},
	}
}

// CannedStatus is the status of three coordinators.
func CannedStatus() *berthv1.StatusResponse {
	return &berthv1.StatusResponse{
		SchemaVersion: "1", ClusterId: "3nqk7d2m0c1aa", Version: "1.2.3", Leader: "coord1", Term: 4, AppliedIndex: 1042, Members: cannedMembers(),
		NodesUp: 2, NodesTotal: 3, VmsRunning: 1, VmsTotal: 3, OperationsRunning: 1, AnsweredBy: "coord2",
		Problems: []string{"node node3 is unreachable: no session for 3m12s", "coordinator coord3 is not reachable"},
	}
}

// CannedEvents are events of several kinds.
func CannedEvents() []*berthv1.Event {
	return []*berthv1.Event{
		{
			Index: 1001, At: Ago(2 * time.Minute), Kind: "vm.started", Subject: "vm/web1", Message: "on node2", Caller: "operator/admin",
			OperationId: "3nqk7d2m0x1ab", DecisionId: "3nqk7d2m0d1ab",
		},
		{Index: 1001, At: Ago(2 * time.Minute), Kind: "vm.placed", Subject: "vm/web1", Message: "by decision 3nqk7d2m0d1ab"},
		{At: Ago(time.Minute), Kind: "node.unreachable", Subject: "node/node3", Message: "no session for 10s"},
	}
}

// cannedRanked was decided by three weighers together.
func cannedRanked() *berthv1.Decision {
	d := CannedDecision()
	d.Policy, d.Round, d.Gate, d.Selector = "vm-evenly-distributed", 0, "off", "rank: of 3 weighers the sum of rank x factor"
	d.Request.SystemKeys, d.Request.CustomerKeys = nil, nil
	d.Reason, d.Margin, d.Counterfactual, d.Changes = "node2 has the highest sum of ranks of 2 nodes, 19 more than node1", 19, "", nil
	d.Request.Unit, d.Request.PreferredNodes, d.Request.Leave = []string{"web2"}, []string{"node1"}, true
	d.RankNodes = []string{"node2", "node1"}
	for i, node := range d.GetNodes()[:2] {
		node.Band, node.SystemScore, node.CustomerScore, node.Terms = 0, 0, 0, nil
		node.Score = []float64{43, 24}[i]
	}
	for _, row := range []struct {
		weigher string
		factor  float64
		cells   []*berthv1.RankCell
	}{
		{"vm-count", 2, []*berthv1.RankCell{{Rank: 1, Weight: 3}, {Rank: 2, Weight: 1}}},
		{"node-affinity", 20, []*berthv1.RankCell{{Rank: 2, Weight: 1}, {Rank: 1, Weight: 2}}},
		{"vm-affinity", 1, []*berthv1.RankCell{{Rank: 1}, {}}},
	} {
		d.Ranks = append(d.Ranks, &berthv1.RankRow{Weigher: row.weigher, Factor: row.factor, Cells: row.cells})
	}
	return d
}

// CannedParked is a migration that no rule could decide.
func CannedParked() *berthv1.Operation {
	op := CannedOperation("migrate", Running)
	op.Result, op.Phase, op.Message = Parked, "judging", "both nodes run it"
	op.Evidence = []string{
		"node1 shows domain running, epoch 2, job false", "node2 shows domain running, epoch 3, job false", "verdict: running on both",
	}
	op.Views = []*berthv1.CopyView{
		{
			Node: "node1", NodeId: "n1", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, StateReason: "booted", Epoch: 2, Holder: true,
			AgeSeconds: 1.2, NodeState: berthv1.NodeState_NODE_STATE_UP,
		},
		{
			Node: "node2", NodeId: "n2", State: berthv1.DomainState_DOMAIN_STATE_PAUSED, StateReason: "user", Epoch: 3, JobActive: true,
			AgeSeconds: 4, NodeState: berthv1.NodeState_NODE_STATE_UP,
		},
		{
			Node: "node3", NodeId: "n3", State: berthv1.DomainState_DOMAIN_STATE_UNKNOWN, AgeSeconds: 90,
			NodeState: berthv1.NodeState_NODE_STATE_UNREACHABLE,
		},
	}
	return op
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

// Refuses makes a coordinator that refuses to show VMs.
func Refuses(code connect.Code, detail *berthv1.ErrorDetail, text string) *Fake {
	f := Steady()
	f.OnGetVM = func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
		return nil, rpc.Errorf(code, detail, "%s", text)
	}
	return f
}

// Send sends one message of the stream of an operation.
type Send = func(*berthv1.WatchOperationResponse) error

// Migrates sends the given progress and then the end.
func Migrates(progress ...*berthv1.MigrationStats) func(context.Context, *berthv1.WatchOperationRequest, Send) error {
	return func(_ context.Context, _ *berthv1.WatchOperationRequest, send Send) error {
		op := CannedOperation("migrate", Running)
		for _, stats := range progress {
			if err := send(&berthv1.WatchOperationResponse{Operation: op, Progress: stats}); err != nil {
				return err
			}
		}
		op = CannedOperation("migrate", Done)
		op.Migration = cannedMigration()
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
}

// Never is an operation that does not end.
func Never(ctx context.Context, _ *berthv1.WatchOperationRequest, send Send) error {
	if err := send(&berthv1.WatchOperationResponse{Operation: CannedOperation("start", Running)}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// Steady is a coordinator of a cluster in which little happens and everything works.
func Steady() *Fake {
	operation := func(kind string) *berthv1.Operation { return CannedOperation(kind, Running) }
	return &Fake{
		estateFake: cannedEstate(),
		planFake:   cannedPlans(),

		storageFake: cannedStorage(),
		OnStatus:    func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error) { return CannedStatus(), nil },
		OnListNodes: func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
			return &berthv1.ListNodesResponse{SchemaVersion: "1", Nodes: cannedNodes()}, nil
		},
		getNode: func(r *berthv1.GetNodeRequest) (*berthv1.GetNodeResponse, error) {
			for _, node := range cannedNodes() {
				if node.GetName() == r.GetNode() {
					return &berthv1.GetNodeResponse{SchemaVersion: "1", Node: node, Domains: cannedDomains()}, nil
				}
			}
			return nil, rpc.Errorf(connect.CodeNotFound, &berthv1.ErrorDetail{
				Code: rpc.NotFound, Subject: "node/" + r.GetNode(), NextStep: "see 'berth node list'",
			}, "there is no node %q", r.GetNode())
		},
		fenceNode: func(r *berthv1.FenceNodeRequest) (*berthv1.FenceNodeResponse, error) {
			node := cannedNodes()[2]
			if r.GetCheck() {
				return &berthv1.FenceNodeResponse{SchemaVersion: "1", Node: node, Power: "on"}, nil
			}
			node.State = berthv1.NodeState_NODE_STATE_FENCED
			node.Fencing = &berthv1.Fencing{
				Phase: "proven", Method: "manual", Attempt: 1, Caller: "operator/admin", AskedAt: Ago(time.Second), EndedAt: Ago(time.Second),
				Message: "operator/admin has seen that it is off",
			}
			return &berthv1.FenceNodeResponse{SchemaVersion: "1", Node: node}, nil
		},
		setNode: func(*berthv1.SetNodeRequest) (*berthv1.SetNodeResponse, error) {
			return &berthv1.SetNodeResponse{SchemaVersion: "1", Node: cannedNodes()[0]}, nil
		},
		maintenance: func(*berthv1.SetNodeMaintenanceRequest) (*berthv1.SetNodeMaintenanceResponse, error) {
			return &berthv1.SetNodeMaintenanceResponse{SchemaVersion: "1", Node: cannedNodes()[0]}, nil
		},
		removeNode: func(*berthv1.RemoveNodeRequest) (*berthv1.RemoveNodeResponse, error) {
			return &berthv1.RemoveNodeResponse{SchemaVersion: "1"}, nil
		},
		OnListVMs: func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
			return &berthv1.ListVMsResponse{SchemaVersion: "1", Vms: cannedVMs()}, nil
		},
		OnGetVM: func(r *berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
			if r.GetVm() == "db1" {
				return &berthv1.GetVMResponse{SchemaVersion: "1", Vm: cannedVMs()[0]}, nil
			}
			op := CannedOperation("migrate", Done)
			op.Migration = cannedMigration()
			return &berthv1.GetVMResponse{SchemaVersion: "1", Vm: cannedVMs()[1], Operation: op}, nil
		},
		OnStartVM: func(r *berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
			decision := CannedDecision()
			if r.GetDryRun() {
				decision.DryRun, decision.OperationId = true, ""
				return &berthv1.StartVMResponse{SchemaVersion: "1", Decision: decision}, nil
			}
			return &berthv1.StartVMResponse{SchemaVersion: "1", Operation: operation("start"), Decision: decision, Vm: cannedVMs()[1]}, nil
		},
		stopVM: func(*berthv1.StopVMRequest) (*berthv1.StopVMResponse, error) {
			return &berthv1.StopVMResponse{SchemaVersion: "1", Operation: operation("stop")}, nil
		},
		OnMigrateVM: func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) {
			decision := CannedDecision()
			decision.Purpose = "migrate"
			return &berthv1.MigrateVMResponse{SchemaVersion: "1", Operation: operation("migrate"), Decision: decision}, nil
		},
		OnDeleteVM: func(*berthv1.DeleteVMRequest) (*berthv1.DeleteVMResponse, error) {
			return &berthv1.DeleteVMResponse{SchemaVersion: "1"}, nil
		},
		OnListOps: func(*berthv1.ListOperationsRequest) (*berthv1.ListOperationsResponse, error) {
			stuck := CannedOperation("stop", Parked)
			stuck.Message = "node2 shows the guest running, its agent said stopped"
			return &berthv1.ListOperationsResponse{
				SchemaVersion: "1", Operations: []*berthv1.Operation{operation("migrate"), CannedOperation("start", Done), stuck},
			}, nil
		},
		resolveOp: func(r *berthv1.ResolveOperationRequest) (*berthv1.ResolveOperationResponse, error) {
			op := operation("migrate")
			op.Resolution, op.ResolvedBy = r.GetKeep(), "operator/admin"
			return &berthv1.ResolveOperationResponse{SchemaVersion: "1", Operation: op}, nil
		},
		OnAdoptVMs: func(r *berthv1.AdoptVMsRequest) (*berthv1.AdoptVMsResponse, error) { return CannedAdoption(r), nil },
		releaseVM: func(*berthv1.ReleaseVMRequest) (*berthv1.ReleaseVMResponse, error) {
			op := operation("release")
			op.Source, op.Target = "node2", ""
			return &berthv1.ReleaseVMResponse{SchemaVersion: "1", Operation: op}, nil
		},
		getOp: func(r *berthv1.GetOperationRequest) (*berthv1.GetOperationResponse, error) {
			switch r.GetId() {
			case "parked":
				return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: CannedParked()}, nil
			case "restored":
				op := CannedParked()
				op.EndedAt, op.Views = Ago(time.Second), nil
				return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: op}, nil
			case "resolved":
				op := CannedOperation("migrate", Done)
				op.Resolution, op.ResolvedBy = "target", "operator/ann"
				return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: op}, nil
			}
			return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: operation("migrate")}, nil
		},
		cancelOp: func(*berthv1.CancelOperationRequest) (*berthv1.CancelOperationResponse, error) {
			return &berthv1.CancelOperationResponse{SchemaVersion: "1", Operation: operation("migrate")}, nil
		},
		decisions: func(*berthv1.ListDecisionsRequest) (*berthv1.ListDecisionsResponse, error) {
			return &berthv1.ListDecisionsResponse{SchemaVersion: "1", Decisions: []*berthv1.Decision{CannedRefusal(), CannedDecision()}}, nil
		},
		OnGetDecision: func(r *berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
			decision := CannedDecision()
			switch r.GetId() {
			case "big":
				decision = CannedRefusal()
			case "bands":
				decision = CannedBandRefusal()
			case "old":
				decision = cannedOldDecision()
			case "many":
				decision = manyNodes(14, 40)
			case "ranked":
				decision = cannedRanked()
			}
			return &berthv1.GetDecisionResponse{SchemaVersion: "1", Decision: decision}, nil
		},
		OnEvents: func(_ context.Context, _ *berthv1.WatchEventsRequest, send func(*berthv1.WatchEventsResponse) error) error {
			for _, event := range CannedEvents() {
				if err := send(&berthv1.WatchEventsResponse{Event: event}); err != nil {
					return err
				}
			}
			return nil
		},
		members: func(*berthv1.ListMembersRequest) (*berthv1.ListMembersResponse, error) {
			return &berthv1.ListMembersResponse{SchemaVersion: "1", ClusterId: "3nqk7d2m0c1aa", Members: cannedMembers()}, nil
		},
		OnRemove: func(*berthv1.RemoveMemberRequest) (*berthv1.RemoveMemberResponse, error) {
			return &berthv1.RemoveMemberResponse{SchemaVersion: "1"}, nil
		},
		token: func(*berthv1.CreateTokenRequest) (*berthv1.CreateTokenResponse, error) {
			return &berthv1.CreateTokenResponse{
				SchemaVersion: "1", Token: "berth1.agent.secret.fingerprint", ExpiresAt: timestamppb.New(noon.Add(time.Hour)),
				Command: "berth-agent join coord1:7420 berth1.agent.secret.fingerprint",
			}, nil
		},
		OnWatchOp: EndsWell,
	}
}

// EndsWell sends the operation's end as the stream's first message: by the time of the watch it is over.
func EndsWell(_ context.Context, r *berthv1.WatchOperationRequest, send func(*berthv1.WatchOperationResponse) error) error {
	kind := r.GetId()
	if kind == "3nqk7d2m0x1ab" {
		kind = "start"
	}
	return send(&berthv1.WatchOperationResponse{Operation: CannedOperation(kind, Done)})
}
