package wire

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"berth/coordinator/affinity"
	"berth/coordinator/balance"
	"berth/coordinator/consensus"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
	"berth/coordinator/state"
	"berth/coordinator/state/statetest"
	"berth/coordinator/unanswered"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func names(id string) string { return "name-of-" + id }

// whole wants every field of the message set, those of its messages included: a field that is added to the protocol and
// forgotten here would be missed by nobody else.
func whole(t *testing.T, message proto.Message) {
	t.Helper()
	fill(t, message.ProtoReflect(), string(message.ProtoReflect().Descriptor().Name()))
}

func fill(t *testing.T, message protoreflect.Message, path string) {
	t.Helper()
	fields := message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		at := path + "." + string(field.Name())
		if !message.Has(field) {
			t.Errorf("%s is not set", at)
			continue
		}
		value := message.Get(field)
		switch {
		case field.IsMap() || field.Message() == nil || field.Message().ParentFile().Package() != "berth.v1":
		case field.IsList():
			fill(t, value.List().Get(0).Message(), at)
		default:
			fill(t, value.Message(), at)
		}
	}
}

func TestNodeIsWhole(t *testing.T) {
	message := Node(NodeReport{
		View: &view.NodeView{
			Node: model.Node{
				ID: "n1", Name: "hv1", Cluster: "default", Maintenance: true, MaintenanceReason: "disks", EnrolledAt: noon, Revision: 7,
				Keys:   map[string]float64{"Premium": 1},
				Labels: []string{"rack-1"}, Management: true, Unbalanced: true,
				Fence: model.FenceDevice{
					Method: model.FenceCommand, Program: "fence_ipmilan", Arguments: map[string]string{"ip": "10.0.0.9"}, Timeout: time.Minute,
				},
				Fencing: model.Fencing{
					ID: "f1", Phase: model.FencingFailed, Method: model.FenceCommand, Attempt: 2, Caller: "berth", Message: "no answer",
					AskedAt: noon, EndedAt: noon,
				},
				Settings:   model.NodeSettings{RAMRatio: new(1.5), CPURatio: new(4.0), Overhead: new(units.GiB)},
				Unanswered: unanswered.Mark{Operation: "op1", VM: "web", Since: noon},
				Hardware:   "aaaa", HardwareSource: model.HardwareProduct, Twin: model.Twin{Machine: model.Machine{Hardware: "bbbb"}, Why: "two"},
			},
			Settings: model.EffectiveSettings{RAMRatio: 1.5, CPURatio: 4, Overhead: units.GiB},
			Facts: model.NodeFacts{
				Liveness: model.Degraded, LivenessReason: "libvirt does not answer", Inventory: true, Memory: 2 * units.GiB,
				CPUs: 1, Telemetry: true, TelemetryAt: noon, Release: "0.6", Lacks: []string{"reboots"},
				VCPUDelay: new(4.5),
			},
			PromisedLimit: 3 * units.GiB, PromisedUsed: units.GiB, PhysicalFree: units.GiB, PhysicalKnown: true, Borrowed: units.MiB,
			VCPULimit: 8.9, VCPUsUsed: 2,
			Allocations: []view.Allocation{{VM: "v1", Name: "web", VCPUs: 2}},
		},
		Inventory: &berthv1.NodeInventory{MetricsPort: 7425}, Telemetry: &berthv1.NodeTelemetry{}, VMs: []string{"web"},
		At: noon.Add(2 * time.Second), Drain: "p1",
		Declared: []model.NodeKey{{Name: "Premium"}, {Name: "Zone", Default: 3}},
	})
	want := &berthv1.NodeLedgers{
		PromisedLimitBytes: 3 << 30, PromisedUsedBytes: 1 << 30, PromisedFreeBytes: 2 << 30, PhysicalFreeBytes: new(int64(1 << 30)),
		VcpusLimit: 8, VcpusUsed: 2, Vms: 1, BorrowedBytes: 1 << 20,
	}
	if !proto.Equal(message.GetLedgers(), want) {
		t.Errorf("ledgers %v, want %v", message.GetLedgers(), want)
	}
	if message.GetTelemetryAgeSeconds() != 2 || message.GetState() != berthv1.NodeState_NODE_STATE_DEGRADED {
		t.Errorf("age %g, state %s", message.GetTelemetryAgeSeconds(), message.GetState())
	}
	if diff := cmp.Diff(map[string]float64{"Premium": 1, "Zone": 3}, message.GetKeys()); diff != "" || message.GetOwnKeys()[0] != "Premium" {
		t.Errorf("keys: %s, own %v", diff, message.GetOwnKeys())
	}
	message.Inventory, message.Telemetry = nil, nil // the agent's own, passed on as they are
	message.FenceIdentity = "checked"               // only control knows it
	fields := message.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := fields.Get(i).Name(); !message.ProtoReflect().Has(fields.Get(i)) && name != "inventory" && name != "telemetry" {
			t.Errorf("Node.%s is not set", name)
		}
	}
}

