package operation

import (
	"time"

	"berth/coordinator/cluster"
	"berth/shared/units"
)

// Kind says what an operation does.
type Kind string

// The kinds of operation.
const (
	Start   Kind = "start"
	Stop    Kind = "stop"
	Migrate Kind = "migrate"
	Delete  Kind = "delete"  // of a stopped VM that has volumes
	Adopt   Kind = "adopt"   // a running domain becomes a VM
	Release Kind = "release" // a VM becomes a domain that is not Berth's
)

// Phase is how far an operation has come.
type Phase string

// Phases. Start: dispatched, (placing, dispatched)*, ended, with queued before each dispatched whose node is busy. Stop:
// dispatched, (judging, dispatched)*, ended. Migrate: copying, handed-over, ended; with CopyStorage: preparing before, clearing
// after. Delete: clearing, ended. Adopt, release: dispatched, ended. Any order whose end is in doubt leads to judging, and from
// there on or back; a start that made volumes goes back by way of clearing.
const (
	Dispatched Phase = "dispatched"  // start, stop: the order is out
	Queued     Phase = "queued"      // start: other starts come first on the node; no order is out
	Placing    Phase = "placing"     // start: the last node failed, positively; the placer picks the next one
	Copying    Phase = "copying"     // migrate: the source works
	Judging    Phase = "judging"     // the last order's end is in doubt; the nodes are asked what they see
	HandedOver Phase = "handed-over" // migrate: the source is gone; the target resumes
	Discarding Phase = "discarding"  // migrate: the loser's paused leftover goes
	Reverting  Phase = "reverting"   // migrate: the target is gone; the paused source resumes
	Preparing  Phase = "preparing"   // migrate with CopyStorage: the target makes the volumes
	Marking    Phase = "marking"     // of a parked one that was resolved: the copy that is kept gets an epoch of its own
	Clearing   Phase = "clearing"    // volumes go that nobody needs: of a start that failed, a copy's source, a deleted VM
	Ended      Phase = "ended"
)

// Result is how an operation ended.
type Result string

// Results. An operation that has not ended has Pending.
const (
	Pending Result = ""
	Done    Result = "done"
	Failed  Result = "failed"
	Parked  Result = "parked" // no rule can decide; an operator has to
)

