package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

var errNothing = errors.New("nothing was measured")

// figures are repeated measurements of one thing, in the order in which they were taken.
type figures []float64

// durations are kept in seconds.
func (f *figures) add(d time.Duration) { *f = append(*f, d.Seconds()) }

// quantile is the nearest-rank quantile, q from 0 to 1: always a value that was measured. Of nothing it is NaN.
func (f figures) quantile(q float64) float64 {
	if len(f) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(f))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

func (f figures) median() float64 { return f.quantile(0.5) }

// less is what each measurement exceeds its partner by. Pairs were taken next to each other.
func (f figures) less(other figures) figures {
	differences := make(figures, min(len(f), len(other)))
	for i := range differences {
		differences[i] = f[i] - other[i]
	}
	return differences
}

// spread is "median [min-max] n=" with a unit.
func (f figures) spread(unit func(float64) string) string {
	if len(f) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s [%s-%s] n=%d", unit(f.median()), unit(f.quantile(0)), unit(f.quantile(1)), len(f))
}

// latency is what matters of many short times. With fewer than a hundred, the p99 is the longest.
func (f figures) latency() string {
	if len(f) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("p50 %s, p99 %s [%s-%s] n=%d",
		seconds(f.median()), seconds(f.quantile(0.99)), seconds(f.quantile(0)), seconds(f.quantile(1)), len(f))
}

// seconds writes a time with three digits, in the unit that people would use.
func seconds(s float64) string {
	switch size := math.Abs(s); {
	case math.IsNaN(s):
		return "unknown"
	case size == 0:
		return "0 s"
	case size < 1e-3:
		return digits(s*1e6) + " us"
	case size < 1:
		return digits(s*1e3) + " ms"
	default:
		return digits(s) + " s"
	}
}

// megabytes writes an amount of memory given in bytes, in the unit of the goals.
func megabytes(b float64) string { return digits(b/1e6) + " MB" }

// perSecond writes a rate.
func perSecond(rate float64) string { return digits(rate) + "/s" }

// times writes a ratio.
func times(ratio float64) string { return digits(ratio) + "x" }

// digits writes three significant digits without an exponent.
func digits(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	before := int(math.Floor(math.Log10(math.Abs(v)))) + 1
	return strconv.FormatFloat(v, 'f', min(max(3-before, 0), 3), 64)
}
