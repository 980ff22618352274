package lifecycle

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// StartVM asks for a VM to be placed and started. RequestID makes it idempotent, here and in every request.
type StartVM struct {
	Name string
	// VM is the record of a new VM, as it was asked for: without times, epochs and a holder, and without an ID where one is to
	// be made. It is not changed. nil: start the VM of that name that exists and is stopped.
	VM   *model.VM
	Root *model.Resource // a disk that is made with it and is its first; ID and CreatedAt are filled in; nil: none

	Node      string // ID of the only node that will do; empty: any
	DryRun    bool
	RequestID string
	Caller    string

	// Force starts a VM that may run on a node which is not heard. Reason is what the operator says of it, and is kept.
	Force  bool
	Reason string
}

// AddVM asks for a VM to be made without being started. Its fields are those of StartVM for a new VM; Node says where its
// disk is to be, in a cluster with local storage only.
type AddVM StartVM

// Added is what AddVM gave. Decision has an ID only in a cluster with local storage. On a dry run nothing was made.
type Added struct {
	VM       model.VM
	Decision placement.Decision
}

// Started is what StartVM gave. On a dry run only Decision is set.
type Started struct {
	Operation operation.Operation
	Decision  placement.Decision
	VM        model.VM
}

// ActOnVM asks for something to be done to a VM on the node that has it.
type ActOnVM struct {
	Kind     operation.Kind // Stop, Release, Reboot, Pause, Resume, Attach, Detach, Media, Resize, Snapshot, Restore, Forget
	VM       string         // ID
	Force    bool           // Stop: power off at once
	Grace    time.Duration  // Stop: before the guest is powered off
	WhenBack bool           // all but Release: if its node is silent, it waits until that is back
	// InterruptBackup stops it also while a job of somebody else runs, which does not finish then.
	InterruptBackup bool
	// Edits are what becomes of devices: Attach, Detach, Media. A VM that does not run has them at its next start.
	Edits []model.DeviceEdit
	// NewDisk is the record of a disk that Attach makes, as it was asked for, with its ID; Edits give it to a guest that runs. nil: none.
	NewDisk *model.Resource
	Size    model.Size // Resize: what of its size is to change; a VM that does not run has that at its next start
	// Snapshot is what Snapshot, Restore and Forget are about.
	Snapshot Snapshot
	DryRun   bool // only say what would begin, or why it is refused

	RequestID string
	Caller    string
}

// Snapshot names a snapshot that is to be taken, restored or removed.
type Snapshot struct {
	Name        string
	Description string       // of one that is taken
	Freeze      model.Freeze // likewise
}

// MigrateVM asks for a live migration.
type MigrateVM struct {
	VM        string      // ID
	Node      string      // target node ID; empty: the best node, the present one included
	IfBetter  float64     // least gain of score that the best node must offer; 0: any
	Bandwidth units.Bytes // a second; 0 means libvirt's default
	// CopyStorage takes disks of local pools along.
	CopyStorage bool
	DryRun      bool
	RequestID   string
	Caller      string
}

// Migration is what MigrateVM gave. Operation has no ID on a dry run and when the VM stays.
type Migration struct {
	Operation operation.Operation
	Decision  placement.Decision
}

// DefaultGrace is how long a guest has to shut down before it is powered off.
const DefaultGrace = 90 * time.Second

// DeleteVM asks for a stopped VM to be forgotten, with its disks that are volumes.
type DeleteVM struct {
	VM        string // ID
	KeepDisks bool   // all of them stay; without it only those stay that are to be kept
	RequestID string
	Caller    string
}

// StartVMs asks for several stopped VMs to be started. Those that hard rules tie together are placed together.
type StartVMs struct {
	VMs       []string // IDs
	Node      string   // ID of the only node that will do, for all; empty: any
	DryRun    bool
	RequestID string
	Caller    string
}

// StartedVM is what came of one of several starts.
type StartedVM struct {
	Started
	VMName string
	Unit   []string // names of the others that were placed together with it, ascending
	Err    error    // of type *Error, when it was refused
}

// ResolveOperation is an operator's word about a parked operation.
type ResolveOperation struct {
	ID        string
	Keep      string // operation.KeepSource, KeepTarget or KeepNone
	RequestID string
	Caller    string
}

// resolveKind is the kind of the command that resolves an operation.
const resolveKind = "resolve operation"
