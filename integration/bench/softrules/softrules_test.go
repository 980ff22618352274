package softrules

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/view"
	"berth/integration/bench/report"
	"berth/shared/units"
)

var noon = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// plain is a cluster of nodes that are alike but for what is free.
func plain(nodes int) *view.Columns {
	c := &view.Columns{Figures: view.Figures{Cluster: model.DefaultCluster}, Residents: view.NewResidents()}
	const memory = 512 * units.GiB
	var (
		reported   []int64
		used, free []units.Bytes
	)
	for i := range nodes {
		id := fmt.Sprintf("n%06d", i)
		c.IDs, c.Names = append(c.IDs, id), append(c.Names, id)
		c.Standing = append(c.Standing, view.Stands)
		c.Known = append(c.Known, view.KnowsInventory|view.KnowsDomains|view.KnowsTelemetry|view.KnowsFree|view.KnowsLoad)
		c.Memory, c.RAMRatio, c.Overhead = append(c.Memory, memory), append(c.RAMRatio, 1), append(c.Overhead, units.GiB)
		c.Promised, c.VCPULimit = append(c.Promised, memory), append(c.VCPULimit, 512)
		reported = append(reported, noon.UnixNano())
		used = append(used, units.Bytes(i%7)*16*units.GiB)
		free = append(free, memory-used[i])
	}
	c.InventoryAt, c.TelemetryAt = view.ColumnOf(reported...), view.ColumnOf(reported...)
	c.Used, c.Free = view.ColumnOf(used...), view.ColumnOf(free...)
	c.VCPUs, c.Load = view.ColumnOf(make([]int, nodes)...), view.ColumnOf(make([]float64, nodes)...)
	c.Derive()
	return c
}

func site() Site {
	return Site{Columns: plain, At: noon, Request: placement.Request{
		Purpose: placement.ForStart, VMName: "new", Memory: units.GiB, VCPUs: 1, Cluster: model.DefaultCluster,
	}}
}

// What is timed has to be what the rows say: the member goes to a node that its group wants and no other member has, for the stranger
// every node counts, and where rules are within the bands nothing is preferred.
func TestOnlyTheMemberHasWishes(t *testing.T) {
	const n = 400
	here := site()
	pairs, err := here.pairs(n)
	if err != nil {
		t.Fatal(err)
	}
	member, stranger := pairs[0], pairs[1]
	if node := member.now.last.Node; node%8 != 1 || node < 8*others {
		t.Errorf("the member goes to node %d", node)
	}
	if kept := member.now.last.Kept; kept != n/8-others {
		t.Errorf("%d nodes break the least, want %d", kept, n/8-others)
	}
	if member.before.last.Kept != 0 || stranger.now.last.Kept != 0 || stranger.now.last != stranger.before.last {
		t.Errorf("within the bands %+v; the stranger %+v and %+v", member.before.last, stranger.now.last, stranger.before.last)
	}
}

func TestEachRowIsAnAnswer(t *testing.T) {
	here := site()
	pairs, err := here.pairs(400)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pairs {
		decision, err := pairs[i].decisions(t.Context(), 400, 2)
		if err != nil {
			t.Fatal(err)
		}
		sequence, err := pairs[i].sequences(t.Context(), 400, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []report.Row{decision, sequence} {
			if row.Goal == "" || row.Measured == "" || row.Against == "" || row.Verdict == report.NoVerdict {
				t.Errorf("%+v is no answer", row)
			}
		}
	}
}

// What cannot be measured ends the run, and so does whoever interrupts it.
func TestAFullClusterIsNoMeasurement(t *testing.T) {
	full := site()
	full.Request.Memory = 1024 * units.GiB
	if _, err := Measure(t.Context(), full, 1); !errors.Is(err, errNoNode) {
		t.Errorf("got %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Measure(ctx, site(), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
