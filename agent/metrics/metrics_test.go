package metrics

import (
	"context"
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"berth/shared/exposition/expositiontest"
	berthv1 "berth/shared/gen/berth/v1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// measured stands for what reads the host.
type measured struct {
	sample *berthv1.NodeTelemetry
	report *berthv1.InventoryReport
	looks  int
}

func (m *measured) Sample(context.Context) *berthv1.NodeTelemetry {
	m.looks++
	return m.sample
}

func (m *measured) Inventory(context.Context) *berthv1.InventoryReport {
	m.looks++
	return m.report
}

func full() *measured {
	return &measured{
		sample: &berthv1.NodeTelemetry{
			MemoryTotalBytes: new(int64(64 << 30)), MemoryAvailableBytes: new(int64(40 << 30)), AllocatedMemoryBytes: new(int64(9 << 30)),
			AllocatedVcpus: new(int32(5)), RunningDomains: new(int32(2)), KsmSavedBytes: new(int64(1 << 20)), Load1: new(1.5),
			CpuBusyRatio: new(0.25), CpuStealRatio: new(0.01), CpuPressure: &berthv1.Pressure{SomeAvg10: 12.5},
			MemoryPressure: &berthv1.Pressure{SomeAvg10: 1, FullAvg10: 0.5}, IoPressure: &berthv1.Pressure{SomeAvg10: 3, FullAvg10: 2},
			CollectSeconds: 0.012, Domains: []*berthv1.DomainTelemetry{{
				Uuid: "u1", CpuRatio: new(0.5), RssBytes: new(int64(6 << 30)), BalloonBytes: new(int64(8 << 30)),
				MaximumMemoryBytes: new(int64(8 << 30)), Vcpus: new(int32(4)), VcpuDelayRatio: new(0.02),
				Pressure: &berthv1.DomainPressure{CpuSome: 20, CpuFull: 15, MemorySome: 1, IoSome: 5, IoFull: 4},
			}, {Uuid: "u2"}},
		},
		report: &berthv1.InventoryReport{Domains: []*berthv1.Domain{
			{Uuid: "u1", Name: "web1"}, {Uuid: "u2", Name: "a\"\n\\b\x00"}, {Uuid: "u3", Name: "off"},
		}},
	}
}

func hostOf(m *measured) *Host {
	return &Host{Sampler: m, Collector: m, Connected: func() bool { return true }, Orders: func() int { return 3 }}
}

func page(t *testing.T, h *Host) string {
	t.Helper()
	return expositiontest.Page(t, h.Collect)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	expositiontest.Golden(t, name, got, *update)
}

// A scrape reads nothing of the host: who scrapes often costs guests nothing.
func TestAPageIsOfWhatWasMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := full()
		h := hostOf(m)
		golden(t, "new", page(t, h))
		h.Sample(t.Context())
		h.Inventory(t.Context())
		h.Heard(true)
		time.Sleep(3 * time.Second)
		looks := m.looks
		text := page(t, h)
		if m.looks != looks {
			t.Error("a scrape has the host read")
		}
		golden(t, "host", text)
		parser := expfmt.NewTextParser(model.LegacyValidation)
		read, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{}
		for _, family := range Families() {
			listed[family.Name] = true
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(read))); diff != "" {
			t.Errorf("listed and written (-listed +written):\n%s", diff)
		}
	})
}

// What could not be read is not there. It is never zero, because zero is a reading.
func TestWhatCouldNotBeReadIsNotThere(t *testing.T) {
	m := &measured{sample: &berthv1.NodeTelemetry{}, report: &berthv1.InventoryReport{DomainsUnknown: true}}
	h := hostOf(m)
	h.Sample(t.Context())
	h.Inventory(t.Context())
	for line := range strings.Lines(page(t, h)) {
		if !strings.HasPrefix(line, "#") && (strings.HasPrefix(line, "berth_guest") || strings.Contains(line, "_bytes")) {
			t.Error(line)
		}
	}
}

// A list that failed takes no names away.
func TestNamesOutliveAListThatFailed(t *testing.T) {
	m := full()
	h := hostOf(m)
	h.Sample(t.Context())
	h.Inventory(t.Context())
	m.report = &berthv1.InventoryReport{DomainsUnknown: true}
	h.Inventory(t.Context())
	if !strings.Contains(page(t, h), `berth_guest_info{uuid="u1",guest="web1"} 1`) {
		t.Error("the name is gone")
	}
}
