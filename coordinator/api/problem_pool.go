package api

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/view"
)

// alarms are the shares of a pool, in per cent, from which people are told that it fills up, and what follows from that.
var alarms = []struct {
	percent int64
	follows string
}{
	{95, "guests that write there are about to be paused: delete or move disks now, or make the pool larger"},
	{90, "no disk should grow there: delete or move disks, or make the pool larger"},
	{80, "make room in time"},
}

// poolProblems are the pools that fill up. A guest whose disk finds no room is paused by its hypervisor.
func (p problems) poolProblems() []string {
	var lines []string
	pools := p.View().Pools()
	for i := range pools {
		for k := range pools[i].Shares {
			if line := filling(&pools[i], &pools[i].Shares[k], p.NodeName); line != "" {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// filling says how full a share of a pool is; empty if it has room.
func filling(pool *view.PoolView, share *view.PoolShare, name func(node string) string) string {
	if share.Capacity <= 0 {
		return ""
	}
	used := int64(share.Capacity - share.Available)
	for _, alarm := range alarms {
		// By division, because a pool of some PiB times a hundred does not fit.
		if used < int64(share.Capacity)/100*alarm.percent {
			continue
		}
		on := make([]string, 0, len(share.Nodes))
		for _, node := range share.Nodes {
			on = append(on, name(node))
		}
		return fmt.Sprintf("pool %s on %s is %d %% full, %s are left: %s",
			pool.Record.Name, strings.Join(on, ", "), used/max(int64(share.Capacity)/100, 1), share.Available, alarm.follows)
	}
	return ""
}
