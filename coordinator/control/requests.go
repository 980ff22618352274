package control

import (
	"io"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// StartVM asks for a VM to be placed and started. RequestID makes it idempotent, here and in every request.
type StartVM struct {
	Name string
	Spec *cluster.VMSpec // nil: start the VM of that name that exists and is stopped
	ID   string          // libvirt UUID for a new VM; empty: one is made

	// What a new VM links to, by ID, and its own keys.
	VDC, Offer, Image string
	Disks, NICs       []string
	Keys              []cluster.Key

	// More of a new VM: see cluster.VM.
	Labels    []string // ascending
	Preferred []string // node IDs
	Migration cluster.Migration
	HA        bool
	Within    string            // ID of a zone, pod or cluster
	Root      *cluster.Resource // a disk that is made with it and is its first; ID and CreatedAt are filled in; nil: none

	Node      string // ID of the only node that will do; empty: any
	DryRun    bool
	RequestID string
	Caller    string
}

// AddVM asks for a VM to be made without being started. Its fields are those of StartVM for a new VM; Node says where its
// disk is to be, in a cluster with local storage only.
type AddVM StartVM

// Added is what AddVM gave. Decision has an ID only in a cluster with local storage. On a dry run nothing was made.
type Added struct {
	VM       cluster.VM
	Decision placement.Decision
}

// Started is what StartVM gave. On a dry run only Decision is set.
type Started struct {
	Operation operation.Operation
	Decision  placement.Decision
	VM        cluster.VM
}

// StopVM asks for a VM to be shut down.
type StopVM struct {
	VM        string        // ID
	Force     bool          // power off at once
	Grace     time.Duration // before the guest is powered off; 0 means DefaultGrace
	RequestID string
	Caller    string
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

	// Of a move that belongs to a plan: what placement is asked beyond the VM, see placement.Request.
	Plan     string            // ID
	Purpose  placement.Purpose // empty: somebody asked for this VM by name
	Leave    bool
	Among    []string
	Excluded []string // node IDs that failed it before
	Unit     *placement.Unit
}

// Migration is what MigrateVM gave. Operation has no ID on a dry run and when the VM stays.
type Migration struct {
	Operation operation.Operation
	Decision  placement.Decision
}

// DefaultGrace is how long a guest has to shut down before it is powered off.
const DefaultGrace = 90 * time.Second

// Code is the stable word of an expected refusal. The words are those of shared/rpc.
type Code string

// The codes of control's refusals.
const (
	NoNodeFits  Code = "no_node_fits"
	NotFound    Code = "not_found"
	Exists      Code = "exists"
	Busy        Code = "busy"
	Invalid     Code = "invalid"
	StaleView   Code = "stale"
	NoLeader    Code = "no_leader"
	Unavailable Code = "unavailable"
	Conflict    Code = "conflict"
)

// Error is an expected refusal: what it is about, and what to do now.
type Error struct {
	Code      Code
	Subject   string // vm/NAME, node/NAME
	Message   string
	NextStep  string
	Operation string              // ID of the operation in the way, if one is
	Decision  *placement.Decision // of a refusal by placement

	cause error // what an agent answered
}

func (e *Error) Error() string { return e.Message }

// Unwrap is an agent's answer, if that is what stands behind it: a *TaskError.
func (e *Error) Unwrap() error { return e.cause }

// DeleteVM asks for a stopped VM to be forgotten, with its disks that are volumes.
type DeleteVM struct {
	VM        string // ID
	KeepDisks bool   // all of them stay; without it only those stay that are to be kept
	RequestID string
	Caller    string
}

// DeleteDisk asks for a disk of no VM to be forgotten, with its volume.
type DeleteDisk struct {
	Disk      string // ID
	RequestID string
	Caller    string
}

// GrowDisk asks for a disk to be made larger.
type GrowDisk struct {
	Disk      string // ID
	Size      units.Bytes
	RequestID string
	Caller    string
}

// ImportImage asks for a file to be put into a pool as an image. What can be read of the file itself has been checked.
type ImportImage struct {
	Name, Offer string // the offer by ID; may be empty
	Pool        string // ID
	Format      string
	Size        units.Bytes // of the file
	Capacity    units.Bytes // as a guest sees it
	Checksum    string      // SHA-256 of the file, hex
	// Open gives the file from its beginning. Each node of a local pool reads it once.
	Open      func() (io.ReadCloser, error)
	RequestID string
	Caller    string
}

// DeleteImage asks for an image that no disk is a copy of to be forgotten, with its volume.
type DeleteImage struct {
	Image     string // ID
	RequestID string
	Caller    string
}

// Spread is how a customer's VMs are spread, without a name of anything.
type Spread struct {
	VMs                          int // running and on their way
	Zones, Pods, Clusters, Nodes SpreadLevel
}

// SpreadLevel is how VMs are spread over things of one kind.
type SpreadLevel struct {
	Used, Total int // those with a VM of the customer; all that its VMs may go to
	Most, Least int // VMs on one of them
}