func TestWhatIsNotKnownStaysAbsent(t *testing.T) {
	facts := model.NodeFacts{Inventory: true}
	if node := Node(NodeReport{View: &view.NodeView{Facts: facts}, At: noon}); node.Ledgers != nil {
		t.Errorf("a node whose memory nobody could read shows %v", node.Ledgers)
	}
	facts.Memory = units.GiB
	node := Node(NodeReport{View: &view.NodeView{Node: model.Node{ID: "n1"}, Facts: facts}, At: noon})
	if node.Ledgers.PhysicalFreeBytes != nil || node.TelemetryAgeSeconds != nil || node.EnrolledAt != nil || node.OwnSettings.RamRatio != nil {
		t.Errorf("a node shows what it does not know: %v", node)
	}
	op := Operation(operation.Operation{Migration: &operation.MigrationStats{}})
	if op.EndedAt != nil || op.Migration.DowntimeSeconds != nil || op.Migration.HandoverSeconds != nil {
		t.Errorf("an operation shows what it does not know: %v", op)
	}
	member := Member(MemberReport{})
	if member.LastContactSeconds != nil {
		t.Errorf("a member shows when it was heard: %v", member)
	}
	vm := VM(VMReport{NodeName: func(id string) string { t.Errorf("asked for the name of %q", id); return "" }})
	if vm.StartedAt != nil || vm.GetNode() != "" {
		t.Errorf("a VM shows what it does not know: %v", vm)
	}
}

