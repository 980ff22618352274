package report

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestQuantilesAreMeasuredValues(t *testing.T) {
	f := Figures{4, 1, 3, 2}
	for _, c := range []struct{ q, want float64 }{{0, 1}, {0.25, 1}, {0.5, 2}, {0.51, 3}, {0.99, 4}, {1, 4}} {
		if got := f.Quantile(c.q); got != c.want {
			t.Errorf("quantile %v of %v is %v, want %v", c.q, f, got, c.want)
		}
	}
	if got := (Figures{}).Median(); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestFiguresReadLikeTheGoals(t *testing.T) {
	f := Figures{}
	for _, ms := range []int{12, 8, 900} {
		f.Add(time.Duration(ms) * time.Millisecond)
	}
	if got, want := f.Spread(Seconds), "12.0 ms [8.00 ms-900 ms] n=3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := f.Latency(), "p50 12.0 ms, p99 900 ms [8.00 ms-900 ms] n=3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Times(1.2345), "1.23x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPairsAreComparedOneByOne(t *testing.T) {
	f := Figures{5, 7, 9}.Less(Figures{1, 2})
	if len(f) != 2 || f[0] != 4 || f[1] != 5 {
		t.Errorf("differences are %v", f)
	}
}

func TestWhatIsNotKnownIsNotMet(t *testing.T) {
	for figure, want := range map[float64]Verdict{1: met, 2: met, 2.01: NotMet} {
		if got := Judge(figure, 2); got != want {
			t.Errorf("%v against 2: %s", figure, got)
		}
	}
	if got := Judge(math.NaN(), 2); got != NotMet {
		t.Errorf("unknown: %s", got)
	}
}

func TestTableWrapsLongCells(t *testing.T) {
	var b strings.Builder
	err := PrintTable(&b, []Row{{Goal: "R1", What: strings.Repeat("word ", 12), Measured: "1 ms", Wanted: "2 ms", Verdict: met}})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.Trim(b.String(), "\n"), "\n")
	if len(lines) != 4 { // header, empty, two lines
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	if !strings.HasPrefix(lines[2], "R1 ") || !strings.HasSuffix(lines[2], "met") || !strings.HasPrefix(lines[3], "          word") {
		t.Errorf("the table is:\n%s", b.String())
	}
}
