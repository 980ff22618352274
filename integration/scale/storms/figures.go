package storms

import (
	"fmt"
	"math"

	"berth/integration/bench/report"
)

// Figure is one thing that Measure takes.
type Figure struct {
	Name, What string
	Unit       func(float64) string
	Wanted     float64 // at most; 0: nothing is wanted of it
}

// none is as good as 0 is, where nothing at all is wanted: a goal of 0 would be no goal.
const none = math.SmallestNonzeroFloat64

// The names of the figures.
const (
	enrol    = "JOIN"
	starts   = "STARTS"
	spent    = "MEMBERS"
	killed   = "KILL"
	moved    = "MOVED"
	lost     = "LOST"
	perTold  = "TOLD"
	resident = "RESIDENT"
	answered = "ANSWERED"
	restart  = "RESTART"
	gathered = "GATHERED"
	storm    = "STORM"
	peak     = "PEAK"
	longest  = "LONGEST"
	refused  = "REFUSED"
	heard    = "HEARD"
	message  = "MESSAGE"
	hearing  = "HEARING"
	fresh    = "FRESH"
)

// Figures are all that Measure takes, in the order of a table.
var Figures = []Figure{
	{enrol, "enrolment of a node over TLS, CPU of three coordinators", report.Seconds, 0},
	{starts, fmt.Sprintf("starts a second of %d clients beside agents and coordinators", clients), report.PerSecond, 0},
	{spent, "CPU of the three coordinators a start to its end, with the reports of all agents", report.Seconds, 0},
	{killed, fmt.Sprintf("leader killed in the middle of %d clients' starts: until a survivor accepts a start", clients), report.Seconds, 3},
	{moved, "the same: until all agents have a session with the next leader", report.Seconds, 30},
	{lost, "starts that were accepted, and are lost or run twice after all of this", count, none},
	{perTold, "an agent's report at rest with all that the leader does besides, CPU of the leader", report.Seconds, 0},
	{resident, "memory of the leader at rest, resident", report.Megabytes, 1e9},
	{answered, "all coordinators killed and started: until a start is accepted", report.Seconds, 0},
	{restart, "the same: until all agents are back, each calling from its own address", report.Seconds, 30},
	{gathered, "the same: all calling from one address", report.Seconds, 60},
	{storm, "connections of all agents break at once: until all are back", report.Seconds, 60},
	{peak, "the same: most memory of the leader, against rest", report.Times, 2},
	{longest, "the same: longest wait for a start to be accepted", report.Seconds, 5},
	{refused, "the same: starts that were not accepted", count, none},
	{heard, "agents that each send 1,000 bytes every 5 s to one coordinator: cores that it takes", report.Digits, 0.3},
	{message, "the same: CPU of one report", report.Seconds, 0},
	{hearing, "the same: memory of it, resident", report.Megabytes, 1e9},
	{fresh, "the same: from the sending of a report until the coordinator's answers rest on it, p99, call included", report.Seconds, 0.05},
}

func count(n float64) string { return fmt.Sprintf("%.0f", n) }
