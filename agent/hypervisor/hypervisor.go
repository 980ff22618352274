// Package hypervisor is the seam between the agent and whatever runs domains. It speaks our own types, so that a fake
// needs no cgo. The real side is package libvirt; package hypervisortest has the suite that both must pass.
package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"berth/agent/psi"
	"berth/shared/domxml"
	"berth/shared/units"
)

// Errors by cause. An implementation wraps one of them; callers use errors.Is and never read texts.
var (
	ErrUnavailable  = errors.New("hypervisor is not reachable")
	ErrTooOld       = errors.New("hypervisor is too old")
	ErrNotFound     = errors.New("no such domain")
	ErrExists       = errors.New("exists already")
	ErrInvalidXML   = errors.New("domain XML is not valid")
	ErrNoMemory     = errors.New("not enough memory on the node")
	ErrBusy         = errors.New("domain is busy with another job")
	ErrInvalidState = errors.New("domain is not in a state for this")
	ErrOtherEpoch   = errors.New("domain has another epoch")
	ErrAborted      = errors.New("job was aborted")
	ErrUnsupported  = errors.New("not supported by the hypervisor")
	ErrUnsafe       = errors.New("the hypervisor would risk what is on a disk: make it a volume of a shared pool, or shut the guest down")
	ErrDenied       = errors.New("access denied by the hypervisor")
	ErrAmbiguous    = errors.New("the outcome is not known")
	ErrNoPool       = errors.New("no such active storage pool")
	ErrNoVolume     = errors.New("no such volume")
	ErrNoSpace      = errors.New("no space left in the storage pool")
	ErrInUse        = errors.New("volume is in use")
	ErrHeld         = errors.New("held by another QEMU") // the image of a disk
	ErrOverlaid     = errors.New("a disk is not the newest file of its guest")
	ErrOrphan       = errors.New("it runs here, and the hypervisor has forgotten it")
)

// State is what a domain does.
type State string

// States of a domain. Absent is not a state of a domain but of our knowledge.
const (
	Absent          State = "absent"
	Starting        State = "starting" // its process is being launched: it will run or be gone
	Running         State = "running"
	Paused          State = "paused"
	PausedMigration State = "paused-migration"
	Shutoff         State = "shutoff"
	Crashed         State = "crashed"
	Orphan          State = "orphan" // its process runs, and the hypervisor does not list it; Look and Lister say so
)

// ReasonIOError is why a guest is paused one of whose disks has failed or found no room.
const ReasonIOError = "i/o error"

// Domain is one domain as the hypervisor shows it.
type Domain struct {
	UUID        string
	Name        string
	State       State
	Reason      string // the hypervisor's own word
	MemoryBytes int64  // maximum memory
	VCPUs       int
	Persistent  bool
	Autostart   bool // the hypervisor starts it when the host boots
	Saved       bool // off, and the hypervisor keeps its memory: a start here lets it run on
	Managed     bool // carries Berth's metadata
	Epoch       uint64
	OperationID string
	JobActive   bool
	PID         int // of the process of an orphan
	// Sources are what a domain that has memory writes to, as far as they are files, devices and volumes; at most MaxSources.
	Sources []Source
	// Devices are the disks and network interfaces of a domain that has memory, as it runs with them; nil: not known.
	Devices []domxml.Device
	// Bindings are what keeps a domain that runs on its host; nil: not known. Jobs are told of domains of Berth alone.
	Bindings []domxml.Binding
	// DiskSizes are how large the disks of a domain of Berth's are that it runs with, in bytes, by target, as its process has told some
	// minutes ago at most. One that is not there is not known. It is never changed.
	DiskSizes map[string]int64
}

// DomainStats are one active domain's figures. A nil field could not be read.
type DomainStats struct {
	UUID         string
	At           time.Time
	CPUTime      *time.Duration // grows while it runs
	RSSBytes     *int64
	BalloonBytes *int64
	MaximumBytes *int64
	VCPUs        *int

	// The delay and the pressure may be older than the rest, because they cost more to read.
	DelayAt   time.Time
	VCPUDelay *time.Duration // sum over vCPUs of the time they waited for a CPU; grows
	Pressure  *psi.All       // on the guest's own control group; nil also where there is none, or the kernel does not tell
}

