package cli

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
)

const gib = int64(1) << 30

func ago(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(-d)) }

func settings() *berthv1.NodeSettings {
	return &berthv1.NodeSettings{RamRatio: proto.Float64(1.5), CpuRatio: proto.Float64(8), OverheadBytes: proto.Int64(gib)}
}

// cannedNodes are one that is well, one in maintenance that reads little, and one that is silent.
func cannedNodes() []*berthv1.Node {
	return []*berthv1.Node{
		{
			Id: "3nqk7d2m0n1aa", Name: "node1", Cluster: "default", State: berthv1.NodeState_NODE_STATE_UP,
			Settings: settings(), OwnSettings: &berthv1.NodeSettings{RamRatio: proto.Float64(1.5)},
			Inventory: &berthv1.NodeInventory{
				HostName: "node1", HostUuid: "11111111-2222-3333-4444-555555555555", AgentVersion: "1.2.3", LibvirtVersion: "9.0.0",
				HypervisorVersion: "7.2.0", MemoryBytes: 64 * gib, Cpus: 16, Sockets: 1, CoresPerSocket: 8, ThreadsPerCore: 2, NumaCells: 1,
				CpuModel: "EPYC", CpuVendor: "AMD", Arch: "x86_64", DomainTypes: []string{"kvm", "qemu"},
				StoragePools: []*berthv1.StoragePool{{Name: "default", Active: true, Type: "dir", CapacityBytes: 1000 * gib, AvailableBytes: 400 * gib}},
				Networks:     []*berthv1.Network{{Name: "default", Active: true, Bridge: "virbr0", ForwardMode: "nat"}},
				MigrationUri: "qemu+tls://node1/system", CollectedAt: ago(20 * time.Second),
			},
			Telemetry: &berthv1.NodeTelemetry{
				MemoryTotalBytes: proto.Int64(64 * gib), MemoryFreeBytes: proto.Int64(30 * gib), MemoryAvailableBytes: proto.Int64(41 * gib),
				KsmSavedBytes: proto.Int64(gib / 2), Load1: proto.Float64(1.25), Load5: proto.Float64(0.9), Load15: proto.Float64(0.5),
				CpuBusyRatio: proto.Float64(0.31), CpuStealRatio: proto.Float64(0), CpuPressure: &berthv1.Pressure{SomeAvg10: 1.5},
			},
			TelemetryAgeSeconds: proto.Float64(1.2),
			Ledgers: &berthv1.NodeLedgers{
				PromisedLimitBytes: 96 * gib, PromisedUsedBytes: 20*gib + gib/2, PromisedFreeBytes: 75*gib + gib/2,
				PhysicalFreeBytes: proto.Int64(40 * gib), VcpusLimit: 128, VcpusUsed: 11, Vms: 3,
				BorrowedBytes: gib / 2,
			},
			Keys: map[string]float64{"Premium": 1, "DS": 0, "_ssd": 1}, OwnKeys: []string{"Premium"},
			Vms: []string{"db1", "web1"}, EnrolledAt: ago(48 * time.Hour),
			Labels: []string{"rack-7"}, Management: true,
			Fence: &berthv1.FenceDevice{
				Method: "command", Program: "fence_ipmilan", TimeoutSeconds: 30,
				Arguments: map[string]string{"ip": "10.0.0.9", "password": "***", "username": "berth"},
			},
			Fencing: &berthv1.Fencing{
				Phase: "failed", Method: "command", Attempt: 2, Caller: "berth", AskedAt: ago(50 * time.Second), EndedAt: ago(40 * time.Second),
				Message: "fence_ipmilan: no answer within 30s",
			},
		},
		{
			Id: "3nqk7d2m0n2aa", Name: "node2", Cluster: "default", State: berthv1.NodeState_NODE_STATE_UP, Maintenance: true,
			MaintenanceReason: "new memory", Settings: settings(), OwnSettings: &berthv1.NodeSettings{},
			Telemetry:           &berthv1.NodeTelemetry{Errors: []*berthv1.ReadingError{{Reading: "memory", Message: "libvirt: timed out"}}},
			TelemetryAgeSeconds: proto.Float64(0.4), Ledgers: &berthv1.NodeLedgers{PromisedLimitBytes: 96 * gib, VcpusLimit: 128},
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
		{Name: "web1", Uuid: "aaaaaaaa-0000-4000-8000-000000000001", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, MemoryBytes: gib / 2, Vcpus: 2, Managed: true, Epoch: 3, OperationId: "3nqk7d2m0x1ab"},
		{Name: "old\x1b[31mbackup\tbox", Uuid: "bbbbbbbb-0000-4000-8000-000000000002", State: berthv1.DomainState_DOMAIN_STATE_PAUSED, MemoryBytes: 16 * gib, Vcpus: 8},
	}
}

func cannedVMs() []*berthv1.VM {
	return []*berthv1.VM{
		{
			Id: "aaaaaaaa-0000-4000-8000-000000000003", Name: "db1", State: berthv1.VMState_VM_STATE_UNKNOWN, Node: "node3",
			Spec:  &berthv1.VMSpec{MemoryBytes: 8 * gib, Vcpus: 4},
			Epoch: 7, Condition: "node node3 is unreachable: no session for 3m12s", StartedAt: ago(72 * time.Hour),
			Labels: []string{"acme", "tier-db"}, Migration: "manual", Preferred: []string{"node3"}, Groups: []string{"rack-7"}, MovedAt: ago(7 * time.Minute),
		},
		{
			Id: "aaaaaaaa-0000-4000-8000-000000000001", Name: "web1", State: berthv1.VMState_VM_STATE_RUNNING, Node: "node1", NodeId: "3nqk7d2m0n1aa",
			Spec: &berthv1.VMSpec{
				MemoryBytes: gib / 2, Vcpus: 2, Networks: []string{"default"},
				Disks: []*berthv1.Disk{{Path: "/srv/web1.qcow2", Format: "qcow2", Bus: "virtio"}, {Path: "/srv/seed.iso", Format: "raw", Bus: "sata", ReadOnly: true}},
			},
			Epoch: 3, Discards: []*berthv1.Discard{{Node: "node3", Epoch: 2}}, LastNode: "node2", LastDecisionId: "3nqk7d2m0d1ab", CreatedAt: ago(26 * time.Hour), StartedAt: ago(5*time.Hour + 7*time.Minute),
			Telemetry: &berthv1.DomainTelemetry{CpuRatio: proto.Float64(0.42), RssBytes: proto.Int64(300 << 20), BalloonBytes: proto.Int64(gib / 2)},
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
			Spec: &berthv1.VMSpec{MemoryBytes: gib / 2, Vcpus: 1}, Epoch: 1, LastNode: "node1", StartedAt: ago(time.Hour),
		},
	}
}

// cannedDecision has two candidates and a refused node.
func cannedDecision() *berthv1.Decision {
	system := func(key string, raw, proximity, weight float64) *berthv1.ScoreTerm {
		return &berthv1.ScoreTerm{
			Weigher: "system-keys", Key: key, Raw: raw, Proximity: &proximity, Weight: weight, Contribution: proximity * weight,
			Wanted: proto.Float64(0), Class: "system", Level: "cluster",
		}
	}
	passed := func(available float64) []*berthv1.ConstraintResult {
		return []*berthv1.ConstraintResult{
			{Constraint: "running", Passed: true},
			{Constraint: "memory-physical", Passed: true, Needed: proto.Float64(1.5 * float64(gib)), Available: proto.Float64(available), Unit: "bytes", InputAgeSeconds: proto.Float64(1.2)},
		}
	}
	return &berthv1.Decision{
		Id: "3nqk7d2m0d1ab", Purpose: "start", Vm: "web1", Policy: "affinity", MadeAt: ago(90 * time.Second), Caller: "operator/admin",
		Outcome: berthv1.DecisionOutcome_DECISION_OUTCOME_PLACED, Winner: "node2", WinnerId: "3nqk7d2m0n2aa", Margin: 100,
		Reason: "node2 is the best of 2 nodes of round 1 by customer keys, 100 more than node1", Counterfactual: "without key Group1, node1 or node2 by lot",
		Seed: 42, OperationId: "3nqk7d2m0x1ab", Cluster: "default", Round: 1, Kept: 3,
		Request: &berthv1.DecisionRequest{
			MemoryBytes: gib / 2, Vcpus: 2,
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
				Node: "node2", NodeId: "3nqk7d2m0n2aa", Admitted: true, SystemScore: 93.1, Rank: 1, Tier: 1, Band: 1, Constraints: passed(40 * float64(gib)),
				Terms: []*berthv1.ScoreTerm{system("#RAM", 0.25, 0.95, 50), system("#CPU", 0.1, 0.9, 30), system("#LOAD", 0.02, 0.93, 20)},
			},
			{
				Node: "node1", NodeId: "3nqk7d2m0n1aa", Admitted: true, SystemScore: 88.9, CustomerScore: -100, Score: -100, Rank: 2, Tier: 1, Band: 1,
				Constraints: passed(30 * float64(gib)),
				Terms: []*berthv1.ScoreTerm{
					system("#RAM", 0.5, 0.85, 50), system("#CPU", 0.2, 0.9, 30), system("#LOAD", 0.05, 0.97, 20),
					{
						Weigher: "customer-keys", Key: "Group1", Raw: 1, Wanted: proto.Float64(1), Proximity: proto.Float64(1), Weight: -100, Contribution: -100,
						Count: 1, Class: "customer", Level: "vm",
					},
				},
			},
			cannedRefusedNodes()[1],
		},
	}
}

