package console

import (
	"fmt"

	berthv1 "berth/shared/gen/berth/v1"
)

// bar is memory, used beside promised beside physical. What is not known is left out of the picture, and said in words.
type bar struct {
	Physical, Used, Promised, Limit             int64
	KnownPhysical, KnownUsed, KnownPromised     bool
	LackPhysical, LackUsed, LackPromised, Nodes int // of several nodes: how many do not tell
}

func barOf(node *berthv1.Node) bar {
	b := bar{Nodes: 1}
	telemetry, ledgers := node.GetTelemetry(), node.GetLedgers()
	switch {
	case telemetry != nil && telemetry.MemoryTotalBytes != nil:
		b.Physical, b.KnownPhysical = telemetry.GetMemoryTotalBytes(), true
	case node.GetInventory().GetMemoryBytes() > 0:
		b.Physical, b.KnownPhysical = node.GetInventory().GetMemoryBytes(), true
	}
	if telemetry != nil && telemetry.MemoryTotalBytes != nil && telemetry.MemoryAvailableBytes != nil {
		b.Used, b.KnownUsed = telemetry.GetMemoryTotalBytes()-telemetry.GetMemoryAvailableBytes(), true
	}
	if ledgers != nil {
		b.Promised, b.Limit, b.KnownPromised = ledgers.GetPromisedUsedBytes(), ledgers.GetPromisedLimitBytes(), true
	}
	return b
}

// add is the bar of two together.
func (b *bar) add(other bar) {
	b.Nodes += other.Nodes
	b.Physical += other.Physical
	b.Used += other.Used
	b.Promised += other.Promised
	b.Limit += other.Limit
	b.KnownPhysical, b.KnownUsed = b.KnownPhysical || other.KnownPhysical, b.KnownUsed || other.KnownUsed
	b.KnownPromised = b.KnownPromised || other.KnownPromised
	b.LackPhysical += lacking(other.KnownPhysical)
	b.LackUsed += lacking(other.KnownUsed)
	b.LackPromised += lacking(other.KnownPromised)
}

func lacking(known bool) int {
	if known {
		return 0
	}
	return 1
}

// Share is how wide a part is, of 100.
func (b bar) Share(part int64) string {
	if share := b.share(part); share > 0 {
		return fmt.Sprintf("%.1f", 100*share)
	}
	return "0"
}

// share is how much a part is of the widest one.
func (b bar) share(part int64) float64 {
	whole := max(b.Physical, b.Limit, b.Promised, b.Used)
	if whole <= 0 || part <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Says is the bar in words.
func (b bar) Says() string {
	told := func(known bool, lack int, n int64) string {
		switch {
		case !known:
			return unknown
		case lack > 0:
			return fmt.Sprintf("%s (%d of %d nodes do not tell)", size(n), lack, b.Nodes)
		}
		return size(n)
	}
	return fmt.Sprintf("used %s, promised %s of %s, physical %s", told(b.KnownUsed, b.LackUsed, b.Used),
		told(b.KnownPromised, b.LackPromised, b.Promised), told(b.KnownPromised, 0, b.Limit), told(b.KnownPhysical, b.LackPhysical, b.Physical))
}
