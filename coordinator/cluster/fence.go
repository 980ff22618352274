package cluster

import (
	"maps"
	"time"
)

// FenceMethod is a way to prove that a node is off.
type FenceMethod string

// The ways to prove that a node is off. Nothing else counts: silence is not death.
const (
	FenceNone     FenceMethod = ""
	FenceCommand  FenceMethod = "command"  // a fence agent has switched it off and answered that it is
	FenceManual   FenceMethod = "manual"   // an operator says so
	FenceWatchdog FenceMethod = "watchdog" // its last lease has ended, and its watchdog has fired since
)

// FenceDevice says how a node is proven to be off.
type FenceDevice struct {
	Method    FenceMethod       `json:"method,omitempty"`
	Program   string            `json:"program,omitempty"`   // of FenceCommand: name or path of a fence agent
	Arguments map[string]string `json:"arguments,omitempty"` // of FenceCommand: as fence agents read them
	Timeout   time.Duration     `json:"timeout,omitempty"`   // of FenceCommand; 0: the default
}

// Equal tells whether two devices are the same.
func (d FenceDevice) Equal(other FenceDevice) bool {
	return d.Method == other.Method && d.Program == other.Program && d.Timeout == other.Timeout && maps.Equal(d.Arguments, other.Arguments)
}

// IsZero tells whether there is no device.
func (d FenceDevice) IsZero() bool { return d.Equal(FenceDevice{}) }

// FencingPhase is how far an attempt to prove that a node is off has come.
type FencingPhase string

// The phases of an attempt.
const (
	FencingAsked  FencingPhase = "asked"  // the device is asked, by whoever leads
	FencingProven FencingPhase = "proven" // the node was off: orders to the incarnation are void
	FencingFailed FencingPhase = "failed" // no proof; it is tried again
)

// Fencing is an attempt to prove that a node is off. It is replicated, so that the next leader goes on with it and two
// never overlap on a node.
type Fencing struct {
	ID          string       `json:"id,omitempty"`
	Phase       FencingPhase `json:"phase,omitempty"`
	Method      FenceMethod  `json:"method,omitempty"`
	Incarnation string       `json:"incarnation,omitempty"` // of the agent, as last heard
	Attempt     int          `json:"attempt,omitempty"`     // from 1
	Caller      string       `json:"caller,omitempty"`
	Message     string       `json:"message,omitempty"`
	AskedAt     time.Time    `json:"asked_at,omitzero"`
	EndedAt     time.Time    `json:"ended_at,omitzero"`
}

// Fenced tells whether the node is proven to be off, and has not come back since.
func (n *Node) Fenced() bool { return n.Fencing.Phase == FencingProven }