// Operation is the replicated record.
type Operation struct {
	ID     string `json:"id"`
	Kind   Kind   `json:"kind"`
	Caller string `json:"caller"`
	// Request is the caller's idempotency key: the same request again finds this operation.
	Request string `json:"request,omitempty"`
	VM      string `json:"vm"` // ID
	VMName  string `json:"vm_name"`
	Source  string `json:"source,omitempty"` // node ID: stop, migrate
	Target  string `json:"target,omitempty"` // node ID: start, migrate

	// SourceName and TargetName are the nodes' names, for people.
	SourceName string `json:"source_name,omitempty"`
	TargetName string `json:"target_name,omitempty"`

	// Epoch is the VM's epoch that this operation makes: of the start, or of the new holder. A stop keeps the VM's.
	// SourceEpoch is the epoch that a migration's source runs under.
	Epoch       uint64 `json:"epoch"`
	SourceEpoch uint64 `json:"source_epoch,omitempty"`
	// SourceBoot is the boot that the source's host was in when a migration began; empty: not known.
	SourceBoot string `json:"source_boot,omitempty"`

	Phase    Phase    `json:"phase"`
	Step     uint32   `json:"step"` // grows with every new order; part of each order's identity
	Attempt  uint32   `json:"attempt"`
	Excluded []string `json:"excluded,omitempty"` // node IDs that failed this start
	Decision string   `json:"decision,omitempty"`
	Created  bool     `json:"created,omitempty"` // the VM's record was made for this start and goes if it fails

	// Spec is what a start gives to the node, with what the VM links to as it was at the decision; nil: the VM's own says it
	// all. It goes when the operation ends.
	Spec *cluster.VMSpec `json:"spec,omitempty"`
	// Sticky are the keys that the VM takes along from Target when it has started there.
	Sticky []cluster.Key `json:"sticky,omitempty"`
	// MakesHome tells that the VM's disk is where it starts: its cluster has local storage, and it has no home yet.
	MakesHome bool `json:"makes_home,omitempty"`

	// Memory and VCPUs are reserved on Target while the operation lives.
	Memory units.Bytes `json:"memory,omitempty"`
	VCPUs  int         `json:"vcpus,omitempty"`

	Force     bool          `json:"force,omitempty"`     // stop
	Grace     time.Duration `json:"grace,omitempty"`     // stop
	Bandwidth units.Bytes   `json:"bandwidth,omitempty"` // migrate, a second; 0: libvirt's default
	Deadline  time.Duration `json:"deadline,omitempty"`  // migrate: longest copy
	TargetURI string        `json:"target_uri,omitempty"`
	// TargetHost takes the memory stream; empty: the host of TargetURI.
	TargetHost string `json:"target_host,omitempty"`
	Pinned     string `json:"pinned,omitempty"` // node ID named by the caller: never another one
	Cancel     bool   `json:"cancel,omitempty"`

	Result    Result          `json:"result,omitempty"`
	Message   string          `json:"message,omitempty"`
	Migration *MigrationStats `json:"migration,omitempty"`
	Evidence  []string        `json:"evidence,omitempty"`

	// Leftover is the node ID whose paused copy is being discarded, or whose volumes are being cleared; Revert tells that the
	// source resumes afterwards.
	Leftover string `json:"leftover,omitempty"`
	Revert   bool   `json:"revert,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Revision  uint64    `json:"revision"`

	Plan string `json:"plan,omitempty"` // ID of the plan that the move is of

	// Volumes are made on the target: before a start, and as empty ones that a migration with CopyStorage fills. Nothing of
	// them is left there when the operation fails; when it has come true, the disks' records have them and they are none of the
	// operation's any more. Replaced are the volumes that go once they are not needed any more: on the source of such a
	// migration, and on the one node of a VM that is deleted.
	Volumes     []cluster.VolumeOrder `json:"volumes,omitempty"`
	Replaced    []cluster.VolumeOrder `json:"replaced,omitempty"`
	CopyStorage bool                  `json:"copy_storage,omitempty"`
	// CPU and PassedCPU are what the VM's record has of the name once it has started.
	CPU       string `json:"cpu,omitempty"`
	PassedCPU string `json:"passed_cpu,omitempty"`
	// Code is why a start failed, as its agent's word, while what it left is cleared.
	Code string `json:"code,omitempty"`
	// Disks are IDs of disks whose records go with the VM's: those made with it, when its first start fails, and those that
	// are not kept, when it is deleted.
	Disks []string `json:"disks,omitempty"`

	// Resolution is whose copy is the VM, as an operator has said of a parked operation: source, target or none.
	Resolution string `json:"resolution,omitempty"`
	ResolvedBy string `json:"resolved_by,omitempty"`
	// Restart tells that the start was Berth's own, of a VM that is to be highly available.
	Restart bool `json:"restart,omitempty"`
}

// Observation is what a node's agent saw of the VM when it was asked.
type Observation struct {
	State     cluster.DomainState
	Epoch     uint64
	JobActive bool
	Ended     bool   // it is gone, and its guest was seen to end there: it was not handed over
	Boot      string // of the host that was looked at; empty: not known, or the node is proven to be off
	// Anew tells that the host has booted since the operation began, or is off: guests that it had are gone for that alone.
	Anew bool
}

// MigrationStats are libvirt's figures of a completed job.
type MigrationStats struct {
	Elapsed       time.Duration  `json:"elapsed"`
	DataTotal     units.Bytes    `json:"data_total"`
	DataProcessed units.Bytes    `json:"data_processed"`
	DataRemaining units.Bytes    `json:"data_remaining"`
	MemoryBPS     units.Bytes    `json:"memory_bps"`
	DirtyRate     int64          `json:"dirty_rate_pages"`
	Iteration     int            `json:"iteration"`
	Downtime      *time.Duration `json:"downtime,omitempty"` // of the job, by libvirt
	// Handover is what the strict hand-over adds to it: from the source's answer to the target's, Raft included.
	Handover *time.Duration `json:"handover,omitempty"`

	// Of copied disks; part of the data above.
	DiskTotal     units.Bytes `json:"disk_total,omitempty"`
	DiskProcessed units.Bytes `json:"disk_processed,omitempty"`
	DiskRemaining units.Bytes `json:"disk_remaining,omitempty"`
}

// Live tells whether the operation still holds its VM and its reservation.
func (o *Operation) Live() bool { return o.Phase != Ended }

// Reservation is what the operation holds on its target, if it holds anything.
func (o *Operation) Reservation() (cluster.Reservation, bool) {
	if !o.Live() || o.Target == "" || o.Kind == Stop || o.marks() || o.Phase == Placing {
		return cluster.Reservation{}, false
	}
	return cluster.Reservation{
		Node: o.Target, VM: o.VM, Name: o.VMName, Memory: o.Memory, VCPUs: o.VCPUs, Operation: o.ID, Volumes: o.Volumes,
	}, true
}

// Action is what an order asks of an agent.
type Action string

// The actions of an order.
const (
	ActStart   Action = "start"
	ActStop    Action = "stop"
	ActMigrate Action = "migrate"
	ActResume  Action = "resume"
	ActDiscard Action = "discard"
	ActInspect Action = "inspect"
	ActPrepare Action = "prepare" // make empty volumes for a copy; when that fails, none is left
	ActClear   Action = "clear"   // remove volumes that no domain of the node uses; one that is not there is removed
	ActAdopt   Action = "adopt"   // write Berth's mark into a running domain that has none
	ActRelease Action = "release" // take the mark away
)

// Order is one command to one node's agent. Operation ID and Step identify it.
type Order struct {
	Node        string // ID
	Operation   string
	Step        uint32
	Action      Action
	VM          string
	VMName      string
	Epoch       uint64 // the agent refuses it if its journal holds a newer one for the VM
	TargetEpoch uint64 // migrate
	Spec        cluster.VMSpec
	Force       bool
	Grace       time.Duration
	TargetNode  string
	TargetURI   string
	TargetHost  string
	Bandwidth   units.Bytes
	Deadline    time.Duration
	Persistent  bool // start: libvirt keeps the definition

	// Volumes are those to make (start, prepare), to copy into (migrate) or to remove (discard, clear).
	Volumes     []cluster.VolumeOrder
	CopyStorage bool // migrate: the disks that are in Replaced go along, into Volumes of the same disk
	Replaced    []cluster.VolumeOrder
}

// Outcome is how an agent says that an order ended.
type Outcome string

// The outcomes of an order.
const (
	OutcomeDone      Outcome = "done"
	OutcomeFailed    Outcome = "failed"    // and the VM is, positively, as before
	OutcomeRefused   Outcome = "refused"   // not tried
	OutcomeAmbiguous Outcome = "ambiguous" // the agent cannot tell
	OutcomeCancelled Outcome = "cancelled"
)

// Answer is an agent's answer to an order.
type Answer struct {
	Operation string
	Node      string // ID
	Step      uint32
	Outcome   Outcome
	Code      string
	Error     string
	Seen      Observation
	Migration *MigrationStats
}