func TestVMIsWhole(t *testing.T) {
	report := VMReport{
		VM: model.VM{
			ID: "v1", Name: "web", Holder: "n1", Epoch: 2, Operation: "o1", LastNode: "n2", Decision: "d1", CreatedAt: noon,
			StartedAt: noon, Revision: 9,
			Labels: []string{"front"}, Migration: model.MigrateManual, Preferred: []string{"n1"}, MovedAt: noon, Spec: spec(),
			VDC: "i1", Offer: "i2", Image: "i3", Disks: []string{"i4"}, NICs: []string{"i5"}, Home: "n1",
			Keys:   []model.Key{{Class: model.CustomerKey, Name: "Group", Value: 1, Weight: 5}},
			Sticky: []model.Key{{Class: model.SystemKey, Name: "DS", Value: 2, Weight: 30}}, CPU: "EPYC", HA: true, Adopted: true, Restarts: 2,
			Description: "front", RestartPriority: model.RestartLow, Restart: model.RestartHA, RestartAfter: []string{"db"},
			Discards: []model.Discard{{Node: "n2", Epoch: 3}}, Bound: "n1",
			Paused: model.Stand{By: "operator/alice", At: time.Unix(9, 0)},
			Snapshots: []model.Snapshot{{
				Name: "weekly", Tag: "op1", TakenAt: noon, TakenBy: "operator/alice", Description: "before", Consistency: model.ConsistentCrash,
				Partial: true, Disks: []model.SnapshotDisk{{Target: "vda", Source: model.DiskSource{Path: "/srv/a"}}},
			}},
			Reverting: "weekly",
			RanSize:   model.Size{Memory: units.MiB, VCPUs: 1},
			Pending: []model.PendingChange{
				{Field: "memory", Next: "2 MiB", By: "operator/alice", At: noon}, {Field: "vcpus", Was: "2", Next: "2", By: "operator/bob", At: noon},
			},
			Drift: &model.Drift{Node: "n2", Since: noon, Accepted: true, Reverted: true, Edits: []model.DeviceEdit{
				{Kind: "disk", Key: "vda", Was: "/srv/a", Is: "/srv/b", By: "operator/alice", At: noon, Found: true, Rivals: "/srv/c"},
			}},
		},
		Within: "pod/p1", Volumes: []VMVolume{{Size: units.GiB, Disk: model.Resource{
			ID: "i4", Name: "web-root", Links: map[string]string{"image": "i6"}, Settings: map[string]string{"keep": "true"},
			Volume: &model.Volume{Pool: "i7", Nodes: []string{"n1"}, Name: "berth-i4.qcow2", Format: "qcow2", Capacity: units.GiB},
		}}},
		Domain: &model.Domain{Epoch: 2, State: model.DomainRunning, Devices: []model.Device{
			{Kind: "disk", Key: "vdb", Source: model.DiskSource{Pool: "fast", Volume: "berth-i4.qcow2"}, Capacity: units.MiB},
		}},
		Immovable: []string{"has TPM of its node: shut it down to move it"},
		Groups:    []string{"apart"}, Cluster: "default", Customer: "acme", BillingEntity: "mbe",
		ResourceName: func(id string) string { return "resource-" + id },
		State:        berthv1.VMState_VM_STATE_RUNNING, NodeName: names,
		Condition: model.Condition{Kind: model.HolderOff, About: "n1", Text: "odd"},
		Telemetry: &berthv1.DomainTelemetry{
			Uuid: "v1", CpuRatio: new(0.5), RssBytes: new(int64(1)), BalloonBytes: new(int64(1)), MaximumMemoryBytes: new(int64(1)),
			Vcpus: new(int32(1)), VcpuDelayRatio: new(0.1),
			Pressure: &berthv1.DomainPressure{CpuSome: 1, CpuFull: 1, MemorySome: 1, MemoryFull: 1, IoSome: 1, IoFull: 1},
		},
	}
	message := VM(report)
	whole(t, message)
	if message.GetNode() != "name-of-n1" || message.GetLastNode() != "name-of-n2" {
		t.Errorf("on %s, before on %s", message.GetNode(), message.GetLastNode())
	}
	if message.GetConditionKind() != berthv1.ConditionKind_CONDITION_KIND_HOLDER_OFF || message.GetConditionAbout() != "name-of-n1" {
		t.Errorf("its condition is %s about %s", message.GetConditionKind(), message.GetConditionAbout())
	}
	if message.GetVdc() != "resource-i1" || message.GetNics()[0] != "resource-i5" || message.GetHome() != "name-of-n1" {
		t.Errorf("in %s, with %v, at home on %s", message.GetVdc(), message.GetNics(), message.GetHome())
	}
	if disk := message.GetVolumes()[0]; disk.GetPool() != "resource-i7" || disk.GetImage() != "resource-i6" || disk.GetNode() != "name-of-n1" {
		t.Errorf("its disk is shown as %v", disk)
	}
	if message.GetPreferred()[0] != "name-of-n1" || message.GetMigration() != "manual" {
		t.Errorf("prefers %v, moved by %s", message.GetPreferred(), message.GetMigration())
	}
	if got := VM(VMReport{}).GetMigration(); got != "automatic" {
		t.Errorf("a VM of which nothing is said is moved by %q", got)
	}
}

func TestResourceIsWhole(t *testing.T) {
	message := Resource(ResourceReport{
		Resource: model.Resource{
			ID: model.BuiltIn + "i1", Kind: model.KindPolicy, Name: "prod", Links: map[string]string{"customer": "i2"},
			Settings: map[string]string{"a": "b"},
			NodeKeys: []model.NodeKey{{Name: "DS", Default: 1, Sticky: true, Weight: 30}},
			Keys:     []model.Key{{Class: model.SystemKey, Name: "TIER", Value: 2, Weight: 5}}, CreatedAt: noon, Revision: 3,
			Lists: map[string][]string{"weighers": {"vm-count=2"}}, Volume: &model.Volume{
				Pool: "i7", Nodes: []string{"n2", "n1"}, Name: "berth-i1.qcow2", Format: "qcow2", Capacity: units.GiB, Checksum: "ab", Doomed: true,
			},
			Copies: []model.Volume{{
				Pool: "i8", Nodes: []string{"n3"}, Name: "berth-i1-i8.qcow2", Format: "qcow2", Capacity: units.GiB, Checksum: "ab", Doomed: true,
			}},
		},
		NodeName: names,
		EffectiveLists: map[string][]string{
			"weighers": {"vm-count=2"}, "constraints": {"memory"},
		}, Name: names, Effective: map[string]string{"a": "b", "c": "d"}, From: map[string]string{"c": "zone/home"},
		UsedBy: []string{"vm/web"},
	})
	whole(t, message)
	if message.GetLinks()["customer"] != "name-of-i2" {
		t.Errorf("links %v", message.GetLinks())
	}
	if Resource(ResourceReport{Name: names}).CreatedAt != nil {
		t.Error("the default cluster, which nobody declared, shows when it was made")
	}
}

