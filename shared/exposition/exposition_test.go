package exposition

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

var (
	plainFamily   = Family{Name: "berth_things", Help: "Things that are there", Type: Gauge}
	labelled      = Family{Name: "berth_thing_bytes", Help: `Size of a \ thing`, Type: Gauge, Labels: []string{"name", "place"}}
	counted       = Family{Name: "berth_moves_total", Help: "Moves", Type: Counter, Labels: []string{"result"}}
	distributed   = Family{Name: "berth_move_seconds", Help: "How long moves take", Type: Histogram, Labels: []string{"kind"}}
	hostileValues = []string{"a\nberth_things 7\n", `"} 9`, "\x00", "\xff\xfe", "日本", `\`, "\r\t\x7f", "{}", strings.Repeat("é", 300)}
)

func written(t *testing.T, write func(*Page)) string {
	t.Helper()
	var out bytes.Buffer
	page := NewPage(&out)
	write(page)
	if err := page.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAPageIsWhatPrometheusReads(t *testing.T) {
	got := written(t, func(p *Page) {
		p.Sample(&plainFamily, 3)
		p.Sample(&labelled, 1.5, "a", "")
		p.Sample(&labelled, math.Inf(1), "b", "here")
		p.Sample(&labelled, 1<<40, "", "")
		p.Known(&labelled, nil, "c", "unknown")
		p.Known(&labelled, new(float64), "d", "zero")
		p.Flag(&counted, true, "done")
		d := NewDistribution(0.1, 1, 10)
		for _, v := range []float64{0.05, 0.1, 0.5, 100} {
			d.Observe(v)
		}
		p.Distribution(&distributed, d, "live")
	})
	const want = `# HELP berth_things Things that are there
# TYPE berth_things gauge
berth_things 3
# HELP berth_thing_bytes Size of a \\ thing
# TYPE berth_thing_bytes gauge
berth_thing_bytes{name="a"} 1.5
berth_thing_bytes{name="b",place="here"} +Inf
berth_thing_bytes 1099511627776
berth_thing_bytes{name="d",place="zero"} 0
# HELP berth_moves_total Moves
# TYPE berth_moves_total counter
berth_moves_total{result="done"} 1
# HELP berth_move_seconds How long moves take
# TYPE berth_move_seconds histogram
berth_move_seconds_bucket{kind="live",le="0.1"} 2
berth_move_seconds_bucket{kind="live",le="1"} 3
berth_move_seconds_bucket{kind="live",le="10"} 3
berth_move_seconds_bucket{kind="live",le="+Inf"} 4
berth_move_seconds_sum{kind="live"} 100.65
berth_move_seconds_count{kind="live"} 4
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(got)); err != nil {
		t.Error(err)
	}
}

// Names come from people, hosts and guests. None of them makes another sample of a page, or one that cannot be read.
func TestHostileNamesStayNames(t *testing.T) {
	for _, value := range hostileValues {
		text := written(t, func(p *Page) { p.Sample(&labelled, 1, value, "here") })
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil || len(families) != 1 || len(families[labelled.Name].GetMetric()) != 1 {
			t.Errorf("%q: %v, %v in\n%s", value, err, families, text)
			continue
		}
		read := families[labelled.Name].GetMetric()[0].GetLabel()[0].GetValue()
		if len(read) > longest+4 || strings.ContainsAny(read, "\x00\r") || strings.Count(text, "\n") != 3 {
			t.Errorf("%q was read as %q", value, read)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestAReaderThatIsGoneIsAnError(t *testing.T) {
	page := NewPage(full{})
	for range 10_000 {
		page.Sample(&labelled, 1, "a", "b")
	}
	if err := page.Flush(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}

// A page keeps nothing: what a sample allocates would be multiplied by the nodes of a site.
func TestASampleAllocatesNothing(t *testing.T) {
	page := NewPage(io.Discard)
	if n := testing.AllocsPerRun(1000, func() { page.Sample(&labelled, 1.25, "node-1", "here") }); n > 0 {
		t.Errorf("a sample makes %v allocations", n)
	}
}
