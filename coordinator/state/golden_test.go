package state

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/rule"
	"berth/coordinator/session"
	"berth/coordinator/unanswered"
	"berth/coordinator/view"
	"berth/shared/units"
)

var update = flag.Bool("update", false, "write the golden log and snapshot of this release, if they do not exist")

// Every release leaves a log, the snapshot and the hash that came of it in testdata/golden/RELEASE. Every later release
// must read them and come to the same: members of two releases run side by side during an upgrade, and a cluster may be
// upgraded after years. What is there is never written again once the release is out. The folder level-2 has what the last
// release of feature level 2 wrote, with a backup and with all conditions that VMs had then.
const release = "0.7"

func TestGoldenLogsAndSnapshotsOfEveryRelease(t *testing.T) {
	current := filepath.Join("testdata", "golden", release)
	if _, err := os.Stat(current); os.IsNotExist(err) && *update {
		writeGolden(t, current)
	}
	releases, err := filepath.Glob(filepath.Join("testdata", "golden", "*"))
	if err != nil || len(releases) == 0 {
		t.Fatalf("no golden files (%v)", err)
	}
	for _, dir := range releases {
		t.Run(filepath.Base(dir), func(t *testing.T) { checkGolden(t, dir) })
	}
}

func checkGolden(t *testing.T, dir string) {
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	want := strings.TrimSpace(string(read("hash")))

	replayed := newMember(t)
	lines := bufio.NewScanner(bytes.NewReader(read("log")))
	lines.Buffer(nil, 2*MaxCommand)
	for lines.Scan() {
		data, err := hex.DecodeString(strings.Fields(lines.Text())[0])
		if err != nil {
			t.Fatal(err)
		}
		replayed.index += 2 // entries that are not commands lie between
		replayed.fsm.Apply(&raft.Log{Index: replayed.index, Type: raft.LogCommand, Data: data})
	}
	if got := replayed.store.Hash(); got != want {
		t.Errorf("the log comes to hash %s, in that release it was %s", got, want)
	}
	restored, err := Load(bytes.NewReader(read("snapshot")))
	if err != nil {
		t.Fatal(err)
	}
	if got := restored.Hash(); got != want {
		t.Errorf("the snapshot has hash %s, in that release it was %s", got, want)
	}
	if !bytes.Equal(saved(t, replayed.store.Snapshot()), saved(t, restored.Snapshot())) {
		t.Error("the log and the snapshot come to different states")
	}
}

func writeGolden(t *testing.T, dir string) {
	m := newMember(t)
	var log strings.Builder
	commands := goldenCommands()
	var group [][]byte // the last two share an entry
	for i, command := range commands {
		if command.Key == "" {
			command.Key = label("golden", uint64(i), 0)
		}
		command.Caller = "operator/admin"
		command.At = noon.Add(time.Duration(i) * time.Minute)
		if command.Check != nil {
			command.Check = &Check{Index: m.index, Hash: m.store.Hash()}
		}
		data, err := command.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if i >= len(commands)-2 {
			if group = append(group, data); len(group) < 2 {
				continue
			}
			data = Group(group)
		}
		if m.store.Snapshot().FeatureLevel() >= PackLevel {
			data = Entry([][]byte{data}, FeatureLevel)
		}
		log.WriteString(hex.EncodeToString(data) + "\n")
		m.index += 2
		m.fsm.Apply(&raft.Log{Index: m.index, Type: raft.LogCommand, Data: data})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"log": []byte(log.String()), "snapshot": saved(t, m.store.Snapshot()), "hash": []byte(m.store.Hash() + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A field that is added to a record is added here, so that the next release's golden files have it.
func TestGoldenCommandsUseEveryField(t *testing.T) {
	used := make(map[string]bool)
	for _, command := range goldenCommands() {
		command.Key, command.Caller, command.At = "k", "c", noon
		recordFields(reflect.ValueOf(command), used)
	}
	for field, set := range used {
		if !set && !strings.HasSuffix(field, ".Revision") && field != "Event.Index" { // stamped by Apply
			t.Errorf("no golden command sets %s", field)
		}
	}
}

// What is refused in the golden log is refused for the reason that it is there for.
func TestGoldenCommandsAreRefusedOnPurposeOnly(t *testing.T) {
	m := newMember(t)
	for i, command := range goldenCommands() {
		m.index++ // as in writeGolden
		if command.Key == "" {
			command.Key = label("golden", uint64(i), 0)
		}
		result := m.apply(command)
		switch refused := result.Refusal != nil; {
		case command.Kind == "node" && (!refused || result.Refusal.Code != Stale),
			len(command.Delete) == 1 && command.Delete[0].ID == "r5" && (!refused || result.Refusal.Code != InUse),
			refused && command.Kind != "node" && (len(command.Delete) != 1 || command.Delete[0].ID != "r5"):
			t.Errorf("command %d (%s) came out as %+v", i+1, command.Kind, result.Refusal)
		}
	}
}

func recordFields(v reflect.Value, used map[string]bool) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			recordFields(v.Elem(), used)
		}
	case reflect.Slice:
		for i := range v.Len() {
			recordFields(v.Index(i), used)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			used[name] = used[name] || !v.Field(i).IsZero()
			recordFields(v.Field(i), used)
		}
	}
}

