package view

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/shared/units"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// healthy are the facts of a node of 64 GiB and 16 CPUs, sampled a second before noon.
func healthy(domains ...model.Domain) model.NodeFacts {
	slices.SortFunc(domains, func(a, b model.Domain) int {
		if a.UUID < b.UUID {
			return -1
		}
		return 1
	})
	return model.NodeFacts{
		Liveness: model.Up, Inventory: true, InventoryAt: noon.Add(-10 * time.Second), Memory: 64 * units.GiB, CPUs: 16,
		Domains: domains, DomainsKnown: true,
		Telemetry: true, TelemetryAt: noon.Add(-time.Second), Available: new(40 * units.GiB), Load1: new(4.0), CPUBusy: new(0.25),
	}
}

// ran is a domain that has been running for an hour.
func ran(uuid string, memory units.Bytes, vcpus int) model.Domain {
	return model.Domain{
		UUID: uuid, Name: "name-" + uuid, State: model.DomainRunning, Memory: memory, VCPUs: vcpus, Since: noon.Add(-time.Hour),
	}
}

func held(id, node string, memory units.Bytes, vcpus int, started time.Time) model.VM {
	return model.VM{
		ID: id, Name: "name-" + id, Spec: model.VMSpec{Memory: memory, VCPUs: vcpus}, Desired: model.Running, Holder: node, Epoch: 1,
		StartedAt: started, RanSize: model.Size{Memory: memory, VCPUs: vcpus},
	}
}

// given is a VM whose record was given another size while it ran.
func given(vm model.VM, memory units.Bytes, vcpus int) model.VM {
	vm.Spec.Memory, vm.Spec.VCPUs = memory, vcpus
	return vm
}

// olden is a VM that a release has started which did not keep how large.
func olden(vm model.VM) model.VM {
	vm.RanSize = model.Size{}
	return vm
}

func viewOf(vms []model.VM, reservations []model.Reservation, facts model.NodeFacts) *NodeView {
	view := New(
		noon, 7, Records{Nodes: []model.Node{{ID: "n1", Name: "node1"}}, VMs: vms, Reservations: reservations},
		map[string]model.NodeFacts{"n1": facts},
	)
	return view.Nodes.At(0)
}