// cannedOldDecision is as the first release recorded it: one score, and neither rounds nor customer keys.
func cannedOldDecision() *berthv1.Decision {
	d := cannedDecision()
	d.Round, d.Kept, d.Margin, d.Cluster, d.Policy = 0, 0, 4.2, "", "fco"
	d.Reason, d.Counterfactual, d.Gate, d.Selector = "node2 scores 93.1, 4.2 more than node1; 1 of 3 nodes refused", "without #RAM, node1 would win", "off", "raw score of system-keys"
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

// cannedBandRefusal has nodes that no constraint refuses, and no system round that any of them passes.
func cannedBandRefusal() *berthv1.Decision {
	d := cannedDecision()
	d.Outcome, d.Winner, d.WinnerId, d.Margin, d.Round, d.FailedPhase = berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED, "", "", 0, 0, "system"
	d.Reason, d.Counterfactual = "no node is good enough: the best of 2 candidates is node2 with -20, and the last threshold is -10", ""
	d.Changes = []string{"without key Licence of vdc/acme-prod, node2", "final_msav of cluster/default at -21, node2"}
	for i, node := range d.GetNodes()[:2] {
		node.Admitted, node.Band, node.Rank, node.SystemScore, node.Score, node.CustomerScore = false, 0, 0, -20-float64(i), 0, 0
		node.Constraints = append(node.Constraints, &berthv1.ConstraintResult{
			Constraint: "bands", Code: "below_final", Message: "system score " + number(node.GetSystemScore()) + " does not exceed -10",
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
				Constraint: "memory-promised", Code: "short", Message: "75.5 GiB are not promised yet, more than 257 GiB is needed (VM 256 GiB, overhead 1 GiB)",
				Needed: proto.Float64(257 * float64(gib)), Available: proto.Float64(75.5 * float64(gib)), Unit: "bytes",
			},
			{
				Constraint: "memory-physical", Code: "short", Message: "40 GiB are physically free, more than 257 GiB is needed (VM 256 GiB, overhead 1 GiB)",
				Needed: proto.Float64(257 * float64(gib)), Available: proto.Float64(40 * float64(gib)), Unit: "bytes", InputAgeSeconds: proto.Float64(1.2),
			},
		}},
		{Node: "node3", NodeId: "3nqk7d2m0n3aa", Constraints: []*berthv1.ConstraintResult{
			{Constraint: "running", Code: "unreachable", Message: "the node is unreachable: no session for 3m12s"},
		}},
	}
}

