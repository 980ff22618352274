// Package rule is what every placement rule is given and gives back: the input of one decision, a constraint's verdict,
// a weigher's terms. The engine turns them into the Decision that is kept.
package rule

import (
	"time"

	"berth/coordinator/placement/key"
	"berth/shared/units"
)

// Input is what is to be placed, as the rules see it. Rules do not change it.
type Input struct {
	At         time.Time // of the view
	Memory     units.Bytes
	VCPUs      int
	Pinned     string // node ID: no other one will do; empty: any
	PinnedName string
	Excluded   []string // node IDs that failed this request before
	Current    string   // node ID that runs the VM now; empty when none does
	SystemKeys []key.Weighted
}

// Unit is what a verdict's amounts are counted in.
type Unit string

// Bytes counts memory.
const Bytes Unit = "bytes"

// Verdict is a constraint's answer for one node. It is small and holds no text of its own, so that a scan over many
// nodes allocates nothing.
type Verdict struct {
	Passed bool
	Code   string // of a refusal: one of the constraint's own words

	// Needed must be exceeded by Available. Both mean something only when Unit is set.
	Needed, Available float64
	Unit              Unit

	// Age is that of the input, if Aged.
	Age  time.Duration
	Aged bool
}

// Pass is a verdict without figures.
func Pass() Verdict { return Verdict{Passed: true} }

// Refuse is a refusal without figures.
func Refuse(code string) Verdict { return Verdict{Code: code} }

// AtAge adds the age of the input.
func (v Verdict) AtAge(age time.Duration) Verdict {
	v.Age, v.Aged = max(age, 0), true
	return v
}

// Relaxation is a change that would lift a refusal. Among those of one constraint, the smallest cost is told.
type Relaxation struct {
	Text string
	Cost float64
}

// Term is one part of a node's score.
type Term struct {
	Key          string  // of a key weigher
	Raw          float64 // the measured value
	Proximity    float64 // of a key weigher
	Weight       float64
	Contribution float64
	Unknown      bool // the value could not be measured: it contributes nothing
}
