// Package profile joins what nodes tell of the week of a VM or of a node.
package profile

import (
	"cmp"
	"math"
	"slices"
	"time"

	"berth/shared/units"
	"berth/shared/week"
)

// Told is what nodes tell of a VM or of a node.
type Told struct {
	Hours   []Hour // of the week
	Minutes []Hour // of the last hour; their figures are averages
}

// Hour is what was used in one hour: figures below which it was for 95 % of the time. Nil is not known.
type Hour struct {
	Began  time.Time
	Node   string       // name of the one that tells it
	CPU    *float64     // of a VM: CPUs; of a node: the busy part of its CPUs
	Memory *units.Bytes // of a VM: what it really has; of a node: what is neither free nor could be
	Delay  *float64     // the part of the time in which a vCPU waited for a CPU
}

// Join has the newest hour that was told of each hour of the week, in their order. No node has all hours of a VM that has moved. What is
// no hour, or no figure, is left out: it comes from many machines.
func Join(told []Hour) []Hour {
	newest := map[int]Hour{}
	for _, one := range told {
		number, at := week.Of(one.Began)
		one.CPU, one.Delay = figure(one.CPU), figure(one.Delay)
		if one.Memory != nil && *one.Memory < 0 {
			one.Memory = nil
		}
		if number < 0 || !one.Began.Equal(week.Began(number, at)) || one.CPU == nil && one.Memory == nil && one.Delay == nil {
			continue
		}
		before, known := newest[at]
		if order := one.Began.Compare(before.Began); !known || order > 0 || order == 0 && one.Node < before.Node {
			newest[at] = one
		}
	}
	hours := make([]Hour, 0, len(newest))
	for at := range week.Hours {
		if one, known := newest[at]; known {
			hours = append(hours, one)
		}
	}
	return hours
}

// mostMinutes is how many minutes are told: an hour, and one that ends while nodes are asked.
const mostMinutes = 61

// JoinMinutes has the last minutes that were told, in their order, each once. It leaves out what Join does.
func JoinMinutes(told []Hour) []Hour {
	var minutes []Hour
	for _, one := range told {
		one.CPU, one.Delay = figure(one.CPU), figure(one.Delay)
		if one.Memory != nil && *one.Memory < 0 {
			one.Memory = nil
		}
		if one.Began.Unix() < 0 || !one.Began.Equal(one.Began.Truncate(time.Minute)) || one.CPU == nil && one.Memory == nil && one.Delay == nil {
			continue
		}
		minutes = append(minutes, one)
	}
	slices.SortStableFunc(minutes, func(a, b Hour) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Node, b.Node)) })
	minutes = slices.CompactFunc(minutes, func(a, b Hour) bool { return a.Began.Equal(b.Began) })
	return minutes[max(0, len(minutes)-mostMinutes):]
}

func figure(value *float64) *float64 {
	if value == nil || math.IsNaN(*value) || math.IsInf(*value, 0) || *value < 0 {
		return nil
	}
	return value
}

// Stay is that a VM came to a node.
type Stay struct {
	Node string // ID
	At   time.Time
}

// Nodes are those to ask about a VM, at most so many: those that it came to last.
func Nodes(stays []Stay, most int) []string {
	slices.SortStableFunc(stays, func(a, b Stay) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Node, b.Node)) })
	var nodes []string
	for _, one := range stays {
		if one.Node != "" && !slices.Contains(nodes, one.Node) && len(nodes) < most {
			nodes = append(nodes, one.Node)
		}
	}
	return nodes
}
