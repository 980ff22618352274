package scenario

import (
	"time"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/shared/units"
)

// MaxScenario is the size in bytes of the largest scenario that is read.
const MaxScenario = 64 << 20

// Bounds of a scenario. They catch slips, not policy.
const (
	maxCPUs     = 1 << 16
	maxVCPUs    = 1 << 16
	maxCapacity = 100_000
	maxPasses   = 50_000 // a month of minutes
)

// beginning is when a scenario that does not say takes place.
var beginning = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Scenario is a file that was read and makes sense: a world, and what is done to it. One goroutine has it at a time.
type Scenario struct {
	Name  string // of the file
	Seed  uint64
	At    time.Time // when it begins; time stands still unless a step lets it pass
	Steps []Step

	// Interval is between two passes of the leader, and Bandwidth what a migration copies in a second.
	Interval  time.Duration
	Bandwidth units.Bytes

	document *document.Document
	checked  *world // the one that Parse put together to see that it can be; the first Run takes it
	ids      []identity
	nodes    []nodeEntry
	running  []guestEntry
	stopped  []stoppedEntry
	volumes  []volumeEntry
	broken   []brokenEntry
	plans    []planEntry // newest first
}

// identity is an ID that is not made from the name.
type identity struct {
	line    int
	subject string // kind/name
	id      string
}

// nodeEntry are the figures of one node.
type nodeEntry struct {
	line int
	name string
	figures
}

// figures of a node. Those that are nil are left alone.
type figures struct {
	memory, available, ksmSaved *units.Bytes
	cpus                        *int
	measured                    []*float64 // in the order of measurements; nil: none is given
	maintenance                 *bool
	maintenanceReason           string
	state, stateReason          string
	inventoryAge, telemetryAge  *time.Duration
	unknown                     []string
	around
}

// guestEntry is a VM, or a domain that is not Berth's, on a node.
type guestEntry struct {
	line    int
	vm      string // name; empty: foreign is
	foreign string
	id      string // UUID of a foreign domain; empty: as its name
	node    string // name

	memory            *units.Bytes
	vcpus             *int
	resident          *units.Bytes
	cpu               *float64
	ballooned         *units.Bytes
	most              *units.Bytes
	young             bool
	inFlight          bool
	stray             bool
	state             string
	keys              []model.ResidentKey
	keysGiven         bool
	customer, billing string
	ownerGiven        bool
	past
}

// past is what a VM has from its last start and move.
type past struct {
	sticky      []model.Key
	stickyGiven bool
	home, last  string         // names of nodes
	model       string         // CPU model that it was started with
	hostCPU     string         // of its node, if that was passed through
	movedAgo    *time.Duration // nil: never
}

// planEntry is a plan that has ended before the scenario begins.
type planEntry struct {
	line                 int
	plan                 model.Plan // without nodes, moves and times
	node                 string
	createdAgo, endedAgo time.Duration
	observedAgo          *time.Duration
	moves                []moveEntry
}

// moveEntry is one move of such a plan.
type moveEntry struct {
	line         int
	vm, from, to string
	move         model.Move // the rest of it
}

// brokenEntry is since when a group's rules do not hold.
type brokenEntry struct {
	line  int
	group string
	ago   time.Duration
}

// stoppedEntry is a VM that does not run and that has run before.
type stoppedEntry struct {
	line int
	vm   string
	past
}

// Step is one thing that is done.
type Step struct {
	Line   int
	Words  string // what it is, for people: "start web-2"
	Expect *Expectation

	at     *time.Duration // since the beginning, when it is done; nil: when the step before it is done
	action action
	of     expects
}

// action does one step. What it says about it goes into the report; an error says that the step cannot be.
type action interface {
	do(w *world, seed uint64, report *StepReport) error
}

// Expectation is what a step is to come to. Fields that are not given are not compared.
type Expectation struct {
	Line int

	nodes     []string // any of them
	outcome   string
	phase     string
	round     *int
	refused   []expectedRefusal
	scores    []expectedScore
	more      *int
	perNode   []expectedCount
	runsOut   string
	moved     []expectedMove
	left      []string
	leftGiven bool

	moves    *int
	where    []expectedMove
	proposed []expectedMove
	idle     string
	holds    []string
	broken   []string
}

type expectedRefusal struct {
	node        string
	constraints []string
}

type expectedScore struct {
	node             string
	system, customer *float64
}

type expectedCount struct {
	node string
	more int
}

type expectedMove struct {
	vm    string
	nodes []string
}