// MemoryStats is the node's memory as the hypervisor reads it.
type MemoryStats struct {
	TotalBytes     int64
	FreeBytes      int64
	AvailableBytes *int64 // nil when the hypervisor cannot tell
}

// HostInfo is what does not change while the node is up, and its pools and networks.
type HostInfo struct {
	HostUUID          string
	HostName          string
	LibVersion        string
	HypervisorVersion string
	CapabilitiesXML   string
	MemoryBytes       int64
	CPUs              int
	Pools             []Pool
	Networks          []Network
	Bridges           []string       // the host's own, ascending; they come with the networks
	CPUModels         []string       // named models that guests here can have, ascending; none: not known
	HostCPU           string         // fingerprint of the CPU that host-passthrough shows a guest; empty: there is no passing through
	Errors            []ReadingError // what could not be read
}

// ReadingError says which reading failed.
type ReadingError struct {
	Reading string
	Err     error
}

// Pool is a storage pool.
type Pool struct {
	Name, UUID, Type, Path        string
	Active                        bool
	CapacityBytes, AvailableBytes int64
}

// Network is a virtual network.
type Network struct {
	Name, UUID, Bridge, ForwardMode string
	Active                          bool
}

// Event is a lifecycle event of a domain, or news of the node, which has no UUID. It is a hint: look before acting.
type Event struct {
	UUID, Name string
	Kind       string // EventDisconnected, EventReconnected, EventChanged, or the hypervisor's: started, stopped, suspended, resumed, ...
	Detail     string // the hypervisor's word for why: booted, migrated, destroyed, crashed, ...
	Ran        *Ran   // of EventRan
}

// Kinds of event that tell of the connection and of the node. After a reconnect events may be missing: take a full
// inventory, as when a storage pool or a network has come or gone.
const (
	EventDisconnected = "disconnected"
	EventReconnected  = "reconnected"
	EventChanged      = "changed"
)

// Kinds of event that tell what a guest does, of those that a hypervisor has. DetailMigrated says of a start that it is the
// arriving copy, which stands still, and of a stop that the guest has gone to another node. DetailSaved says of a stop that the guest's
// memory is kept, with which it runs on at its next start here.
const (
	EventStarted   = "started"
	EventResumed   = "resumed"
	EventSuspended = "suspended"
	EventStopped   = "stopped"
	EventCrashed   = "crashed" // the guest has told that it cannot go on; what follows is an event of its own

	DetailMigrated = "migrated"
	DetailSaved    = "saved"

	DetailShutDown  = "shut down"
	DetailDestroyed = "destroyed"
	DetailCrashed   = "crashed"         // the guest has told that it cannot go on
	DetailFailed    = "failed to start" // also of a guest that ran: its process has ended without a word
)

// EventMetadata is the kind of event that tells of a domain's metadata, which may be Berth's mark, and EventDevices of its devices or what
// they are copies of. EventRan tells the devices themselves, as the hypervisor has written them down: it needs no look, and comes also of a
// guest that has ended meanwhile, or of one whose hypervisor does not answer.
const (
	EventMetadata = "metadata"
	EventDevices  = "devices"
	EventRan      = "ran"
)

// Job is the progress of a migration job, or the final figures of one that completed.
type Job struct {
	Active        bool
	Elapsed       time.Duration
	DataTotal     int64 // bytes, here and below: memory and copied disks
	DataProcessed int64
	DataRemaining int64
	DiskTotal     int64 // of copied disks alone
	DiskProcessed int64
	DiskRemaining int64
	MemoryBPS     int64 // bytes a second
	DirtyRate     int64 // pages a second
	Iteration     int
	Downtime      *time.Duration
}

// MigrateOptions say how to move a domain.
type MigrateOptions struct {
	TargetURI    string // libvirt URI of the other node
	DataAddress  string // of the other node, for the memory stream; empty: the host of TargetURI
	DomainXML    string // for the target: differs in metadata only
	BandwidthBPS int64  // bytes a second; 0 means the hypervisor's default
	Paused       bool   // leave it paused on the target (strict hand-over)

	// CopyDisks are the targets (vda, sdb) of disks whose content goes along, into volumes that are on the target already
	// and are at least as large; DomainXML names those. Empty: nothing is copied.
	CopyDisks []string
	// SharedDisks says that both nodes see every disk that is not copied. Without it a disk on a file system that is not
	// known to be shared is refused: ErrUnsupported.
	SharedDisks bool
}

