// Package hypervisor is the seam between the agent and whatever runs domains. It speaks our own types, so that a fake
// needs no cgo. The real side is package libvirt; package hypervisortest has the suite that both must pass.
package hypervisor

import (
	"context"
	"errors"
	"time"
)

// Errors by cause. An implementation wraps one of them; callers use errors.Is and never read texts.
var (
	ErrUnavailable  = errors.New("hypervisor is not reachable")
	ErrTooOld       = errors.New("hypervisor is too old")
	ErrNotFound     = errors.New("no such domain")
	ErrExists       = errors.New("domain exists already")
	ErrInvalidXML   = errors.New("domain XML is not valid")
	ErrNoMemory     = errors.New("not enough memory on the node")
	ErrBusy         = errors.New("domain is busy with another job")
	ErrInvalidState = errors.New("domain is not in a state for this")
	ErrAborted      = errors.New("job was aborted")
	ErrUnsupported  = errors.New("not supported by the hypervisor")
	ErrDenied       = errors.New("access denied by the hypervisor")
	ErrAmbiguous    = errors.New("the outcome is not known")
)

// State is what a domain does.
type State string

// States of a domain. Absent is not a state of a domain but of our knowledge.
const (
	Absent          State = "absent"
	Running         State = "running"
	Paused          State = "paused"
	PausedMigration State = "paused-migration"
	Shutoff         State = "shutoff"
	Crashed         State = "crashed"
)

// Domain is one domain as the hypervisor shows it.
type Domain struct {
	UUID        string
	Name        string
	State       State
	Reason      string // the hypervisor's own word
	MemoryBytes int64  // maximum memory
	VCPUs       int
	Persistent  bool
	Managed     bool // carries Berth's metadata
	Epoch       uint64
	OperationID string
	JobActive   bool
}

// DomainStats are one domain's figures. A nil field could not be read.
type DomainStats struct {
	UUID         string
	CPUTime      *time.Duration // grows while it runs
	RSSBytes     *int64
	BalloonBytes *int64
	MaximumBytes *int64
	VCPUs        *int
	VCPUDelay    *time.Duration // sum over vCPUs, grows
	Running      bool
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

// Event is a lifecycle event of a domain. It is a hint: look before acting.
type Event struct {
	UUID, Name string
	Kind       string // started, stopped, suspended, resumed, migrated, crashed, defined, undefined, ...
	Detail     string
}

// Job is the progress of a migration job.
type Job struct {
	Active        bool
	Elapsed       time.Duration
	DataTotal     int64
	DataProcessed int64
	DataRemaining int64
	MemoryBPS     int64
	DirtyRate     int64 // pages a second
	Iteration     int
	Downtime      *time.Duration
}

// MigrateOptions say how to move a domain.
type MigrateOptions struct {
	TargetURI    string // libvirt URI of the other node
	MigrateURI   string // data address; empty lets the target choose
	DomainXML    string // for the target: differs in metadata only
	BandwidthBPS int64  // bytes a second; 0 means the hypervisor's default
	Paused       bool   // leave it paused on the target (strict hand-over)
}

// Hypervisor is all that the agent asks of a node's libvirt. Calls honour the context's deadline as far as libvirt lets
// them; a call that outlives it returns ErrAmbiguous when it may have had an effect.
type Hypervisor interface {
	// Connected tells whether calls can succeed now, and why not. Implementations reconnect by themselves.
	Connected() (bool, error)
	// Host reads what is fixed while the node is up.
	Host(ctx context.Context) (HostInfo, error)
	// Memory reads the node's memory now.
	Memory(ctx context.Context) (MemoryStats, error)
	// Domains lists all domains, running or defined. It never blocks on a busy domain. An error means "I do not know".
	Domains(ctx context.Context) ([]Domain, error)
	// Stats reads all running domains in bulk. It never blocks on a busy domain.
	Stats(ctx context.Context) ([]DomainStats, error)
	// Lookup finds one domain: ErrNotFound when it is positively not there.
	Lookup(ctx context.Context, uuid string) (Domain, error)
	// XML is the live XML of a domain, in the form that a migration accepts.
	XML(ctx context.Context, uuid string) (string, error)
	// Start creates a transient domain and lets it run.
	Start(ctx context.Context, xml string) error
	// Shutdown asks the guest to power off and returns at once.
	Shutdown(ctx context.Context, uuid string) error
	// Destroy powers the domain off. Only a domain whose metadata has this epoch is touched.
	Destroy(ctx context.Context, uuid string, epoch uint64) error
	// Resume lets a paused domain run.
	Resume(ctx context.Context, uuid string) error
	// Migrate moves a running domain, peer to peer, and returns when the job has ended here.
	Migrate(ctx context.Context, uuid string, options MigrateOptions) error
	// Job tells of the domain's migration; with completed, of the one that ended last.
	Job(ctx context.Context, uuid string, completed bool) (Job, error)
	// AbortJob asks the running migration to stop.
	AbortJob(ctx context.Context, uuid string) error
	// Subscribe delivers lifecycle events until the context ends. Reconnects are told by Event.Kind "reconnected".
	Subscribe(ctx context.Context, deliver func(Event)) error
	// Close ends the connection.
	Close() error
}
