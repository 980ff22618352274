package lead

import (
	"context"
	"io"
	"time"

	"berth/coordinator/consensus"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/profile"
	"berth/coordinator/state"
	"berth/coordinator/view"
	"berth/shared/units"
)

// Proposer commits commands. Package consensus implements it.
type Proposer interface {
	// Propose replicates the command and returns what applying it gave. The error is one of consensus.ErrNotLeader (not
	// sent), consensus.ErrUnknown (sent, outcome not known: propose again with the same key) or the context's.
	Propose(ctx context.Context, command state.Command) (state.Result, error)
	// ProposeTogether commits commands in their order, as cheaply as it can. Each has its own answer, as of Propose.
	ProposeTogether(ctx context.Context, commands []state.Command) []consensus.Answer
	// Barrier returns when everything committed so far is applied here and this member still leads.
	Barrier(ctx context.Context) error
}

// Agents reach the nodes' agents. Package agents implements it.
type Agents interface {
	// Order sends without waiting. It reports whether a session to the node was there to send on; the answer comes to
	// the driver, and orders are sent again when a session opens.
	Order(term uint64, order operation.Order) (sent bool)
	// Lacks are the capabilities that the agent of the order's node would need for it and does not have; none where it has no session.
	Lacks(order operation.Order) []string
	// Cancel asks the agent to stop working on an order.
	Cancel(node, operation string, step uint32)
	// Perform has an agent do a piece of work that belongs to no operation, and waits for its end. The error is a *TaskError
	// when the agent answered; any other one means that it is not known what became of the task: doing it again is harmless.
	Perform(ctx context.Context, node string, task Task) (TaskDone, error)
	// Removed are the nodes that were removed and speak all the same, by name.
	Removed() []evidence.Removed
	// SuspendRemoved has the agent of such a node suspend a copy of a VM. It is never told anything else.
	SuspendRemoved(ctx context.Context, node string, copied CopyOf) error
}

// Task is a piece of work for one node's agent. One of the fields is set.
type Task struct {
	Grow    *GrowVolume
	Remove  []model.VolumeOrder // a volume that is not there is removed; one that a domain uses is not
	Fetch   *FetchVolume
	Console *OpenConsole

	Suspend  *CopyOf // pause it if it runs; it fails with other_epoch if the copy there is another one
	Document string  // ID of a VM: give what it runs with, for people, without secrets
	Describe string  // ID of a VM: give what its domain would be started with, without secrets
	Refuse   *CopyOf // refuse orders for it from now on, up to its epoch; it fails if the VM is there, whatever its epoch
	Undefine *CopyOf // remove the definition that is left of it; it fails if it is not off
	Unpause  *CopyOf // let it run on if its hypervisor has paused it because a disk failed or found no room
	Crashed  *CopyOf // remove what is left of it if it has crashed, and refuse orders for it up to its epoch from now on
	Lock     *TryLock
	Devices  *CopyOf // give the disks and interfaces that it runs with
	Sizes    *CopyOf // give the same, and how large the disks are now
	Frozen   *CopyOf // tell whether its guest's file systems are frozen
	Discard  *CopyOf // destroy it if it is paused, and refuse orders for it up to its epoch from now on; it fails if it runs

	Profile *ProfileOf // give what is known of a week

	Reach []string // addresses of another node: try to connect to them
}

// ProfileOf is whose week is asked for: a VM's by its ID, or without one the node's.
type ProfileOf struct{ VM string }

// LockStep is one of the steps of trying whether locks of files reach other nodes.
type LockStep int

// The steps.
const (
	HoldLock    LockStep = iota + 1 // make a volume and lock it
	LookAtLock                      // tell whether it is locked, as seen from the node
	ReleaseLock                     // release it and remove the volume
)

// TryLock is one step of such a trial.
type TryLock struct {
	Pool, Volume string // libvirt's names
	Step         LockStep
}

// CopyOf is a VM on a node, under one epoch.
type CopyOf struct {
	VM    string // ID
	Epoch uint64 // 0: without Berth's mark
}

// GrowVolume makes a volume larger, to the capacity of the order.
type GrowVolume struct {
	Volume model.VolumeOrder
	VM     string // ID of the VM that runs there with it; empty: none does
}

// FetchVolume makes a volume of a file that the agent reads from a tunnel.
type FetchVolume struct {
	Volume   model.VolumeOrder
	Size     units.Bytes // of the file
	Checksum string      // SHA-256 of the file, hex
	Content  io.Reader   // of the file
}

// OpenConsole joins the console of a VM with a stream, until either ends.
type OpenConsole struct {
	VM     string // ID
	Epoch  uint64
	Force  bool // take it from the one that has it
	Stream io.ReadWriteCloser
}

// TaskDone is what a task gave.
type TaskDone struct {
	Allocated units.Bytes    // of Fetch: what the volume takes in its pool
	DomainXML string         // of Describe and Document
	Locked    bool           // of Lock, to look
	Devices   []model.Device // of Devices and Sizes, with their elements
	Capacity  units.Bytes    // of Grow: what the volume has then, which may be more than was ordered; 0: its agent does not tell
	Frozen    bool           // of Frozen; false also where that cannot be told
	Profile   []profile.Hour // of Profile; it does not say which node has told it
	Minutes   []profile.Hour // likewise, of the last hour
	Reached   string         // of Reach: the address that answers; empty: none does
}

// TaskError is an agent's answer that a task could not be done. Nothing of it is left.
type TaskError struct {
	Code    operation.ErrorCode
	Message string
}

func (e *TaskError) Error() string { return e.Message }

// Inventory knows the soft facts. Package inventory implements it.
type Inventory interface {
	// View joins the hard facts of a snapshot with what the agents reported, as of now.
	View(snapshot *state.Snapshot, now time.Time) *view.View
	// Facts are those of one node.
	Facts(node string, now time.Time) model.NodeFacts
	// Settled tells whether every node has reported to this leader, or has had the time to.
	Settled(snapshot *state.Snapshot, now time.Time) bool
	// NodesTouched and VMsTouched begin to follow what changes, for one loop: each call of what they return tells what may be another
	// than at the call before.
	NodesTouched() func(snapshot *state.Snapshot, now time.Time) evidence.Touched
	VMsTouched() func(snapshot *state.Snapshot, now time.Time) evidence.Touched
	// Shown are the IDs of the nodes that show a domain of a UUID which holds memory, ascending. What a migration has paused
	// does not count.
	Shown(uuid string) []string
	// MayShow are the IDs of the nodes that list a domain of a UUID, in whatever state and whenever they were heard last, and of those
	// that have connected and told nothing yet.
	MayShow(uuid string) []string
	// WithDisk are the IDs of the nodes that list a domain with a disk of a file name, in whatever state and whenever they were heard last.
	WithDisk(name string) []string
	// Copied are the UUIDs that more than one node has shown like this for a moment, ascending.
	Copied() []string
	// ChangedDevices are the domains whose devices have changed since it was asked last, by UUID.
	ChangedDevices() []model.ToldDevices
	// RanOn are the nodes that tell what a domain ran with there before it was gone, the one that has told it last at the end.
	RanOn(uuid string) []string
	// SetApart tells which pools are another one on some nodes, from now on.
	SetApart(apart model.PoolsApart)
	// Apart is what SetApart has told last.
	Apart() model.PoolsApart
}