func TestWhatANodeIsChargedFor(t *testing.T) {
	long := noon.Add(-time.Hour)
	for name, tc := range map[string]struct {
		vms          []model.VM
		reservations []model.Reservation
		facts        model.NodeFacts
		want         []Allocation
		promised     units.Bytes
		physical     units.Bytes
		vcpus        int
	}{
		"nothing": {facts: healthy(), physical: 40 * units.GiB},
		"a VM that telemetry has seen": {
			vms:      []model.VM{held("u1", "n1", 4*units.GiB, 2, long)},
			facts:    healthy(ran("u1", 4*units.GiB, 2)),
			want:     []Allocation{{VM: "u1", Name: "name-u1", Memory: 4 * units.GiB, VCPUs: 2}},
			promised: 4 * units.GiB, physical: 40 * units.GiB, vcpus: 2,
		},
		"a domain that is not Berth's own": {
			facts:    healthy(ran("u1", 4*units.GiB, 2)),
			want:     []Allocation{{VM: "u1", Name: "name-u1", Memory: 4 * units.GiB, VCPUs: 2, Foreign: true}},
			promised: 4 * units.GiB, physical: 40 * units.GiB, vcpus: 2,
		},
		"the largest of record, domain and reservation": {
			vms:          []model.VM{held("u1", "n1", 4*units.GiB, 8, long)},
			reservations: []model.Reservation{{Node: "n1", VM: "u1", Name: "name-u1", Memory: 6 * units.GiB, VCPUs: 1, Operation: "op"}},
			facts:        healthy(ran("u1", 5*units.GiB, 2)),
			want:         []Allocation{{VM: "u1", Name: "name-u1", Memory: 6 * units.GiB, VCPUs: 8, InFlight: true, Frees: 6 * units.GiB}},
			promised:     6 * units.GiB, physical: 34 * units.GiB, vcpus: 8,
		},
		"a VM that is to be larger from its next start on": {
			vms:      []model.VM{given(held("u1", "n1", 4*units.GiB, 2, long), 900*units.GiB, 64)},
			facts:    healthy(ran("u1", 4*units.GiB, 2)),
			want:     []Allocation{{VM: "u1", Name: "name-u1", Memory: 4 * units.GiB, VCPUs: 2}},
			promised: 4 * units.GiB, physical: 40 * units.GiB, vcpus: 2,
		},
		"a VM that is to be smaller from its next start on, on a node that does not show it": {
			vms:      []model.VM{given(held("u1", "n1", 4*units.GiB, 2, long), units.GiB, 1)},
			facts:    healthy(),
			want:     []Allocation{{VM: "u1", Name: "name-u1", Memory: 4 * units.GiB, VCPUs: 2}},
			promised: 4 * units.GiB, physical: 40 * units.GiB, vcpus: 2,
		},
		"a VM that an earlier release has started": {
			vms:      []model.VM{olden(given(held("u1", "n1", 4*units.GiB, 2, long), 900*units.GiB, 64))},
			facts:    healthy(ran("u1", 4*units.GiB, 2)),
			want:     []Allocation{{VM: "u1", Name: "name-u1", Memory: 4 * units.GiB, VCPUs: 2}},
			promised: 4 * units.GiB, physical: 40 * units.GiB, vcpus: 2,
		},
		"one that its node does not show": {
			vms:      []model.VM{olden(held("u1", "n1", 4*units.GiB, 2, long))},
			facts:    healthy(),
			want:     []Allocation{{VM: "u1", Name: "name-u1", Memory: 4 * units.GiB, VCPUs: 2}},
			promised: 4 * units.GiB, physical: 40 * units.GiB, vcpus: 2,
		},
		"a VM on its way": {
			reservations: []model.Reservation{{Node: "n1", VM: "u1", Name: "web", Memory: 6 * units.GiB, VCPUs: 1, Operation: "op"}},
			facts:        healthy(),
			want:         []Allocation{{VM: "u1", Name: "web", Memory: 6 * units.GiB, VCPUs: 1, InFlight: true, Frees: 6 * units.GiB}},
			promised:     6 * units.GiB, physical: 34 * units.GiB, vcpus: 1,
		},
		"a VM on its way elsewhere": {
			reservations: []model.Reservation{{Node: "n2", VM: "u1", Name: "web", Memory: 6 * units.GiB, VCPUs: 1, Operation: "op"}},
			facts:        healthy(),
			physical:     40 * units.GiB,
		},
		"a VM that started after the sample, not yet listed": {
			vms:      []model.VM{held("u1", "n1", 4*units.GiB, 2, noon.Add(-time.Second/2))},
			facts:    healthy(),
			want:     []Allocation{{VM: "u1", Name: "name-u1", Memory: 4 * units.GiB, VCPUs: 2, Young: true, Frees: 4 * units.GiB}},
			promised: 4 * units.GiB, physical: 36 * units.GiB, vcpus: 2,
		},
		"a VM that the node does not show any more is still promised": {
			vms:      []model.VM{held("u1", "n1", 4*units.GiB, 2, long)},
			facts:    healthy(),
			want:     []Allocation{{VM: "u1", Name: "name-u1", Memory: 4 * units.GiB, VCPUs: 2}},
			promised: 4 * units.GiB, physical: 40 * units.GiB, vcpus: 2,
		},
		"a domain that changed its state after the sample": {
			vms: []model.VM{held("u1", "n1", 4*units.GiB, 2, long)},
			facts: healthy(model.Domain{
				UUID: "u1", State: model.DomainRunning, Memory: 4 * units.GiB, VCPUs: 2, Since: noon.Add(-time.Second / 2),
			}),
			want:     []Allocation{{VM: "u1", Name: "name-u1", Memory: 4 * units.GiB, VCPUs: 2, Young: true, Frees: 4 * units.GiB}},
			promised: 4 * units.GiB, physical: 36 * units.GiB, vcpus: 2,
		},
		"a migration that somebody else began towards this node": {
			vms:      []model.VM{held("u1", "n2", 4*units.GiB, 2, long)},
			facts:    healthy(model.Domain{UUID: "u1", Name: "web", State: model.DomainPausedMigration, Memory: 4 * units.GiB, VCPUs: 2}),
			want:     []Allocation{{VM: "u1", Name: "web", Memory: 4 * units.GiB, VCPUs: 2, Young: true, Frees: 4 * units.GiB}},
			promised: 4 * units.GiB, physical: 36 * units.GiB, vcpus: 2,
		},
		"the source of a migration at its end": {
			vms:      []model.VM{held("u1", "n1", 4*units.GiB, 2, long)},
			facts:    healthy(model.Domain{UUID: "u1", State: model.DomainPausedMigration, Memory: 4 * units.GiB, VCPUs: 2}),
			want:     []Allocation{{VM: "u1", Name: "name-u1", Memory: 4 * units.GiB, VCPUs: 2}},
			promised: 4 * units.GiB, physical: 40 * units.GiB, vcpus: 2,
		},
		"a domain that is shut off": {
			facts:    healthy(model.Domain{UUID: "u1", State: model.DomainShutoff, Memory: 4 * units.GiB, VCPUs: 2}),
			physical: 40 * units.GiB,
		},
		"figures that cannot be add up to full, not to empty": {
			facts: healthy(ran("u1", math.MaxInt64, 2), ran("u2", math.MaxInt64, 2), ran("u3", -5, -5)),
			want: []Allocation{
				{VM: "u1", Name: "name-u1", Memory: math.MaxInt64, VCPUs: 2, Foreign: true},
				{VM: "u2", Name: "name-u2", Memory: math.MaxInt64, VCPUs: 2, Foreign: true},
				{VM: "u3", Name: "name-u3", Foreign: true},
			},
			promised: math.MaxInt64, physical: 40 * units.GiB, vcpus: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := viewOf(tc.vms, tc.reservations, tc.facts)
			if diff := cmp.Diff(tc.want, got.Allocations); diff != "" {
				t.Errorf("allocations (-want +got):\n%s", diff)
			}
			if got.PromisedUsed != tc.promised || got.PhysicalFree != tc.physical || got.VCPUsUsed != tc.vcpus {
				t.Errorf("promised %v, physically free %v, %d vCPUs; want %v, %v, %d",
					got.PromisedUsed, got.PhysicalFree, got.VCPUsUsed, tc.promised, tc.physical, tc.vcpus)
			}
			if err := got.check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLimitsFollowTheSettings(t *testing.T) {
	node := model.Node{ID: "n1", Settings: model.NodeSettings{RAMRatio: new(1.5), CPURatio: new(4.0), Overhead: new(2 * units.GiB)}}
	got := New(noon, 0, Records{Nodes: []model.Node{node}}, map[string]model.NodeFacts{"n1": healthy()}).Nodes.At(0)
	if got.PromisedLimit != 96*units.GiB || got.VCPULimit != 64 || got.Settings.Overhead != 2*units.GiB {
		t.Errorf("limits are %v and %v, overhead %v; want 96 GiB, 64, 2 GiB",
			got.PromisedLimit, got.VCPULimit, got.Settings.Overhead)
	}
	plain := viewOf(nil, nil, healthy())
	if plain.PromisedLimit != 64*units.GiB || plain.VCPULimit != 128 || plain.Settings.Overhead != units.GiB {
		t.Errorf("default limits are %v and %v, overhead %v; want 64 GiB, 128, 1 GiB",
			plain.PromisedLimit, plain.VCPULimit, plain.Settings.Overhead)
	}
}

func TestWhatIsNotKnownIsNotZero(t *testing.T) {
	never := New(noon, 0, Records{Nodes: []model.Node{{ID: "n1"}}, VMs: []model.VM{held("u1", "n1", units.GiB, 1, noon)}}, nil).Nodes.At(0)
	if never.PhysicalKnown || never.PromisedLimit != 0 || never.PromisedUsed != units.GiB {
		t.Errorf("a node never heard of: %+v", never)
	}
	if _, known := never.TelemetryAge(noon); known {
		t.Error("a node without telemetry has an age of telemetry")
	}
	unread := healthy()
	unread.Available = nil
	if got := viewOf(nil, nil, unread); got.PhysicalKnown {
		t.Error("free memory that could not be read counts as known")
	}
}

func TestWithoutLeavesTheVMOutOfItsOwnNode(t *testing.T) {
	seen := ran("u1", 4*units.GiB, 2)
	seen.Resident, seen.CPU = new(3*units.GiB), new(1.5)
	other := ran("u2", 8*units.GiB, 4)
	nodes := []model.Node{{ID: "n2"}, {ID: "n1"}}
	vms := []model.VM{held("u1", "n1", 4*units.GiB, 2, noon.Add(-time.Hour))}
	view := New(noon, 7, Records{Nodes: nodes, VMs: vms}, map[string]model.NodeFacts{"n1": healthy(seen, other), "n2": healthy()})
	before := *view.Node("n1")

	got := view.Without("u1", "n1").Node("n1")
	if got.PromisedUsed != 8*units.GiB || got.VCPUsUsed != 4 || len(got.Allocations) != 1 {
		t.Errorf("promised %v to %d VMs, %d vCPUs; want 8 GiB to 1, 4", got.PromisedUsed, len(got.Allocations), got.VCPUsUsed)
	}
	if got.PhysicalFree != 43*units.GiB {
		t.Errorf("%v physically free, want 43 GiB: what it has now is free again", got.PhysicalFree)
	}
	if *got.Facts.Load1 != 2.5 || *got.Facts.CPUBusy != 0.25-1.5/16 {
		t.Errorf("load %v, busy %v; want them less its 1.5 CPUs", *got.Facts.Load1, *got.Facts.CPUBusy)
	}
	if diff := cmp.Diff(before, *view.Node("n1"), cmp.AllowUnexported(NodeView{})); diff != "" {
		t.Errorf("the view itself changed (-before +after):\n%s", diff)
	}
	if view.Without("u1", "n1").Node("n2") != view.Node("n2") {
		t.Error("the other nodes are not shared")
	}
	for _, same := range []*View{view.Without("u9", "n1"), view.Without("u1", "n9"), view.Without("u1", "n2")} {
		if same != view {
			t.Error("leaving out what is not there made a copy")
		}
	}
}

func TestWithoutGivesBackNoMoreThanIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		resident *units.Bytes
		since    time.Time
		want     units.Bytes
	}{
		"what it has":                      {new(3 * units.GiB), noon.Add(-time.Hour), 43 * units.GiB},
		"never more than its size":         {new(9 * units.GiB), noon.Add(-time.Hour), 44 * units.GiB},
		"nothing when it is not known":     {nil, noon.Add(-time.Hour), 40 * units.GiB},
		"the whole charge while it counts": {nil, noon, 40 * units.GiB},
	} {
		domain := ran("u1", 4*units.GiB, 2)
		domain.Resident, domain.Since = tc.resident, tc.since
		view := New(noon, 0, Records{Nodes: []model.Node{{ID: "n1"}}}, map[string]model.NodeFacts{"n1": healthy(domain)})
		if got := view.Without("u1", "n1").Node("n1").PhysicalFree; got != tc.want {
			t.Errorf("%s: %v free, want %v", name, got, tc.want)
		}
	}
}

// What KSM and balloons save is lost on a pessimistic ledger. What the balloon of a VM holds back is so no longer when the
// VM is left out: it would take nothing more.
func TestWhatIsBorrowedIsLostWhereThePolicySaysSo(t *testing.T) {
	small, whole := ran("u1", 8*units.GiB, 2), ran("u2", 4*units.GiB, 2)
	small.Resident, small.Balloon = new(2*units.GiB), new(3*units.GiB)
	whole.Balloon = new(4 * units.GiB)
	off := ran("u3", 8*units.GiB, 2)
	off.State, off.Balloon = model.DomainShutoff, new(units.GiB)
	facts := healthy(small, whole, off)
	facts.KSMSaved = new(6 * units.GiB)
	for ledger, want := range map[string]struct{ free, borrowed, without, borrowedWithout units.Bytes }{
		"":           {29 * units.GiB, 11 * units.GiB, 36 * units.GiB, 6 * units.GiB},
		"optimistic": {40 * units.GiB, 0, 42 * units.GiB, 0},
	} {
		record := model.DefaultClusterRecord()
		record.Settings = map[string]string{model.SettingPhysicalLedger: ledger}
		view := New(
			noon, 0, Records{Clusters: []model.Resource{record}, Nodes: []model.Node{{ID: "n1"}}}, map[string]model.NodeFacts{"n1": facts},
		)
		if got := view.Node("n1"); got.PhysicalFree != want.free || got.Borrowed != want.borrowed {
			t.Errorf("ledger %q: %v free, %v borrowed, want %v and %v", ledger, got.PhysicalFree, got.Borrowed, want.free, want.borrowed)
		}
		got := view.Without("u1", "n1").Node("n1")
		if got.PhysicalFree != want.without || got.Borrowed != want.borrowedWithout {
			t.Errorf("ledger %q, without the VM: %v free, %v borrowed, want %v and %v",
				ledger, got.PhysicalFree, got.Borrowed, want.without, want.borrowedWithout)
		}
	}
}

func TestAVMRunningTwiceBreaksTheInvariants(t *testing.T) {
	view := New(noon, 0, Records{Nodes: []model.Node{{ID: "n1"}, {ID: "n2"}}}, map[string]model.NodeFacts{
		"n1": healthy(ran("u1", units.GiB, 1)), "n2": healthy(ran("u1", units.GiB, 1)),
	})
	if err := view.Check(); err == nil {
		t.Error("nothing was said about it")
	}
}

// estate draws records and facts of a cluster in any state that agents and operators can bring about.
func estate(t *rapid.T) ([]model.Node, []model.VM, []model.Reservation, map[string]model.NodeFacts) {
	var nodes []model.Node
	for i := range rapid.IntRange(0, 5).Draw(t, "nodes") {
		nodes = append(nodes, model.Node{ID: fmt.Sprint("n", i)})
	}
	some := func(label string) string { return fmt.Sprint("n", rapid.IntRange(0, 6).Draw(t, label)) }
	size := rapid.Int64Range(0, int64(100*units.GiB))
	when := rapid.Int64Range(-10, 10)
	at := func(label string) time.Time { return noon.Add(time.Duration(when.Draw(t, label)) * time.Second) }
	var vms []model.VM
	var reservations []model.Reservation
	facts := make(map[string]model.NodeFacts)
	for i := range rapid.IntRange(0, 8).Draw(t, "vms") {
		id := fmt.Sprint("u", i)
		vm := held(id, "", units.Bytes(size.Draw(t, "size")), rapid.IntRange(0, 9).Draw(t, "vcpus"), at("start"))
		if rapid.Bool().Draw(t, "held") {
			vm.Holder = some("holder")
		}
		vm.Owner = model.Owner{Customer: "c"}
		vm.Resident = []model.ResidentKey{
			{Class: model.CustomerKey, Name: "G", Value: float64(i % 3)}, {Class: model.CustomerKey, Name: "G", Value: 1},
		}
		vms = append(vms, vm)
		if rapid.Bool().Draw(t, "in flight") {
			reservations = append(reservations, model.Reservation{
				Node: some("target"), VM: id, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Operation: "op" + id,
			})
		}
	}
	states := []model.DomainState{
		model.DomainRunning, model.DomainPaused, model.DomainPausedMigration, model.DomainShutoff, model.DomainCrashed,
		model.DomainUnknown,
	}
	for _, node := range nodes {
		if rapid.Bool().Draw(t, "silent") {
			continue
		}
		var domains []model.Domain
		for i := range rapid.IntRange(0, 8).Draw(t, "domains") {
			memory, vcpus := units.Bytes(size.Draw(t, "domain size")), rapid.IntRange(0, 9).Draw(t, "domain vcpus")
			domain := ran(fmt.Sprint("u", i), memory, vcpus)
			domain.State = rapid.SampledFrom(states).Draw(t, "state")
			if domain.State == model.DomainRunning {
				domain.State = model.DomainPaused // so that no VM runs twice
			}
			domain.Since = at("since")
			domains = append(domains, domain)
		}
		known := healthy(domains...)
		known.TelemetryAt = at("sample")
		known.Telemetry = rapid.Bool().Draw(t, "telemetry")
		facts[node.ID] = known
	}
	return nodes, vms, reservations, facts
}

func TestEveryViewKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, vms, reservations, facts := estate(t)
		view := New(noon, 1, Records{Nodes: nodes, VMs: vms, Reservations: reservations}, facts)
		if err := view.Check(); err != nil {
			t.Fatal(err)
		}
		for _, node := range view.Nodes.All() {
			for _, allocation := range node.Allocations {
				whatIf := view.Without(allocation.VM, node.Node.ID)
				if err := whatIf.Check(); err != nil {
					t.Fatalf("without %s: %v", allocation.VM, err)
				}
				columns, anew := whatIf.Columns(model.DefaultCluster), whatIf.ColumnsOf(model.DefaultCluster, whatIf.Nodes.Slice())
				if diff := cmp.Diff(anew, columns, sameColumns); diff != "" {
					t.Fatalf("without %s (-gathered +taken over):\n%s", allocation.VM, diff)
				}
				reduced := whatIf.Node(node.Node.ID)
				if reduced.PromisedUsed+allocation.Memory != node.PromisedUsed || reduced.PhysicalFree < node.PhysicalFree {
					t.Fatalf("without %s: promised %v of %v, free %v of %v",
						allocation.VM, reduced.PromisedUsed, node.PromisedUsed, reduced.PhysicalFree, node.PhysicalFree)
				}
			}
		}
	})
}

func TestTheOrderOfRecordsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, vms, reservations, facts := estate(t)
		want := New(noon, 1, Records{Nodes: nodes, VMs: vms, Reservations: reservations}, facts)
		got := New(
			noon, 1,
			Records{
				Nodes: rapid.Permutation(nodes).Draw(t, "nodes"), VMs: rapid.Permutation(vms).Draw(t, "vms"),
				Reservations: rapid.Permutation(reservations).Draw(t, "reservations"),
			},
			facts,
		)
		if diff := cmp.Diff(
			want, got, cmp.AllowUnexported(View{}, NodeView{}), cmp.Transformer("nodes", NodeList.Slice),
			cmpopts.IgnoreFields(View{}, "gathered", "roster", "storage", "held", "strays"),
			cmpopts.EquateComparable(model.Window{}),
		); diff != "" {
			t.Fatal(diff)
		}
	})
}

// What is kept free for the restarts of VMs with ha is what their next starts will take.
func TestARestartTakesWhatTheNextStartDoes(t *testing.T) {
	for next, want := range map[units.Bytes]units.Bytes{64 * units.GiB: 64 * units.GiB, units.GiB: 4 * units.GiB} {
		vm := given(held("v1", "n1", 4*units.GiB, 1, noon.Add(-time.Hour)), next, 1)
		vm.HA = true
		node := viewOf([]model.VM{vm}, nil, healthy(ran("v1", 4*units.GiB, 1)))
		one, found := node.Holds("v1")
		if got := haVM(&one).Memory; !found || got != want || one.Memory != 4*units.GiB {
			t.Errorf("next %s: %s is kept free, and %s taken", next, got, one.Memory)
		}
	}
}
