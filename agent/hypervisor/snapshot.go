package hypervisor

import (
	"context"
	"errors"
)

// ErrUntouched says of an error of Snapshot that it came before the work on any disk had begun.
var ErrUntouched = errors.New("nothing was changed")

// SnapshotWork says what becomes of a snapshot.
type SnapshotWork string

// What may become of a snapshot.
const (
	SnapshotTake    SnapshotWork = "take"    // of all disks at one moment
	SnapshotForget  SnapshotWork = "forget"  // the disks stay as they are
	SnapshotRestore SnapshotWork = "restore" // the disks are as they were; only of a domain that is off
)

// DiskSnapshot is one snapshot of disks, inside their qcow2 files.
type DiskSnapshot struct {
	Tag   string   // what it is called in the files
	Files []string // paths of all of them, at least one

	// UUID is of the running domain whose disks they are, and Epoch is that of its mark, else ErrOtherEpoch. Without a UUID nobody may have
	// the files open, on this host or on another one.
	UUID  string
	Epoch uint64
}

// Snapshots is what the agent asks about snapshots of disks.
type Snapshots interface {
	// Snapshot works on one snapshot. What is so already stays so: of a snapshot that is there another one is not taken, and to forget one
	// that is not there is no error. Taking it takes it of all files or of none. ErrUnsupported for a file that is not qcow2, ErrNoVolume
	// when the domain has none of a file, or when one that is to be restored does not have the snapshot: nothing is restored then.
	// Other errors that left every disk as it was are ErrUntouched too. After one that is not, a disk may have changed.
	Snapshot(ctx context.Context, work SnapshotWork, of DiskSnapshot) error
	// Freeze has the agent in a guest write down all that its file systems hold, and let nothing be written until Thaw. ErrUnsupported when
	// there is no such agent, or it does not answer. After any other error they may be frozen.
	Freeze(ctx context.Context, uuid string, epoch uint64) error
	// Thaw has the guest's file systems be written to again. It is no error if they are not frozen. ErrUnsupported when no agent answers.
	Thaw(ctx context.Context, uuid string, epoch uint64) error
	// IsFrozen asks the agent in a guest whether its file systems are frozen, by whomever. ErrUnsupported when no agent answers.
	IsFrozen(ctx context.Context, uuid string) (bool, error)
}
