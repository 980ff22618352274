package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"berth/integration/bench/report"
)

// measureShape scores the same nodes in the shapes that data can have: what columns are worth.
func measureShape(ctx context.Context, b *bench) (rows []report.Row, err error) {
	defer alone()()
	for _, n := range []int{1000, 10_000, 100_000} {
		half, whole := newPlain[float32](n), newPlain[float64](n)
		halfWish, wholeWish := newWish[float32](), newWish[float64]()
		structs, maps := whole.structs(), whole.maps()
		scores := make([]float64, n)
		shapes := []struct {
			name, documented string
			run              func()
		}{
			{"float32 columns", "7", func() { score32(half, &halfWish) }},
			{"float64 columns", "", func() { score64(whole, &wholeWish) }},
			{"structs with branches", "53", func() { scoreStructs(structs, &wholeWish, scores) }},
			{"a map a node", "94", func() { scoreMaps(maps, &wholeWish, scores) }},
		}
		took := make([]report.Figures, len(shapes))
		for range b.rounds(5, 30) {
			if err := ctx.Err(); err != nil {
				return rows, err
			}
			for i := range shapes {
				took[i].Add(repeat(shapes[i].run, max(1, 20_000/n)))
			}
		}
		for i, shape := range shapes {
			r := report.Row{
				What:     fmt.Sprintf("%d nodes, 8 keys, %s", n, shape.name),
				Measured: perNode(took[i], n), Against: report.Times(took[i].Median()/took[0].Median()) + " of float32 columns",
			}
			if shape.documented != "" {
				r.Wanted = "documented: " + shape.documented + " ns"
			}
			if i == 0 {
				r.Goal, r.Against = "SHAPE", "the shapes below"
			}
			rows = append(rows, r)
		}
		runtime.KeepAlive(scores)
	}
	return rows, nil
}

// repeat is how long a run takes in the mean of so many.
func repeat(run func(), times int) time.Duration {
	begun := time.Now()
	for range times {
		run()
	}
	return time.Since(begun) / time.Duration(times)
}

// perNode is the spread in nanoseconds a node.
func perNode(f report.Figures, n int) string {
	return f.Spread(func(s float64) string { return report.Digits(s * 1e9 / float64(n)) }) + " ns a node"
}