func TestKeysComeBack(t *testing.T) {
	k := model.Key{Class: model.CustomerKey, Name: "Group", Value: -1, Weight: 5}
	if got := KeyFrom(Keys([]model.Key{k})[0], model.SystemKey); got != k {
		t.Errorf("%v came back as %v", k, got)
	}
	if got := KeyFrom(&berthv1.Key{Name: "x"}, model.SystemKey); got.Class != model.SystemKey {
		t.Errorf("a key without a class is of class %q", got.Class)
	}
	declared := model.NodeKey{Name: "DS", Default: 1, Sticky: true, Weight: 30}
	if got := NodeKeyFrom(NodeKeys([]model.NodeKey{declared})[0]); got != declared {
		t.Errorf("%v came back as %v", declared, got)
	}
}

func TestCompiledKeysAreWhole(t *testing.T) {
	whole(t, CompiledKeys([]key.Compiled{{
		Weighted: key.Weighted{Name: "TIER", Value: 2, Weight: 5, Class: model.SystemKey, Level: "vm"}, From: "vm/web", Sticky: true,
		Overrode: []key.Overridden{{Class: model.SystemKey, Value: 1, Weight: 3, Level: "cluster", From: "cluster/default"}},
	}})[0])
}

func spec() model.VMSpec {
	return model.VMSpec{
		Memory: units.GiB, VCPUs: 2, Kernel: "/k", Initrd: "/i", Cmdline: "c", Networks: []string{"default"}, XML: "<domain/>",
		Machine: "q35", Firmware: "efi", CPU: "EPYC", UserData: "#cloud-config", MaxMemory: 8 * units.GiB, MaxVCPUs: 8,
		Disks: []model.Disk{{Path: "/d", Format: "raw", Bus: "sata", ReadOnly: true, Pool: "fast", Volume: "berth-i4.qcow2"}},
	}
}

