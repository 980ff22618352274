package onlookers

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"berth/coordinator/history"
	"berth/coordinator/model"
	"berth/integration/bench/report"
)

// aSecond is how many events a busy site has in a second.
const aSecond = 100

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// History is H1: the CPU that a member takes to write the events of so many busy seconds into its history, in a folder.
func History(ctx context.Context, folder string, seconds int) ([]report.Row, error) {
	store, _, err := history.Open(folder, history.Limits{})
	if err != nil {
		return nil, err
	}
	var used report.Figures
	index := uint64(0)
	for range seconds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows, after := make([]history.Row, aSecond), index
		for i := range rows {
			index++
			rows[i] = history.Row{Place: history.Place{Index: index}, Event: &model.Event{
				Index: index, At: noon.Add(time.Duration(index) * time.Second / aSecond), Kind: "vm.migrated",
				Subject: fmt.Sprintf("vm/web%d", index%10_000), Message: fmt.Sprintf("runs on hv%d now", index%1000), Caller: "operator/alice",
				Operation: fmt.Sprintf("%013x", index*7919), Decision: fmt.Sprintf("%013x", index*104729),
			}}
		}
		before, err := spent()
		if err != nil {
			return nil, err
		}
		if err := store.Add(after, index, rows); err != nil {
			return nil, err
		}
		now, err := spent()
		if err != nil {
			return nil, err
		}
		used.Add(now - before)
	}
	size := float64(store.Figures().Size) / float64(index)
	return []report.Row{{
		Goal: "H1", What: fmt.Sprintf("CPU of %d events a second that are written into the history", aSecond),
		Measured: used.Spread(report.Seconds) + " a second", Against: report.Digits(size) + " bytes an event",
		Wanted: "<= " + report.Digits(100*mostHistory) + " % of a core", Verdict: report.Judge(used.Median(), mostHistory),
	}}, nil
}

// spent is the CPU time of this process.
func spent() (time.Duration, error) {
	var used unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
