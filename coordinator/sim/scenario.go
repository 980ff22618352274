package sim

import (
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/shared/units"
)

// Format is what the first field of every scenario says.
const Format = "berth/scenario/v1"

// MaxScenario is the size in bytes of the largest scenario that is read.
const MaxScenario = 64 << 20

// Bounds of a scenario. They catch slips, not policy.
const (
	maxFigure   = 1e12
	maxCPUs     = 1 << 16
	maxVCPUs    = 1 << 16
	maxCapacity = 100_000
)

// beginning is when a scenario that does not say takes place.
var beginning = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Scenario is a file that was read and makes sense: a world, and what is done to it. One goroutine has it at a time.
type Scenario struct {
	Name  string // of the file
	Seed  uint64
	At    time.Time // time stands still in a scenario
	Steps []Step

	document *estate.Document
	checked  *world // the one that Parse put together to see that it can be; the first Run takes it
	ids      []identity
	nodes    []nodeEntry
	running  []guestEntry
	stopped  []stoppedEntry
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
	load, busy                  *float64 // load average over a minute; busy share of the CPUs, 0 to 1
	maintenance                 *bool
	maintenanceReason           string
	state, stateReason          string
	inventoryAge, telemetryAge  *time.Duration
	unknown                     []string
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
	young             bool
	inFlight          bool
	stray             bool
	state             string
	keys              []cluster.ResidentKey
	keysGiven         bool
	customer, billing string
	ownerGiven        bool
	past
}

// past is what a VM has from its last start.
type past struct {
	sticky      []cluster.Key
	stickyGiven bool
	home        string // name of a node
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

	action action
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