func TestSpecAndSettingsComeBack(t *testing.T) {
	if diff := cmp.Diff(spec(), SpecFrom(Spec(spec()))); diff != "" {
		t.Error(diff)
	}
	want := model.NodeSettings{RAMRatio: new(1.5), Overhead: new(units.GiB)}
	if diff := cmp.Diff(want, SettingsFrom(settings(want))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(model.NodeSettings{}, SettingsFrom(nil)); diff != "" {
		t.Error(diff)
	}
}

func TestOperationIsWhole(t *testing.T) {
	message := Operation(operation.Operation{
		ID: "o1", Kind: operation.Migrate, Caller: "operator/alice", VM: "v1", VMName: "web", Source: "n1", Target: "n2", SourceName: "hv1",
		TargetName: "hv2", Epoch: 3, Phase: operation.Ended, Attempt: 1, Decision: "d1", Result: operation.Done, Message: "m",
		Evidence: []string{"e"}, Plan: "p1",
		CreatedAt: noon, UpdatedAt: noon, EndedAt: noon, Migration: &operation.MigrationStats{
			Elapsed: time.Second, DataTotal: 1, DataProcessed: 1, DataRemaining: 1, MemoryBPS: 1, DirtyRate: 1, Iteration: 1,
			Downtime: new(300 * time.Millisecond), Handover: new(40 * time.Millisecond), DiskTotal: 1, DiskProcessed: 1, DiskRemaining: 1,
		}, CopyStorage: true, Resolution: "target", ResolvedBy: "operator/alice",
	})
	view := CopyView(
		&view.NodeView{Node: model.Node{ID: "n1", Name: "hv1"}, Facts: model.NodeFacts{Liveness: model.Up, InventoryAt: noon}},
		&model.Domain{State: model.DomainRunning, Reason: "booted", Epoch: 3, JobActive: true}, noon.Add(time.Second),
	)
	view.Holder = true // the record's, as the views are: whoever answers adds both
	message.Views = []*berthv1.CopyView{view}
	message.Progress = message.GetMigration() // whoever answers adds what the node tells of one that runs
	message.Waits = "hv2 is silent"           // whoever answers adds for whom it waits
	earlier := operation.Operation{
		ID: "earlier", Kind: operation.Migrate, VM: "v1", Phase: operation.Ended, Result: operation.Done, Memory: units.GiB,
		EndedAt:   noon.Add(-time.Hour),
		Migration: &operation.MigrationStats{Elapsed: 8 * time.Second, DataProcessed: units.GiB, Downtime: new(time.Second)},
	}
	later := earlier
	later.ID, later.EndedAt = "later", noon.Add(time.Hour)
	ended := func(operations ...operation.Operation) *state.Snapshot {
		site := statetest.New(t)
		command := state.Command{Kind: "operations", Operations: operations}
		for i := range operations {
			command.Expect = append(command.Expect, state.Expectation{Table: state.Operations, ID: operations[i].ID})
		}
		site.Apply(command)
		return site.Snapshot()
	}
	begun := operation.Operation{Kind: operation.Migrate, VM: "v1", Memory: 2 * units.GiB, CreatedAt: noon}
	if told := Predicted(&begun, ended(later)); told != nil {
		t.Errorf("predicted by what came later: %v", told)
	}
	message.Predicted = Predicted(&begun, ended(earlier, later))
	if told := message.GetPredicted(); told.GetElapsedSeconds() != 16 || told.GetOf() != 1 || told.GetDataProcessedBytes() != 2<<30 {
		t.Errorf("predicted %v", told)
	}
	begun.Kind = operation.Start
	if told := Predicted(&begun, ended(earlier)); told != nil {
		t.Errorf("predicted of a start: %v", told)
	}
	if message.GetCancelled() || Operation(operation.Operation{Cancel: true}).GetCancelled() {
		t.Error("what is done, or still runs, is shown as cancelled")
	}
	message.Cancelled = Operation(operation.Operation{Cancel: true, Result: operation.Failed}).GetCancelled()
	whole(t, message)
	if message.GetMigration().GetDowntimeSeconds() != 0.3 || message.GetSource() != "hv1" {
		t.Errorf("shown %v", message)
	}
	for result, want := range map[operation.Result]berthv1.OperationResult{
		operation.Pending: berthv1.OperationResult_OPERATION_RESULT_RUNNING, operation.Done: berthv1.OperationResult_OPERATION_RESULT_DONE,
		operation.Failed: berthv1.OperationResult_OPERATION_RESULT_FAILED, operation.Parked: berthv1.OperationResult_OPERATION_RESULT_PARKED,
	} {
		if got := Operation(operation.Operation{Result: result}).GetResult(); got != want {
			t.Errorf("result %q is shown as %s", result, got)
		}
	}
}

func TestDecisionIsWhole(t *testing.T) {
	keys := []key.Weighted{{Name: "TIER", Value: 1, Weight: 2, Class: model.SystemKey, Level: "vm"}}
	d := placement.Decision{
		ID: "d1", At: noon, Caller: "operator/alice", Operation: "o1", DryRun: true, Policy: "affinity", Seed: 1, Outcome: placement.Placed,
		Winner: "n1", WinnerName: "hv1", Margin: 0.5, Reason: "r", Counterfactual: "c", Order: "o", Gate: "g", Selector: "s",
		FailedPhase: placement.PhaseSystem, Round: 2, Omitted: 3, Changes: []placement.Change{{Kind: placement.ChangeSize, Text: "smaller"}},
		Ranks: []placement.RankRow{{
			Weigher: "vm-count", Factor: 2, Silent: true, Cells: []placement.RankCell{
				{Node: "n1", Name: "hv1", Rank: 1, Weight: 4}, {Node: "n2", Name: "hv2", Rank: 0, Weight: 9},
			},
		}},
		Request: placement.Request{
			Purpose: placement.ForMigrate, VM: "v1", VMName: "web", Memory: 1, VCPUs: 1, Pinned: "n1", Excluded: []string{"n9"}, Current: "n2",
			Cluster: "default", SystemKeys: keys, CustomerKeys: keys, Home: "n2", IfBetter: 5, Leave: true, Among: []string{"n1"},
			Preferred: []string{"n2"}, Unit: &placement.Unit{VMs: []string{"v2"}, Names: []string{"db"}},
			Planner: "user-dispersing", Disks: []placement.Disk{{ID: "k1", Name: "web-root"}},
		},
		Prefer: "1 of 2 nodes, by node-affinity", Warnings: []string{"more vCPUs than CPUs"},
		Tried: []placement.Tried{{
			Cluster: "east", Pod: "a", Used: 0.5, AccountVMs: 1, PodVMs: 2, Total: 3, Weight: 0.25, LeftOut: "full",
			Outcome: placement.Refused, Reason: "no room",
		}},
		Pools: []placement.PoolChoice{{Disk: "k1", Pool: "p1", PoolName: "fast"}},
		Nodes: []placement.NodeResult{{
			Node: "n1", Name: "hv1", Admitted: true, Current: true, Score: 1, Rank: 1, Tier: 1, Wish: 1, Band: 1, SystemScore: 2,
			CustomerScore: 3,
			Constraints: []placement.ConstraintResult{{
				Constraint: "memory", Passed: true, Code: "c", Message: "m", Needed: new(1.0), Available: new(2.0), Unit: "bytes", AgeSeconds: new(0.0),
			}},
			Terms: []placement.Term{{
				Weigher: "w", Key: "#RAM", Raw: 1, Proximity: new(1.0), Weight: 1, Contribution: 1, Note: "n", Class: model.SystemKey,
				Level: "cluster", Wanted: 0, Count: 2,
			}},
		}, {Node: "n2", Name: "hv2"}},
	}
	message := Decision(d)
	for _, k := range append(message.GetRequest().GetSystemKeys(), message.GetRequest().GetCustomerKeys()...) {
		if k.GetName() != "TIER" || k.GetValue() != 1 || k.GetWeight() != 2 || k.GetClass() != "system" || k.GetLevel() != "vm" {
			t.Errorf("compiled key %v", k)
		}
		// not kept
		k.From, k.Sticky, k.Overrode = "vm/web", true, []*berthv1.OverriddenKey{{Class: "c", Value: 1, Weight: 1, Level: "l", From: "f"}}
	}
	whole(t, message)
	got := []string{message.GetRequest().GetPinnedNode(), message.GetRequest().GetCurrentNode(), message.GetRequest().GetExcludedNodes()[0]}
	got = append(got, message.GetRequest().GetAmong()[0], message.GetRequest().GetPreferredNodes()[0], message.GetRequest().GetUnit()[0])
	if diff := cmp.Diff([]string{"hv1", "hv2", "n9", "hv1", "hv2", "db"}, got); diff != "" {
		t.Errorf("the request's nodes, by the decision's own names: %s", diff)
	}
	if diff := cmp.Diff([]string{"hv1", "hv2"}, message.GetRankNodes()); diff != "" || message.GetRanks()[0].GetCells()[1].GetWeight() != 9 {
		t.Errorf("ranks %v: %s", message.GetRanks(), diff)
	}
	if message.GetPools()[0].GetDisk() != "web-root" || message.GetPools()[0].GetPool() != "fast" {
		t.Errorf("pools %v", message.GetPools())
	}
	if message.GetKept() != 2 || message.GetOmitted() != 3 || message.GetChanges()[0] != "smaller" {
		t.Errorf("kept %d, omitted %d, changes %v", message.GetKept(), message.GetOmitted(), message.GetChanges())
	}
	d.Nodes, d.Inputs = nil, &placement.Inputs{Figures: view.Figures{IDs: []string{"n1", "n2"}, Names: []string{"hv1", "hv2"}}}
	summary := DecisionSummary(d)
	if len(summary.GetNodes()) > 0 || summary.GetReason() != "r" || summary.GetKept() != 2 || summary.GetRequest().GetCurrentNode() != "hv2" {
		t.Errorf("summary %v", summary)
	}
	if old := Decision(placement.Decision{Nodes: []placement.NodeResult{{
		Terms: []placement.Term{{Weigher: "w", Key: "#RAM"}},
	}}}); old.GetNodes()[0].GetTerms()[0].Wanted != nil {
		t.Error("a decision of release 0.1 shows what it did not keep")
	}
}

func TestEventAndMemberAreWhole(t *testing.T) {
	whole(t, Event(model.Event{
		Index: 1, At: noon, Kind: "k", Subject: "s", Message: "m", Caller: "c", CallerID: "i", Operation: "o", Decision: "d",
	}))
	member := Member(MemberReport{
		Member: model.Member{ID: "i", Name: "n", RaftAddress: "r", APIAddress: "a:7420", AgentAddress: "g"},
		Voter:  true, Leader: true, Self: true, Reachable: true, LastIndex: 1, LastContact: new(time.Second),
		Trouble: "behind", Behind: 300, Told: &consensus.Report{
			Version: "0.6", FeatureLevel: 2, LogSize: units.MiB, MetricsPort: 7424, AgentsMost: 544,
			Backup: consensus.Backup{Every: time.Minute, At: noon, Problem: "no space"}, History: "no space",
		},
	})
	if member.GetHealthy() {
		t.Error("a member that is behind is healthy")
	}
	member.Healthy = true
	whole(t, member)
}

func TestBriefLeavesTheOriginalAlone(t *testing.T) {
	inventory := &berthv1.NodeInventory{CapabilitiesXml: "<capabilities/>", CpuFeatures: []string{"avx"}, HostName: "hv1"}
	telemetry := &berthv1.NodeTelemetry{Domains: []*berthv1.DomainTelemetry{{Uuid: "v1"}}, Sequence: 4}
	brief := Brief(&berthv1.Node{Inventory: inventory, Telemetry: telemetry})
	if brief.GetInventory().GetCapabilitiesXml() != "" || len(brief.GetTelemetry().GetDomains()) > 0 ||
		brief.GetInventory().GetHostName() != "hv1" || brief.GetTelemetry().GetSequence() != 4 {
		t.Errorf("brief %v", brief)
	}
	if inventory.GetCapabilitiesXml() == "" || len(inventory.GetCpuFeatures()) != 1 || len(telemetry.GetDomains()) != 1 {
		t.Error("the agent's report was changed")
	}
	if Brief(&berthv1.Node{Name: "hv1"}).GetName() != "hv1" {
		t.Error("a node without reports was lost")
	}
}

func TestGroupIsWhole(t *testing.T) {
	group := model.Group{
		ID: "g1", Name: "apart", Cluster: "default", VMs: []string{"v2", "v1"}, Nodes: []string{"n1"}, VMLabels: []string{"front"},
		NodeLabels: []string{"rack-1"},
		VMsRule:    model.Rule{Polarity: model.Negative, Enforcing: true}, NodesRule: model.Rule{Polarity: model.Positive}, Priority: 2,
		Unbalanced: true, BrokenSince: noon, HeldSince: noon.Add(time.Hour), Revision: 3,
	}
	report := GroupReport{
		Record: model.Resource{CreatedAt: noon}, Listed: group, Expanded: group, Name: names, Unrepaired: "no node fits", LookedAt: noon,
		Breaches: []affinity.Breach{
			{Scope: affinity.OfVMs, Rule: group.VMsRule, VMs: []string{"v1", "v2"}, Nodes: []string{"n1"}, Text: "both are on hv1"},
			{Scope: affinity.OfNodes, Rule: group.NodesRule},
		},
		Conflicts: []affinity.Conflict{{
			Kind: affinity.TooFewNodes, Severity: affinity.Warning, Groups: []string{"apart"}, Ties: []string{"tied"},
			VMs: []string{"v1"}, Nodes: []string{"n1"},
			Text: "two VMs apart on one node", Next: "add a node",
		}},
	}
	message := Group(report)
	if message.Status.HeldSince != nil {
		t.Errorf("one that does not hold has held since %v", message.Status.HeldSince)
	}
	message.Status.Holds, message.Status.HeldSince = true, message.Status.BrokenSince // it does not
	if hard, soft := message.Status.Breaches[0], message.Status.Breaches[1]; soft.GetHard() || soft.GetScope() != "hosts" ||
		hard.GetScope() != "vms" {
		t.Errorf("breaches %v", message.Status.Breaches)
	}
	message.Status.Breaches = message.Status.Breaches[:1]
	whole(t, message)
	if diff := cmp.Diff([]string{"name-of-v1", "name-of-v2"}, message.GetVms()); diff != "" {
		t.Error(diff)
	}
	if message.GetPositive() || !message.GetEnforcing() || message.GetVmsRule().GetPositive() || !message.GetHostsRule().GetPositive() {
		t.Errorf("rules %v, %v", message.GetVmsRule(), message.GetHostsRule())
	}
	report.Breaches, report.Listed.VMsRule = nil, model.Rule{Enforcing: true}
	message = Group(report)
	if s := message.GetStatus(); !s.GetHolds() || s.BrokenSince != nil || s.GetUnrepaired() != "" ||
		!s.GetHeldSince().AsTime().Equal(noon.Add(time.Hour)) {
		t.Errorf("one that holds: %v", s)
	}
	if r := message.GetVmsRule(); r.Positive != nil || !r.GetEnforcing() || r.GetEnabled() || message.Positive != nil ||
		message.Enforcing != nil {
		t.Errorf("one with a disabled rule: %v", message)
	}
}

func TestPlanIsWhole(t *testing.T) {
	progress := func(string) *berthv1.MigrationStats {
		return &berthv1.MigrationStats{DataProcessedBytes: 5, DataRemainingBytes: 7}
	}
	move := func(state string) moving.Move {
		return moving.Move{
			Move: model.Move{
				VM: "v1", VMName: "web", SourceName: "hv1", TargetName: "hv2", Memory: units.GiB, Reason: "r", Attempts: 2,
			},
			State: state, Message: "m", Operation: operation.Operation{ID: "o1"},
		}
	}
	plan := model.Plan{
		ID: "p1", Kind: model.PlanDrain, State: model.PlanRunning, Cluster: "default", NodeName: "hv1", Policy: "affinity",
		Caller: "operator/alice", Reason: "r",
		Parallel: 2, Bandwidth: 1, Unit: "VMs", Before: 5, Predicted: 2, Observed: 3, ObservedAt: noon, Message: "m",
		CreatedAt: noon, EndedAt: noon, Revision: 4,
	}
	message := Plan(PlanReport{
		Plan: plan, Group: "apart", Moves: []moving.Move{move(moving.Moving), move(model.MoveFailed)}, Progress: progress,
		Preflight: &balance.Preflight{Plan: plan, Headroom: 1, Largest: 1, Estimate: time.Second, Warnings: []string{"w"}},
	})
	moves := message.Moves
	message.Moves = moves[:1]
	whole(t, message)
	if moves[0].GetTarget() != "hv2" || moves[0].GetCopiedBytes() != 5 || moves[0].GetRemainingBytes() != 7 {
		t.Errorf("one that copies: %v", moves[0])
	}
	if moves[1].GetCopiedBytes() != 0 {
		t.Errorf("one that does not copy: %v", moves[1])
	}
	message = Plan(PlanReport{Plan: model.Plan{ID: "p2"}, Preflight: &balance.Preflight{}})
	if message.Before != nil || message.Observed != nil || message.HeadroomBytes != nil || message.EndedAt != nil || message.Moves != nil {
		t.Errorf("a plan shows what it does not know: %v", message)
	}
}

func TestEveryKindOfConditionHasItsOwnValue(t *testing.T) {
	from := map[berthv1.ConditionKind]model.ConditionKind{}
	for kind, value := range conditionKinds {
		if other, twice := from[value]; twice {
			t.Errorf("%q and %q are both %s", kind, other, value)
		}
		from[value] = kind
	}
	for number, name := range berthv1.ConditionKind_name {
		if _, used := from[berthv1.ConditionKind(number)]; !used {
			t.Errorf("no kind of condition is %s", name)
		}
	}
}
