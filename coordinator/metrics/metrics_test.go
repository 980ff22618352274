package metrics

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	prometheus "github.com/prometheus/common/model"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
	"berth/shared/exposition"
	"berth/shared/exposition/expositiontest"
	"berth/shared/units"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	noon   = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
)

// busy is a node whose agent tells everything.
func busy() model.NodeFacts {
	return model.NodeFacts{
		Liveness: model.Up, Inventory: true, InventoryAt: noon.Add(-10 * time.Second), Memory: 64 * units.GiB, CPUs: 16,
		Release: "0.1.0", DomainsKnown: true, Domains: []model.Domain{{
			UUID: "u1", Name: "web1", State: model.DomainRunning, Memory: 8 * units.GiB, VCPUs: 4, Managed: true, Since: noon.Add(-time.Hour),
			Resident: new(6 * units.GiB), CPU: new(1.5), Delay: new(0.02),
			Pressure: &model.DomainPressure{CPU: 12.5, IO: 3},
		}},
		Telemetry: true, TelemetryAt: noon.Add(-time.Second), Available: new(40 * units.GiB), KSMSaved: new(units.GiB), Load1: new(4.0),
		CPUBusy: new(0.25), CPUSteal: new(0.01), CPUPressure: new(12.5), MemoryPressure: new(0.5), IOPressure: new(3.0), VCPUDelay: new(2.0),
	}
}

// mixed is a site with a node that tells everything, one that was never heard, and one that fell silent.
func mixed() *Scrape {
	vms := []model.VM{
		{ID: "u1", Name: "web1", Holder: "n1", Desired: model.Running, Spec: model.VMSpec{Memory: 8 * units.GiB, VCPUs: 4}},
		{ID: "u2", Name: "a\"\n\\b", Holder: "n3", Desired: model.Running},
		{ID: "u3", Name: "off"},
	}
	silent := busy()
	silent.Liveness, silent.Domains = model.Unreachable, []model.Domain{{UUID: "u2", State: model.DomainRunning, Resident: new(units.GiB)}}
	silent.TelemetryAt = noon.Add(-5 * time.Minute)
	seen := view.Over(noon, 7, view.Records{Nodes: []model.Node{
		{ID: "n1", Name: "hv1"}, {ID: "n2", Name: "hv2", Cluster: "east", Maintenance: true}, {ID: "n3", Name: "hv3"},
	}}, view.List(vms), map[string]model.NodeFacts{"n1": busy(), "n2": {Liveness: model.Unreachable}, "n3": silent})
	totals := NewTotals(noon.Add(-time.Hour))
	history(totals, seen)
	return &Scrape{
		At: noon, Totals: totals,
		Member: Member{
			Name: "c1", Leads: true, LeaderKnown: true, Term: 3, Commit: 120, Applied: 119, Last: 121, Snapshot: 100, Log: units.MiB,
			Write: 2 * time.Millisecond, History: History{Size: 5 << 20, Oldest: time.Unix(1_700_000_000, 0), Behind: 2, Missing: 3},
			BackupAt: noon.Add(-time.Minute), Sessions: 2,
			Authorities: []AuthorityEnd{{Name: "cluster", At: noon.AddDate(9, 0, 0)}, {Name: "libvirt", At: noon.AddDate(10, 0, 0)}},
			Certificates: map[model.IdentityKind]time.Time{
				model.IdentityNode: noon.AddDate(0, 0, 12), model.IdentityCoordinator: noon.AddDate(0, 0, 20),
				model.IdentityOperator: noon.AddDate(0, 0, 25),
			},
			Members: []MemberSeen{{Name: "c1", Voter: true, Healthy: true}, {Name: "c2", Behind: 4, Contact: -1}},
		},
		Site: &Site{
			View: seen, States: []string{"stopped", "running", "unknown"},
			VMs: func(yield func(*model.VM) bool) {
				for i := range vms {
					if !yield(&vms[i]) {
						return
					}
				}
			},
			State: func(vm *model.VM) string {
				return map[string]string{"n1": "running", "n3": "unknown", "": "stopped"}[vm.Holder]
			},
			Operations: slices.Values([]*operation.Operation{
				{ID: "o1", Kind: operation.Migrate, Phase: operation.Copying, CreatedAt: noon.Add(-30 * time.Second)},
				{ID: "o2", Kind: operation.Migrate, Phase: operation.Judging, Result: operation.Parked, CreatedAt: noon.Add(-time.Hour)},
				{ID: "o3", Kind: operation.Start, Phase: operation.Queued, CreatedAt: noon.Add(-time.Second)},
			}),
			Groups: []model.Resource{{ID: "g1"}, {ID: "g2", BrokenSince: noon.Add(-90 * time.Second)}},
		},
	}
}

