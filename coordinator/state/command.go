package state

import (
	"errors"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/session"
)

// Table names one kind of record.
type Table string

// The tables of the replicated state.
const (
	Nodes      Table = "node"
	VMs        Table = "vm"
	Operations Table = "operation"
	Decisions  Table = "decision"
	Members    Table = "member"
	Tokens     Table = "token"
	Resources  Table = "resource"
	Meta       Table = "meta"
	Plans      Table = "plan"
	Identities Table = "identity"
	Sessions   Table = "session"
)

// Command is one entry of the Raft log: compare, then store, as a whole or not at all. Times, IDs and decisions are in
// the command; applying it reads no clock and runs no placement code.
type Command struct {
	// Key makes the command idempotent: the second one with the same key and kind gets the first one's Result. A refused
	// command stores nothing, its key neither: a corrected one may carry it. Keys are kept for KeyAge of stamped time, at
	// least the last MinKeys and at most the last MaxKeys.
	Key    string    `json:"key"`
	Kind   string    `json:"kind"` // what it does, for the history: start vm, enrol node, ...
	Caller string    `json:"caller"`
	At     time.Time `json:"at"`

	// Expect guards the command: each record must be at this revision, or absent when it is 0. A record of Nodes, VMs,
	// Operations, Members, Tokens, Resources, Plans, Identities or Sessions that is put or deleted must be expected.
	Expect []Expectation `json:"expect,omitempty"`

	Nodes      []model.Node          `json:"nodes,omitempty"`
	VMs        []model.VM            `json:"vms,omitempty"` // a used ID goes on from Snapshot.LastEpoch
	Operations []operation.Operation `json:"operations,omitempty"`
	Decisions  []placement.Decision  `json:"decisions,omitempty"` // immutable; those beyond MaxDecisions or DecisionAge go
	Members    []model.Member        `json:"members,omitempty"`
	Tokens     []model.Token         `json:"tokens,omitempty"`
	Resources  []model.Resource      `json:"resources,omitempty"`
	Events     []model.Event         `json:"events,omitempty"` // the oldest beyond MaxEvents go
	Meta       map[string]string     `json:"meta,omitempty"`   // cluster ID and the like; needs no expectation

	// Delete takes records away. A VM or node that goes leaves the members of all resources and the preferences of all VMs.
	Delete []Record `json:"delete,omitempty"`

	Plans []model.Plan `json:"plans,omitempty"` // the oldest ended ones beyond MaxPlans go

	Identities []model.Identity `json:"identities,omitempty"` // the first revoked ones beyond MaxRevoked go; needs level 3

	Sessions []session.Session `json:"sessions,omitempty"` // needs level 3

	Level uint32 `json:"level,omitempty"` // feature level that it takes to apply this; 0: any
	// Release is the one that wrote a command which needs level 3 or a higher one, for members that cannot apply it.
	Release string `json:"release,omitempty"`
	Check   *Check `json:"check,omitempty"` // stops a member whose state was another one; needs level 2

	// Partial are the records above that have only what changes. It is filled in by Lean.
	Partial []Partial `json:"partial,omitempty"`
}

// Expectation is the revision at which a record must be. 0: the record must not exist.
type Expectation struct {
	Table    Table  `json:"table"`
	ID       string `json:"id"`
	Revision uint64 `json:"revision"`
}

// Record names one record.
type Record struct {
	Table Table  `json:"table"`
	ID    string `json:"id"`
}

// Bounds of what the state keeps for people to read.
const (
	MaxDecisions  = 2000
	DecisionAge   = 90 * 24 * time.Hour // of stamped time
	MaxEvents     = 10000
	MaxOperations = 5000 // ended ones
	MaxPlans      = 500  // ended ones
)

// Bounds of what the state remembers for its own use.
const (
	MinKeys   = 100_000
	MaxKeys   = 1_000_000 // a day of eleven commands a second
	KeyAge    = 24 * time.Hour
	MaxEpochs = 100_000 // of deleted VMs
	// MaxRevoked is how many identities are remembered that were revoked, so that no backup brings them back.
	MaxRevoked = 20_000
)

// MaxCommand is the size in bytes of an encoded command beyond which it is refused before it is sent. An estate is applied
// whole, as one command, so this bounds the estates that can be: some thousand VMs with what belongs to them in one change.
// An entry of this size takes a gigabit network 40 ms, far from the 800 ms of silence after which members elect anew.
const MaxCommand = 4 << 20

// Keys of Meta that the state and the consensus know.
const (
	MetaClusterID  = "cluster_id"
	MetaQuarantine = "quarantine" // why no VM may be started, stopped or moved; absent: they may
	// MetaFeatureLevel is read by Snapshot.FeatureLevel and written by RaiseLevel.
	MetaFeatureLevel = "feature_level"
	// MetaRecordsFrom is when (RFC 3339) it ends that an identity without a record counts as in releases that had none. Absent: records
	// have not begun.
	MetaRecordsFrom = "identity_records_from"
	// MetaAuthorities has the cluster's authorities once the first was followed by another. Absent: there is the first alone.
	MetaAuthorities = "authorities"
	// MetaHypervisors has the authorities of the nodes' libvirt and QEMU once the first of one was followed by another.
	MetaHypervisors = "hypervisor_authorities"
)

// Result is what applying a command gave.
type Result struct {
	Index   uint64   // Raft index; the new revision of every record put
	Refusal *Refusal // nil when the command was stored
}

// Refusal is an expected no: nothing was stored.
type Refusal struct {
	Code    RefusalCode `json:"code"`
	Table   Table       `json:"table,omitempty"`
	ID      string      `json:"id,omitempty"`
	Message string      `json:"message"`
}

func (r *Refusal) Error() string { return r.Message }

// RefusalCode is why a command was not stored.
type RefusalCode string

// The codes of a refusal.
const (
	Stale     RefusalCode = "stale"      // a record is at another revision: read again and decide again
	NameTaken RefusalCode = "name_taken" // another record of the kind has the name
	InUse     RefusalCode = "in_use"     // something names the record that would go, or has the disk or NIC already
	Invalid   RefusalCode = "invalid"    // the command breaks an invariant of the state
)

// ErrNotFound is returned by reads of a record that is not there.
var ErrNotFound = errors.New("no such record")
