package operation

import (
	"time"

	"berth/coordinator/model"
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

// Phases. Start: dispatched, (placing, dispatched)*, ended; queued comes before each dispatched whose node is busy. Stop:
// dispatched, (judging, dispatched)*, ended; queued comes first if its node is silent, as for a reboot. Migrate: preparing,
// copying, handed-over, ended; with CopyStorage, clearing comes after. Delete: clearing, ended. Adopt, release: dispatched,
// ended. An order whose end is in doubt leads to judging, and from there on or back. A start that made volumes goes back
// through clearing.
const (
	Dispatched Phase = "dispatched"  // start, stop: the order has been sent
	Queued     Phase = "queued"      // other starts come first on the node, or it is silent; no order has been sent
	Placing    Phase = "placing"     // start: the last node has failed for certain; the placer picks the next one
	Copying    Phase = "copying"     // migrate: the source works
	Judging    Phase = "judging"     // the end of the last order is in doubt; the nodes are asked what they see
	HandedOver Phase = "handed-over" // migrate: the source has let the guest go; the target resumes it
	Discarding Phase = "discarding"  // migrate: the paused leftover on the losing side is removed
	Reverting  Phase = "reverting"   // migrate: the target's copy is gone; the paused source resumes
	Preparing  Phase = "preparing"   // migrate: the target journals that it will resume it, and makes the volumes
	Marking    Phase = "marking"     // a parked operation was resolved: the copy that is kept gets its own epoch
	Clearing   Phase = "clearing"    // unneeded volumes are removed: of a failed start, a copy's source, a deleted VM
	Ended      Phase = "ended"
)

// Result is how an operation ended.
type Result string

// Results. A live operation has Pending.
const (
	Pending Result = ""
	Done    Result = "done"
	Failed  Result = "failed"
	Parked  Result = "parked" // no rule can decide; a person has to
)

// Operation is the replicated record.
type Operation struct {
	ID     string `json:"id"`
	Kind   Kind   `json:"kind"`
	Caller string `json:"caller"`
	// Request is the caller's idempotency key: repeating the request finds this operation.
	Request string `json:"request,omitempty"`
	VM      string `json:"vm"` // ID
	VMName  string `json:"vm_name"`
	Source  string `json:"source,omitempty"` // node ID: stop, migrate
	Target  string `json:"target,omitempty"` // node ID: start, migrate

	// SourceName and TargetName are the nodes' names, for people.
	SourceName string `json:"source_name,omitempty"`
	TargetName string `json:"target_name,omitempty"`

	// Epoch is the VM's epoch that this operation creates: of the start, or of the new holder. A stop keeps the VM's epoch.
	// SourceEpoch is the epoch of the copy on a migration's source.
	Epoch       uint64 `json:"epoch"`
	SourceEpoch uint64 `json:"source_epoch,omitempty"`
	// SourceBoot is the boot of the source's host when a migration began; empty: not known.
	SourceBoot string `json:"source_boot,omitempty"`

	Phase    Phase    `json:"phase"`
	Step     uint32   `json:"step"` // grows with every new order; part of each order's identity
	Attempt  uint32   `json:"attempt"`
	Excluded []string `json:"excluded,omitempty"` // node IDs that failed this start
	Decision string   `json:"decision,omitempty"`
	Created  bool     `json:"created,omitempty"` // the VM's record was made for this start and is deleted if it fails

	// Spec is what a start gives to the node, including what the VM links to, as it was at the decision; nil: the VM's own spec
	// is complete. It is removed when the operation ends.
	Spec *model.VMSpec `json:"spec,omitempty"`
	// Sticky are the keys that the VM gets from Target when it has started there.
	Sticky []model.Key `json:"sticky,omitempty"`
	// MakesHome tells that the VM's home is where it starts: its cluster has local storage, and its disk is nowhere yet.
	MakesHome bool `json:"makes_home,omitempty"`

	// Memory and VCPUs are reserved on Target while the operation is live.
	Memory units.Bytes `json:"memory,omitempty"`
	VCPUs  int         `json:"vcpus,omitempty"`

	Force     bool          `json:"force,omitempty"`     // stop
	Grace     time.Duration `json:"grace,omitempty"`     // stop
	Bandwidth units.Bytes   `json:"bandwidth,omitempty"` // migrate, a second; 0: libvirt's default
	Deadline  time.Duration `json:"deadline,omitempty"`  // migrate: longest copy
	TargetURI string        `json:"target_uri,omitempty"`
	// TargetHost is the address for the memory stream; empty: the host of TargetURI.
	TargetHost string `json:"target_host,omitempty"`
	Pinned     string `json:"pinned,omitempty"` // node ID named by the caller: never another one
	Cancel     bool   `json:"cancel,omitempty"`

	Result    Result          `json:"result,omitempty"`
	Message   string          `json:"message,omitempty"`
	Migration *MigrationStats `json:"migration,omitempty"`
	Evidence  []string        `json:"evidence,omitempty"`

	// Leftover is the node ID whose paused copy is being discarded, or whose volumes are being cleared. Revert tells that the
	// source resumes afterwards.
	Leftover string `json:"leftover,omitempty"`
	Revert   bool   `json:"revert,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Revision  uint64    `json:"revision"`

	Plan string `json:"plan,omitempty"` // ID of the plan that this move belongs to

	// Volumes are made on the target: before a start, and as empty ones that a migration with CopyStorage fills. If the
	// operation fails, none of them is left there. If it succeeds, the disks' records have them, and the operation has them no
	// more. Replaced are the volumes that are removed once they are not needed: on the source of such a migration, and on the
	// one node of a VM that is deleted.
	Volumes     []model.VolumeOrder `json:"volumes,omitempty"`
	Replaced    []model.VolumeOrder `json:"replaced,omitempty"`
	CopyStorage bool                `json:"copy_storage,omitempty"`
	// CPU and PassedCPU are what the VM's record gets in the fields of these names when it has started.
	CPU       string `json:"cpu,omitempty"`
	PassedCPU string `json:"passed_cpu,omitempty"`
	// Code is the agent's code for why a start failed, while its leftovers are cleared, and Unsafe of a migration that libvirt would refuse
	// again.
	Code ErrorCode `json:"code,omitempty"`
	// Disks are IDs of disks whose records are deleted with the VM's: those made with it, when its first start fails, and those
	// that are not kept, when it is deleted.
	Disks []string `json:"disks,omitempty"`

	// Resolution is whose copy is the VM, as a person has decided about a parked operation: source, target or none.
	Resolution string `json:"resolution,omitempty"`
	ResolvedBy string `json:"resolved_by,omitempty"`
	// Restart tells that Berth itself began the start, because the VM is highly available.
	Restart bool `json:"restart,omitempty"`
	// TargetBoot is the boot of the target's host when a start was placed there, or a migration began; empty: not known.
	TargetBoot string `json:"target_boot,omitempty"`
	// GivenUp is why Berth itself has given up a copy or an order, in words: its node turned suspect or fell silent; empty: it has not.
	GivenUp string `json:"given_up,omitempty"`
	// WhenBack tells that an order for a node that is silent waits until it is back.
	WhenBack bool `json:"when_back,omitempty"`
	// Edits are what becomes of devices: attach, detach, media.
	Edits []model.DeviceEdit `json:"edits,omitempty"`
	// Size is what is to become of the VM's size while it runs: resize. Memory and VCPUs are reserved on Source then.
	Size model.Size `json:"size,omitzero"`
	// Snapshot is what snapshot, restore and forget are about; nil for the others. Source is the node that does it, also of a VM that is off.
	Snapshot *SnapshotWork `json:"snapshot,omitempty"`
}

// Observation is what a node's agent saw of the VM when it was asked.
type Observation struct {
	State     model.DomainState
	Epoch     uint64
	JobActive bool
	Ended     bool   // it is gone, and its guest was seen to end there: it was not handed over
	Missing   bool   // it was gone before the order came, and its end was not seen: somebody may have moved it
	Unseen    bool   // it is gone, and nothing tells how: it may have run on there
	Boot      string // of the host that was looked at; empty: not known, or the node is proven to be off
	// Anew tells that the host has booted since the operation began, or is off: its guests have ended for that reason alone.
	Anew bool
	// Came and Fell are those of the leader's Input, of a source.
	Came, Fell time.Time
}

// Seen is a domain's state as operations judge by it. Of a guest that libvirt has forgotten nothing is known but that it is not
// gone: no order reaches it, and it may run or stand still.
func Seen(shown model.DomainState) model.DomainState {
	if shown == model.DomainOrphan {
		return model.DomainUnknown
	}
	return shown
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
	// Handover is the time that the strict hand-over adds: from the source's answer to the target's, Raft included.
	Handover *time.Duration `json:"handover,omitempty"`

	// Of copied disks; they are part of the data above.
	DiskTotal     units.Bytes `json:"disk_total,omitempty"`
	DiskProcessed units.Bytes `json:"disk_processed,omitempty"`
	DiskRemaining units.Bytes `json:"disk_remaining,omitempty"`
}

// Live tells whether the operation still holds its VM and its reservation.
func (o *Operation) Live() bool { return o.Phase != Ended }

// Cancelled tells whether the operation came to nothing after somebody had asked for its end. What was done all the same is done.
func (o *Operation) Cancelled() bool { return o.Cancel && o.Result == Failed }

// Outcome is the word for how the operation ended, as people have it: who has cancelled one does not read that it failed.
func (o *Operation) Outcome() string {
	if o.Cancelled() {
		return string(OutcomeCancelled)
	}
	return string(o.Result)
}

// Reservation is what the operation holds on the node that is to have the VM, or has it larger, if anything.
func (o *Operation) Reservation() (model.Reservation, bool) {
	there := o.Kind == Resize
	node := o.Target
	if there {
		node = o.Source
	}
	if !o.Live() || node == "" || !o.Kind.traits().reserves || o.Phase == Placing {
		return model.Reservation{}, false
	}
	return model.Reservation{
		Node: node, There: there, VM: o.VM, Name: o.VMName, Memory: o.Memory, VCPUs: o.VCPUs, Operation: o.ID, Volumes: o.Volumes,
	}, true
}

// Action is what an order tells an agent to do.
type Action string

// The actions of an order.
const (
	ActStart   Action = "start"
	ActStop    Action = "stop"
	ActMigrate Action = "migrate"
	ActResume  Action = "resume"
	ActDiscard Action = "discard"
	ActInspect Action = "inspect"
	ActPrepare Action = "prepare" // make empty volumes for a copy; if that fails, none is left
	ActClear   Action = "clear"   // remove volumes that no domain of the node uses; a missing one counts as removed
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
	Epoch       uint64 // the agent refuses the order if its journal has a newer epoch of the VM
	TargetEpoch uint64 // migrate
	Spec        model.VMSpec
	Force       bool
	Grace       time.Duration
	TargetNode  string
	TargetURI   string
	TargetHost  string
	Bandwidth   units.Bytes
	Deadline    time.Duration
	Persistent  bool               // start: libvirt keeps the definition
	Size        model.Size         // resize: what of it is to change
	Snapshot    SnapshotWork       // snapshot, restore, forget
	Edits       []model.DeviceEdit // start: devices that it ran with last, beside what the spec says; amend

	// Volumes are the volumes to make (start, prepare), to copy into (migrate) or to remove (discard, clear).
	Volumes     []model.VolumeOrder
	CopyStorage bool // migrate: the disks in Replaced are copied into Volumes of the same disk
	Replaced    []model.VolumeOrder
	GivenUp     bool     // migrate: the copy is not wanted any more
	SharedPools []string // migrate: libvirt's names of the pools that both nodes see
	Unwatched   bool     // start: nobody has seen how its guest ended last
	TakenBack   bool     // if it has not begun on the node, it never should
}

// Outcome is how an agent says that an order ended.
type Outcome string

// The outcomes of an order.
const (
	OutcomeDone      Outcome = "done"
	OutcomeFailed    Outcome = "failed"    // and the VM is for certain as it was before
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
	Code      ErrorCode
	Error     string
	Note      string // on what was done
	Frozen    bool   // snapshot: the guest's file systems stood still
	Seen      Observation
	Migration *MigrationStats
	Overlays  []Overlay // of Overlaid
	Repeated  bool      // it was given before: what was seen then may not be so any more
}