// history is what was decided and done: what was before the totals began does not count, and trials never do.
func history(totals *Totals, seen *view.View) {
	decide := func(memory units.Bytes, at time.Time, trial bool) {
		decision := placement.Place(seen, placement.Request{
			Purpose: placement.ForStart, VM: "new", VMName: "new", Memory: memory, VCPUs: 1, Cluster: model.DefaultCluster,
		}, policies.Default(), 1)
		decision.At, decision.DryRun = at, trial
		totals.Decided(&decision)
	}
	decide(units.GiB, noon, false)
	decide(units.GiB, noon, true)
	decide(units.GiB, noon.Add(-2*time.Hour), false)
	decide(500*units.GiB, noon, false)
	earlier := &operation.Operation{ // by which 10 GiB in 50 s are expected of the next one, and a downtime of 100 ms
		Kind: operation.Migrate, Result: operation.Done, Memory: 8 * units.GiB, EndedAt: noon.Add(-2 * time.Hour),
		Migration: &operation.MigrationStats{DataProcessed: 10 * units.GiB, Elapsed: 50 * time.Second, Downtime: new(100 * time.Millisecond)},
	}
	totals.Learn(earlier)
	migrated := &operation.Operation{
		Kind: operation.Migrate, Result: operation.Done, CreatedAt: noon.Add(-40 * time.Second), EndedAt: noon, Memory: 8 * units.GiB,
		Migration: &operation.MigrationStats{
			Elapsed:       40 * time.Second,
			DataProcessed: 9 * units.GiB, Downtime: new(80 * time.Millisecond), Handover: new(5 * time.Millisecond),
		},
	}
	totals.Ended(migrated)
	failed := *migrated
	failed.Result, failed.Migration = operation.Failed, &operation.MigrationStats{DataProcessed: units.GiB}
	totals.Ended(&failed)
	failed.Cancel = true
	totals.Ended(&failed)
	totals.Ended(&operation.Operation{Kind: operation.Start, Result: operation.Done, EndedAt: noon})
	totals.Ended(&operation.Operation{Kind: operation.Start, Result: operation.Done, EndedAt: noon.Add(-2 * time.Hour)})
}

func page(t *testing.T, s *Scrape) string {
	t.Helper()
	return expositiontest.Page(t, func(p *exposition.Page) { Write(p, s) })
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	expositiontest.Golden(t, name, got, *update)
}

func TestTheLeaderTellsOfTheSite(t *testing.T) { golden(t, "leader", page(t, mixed())) }

// Agents report to the leader alone, so the others have nothing of nodes and VMs, and say that.
func TestAFollowerTellsOfItself(t *testing.T) {
	s := mixed()
	s.Site, s.Member.Members, s.Member.Leads, s.Member.LeaderContact = nil, nil, false, 50*time.Millisecond
	text := page(t, s)
	golden(t, "follower", text)
	if strings.Contains(text, "berth_node") || strings.Contains(text, "berth_vm") {
		t.Error("a follower tells of nodes or VMs")
	}
}

// Rules and dashboards are checked against the list of families, so it has to be that of the pages.
func TestTheListOfFamiliesIsWhole(t *testing.T) {
	parser := expfmt.NewTextParser(prometheus.LegacyValidation)
	read, err := parser.TextToMetricFamilies(strings.NewReader(page(t, mixed())))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, family := range Families() {
		if listed[family.Name] {
			t.Errorf("%s is listed twice", family.Name)
		}
		listed[family.Name] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(read))); diff != "" {
		t.Errorf("listed and written (-listed +written):\n%s", diff)
	}
}

// What a node measured before it fell silent would read as of now.
func TestASilentNodeHasNoMeasuredFigures(t *testing.T) {
	for line := range strings.Lines(page(t, mixed())) {
		about := strings.Contains(line, `node="hv3"`) || strings.Contains(line, `uuid="u2"`)
		measured := []string{"pressure", "delay", "steal", "used", "resident", "busy", "load", "saved", "placeable"}
		if about && slices.ContainsFunc(measured, func(word string) bool { return strings.Contains(line, word) }) {
			t.Error(line)
		}
	}
}

// What a VM is called is in one metric, so that a figure of it costs one label, and a name that changes makes no new series of each.
func TestNamesOfVMsAreInOneMetric(t *testing.T) {
	for _, family := range Families() {
		if slices.Contains(family.Labels, "vm") && family.Name != vmInfo.Name {
			t.Errorf("%s has the name of a VM", family.Name)
		}
	}
}
