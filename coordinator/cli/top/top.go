package top

import (
	"math"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
)

// Command is the noun top.
func Command(a *term.App) *cobra.Command {
	return term.Noun("top COMMAND", "See what nodes and VMs use at the moment", `
What nodes and VMs use at the moment, as their agents last measured it. What is not known is shown as -, never as zero.`,
		nodesCommand(a), vmsCommand(a))
}

// precise is a figure as an order compares it; what is not known comes last.
func precise(figure *float64) int64 {
	const steps = 1e6
	switch {
	case figure == nil || math.IsNaN(*figure):
		return -1
	case *figure > math.MaxInt64/steps:
		return math.MaxInt64
	}
	return int64(*figure * steps)
}

// percentOf prints a percentage.
func percentOf(percent *float64) string {
	if percent == nil {
		return term.None
	}
	return term.Percent(new(*percent / 100))
}