// goldenCommands have every field of every record set at least once, a refusal and a repeat. Revisions are twice the
// number of the command, counted from 1.
func goldenCommands() []Command {
	ratio, cpu, overhead, quarter := 1.5, 4.0, 2*units.GiB, 0.25
	downtime, handover := 120*time.Millisecond, 30*time.Millisecond
	full := node("n1", "alpha")
	full.HostUUID, full.MachineID = "4c4c4544-0042", "b1946ac92492d2347c6235b4d2611184"
	full.Settings = model.NodeSettings{RAMRatio: &ratio, CPURatio: &cpu, Overhead: &overhead}
	full.Maintenance, full.MaintenanceReason = true, "new <memory> & fans"
	full.Keys = map[string]float64{"Premium": 1, "SSD": -0.5}
	full.Labels, full.Management, full.Unbalanced = []string{"rack-1"}, true, true
	full.Fence = model.FenceDevice{
		Machine: "4c4c4544-0042-3510-8052-b4c04f4d3733",
		Method:  model.FenceCommand, Program: "fence_ipmilan", Arguments: map[string]string{"ip": "10.0.0.9"}, Timeout: time.Minute,
		Also: []model.FenceDevice{{Method: model.FenceCommand, Program: "fence_apc", Arguments: map[string]string{"plug": "3"}}},
	}
	full.Fencing = model.Fencing{
		ID: "f1", Phase: model.FencingFailed, Method: model.FenceCommand, Boot: "boot-1", Attempt: 2, Caller: "berth",
		Message: "no answer", AskedAt: noon, EndedAt: noon, Struck: "n2", StruckBoot: "boot-7",
	}
	full.Boot, full.Watchdog = "boot-1", time.Minute
	full.Peers = "node1:16514,node1:22"
	full.Unanswered = unanswered.Mark{
		Operation: "o1", VM: "web", Since: noon, At: noon.Add(time.Minute), Until: noon.Add(2 * time.Minute), Boot: "boot-1", Times: 2,
	}
	full.Hardware, full.HardwareSource, full.LastBoot = "4c4c4544-0042-3510", model.HardwareProduct, "boot-0"
	full.Twin = model.Twin{
		Machine: model.Machine{Hardware: "4c4c4544-0099-3510", Source: model.HardwareProduct, Boot: "boot-9"}, Why: "two machines say so",
	}
	resource := func(id string, kind model.Kind, links map[string]string) model.Resource {
		return model.Resource{ID: id, Kind: kind, Name: "a " + string(kind), Links: links, CreatedAt: noon}
	}
	pool := resource("r1", model.KindCluster, nil)
	pool.Name, pool.Settings = full.Cluster, map[string]string{model.SettingRAMRatio: "1.5"}
	pool.NodeKeys = []model.NodeKey{{Name: "Premium", Default: 0.5}, {Name: "SSD", Sticky: true, Weight: 30}}
	pool.Keys = []model.Key{{Class: model.SystemKey, Name: model.SpecialRAM, Value: 0.25, Weight: 40}}
	storage := resource("r11", model.KindPool, map[string]string{"cluster": "r1"})
	storage.Settings = map[string]string{model.SettingScope: string(model.PoolLocal)}
	storage.Trials = []model.PoolTrial{{
		Holder: "n1", Witness: "n4", Verdict: "not shared", At: noon, Left: [2]time.Time{noon, noon},
		Looked: [2]model.PoolLook{{Boot: "b1", Path: "/srv/fast", Capacity: units.GiB}, {Boot: "b2", Path: "/srv/fast", Capacity: units.GiB}},
	}}
	slow := resource("r16", model.KindPool, map[string]string{"cluster": "r1"})
	slow.Name, slow.Settings = "slow", map[string]string{model.SettingScope: string(model.PoolLocal)}
	zone, pod := resource("r12", model.KindZone, nil), resource("r13", model.KindPod, map[string]string{"zone": "r12"})
	pool.Links = map[string]string{"pod": "r13"}
	image := resource("r14", model.KindImage, nil)
	image.Name, image.Volume = "debian", &model.Volume{
		Pool: "r11", Nodes: []string{"n1"}, Name: "berth-r14.qcow2", Format: "qcow2", Capacity: units.GiB, Checksum: "9f86d0", Doomed: true,
	}
	image.Copies = []model.Volume{{
		Pool: "r16", Nodes: []string{"n1"}, Name: "berth-r14-r16.qcow2", Format: "qcow2", Capacity: units.GiB, Checksum: "9f86d0", Doomed: true,
	}}
	disk := resource("r7", model.KindDisk, map[string]string{"image": "r14"})
	disk.Volume = &model.Volume{
		Pool: "r11", Nodes: []string{"n1"}, Name: "berth-r7.qcow2", Format: "qcow2", Capacity: units.GiB, Backing: "r16",
	}
	estate := []model.Resource{
		zone, pod, storage, slow, image, pool, resource("r2", model.KindBillingEntity, nil),
		resource("r3", model.KindCustomer, map[string]string{"billing_entity": "r2"}),
		resource("r4", model.KindVDC, map[string]string{"customer": "r3", "cluster": "r1"}),
		resource("r5", model.KindOffer, nil), resource("r6", model.KindImage, nil), disk,
		resource("r8", model.KindNIC, nil),
	}
	web := vm("v1", "web", 1)
	web.Spec.Kernel, web.Spec.Initrd, web.Spec.Cmdline = "/boot/vmlinuz", "/boot/initrd", "console=ttyS0"
	web.Spec.Disks = []model.Disk{
		{Path: "/images/web.qcow2", Format: "qcow2", Bus: "virtio", ReadOnly: true},
		{Format: "qcow2", Bus: "virtio", Pool: "fast", Volume: "berth-r7.qcow2"},
	}
	web.Spec.MaxMemory, web.Spec.MaxVCPUs = 4*units.GiB, 4
	web.Spec.Machine, web.Spec.Firmware, web.Spec.CPU, web.Spec.UserData = "q35", model.FirmwareEFI, model.CPUHostPassthrough, "#cloud-config"
	web.Within, web.CPU, web.PassedCPU = "r13", model.CPUHostPassthrough, "EPYC-Rome 1a2b"
	web.Spec.Networks, web.Spec.XML = []string{"default", "bridge:br0"}, "<domain/>"
	web.Operation, web.LastNode, web.Decision = "o1", "n2", "d1"
	web.Condition = model.Condition{Kind: model.HolderOff, About: "n2", Text: "its node beta is proven to be off"}
	web.StartedAt = noon
	web.LastEpoch = 2
	web.VDC, web.Offer, web.Image, web.Disks, web.NICs = "r4", "r5", "r6", []string{"r7"}, []string{"r8"}
	web.Keys = []model.Key{{Class: model.CustomerKey, Name: "Group1", Value: 1, Weight: -100}}
	web.Sticky = []model.Key{{Class: model.SystemKey, Name: "SSD", Value: 1, Weight: 30}}
	web.Resident = []model.ResidentKey{{Class: model.CustomerKey, Name: "Group1", Value: 1}}
	web.Owner, web.Home = model.Owner{Customer: "r3", BillingEntity: "r2"}, "n1"
	web.Labels, web.Migration, web.Preferred, web.MovedAt = []string{"web"}, model.MigrateManual, []string{"n1"}, noon
	web.HA, web.Restarts, web.RestartedAt, web.Adopted, web.Persistent = true, 2, noon, true, true
	web.Discards = []model.Discard{{Node: "n2", Epoch: 1}}
	web.Losses = []model.Loss{{Node: "alpha", At: noon}}
	web.Copies = &model.DiskCopies{
		Operation: "o1", Node: "n2", Whole: true, Source: true, Volumes: []model.VolumeOrder{{Disk: "r7", DiskName: "web-root", Pool: "r11"}},
	}
	web.Description, web.RestartPriority = "the shop's <front> & more", model.RestartHigh
	web.Restart, web.RestartAfter = model.RestartAlways, []string{"db"}
	web.Whereabouts = model.Whereabouts{Boot: "b1", Missing: noon}
	web.Kept, web.Bound, web.Needs = "alpha", "alpha", "host-devices,host-paths"
	web.Ran = []model.RanDevice{{
		Kind: "disk", Key: "vda", Source: model.DiskSource{Path: "/srv/a", Pool: "p", Volume: "v"}, Network: "default", Media: true,
	}}
	web.RanSize, web.Ballooned = model.Size{Memory: units.GiB, VCPUs: 3}, true
	web.Settled = 2
	web.Unwatched = 1
	web.Pending = []model.PendingChange{{Field: "memory", Was: "1 GiB", Next: "2 GiB", By: "operator/alice", At: noon}}
	web.Paused = model.Stand{By: "operator/bob", At: noon}
	web.Reverting = "weekly"
	web.Snapshots = []model.Snapshot{{
		Name: "weekly", Tag: "o7", TakenAt: noon, TakenBy: "operator/alice", Description: "before the upgrade",
		Consistency: model.ConsistentFrozen, Partial: true,
		Disks: []model.SnapshotDisk{{Target: "vda", Source: model.DiskSource{Path: "/srv/a", Pool: "p", Volume: "v"}}},
	}}
	web.Drift = &model.Drift{
		Node: "alpha", Since: noon, Accepted: true, Reverted: true, Edits: []model.DeviceEdit{{
			Kind: "disk", Key: "vda", Was: "/srv/a", Is: "/srv/b", Source: model.DiskSource{Path: "/srv/b", Pool: "p", Volume: "v"}, Media: true,
			XML: "<disk/>", Needs: "host-paths", By: "operator/alice", At: noon,
		}},
	}
	web.Drift.Edits[0].Found, web.Drift.Edits[0].Rivals = true, "/srv/web.other"
	held := web
	held.Holder, held.Epoch = "n1", 2
	move := start("o1", "v1")
	move.Kind, move.Request, move.Source, move.Excluded, move.Decision = operation.Migrate, "r1", "n2", []string{"n3"}, "d1"
	move.Phase, move.Step, move.Attempt, move.Memory, move.VCPUs = operation.Copying, 3, 1, units.GiB, 2
	move.Force, move.Grace, move.Bandwidth, move.Deadline = true, time.Minute, 10*units.MiB, time.Hour
	move.SourceName, move.TargetName, move.SourceEpoch, move.Created = "beta", "alpha", 1, true
	move.SourceBoot, move.TargetBoot = "boot-1", "boot-2"
	move.Snapshot = &operation.SnapshotWork{
		Name: "weekly", Tag: "o7", Disks: web.Snapshots[0].Disks, Off: true, Freeze: model.FreezeAlways, Again: true,
		Left: "it stays in vdb", Before: "daily",
	}
	move.TargetHost, move.Leftover, move.Revert, move.Caller = "10.0.0.1", "n1", true, "operator/admin"
	move.TargetURI, move.Pinned, move.Cancel, move.Evidence = "qemu+tls://n1/system", "n1", true, []string{"source: gone"}
	spec := web.Spec
	move.Spec, move.Sticky, move.MakesHome, move.Plan = &spec, web.Sticky, true, "p1"
	move.Volumes = []model.VolumeOrder{{
		Disk: "r7", DiskName: "web-root", Pool: "r11", PoolName: "fast", Name: "berth-r7.qcow2", Format: "qcow2",
		Capacity: units.GiB, Shared: true,
		BackingPool: "fast", BackingName: "berth-r14.qcow2", BackingFormat: "qcow2", BackedIn: "r11",
	}}
	move.Replaced, move.CopyStorage, move.CPU, move.PassedCPU = slices.Clone(move.Volumes), true, web.CPU, web.PassedCPU
	move.Code, move.Disks = "no_space", []string{"r7"}
	move.Resolution, move.ResolvedBy, move.Restart = "target", "operator/admin", true
	move.GivenUp, move.WhenBack = "given up before the hand-over", true
	move.Edits, move.Size = slices.Clone(web.Drift.Edits), web.RanSize
	done := ended(move)
	done.Message, done.Migration = "moved", &operation.MigrationStats{
		Elapsed: time.Second, DataTotal: units.GiB, DataProcessed: units.MiB, DataRemaining: units.KiB, MemoryBPS: units.MiB,
		DirtyRate: 5, Iteration: 3, Downtime: &downtime, Handover: &handover,
		DiskTotal: 3 * units.GiB, DiskProcessed: 2 * units.GiB, DiskRemaining: units.GiB,
	}
	choice := decision("d1")
	choice.Policy, choice.Seed, choice.Margin, choice.Reason = "fco", 42, 0.5, "most memory"
	choice.Caller, choice.Operation, choice.DryRun, choice.WinnerName = "operator/admin", "o1", true, "alpha"
	choice.Counterfactual, choice.Order, choice.Gate, choice.Selector, choice.Omitted = "beta with 1 GiB more", "first-fit", "off", "rank", 3
	choice.Request = placement.Request{
		Purpose: placement.ForMigrate, VM: "v1", VMName: "web", Memory: units.GiB, VCPUs: 2,
		Pinned: "n1", Excluded: []string{"n3"}, Current: "n2", Cluster: "default", Owner: web.Owner, Home: "n1", IfBetter: 2.5,
		Labels: []string{"web"}, Leave: true, HA: true, Restart: true, Among: []string{"n1"}, Preferred: []string{"n1"},
		Unit:         &placement.Unit{VMs: []string{"v2"}, Memory: units.MiB, VCPUs: 1, Names: []string{"db"}},
		SystemKeys:   []key.Weighted{{Name: "SSD", Value: 1, Weight: 30, Class: model.SystemKey, Level: "vm"}},
		CustomerKeys: []key.Weighted{{Name: "Group1", Value: 1, Weight: -100, Class: model.CustomerKey, Level: "vm"}},
		Bindings:     []string{"has TPM of its node: shut it down to move it"},
		Apart:        []placement.Apart{{Node: "n3", Why: "pool nfs on n3 is not the one on n1"}},
		Planner:      "user-dispersing", Networks: []string{"bridge:br0"}, CopyStorage: true, CPU: "EPYC-Rome",
		PassedCPU: web.PassedCPU, Last: "n2",
		Disks: []placement.Disk{{
			ID: "r7", Name: "web-root", Size: units.GiB, Wanted: "r11", Pool: "r11", Node: "n1", ImagePool: "r11",
			ImageNodes: []string{"n1"}, Image: "debian",
			ImagePlaces: []placement.ImagePlace{{Pool: "r16", Nodes: []string{"n1"}}},
		}},
	}
	choice.Across = &placement.Across{
		Planner: "user-dispersing", Level: model.LevelPod, Weight: 0.75, Capacity: model.CapacityRAM, CPUWeight: 0.25,
		Bound: "vdc/a names cluster east", Last: "beta", Refused: "too little memory", Owned: true, Omitted: 1,
	}
	choice.Tried = []placement.Tried{{
		Cluster: "default", Pod: "p1", Used: 0.25, AccountVMs: 1, PodVMs: 2, Total: 3, Weight: 0.5, LeftOut: "above its threshold",
		Outcome: placement.Refused, Reason: "no node fits", PodUsed: 0.125, PodWeight: 0.75, CPU: 0.5, RAM: 0.25, Threshold: 0.85, Special: 1,
	}}
	choice.Pools = []placement.PoolChoice{{Disk: "r7", Pool: "r11", PoolName: "fast", ImagePool: "r16"}}
	choice.Nodes = []placement.NodeResult{{
		Node: "n1", Name: "alpha", Admitted: true, Current: true, Score: 1.25, Rank: 1, Tier: 2, Band: 3,
		SystemScore: 75, CustomerScore: -100,
		Constraints: []placement.ConstraintResult{{
			Constraint: "memory", Passed: true, Code: "short", Message: "too little", Needed: &ratio, Available: &cpu, Unit: "B",
			AgeSeconds: &quarter,
		}},
		Terms: []placement.Term{{
			Weigher: "memory", Key: "#RAM", Note: "not known", Raw: 1, Proximity: &quarter, Weight: 2, Contribution: 0.5,
			Class: model.SystemKey, Level: "vm", Wanted: 0.5, Count: 2, Share: 0.5,
		}},
	}}
	choice.Warnings = []string{"more vCPUs are promised than the CPUs times cpu_ratio: hv1 17 of 16"}
	choice.FailedPhase, choice.Round, choice.Prefer, choice.Nodes[0].Wish = placement.PhaseSystem, 3, "1 of 2 nodes, by node-affinity", 1
	choice.Changes = []placement.Change{{
		Kind: placement.ChangeMove, Text: "with VM db moved", Node: "n1", Key: "SSD", Figure: 0.25, VM: "v2", To: "n2",
	}}
	rules := policies.Default()
	rules.ManagerGrace = 5
	choice.Rules = &rules
	choice.Inputs = &placement.Inputs{
		Figures: view.Figures{
			Cluster: "default", IDs: []string{"n1"}, Names: []string{"alpha"}, Standing: []view.Standing{view.StandsInMaintenance},
			Reasons: []string{"new <memory> & fans"}, Unanswered: []int64{1795255200}, Known: []view.Known{view.KnowsInventory},
			InventoryAt: view.ColumnOf[int64](1), TelemetryAt: view.ColumnOf[int64](2),
			Memory: []units.Bytes{units.GiB}, RAMRatio: []float64{1.5}, Overhead: []units.Bytes{units.MiB}, Promised: []units.Bytes{3},
			Used: view.ColumnOf[units.Bytes](4), Free: view.ColumnOf[units.Bytes](-5), VCPULimit: []float64{6.5}, VCPUs: view.ColumnOf(7),
			Load: view.ColumnOf(0.75), NodeKeys: []view.NodeKeyColumn{{Name: "Premium", Values: view.ColumnOf(1.0), Sticky: true, Weight: 2}},
			Count: view.ColumnOf(8), Management: []bool{true}, CPUs: []int{9}, Coming: view.ColumnOf(10), CPUPressure: view.ColumnOf(12.5),
			MemoryPressure: view.ColumnOf(1.5), VCPUDelay: view.ColumnOf(2.5),
			AccountVMs: []int{11}, Networks: []view.NetworkColumn{{Name: "bridge:br0", Has: []view.Has{1}}},
			Models: &view.CPUColumn{Model: "EPYC-Rome", Has: []view.Has{1}, Hosts: []string{"EPYC-Rome 1a2b"}},
			Oldest: 30 * time.Second,
			Pools: []view.PoolColumn{{ID: "r11", Name: "fast", Shared: true, Has: []view.Has{1}, Shares: []view.PoolFigures{{
				Capacity: units.TiB, Available: units.GiB, Promised: units.MiB, Limit: 2 * units.TiB, Volumes: 12,
			}}}},
		},
		Met: []rule.Met{{Key: 1, Posting: view.Posting{Value: 1.5, Nodes: []int32{1}, Counts: []int32{2}}}},
		Groups: []rule.Membership{{
			Group: "r9", Name: "mail", Placing: 1, VMs: model.Rule{Polarity: model.Negative, Enforcing: true},
			Nodes: model.Rule{Polarity: model.Positive}, Priority: 1.5, On: []int32{1}, Listed: "alpha", Shares: []string{"r10"},
			Others: []view.Presence{{Node: 1, Name: "beta", Count: 3, Leaving: 1, Fixed: 1, VMs: []string{"db"}}},
		}},
		Shares:    []placement.Shares{{Weigher: "vm-count", Shares: []float64{2.5}}},
		Uncovered: []rule.Uncovered{{Nodes: []string{"beta"}, VMs: []string{"db"}, Total: 2, Memory: units.GiB}},
	}
	choice.Ranks = []placement.RankRow{{
		Weigher: "vm-count", Factor: 2, Silent: true, Cells: []placement.RankCell{{Node: "n1", Name: "alpha", Rank: 1, Weight: 8}},
	}}
	group := resource("r9", model.KindGroup, map[string]string{"cluster": "r1", "policy": model.BuiltIn + "none"})
	group.Settings = map[string]string{model.SettingVMsRule: string(model.Negative), model.SettingVMsEnforcing: "true"}
	group.Members = map[string][]string{model.MembersVMs: {"v1", "v3"}, model.MembersNodes: {"n4"}}
	group.Lists, group.BrokenSince = map[string][]string{model.ListVMLabels: {"mail", "web"}}, noon
	mended := resource("r17", model.KindGroup, map[string]string{"cluster": "r1", "policy": model.BuiltIn + "none"})
	mended.Name, mended.HeldSince, mended.Spelled = "mended", noon, map[string]string{"nodes_rule": "hosts_rule positive"}
	spread := resource("r15", model.KindImage, nil)
	spread.Name = "everywhere"
	spread.Volume = &model.Volume{Pool: "r11", Nodes: []string{"n1", "n4"}, Name: "berth-r15.raw", Format: "raw", Capacity: units.MiB}
	spread.Copies = []model.Volume{{Pool: "r16", Nodes: []string{"n1", "n4"}, Name: "berth-r15-r16.raw", Format: "raw", Capacity: units.MiB}}
	plan := model.Plan{
		ID: "p1", Kind: model.PlanDrain, State: model.PlanRunning, Cluster: "default", Node: "n2", NodeName: "beta", Group: "r9",
		Policy: "affinity", Caller: "operator/admin", Request: "r1", Reason: "new <memory> & fans", Parallel: 2, Bandwidth: 10 * units.MiB,
		Moves: []model.Move{{
			VM: "v1", VMName: "web", Source: "n2", SourceName: "beta", Target: "n1", TargetName: "alpha", Memory: units.GiB,
			Reason: "the only node with room", Stays: true,
		}},
		Unit: "VMs", Before: 3, Predicted: 0.5, CreatedAt: noon, UpdatedAt: noon,
	}
	proposed := model.Plan{ID: "p2", Kind: model.PlanBalance, State: model.PlanProposed, CreatedAt: noon, UpdatedAt: noon}
	over := plan
	over.State, over.Observed, over.ObservedAt, over.Message, over.EndedAt = model.PlanDone, 1, noon, "1 moved", noon
	over.Moves = []model.Move{{VM: "v1", VMName: "web", Source: "n2", SourceName: "beta", Result: model.MoveMoved, Attempts: 2}}
	enrol := Command{
		Kind:   "enrol",
		Expect: []Expectation{expect(Nodes, "n1", 0), expect(Members, "m1", 0), expect(Tokens, "abc", 0)},
		Nodes:  []model.Node{full},
		Members: []model.Member{{
			ID: "m1", Name: "one", RaftAddress: "one:7422", APIAddress: "one:7420", AgentAddress: "one:7421", JoinedAt: noon,
		}},
		Tokens: []model.Token{{
			Hash: "abc", Purpose: model.PurposeAgent, Name: "alpha", CreatedBy: "operator/admin",
			ExpiresAt: noon.Add(time.Hour), UsedBy: "n1", UsedAt: noon,
			Uses: 2, Used: []model.TokenUse{{ID: "n0", Name: "alpha0", At: noon}, {ID: "n1", Name: "alpha", At: noon}},
			Permit: "host-paths",
		}},
		Resources: estate,
	}
	for _, one := range estate {
		enrol.Expect = append(enrol.Expect, expect(Resources, one.ID, 0))
	}
	return []Command{
		{Kind: "init", Meta: map[string]string{MetaClusterID: "c1", "other": "value"}},
		enrol,
		putVM(0, web),
		{
			Kind:   "migrate",
			Expect: []Expectation{expect(VMs, "v1", 6), expect(Operations, "o1", 0)}, VMs: []model.VM{web},
			Operations: []operation.Operation{move}, Decisions: []placement.Decision{choice},
			Events: []model.Event{
				{At: noon, Kind: "vm.migrate", Subject: "vm/web", Message: "to alpha", Caller: "operator/admin", Operation: "o1", Decision: "d1"},
				{At: noon.In(time.FixedZone("", 3600)), Kind: "node.note", Subject: "node/alpha", Message: "in another time zone"},
			},
		},
		putNode(99, full), // refused
		{
			Kind:   "finish",
			Expect: []Expectation{expect(VMs, "v1", 8), expect(Operations, "o1", 8)}, VMs: []model.VM{held},
			Operations: []operation.Operation{done},
		},
		{Kind: "finish", Key: label("golden", 5, 0)}, // a repeat
		putVM(0, vm("v2", "db", 7)),
		remove(VMs, "v2", 16),
		remove(Resources, "r5", 4), // refused: web's
		{Kind: "forget", Delete: []Record{{Meta, "other"}}},
		{
			Kind: "group",
			Expect: []Expectation{
				expect(VMs, "v3", 0), expect(Nodes, "n4", 0), expect(Resources, "r9", 0), expect(Resources, "r15", 0), expect(Plans, "p1", 0),
				expect(Plans, "p2", 0),
			},
			VMs:       []model.VM{vm("v3", "mail", 1)},
			Nodes:     []model.Node{node("n4", "delta")},
			Resources: []model.Resource{group, spread},
			Plans:     []model.Plan{plan, proposed},
		},
		{
			Kind:   "end",
			Expect: []Expectation{expect(Plans, "p1", 24)}, Plans: []model.Plan{over},
		},
		remove(VMs, "v3", 24),   // leaves the group
		remove(Nodes, "n4", 24), // this one too, and has its copy of the image no longer
		RaiseLevel(FeatureLevel),
		{
			Kind:   "identities",
			Expect: []Expectation{expect(Identities, "op1", 0), expect(Identities, "op2", 0)},
			Identities: []model.Identity{
				{
					ID: "op1", Kind: model.IdentityOperator, Name: "alice", Role: "operator", CreatedAt: noon, Unconfirmed: "restored",
					Permit: "host-devices",
					Trusts: "0b", Libvirt: model.AuthorityUse{Trusts: "0c"}, QEMU: model.AuthorityUse{Trusts: "0d", By: "0d"}, Keys: []model.PublicKey{
						{Hash: "aa", ValidUntil: noon.Add(time.Hour), AddedAt: noon, Authority: "0a"}, {Hash: "bb", AddedAt: noon},
					},
				},
				{
					ID: "op2", Kind: model.IdentityOperator, Name: "bob", Role: "operator", CreatedAt: noon,
					Keys:    []model.PublicKey{{Hash: "cc", ValidUntil: noon.Add(time.Hour), AddedAt: noon}},
					Revoked: model.Revocation{At: noon, By: "operator/alice", Reason: "left"},
				},
			},
			Events: []model.Event{{
				At: noon, Kind: "identity.revoked", Subject: "operator/bob", Message: "left", Caller: "operator/alice", CallerID: "op1",
			}},
			Meta: map[string]string{MetaRecordsFrom: "2026-11-21T12:00:00Z"},
		},
		{Kind: "mark groups", Expect: []Expectation{expect(Resources, "r17", 0)}, Resources: []model.Resource{mended}},
		{
			Kind: "session", Expect: []Expectation{expect(Sessions, "s1", 0)},
			Sessions: []session.Session{{
				ID: "s1", Operator: "op1", Key: "aa", Role: session.Look, Link: "dd", Secret: "ee", From: "192.0.2.1", Browser: "Firefox",
				Until: noon.Add(session.Life), Offered: noon, Opened: noon,
			}},
		},
		{
			Kind: "part", Expect: []Expectation{expect(VMs, "v1", 12)}, VMs: []model.VM{{ID: "v1", Labels: []string{"shop", "web"}}},
			Partial: []Partial{{Table: VMs, ID: "v1", Fields: []string{"labels"}}},
		},
		{Kind: "check", Level: 3, Release: release, Check: &Check{Index: 1, Hash: "as it was there"}}, // written with those of the entry before
	}
}
