package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// ErrNothing is the error of a figure without a measurement.
var ErrNothing = errors.New("nothing was measured")

// Figures are repeated measurements of one thing, in the order in which they were taken.
type Figures []float64

// Add adds a duration, in seconds.
func (f *Figures) Add(d time.Duration) { *f = append(*f, d.Seconds()) }

// Quantile is the nearest-rank quantile, q from 0 to 1: always a value that was measured. Of nothing it is NaN.
func (f Figures) Quantile(q float64) float64 {
	if len(f) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(f))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Median is the middle one.
func (f Figures) Median() float64 { return f.Quantile(0.5) }

// Less is what each measurement exceeds its partner by. Pairs were taken next to each other.
func (f Figures) Less(other Figures) Figures {
	differences := make(Figures, min(len(f), len(other)))
	for i := range differences {
		differences[i] = f[i] - other[i]
	}
	return differences
}

// Spread is "median [min-max] n=" with a unit.
func (f Figures) Spread(unit func(float64) string) string {
	if len(f) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s [%s-%s] n=%d", unit(f.Median()), unit(f.Quantile(0)), unit(f.Quantile(1)), len(f))
}

// Latency is what matters of many short times. With fewer than a hundred, the p99 is the longest.
func (f Figures) Latency() string {
	if len(f) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("p50 %s, p99 %s [%s-%s] n=%d",
		Seconds(f.Median()), Seconds(f.Quantile(0.99)), Seconds(f.Quantile(0)), Seconds(f.Quantile(1)), len(f))
}

// Seconds writes a time with three digits, in the unit that people would use.
func Seconds(s float64) string {
	switch size := math.Abs(s); {
	case math.IsNaN(s):
		return "unknown"
	case size == 0:
		return "0 s"
	case size < 1e-3:
		return Digits(s*1e6) + " us"
	case size < 1:
		return Digits(s*1e3) + " ms"
	default:
		return Digits(s) + " s"
	}
}

// Megabytes writes an amount of memory given in bytes, in the unit of the goals.
func Megabytes(b float64) string { return Digits(b/1e6) + " MB" }

// PerSecond writes a rate.
func PerSecond(rate float64) string { return Digits(rate) + "/s" }

// Times writes a ratio.
func Times(ratio float64) string { return Digits(ratio) + "x" }

// Digits writes three significant digits without an exponent.
func Digits(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	before := int(math.Floor(math.Log10(math.Abs(v)))) + 1
	return strconv.FormatFloat(v, 'f', min(max(3-before, 0), 3), 64)
}
