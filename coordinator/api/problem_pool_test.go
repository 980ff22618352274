package api

import (
	"strings"
	"testing"

	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/shared/units"
)

func TestPoolsThatFillUpAreTold(t *testing.T) {
	pool := view.PoolView{Record: model.Resource{Name: "fast"}}
	for left, want := range map[units.Bytes]string{
		21 * units.GiB: "",
		20 * units.GiB: "pool fast on node1, node2 is 80 % full, 20 GiB are left: make room in time",
		11 * units.GiB: "pool fast on node1, node2 is 89 % full, 11 GiB are left: make room in time",
		10 * units.GiB: "pool fast on node1, node2 is 90 % full, 10 GiB are left: no disk should grow there: delete or move disks, or make the " +
			"pool larger",
		5 * units.GiB: "pool fast on node1, node2 is 95 % full, 5 GiB are left: guests that write there are about to be paused: delete or " +
			"move disks now, or make the pool larger",
		0: "pool fast on node1, node2 is 100 % full, 0 B are left: guests that write there are about to be paused: delete or " +
			"move disks now, or make the pool larger",
	} {
		share := view.PoolShare{Nodes: []string{"1", "2"}, Capacity: 100 * units.GiB, Available: left}
		if got := filling(&pool, &share, func(node string) string { return "node" + node }); got != want {
			t.Errorf("%s left: %q\nwant %q", left, got, want)
		}
	}
	none := view.PoolShare{Nodes: []string{"1"}}
	if got := filling(&pool, &none, strings.ToUpper); got != "" {
		t.Errorf("a pool that no node shows: %q", got)
	}
}