func cannedRefusal() *berthv1.Decision {
	return &berthv1.Decision{
		Id: "3nqk7d2m0d9zz", Purpose: "start", Vm: "big", Policy: "affinity", MadeAt: ago(time.Second), Caller: "operator/admin",
		Outcome: berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED, Nodes: cannedRefusedNodes(),
		Reason:      "no node fits: of 2 nodes, running refuses 1, memory-promised refuses 1, memory-physical refuses 1; nearest is node1",
		FailedPhase: "constraint", Cluster: "default",
		Changes: []string{"a VM of 39 GiB would fit on node1", "with vm/db1 (8 GiB) moved from node1 to node2, node1"},
		Request: &berthv1.DecisionRequest{MemoryBytes: 256 * gib, Vcpus: 2},
	}
}

func cannedOperation(kind string, result berthv1.OperationResult) *berthv1.Operation {
	op := &berthv1.Operation{
		Id: "3nqk7d2m0x1ab", Kind: kind, Vm: "web1", VmId: "aaaaaaaa-0000-4000-8000-000000000001", Caller: "operator/admin",
		Target: "node2", Phase: "ordered", Result: result, Attempt: 1, Epoch: 3, DecisionId: "3nqk7d2m0d1ab",
		CreatedAt: ago(10 * time.Second), UpdatedAt: ago(8 * time.Second),
		Evidence: []string{"begun on decision 3nqk7d2m0d1ab", "node2 answered: done"},
	}
	switch kind {
	case "stop":
		op.Source, op.Target = "node2", ""
	case "migrate":
		op.Source = "node1"
	}
	if result != berthv1.OperationResult_OPERATION_RESULT_RUNNING {
		op.EndedAt = ago(7900 * time.Millisecond)
		op.Phase = "ended"
	}
	return op
}

const (
	running = berthv1.OperationResult_OPERATION_RESULT_RUNNING
	done    = berthv1.OperationResult_OPERATION_RESULT_DONE
	failed  = berthv1.OperationResult_OPERATION_RESULT_FAILED
	parked  = berthv1.OperationResult_OPERATION_RESULT_PARKED
)

