// Package downtime measures for how long guests are down, by the fault that has ended them.
package downtime

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Down is since when VMs are down that are to be highly available, and why, by UUID.
type Down map[string]outage

type outage struct {
	since time.Time
	cause string
}

// Begins takes note that a guest has ended by a fault.
func (d Down) Begins(vm, cause string, now time.Time) { d[vm] = outage{since: now, cause: cause} }

// Again lets the time of those that are down for one reason count from now on, under another name.
func (d Down) Again(cause, name string, now time.Time) {
	for vm, one := range d {
		if one.cause == cause {
			d[vm] = outage{since: now, cause: name}
		}
	}
}

// Ends is how long a guest was down that Berth has restarted by itself.
func (d Down) Ends(vm string, restarted bool, now time.Time, back map[string][]time.Duration) {
	one, down := d[vm]
	delete(d, vm)
	if down && restarted {
		back[one.cause] = append(back[one.cause], now.Sub(one.since))
	}
}

// Table has a line for each kind of fault: how many guests ran again, and after which time half of them did, 99 %, and the last one.
// Package integration/goals prints it.
func Table(back map[string][]time.Duration) []string {
	var lines []string
	for _, cause := range slices.Sorted(maps.Keys(back)) {
		all := slices.Sorted(slices.Values(back[cause]))
		at := func(percent int) time.Duration { return all[(len(all)-1)*percent/100].Round(time.Second) }
		lines = append(lines, fmt.Sprintf("BACK %s | %d | %s | %s | %s", cause, len(all), at(50), at(99), at(100)))
	}
	return lines
}