// RebootMode says how a guest is made to restart.
type RebootMode string

// How a guest is made to restart.
const (
	RebootAsk   RebootMode = "ask"   // by the agent in the guest if it is there, else by the power button
	RebootReset RebootMode = "reset" // without asking
	RebootWatch RebootMode = "watch" // not at all: it was asked before, and its restart is only waited for
)

// Change says what becomes of one device of a domain that runs.
type Change string

// What may become of a device. A guest lets go of a detached one when it likes, or never.
const (
	Attach Change = "attach"
	Detach Change = "detach"
	Update Change = "update" // of a drive: what is in it
)

// WithinMost refuses a size beyond the most that a domain was started with; 0 is no size.
func WithinMost(memoryBytes, mostBytes int64, vcpus, mostVCPUs int) error {
	if memoryBytes > mostBytes {
		return fmt.Errorf("%w: until it is started anew it has at most %v of memory", ErrInvalidState, units.Bytes(mostBytes))
	}
	if vcpus > mostVCPUs {
		return fmt.Errorf("%w: until it is started anew it has at most %d vCPUs", ErrInvalidState, mostVCPUs)
	}
	return nil
}

// Hypervisor is all that the agent asks of a node's libvirt.
//
// Every call returns when its context ends, whatever the hypervisor does: a query that was not answered returns
// ErrUnavailable, a change returns ErrAmbiguous, because it may still take effect. Queries also have a deadline of their
// own, so that one which hangs never holds the agent.
type Hypervisor interface {
	// Connected tells whether calls can succeed now, and if not, why not: ErrUnavailable or ErrTooOld. Implementations
	// reconnect by themselves.
	Connected() (bool, error)
	// Host reads what is fixed while the node is up, and its pools and networks.
	Host(ctx context.Context) (HostInfo, error)
	// Memory reads the node's memory now.
	Memory(ctx context.Context) (MemoryStats, error)
	// Domains lists all domains, running or defined, by UUID. A busy domain does not hold it up. An error means "I do not
	// know", never "none".
	Domains(ctx context.Context) ([]Domain, error)
	// Stats reads all active domains in bulk, by UUID. A busy or hung domain does not hold it up; what could not be read
	// of single domains is nil there and named in the errors.
	Stats(ctx context.Context) ([]DomainStats, []ReadingError, error)
	// Balloon is the memory, in bytes, that its balloon leaves a domain that runs, as its process knows it. Stats may have it a second later.
	// It waits for a domain that is busy.
	Balloon(ctx context.Context, uuid string) (int64, error)
	// DiskSizes are how large the disks are that a domain runs with, in bytes, by target, as its process knows them now. Drives for media
	// are none of them. It waits for a domain that is busy: ErrBusy if that takes long. ErrInvalidState when the domain is off.
	DiskSizes(ctx context.Context, uuid string) (map[string]int64, error)
	// Processes are the guests' processes on this host as the operating system shows them, in no order, those of guests that the
	// hypervisor lists among them. ErrUnavailable when they cannot be seen.
	Processes(ctx context.Context) ([]Process, error)
	// Lookup finds one domain: ErrNotFound when the hypervisor positively does not have it; whether it runs all the same, Look
	// tells. One that has left is Absent, with an active job,
	// for as long as the hypervisor clears up behind it: it does not run here, and must not come back yet.
	Lookup(ctx context.Context, uuid string) (Domain, error)
	// XML is the live XML of a domain, in the form that a migration accepts. It may hold secrets: never log it.
	XML(ctx context.Context, uuid string) (string, error)
	// Start creates a transient domain and lets it run. ErrExists when its UUID or name is taken here, also by a domain
	// that is only defined.
	Start(ctx context.Context, xml string) error
	// Shutdown asks the guest to power off and returns at once.
	Shutdown(ctx context.Context, uuid string) error
	// Reboot restarts a running guest in place and returns once the hypervisor has reported that it did. Its error is ErrAmbiguous
	// when that is not reported before the context ends, or the hypervisor goes away: the guest may have restarted, and one that
	// was asked may still do so. Only a domain whose metadata has this epoch is touched, else ErrOtherEpoch. ErrInvalidState when
	// it does not run.
	Reboot(ctx context.Context, uuid string, epoch uint64, how RebootMode) error
	// Destroy powers the domain off. Only a domain whose metadata has this epoch is touched, else ErrOtherEpoch.
	Destroy(ctx context.Context, uuid string, epoch uint64) error
	// Resume lets a paused domain run. Only a domain whose metadata has this epoch is touched, else ErrOtherEpoch.
	Resume(ctx context.Context, uuid string, epoch uint64) error
	// Suspend pauses a running domain. Only a domain whose metadata has this epoch is touched, or with 0 one without Berth's
	// mark; else ErrOtherEpoch. One that is paused already stays so.
	Suspend(ctx context.Context, uuid string, epoch uint64) error
	// ChangeDevice changes a device of a domain that runs, by its element, and leaves the definition as it is. A detach returns when the
	// guest was asked: XML tells whether it has let go. Only a domain whose metadata has this epoch is touched, else ErrOtherEpoch.
	ChangeDevice(ctx context.Context, uuid string, epoch uint64, change Change, element string) error
	// Resize changes how much memory the balloon of a domain that runs leaves it, and how many vCPUs it has plugged in; 0 leaves either as
	// it is. The definition stays as it is. ErrInvalidState when that is more than the domain was started with: nothing is changed then. It
	// returns when the guest was asked for memory: Balloon tells what it has. Only a domain whose metadata has this epoch is touched, else
	// ErrOtherEpoch.
	Resize(ctx context.Context, uuid string, epoch uint64, memoryBytes int64, vcpus int) error
	// Mark writes Berth's mark into the metadata of a domain, in place of the one that it has: into what runs, and into its
	// definition if it has one. The guest does not notice. The host starts the domain no more by itself when it boots: by then
	// the VM may run elsewhere.
	Mark(ctx context.Context, uuid string, mark domxml.Mark) error
	// Unmark removes Berth's mark, and the guest does not notice. Only a domain whose metadata has this epoch is touched, else
	// ErrOtherEpoch.
	Unmark(ctx context.Context, uuid string, epoch uint64) error
	// Document is the XML that a domain runs with, for people: without its secrets.
	Document(ctx context.Context, uuid string) (string, error)
	// Definition is the XML that the domain would be started with next, without secrets. ErrUnsupported when it has some:
	// without them it would be another domain.
	Definition(ctx context.Context, uuid string) (string, error)
	// Define keeps the definition of a domain beyond its end, in place of the one that there is. The domain may run.
	Define(ctx context.Context, xml string) error
	// Undefine removes the definition of a domain that is off, and leaves what it has of disks and firmware variables. Only a
	// domain whose metadata has this epoch is touched, else ErrOtherEpoch. ErrInvalidState when it is not off, or when the
	// definition is needed: its memory is saved, or it has snapshots.
	Undefine(ctx context.Context, uuid string, epoch uint64) error
	// Migrate moves a running domain, peer to peer, and returns when the job has ended here. One that is to be paused on the
	// target may have left before the hypervisor says so: Lookup tells. No error is no verdict, and an error neither: look
	// afterwards.
	Migrate(ctx context.Context, uuid string, options MigrateOptions) error
	// Job tells of the domain's migration. With completed it tells of the last one that completed on this node, as source
	// or as target, also when the domain has gone: ErrNotFound when there was none that this agent could have seen. On the
	// source the figures may come a moment after Migrate has returned.
	Job(ctx context.Context, uuid string, completed bool) (Job, error)
	// Left tells whether a guest that is gone went to another node at its end here, by what the hypervisor itself has written down. It is
	// for ends of which no event was heard. False is no evidence of anything.
	Left(ctx context.Context, uuid, name string) bool
	// AbortJob asks the running migration to stop. ErrInvalidState when none runs.
	AbortJob(ctx context.Context, uuid string) error
	// Subscribe delivers events, one at a time, until the context ends, and returns its error.
	Subscribe(ctx context.Context, deliver func(Event)) error
	// OpenConsole joins the domain's first console. Without force it is ErrBusy while somebody has it; with force they are
	// cut off. A Read ends with io.EOF when the guest or somebody with force ends it, and any call fails after Close.
	OpenConsole(ctx context.Context, uuid string, force bool) (io.ReadWriteCloser, error)
	Storage
	Snapshots
	// Close ends the connections.
	Close() error
}