func cannedMigration() *berthv1.MigrationStats {
	return &berthv1.MigrationStats{
		ElapsedSeconds: 1.9, DataTotalBytes: 132 << 20, DataProcessedBytes: 132 << 20, MemoryBps: 70 << 20, Iteration: 3,
		DowntimeSeconds: proto.Float64(0.185), HandoverSeconds: proto.Float64(0.045),
	}
}

func cannedMembers() []*berthv1.Member {
	return []*berthv1.Member{
		{Id: "m1", Name: "coord1", Address: "coord1:7422", ApiAddress: "coord1:7420", AgentAddress: "coord1:7421", Voter: true, Leader: true, Self: true, Reachable: true, LastIndex: 1042, Healthy: true, Version: "1.2.3", FeatureLevel: 2},
		{Id: "m2", Name: "coord2", Address: "coord2:7422", ApiAddress: "coord2:7420", AgentAddress: "coord2:7421", Voter: true, Reachable: true, LastIndex: 1000, LastContactSeconds: proto.Float64(0.043), Healthy: true, Behind: 42, Version: "1.2.3", FeatureLevel: 2},
		{Id: "m3", Name: "coord3", Address: "coord3:7422", ApiAddress: "coord3:7420", AgentAddress: "coord3:7421", LastIndex: 17},
	}
}

func cannedStatus() *berthv1.StatusResponse {
	return &berthv1.StatusResponse{
		SchemaVersion: "1", ClusterId: "3nqk7d2m0c1aa", Version: "1.2.3", Leader: "coord1", Term: 4, AppliedIndex: 1042, Members: cannedMembers(),
		NodesUp: 2, NodesTotal: 3, VmsRunning: 1, VmsTotal: 3, OperationsRunning: 1, AnsweredBy: "coord2",
		Problems: []string{"node node3 is unreachable: no session for 3m12s", "coordinator coord3 is not reachable"},
	}
}

func cannedEvents() []*berthv1.Event {
	return []*berthv1.Event{
		{Index: 1001, At: ago(2 * time.Minute), Kind: "vm.started", Subject: "vm/web1", Message: "on node2", Caller: "operator/admin", OperationId: "3nqk7d2m0x1ab", DecisionId: "3nqk7d2m0d1ab"},
		{Index: 1001, At: ago(2 * time.Minute), Kind: "vm.placed", Subject: "vm/web1", Message: "by decision 3nqk7d2m0d1ab"},
		{At: ago(time.Minute), Kind: "node.unreachable", Subject: "node/node3", Message: "no session for 10s"},
	}
}

// cannedRanked was decided by three weighers together.
func cannedRanked() *berthv1.Decision {
	d := cannedDecision()
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

// cannedParked is a migration that no rule could decide.
func cannedParked() *berthv1.Operation {
	op := cannedOperation("migrate", running)
	op.Result, op.Phase, op.Message = parked, "judging", "both nodes run it"
	op.Evidence = []string{"node1 shows domain running, epoch 2, job false", "node2 shows domain running, epoch 3, job false", "verdict: running on both"}
	op.Views = []*berthv1.CopyView{
		{Node: "node1", NodeId: "n1", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, StateReason: "booted", Epoch: 2, Holder: true, AgeSeconds: 1.2, NodeState: berthv1.NodeState_NODE_STATE_UP},
		{Node: "node2", NodeId: "n2", State: berthv1.DomainState_DOMAIN_STATE_PAUSED, StateReason: "user", Epoch: 3, JobActive: true, AgeSeconds: 4, NodeState: berthv1.NodeState_NODE_STATE_UP},
		{Node: "node3", NodeId: "n3", State: berthv1.DomainState_DOMAIN_STATE_UNKNOWN, AgeSeconds: 90, NodeState: berthv1.NodeState_NODE_STATE_UNREACHABLE},
	}
	return op
}

func cannedAdoption(request *berthv1.AdoptVMsRequest) *berthv1.AdoptVMsResponse {
	answer := &berthv1.AdoptVMsResponse{SchemaVersion: "1"}
	db := &berthv1.AdoptedVM{Vm: "db", VmId: "u1", Node: "node1", Note: "it stays on its node: disk /var/lib/db.img is in no storage pool that Berth knows as shared"}
	web := &berthv1.AdoptedVM{Vm: "web", VmId: "u2", Node: "node2"}
	if !request.GetDryRun() {
		db.Operation, web.Operation = cannedOperation("adopt", done), cannedOperation("adopt", done)
	}
	answer.Vms = append(answer.Vms, db, web)
	if request.GetAll() {
		answer.Vms = append(answer.Vms, &berthv1.AdoptedVM{Vm: "old", VmId: "u3", Node: "node2", Problem: "it is paused (user)", NextStep: "let it run with 'virsh resume old' on node2"})
	}
	return answer
}
