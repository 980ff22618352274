package model

import (
	"time"

	"berth/shared/units"
)

// RunState is what somebody wants of a VM.
type RunState string

// The two wanted run states.
const (
	Running RunState = "running"
	Stopped RunState = "stopped"
)

// VM is the replicated record of a guest.
type VM struct {
	ID        string    `json:"id"` // the libvirt UUID
	Name      string    `json:"name"`
	Spec      VMSpec    `json:"spec"`
	Desired   RunState  `json:"desired"`
	Holder    string    `json:"holder,omitempty"` // node ID that may run it; empty: none may
	Epoch     uint64    `json:"epoch"`            // of the holder; grows with every start and every new holder
	LastEpoch uint64    `json:"last_epoch"`       // highest ever given out, also to an attempt that failed
	Operation string    `json:"operation,omitempty"`
	LastNode  string    `json:"last_node,omitempty"`     // node ID of the last holder
	Decision  string    `json:"last_decision,omitempty"` // ID of the decision that placed it last
	Condition           // what is wrong with it
	CreatedAt time.Time `json:"created_at"`
	StartedAt time.Time `json:"started_at,omitzero"`

	// Links into the estate: IDs of resources, all optional. The first disk and the first NIC count for key compilation.
	VDC   string   `json:"vdc,omitempty"`
	Offer string   `json:"offer,omitempty"`
	Image string   `json:"image,omitempty"`
	Disks []string `json:"disks,omitempty"`
	NICs  []string `json:"nics,omitempty"`

	Keys   []Key `json:"keys,omitempty"`   // set on the VM itself, by class and name
	Sticky []Key `json:"sticky,omitempty"` // copied from the node of the last start; weaker than Keys
	// Resident are the compiled customer keys as they were when the VM was last started, and Owner whose they are: edits
	// change nothing for others until the VM starts again. They count while a node holds the VM or has a reservation for it.
	Resident []ResidentKey `json:"resident,omitempty"`
	Owner    Owner         `json:"owner,omitzero"`
	// Home is the node ID that has the VM's disk, in a cluster with local storage: it starts nowhere else.
	Home string `json:"home,omitempty"`

	Revision uint64 `json:"revision"`

	Labels    []string  `json:"labels,omitempty"`    // by which groups take it in, ascending
	Migration Migration `json:"migration,omitempty"` // who may move it while it runs; empty: Berth and people
	Preferred []string  `json:"preferred,omitempty"` // node IDs that it had better start on
	MovedAt   time.Time `json:"moved_at,omitzero"`   // when it last came to another node while it ran, by whomever

	// Within is the ID of the zone, pod or cluster that the VM is placed in when no VDC says where; empty: the default cluster.
	Within string `json:"within,omitempty"`
	// CPU is the CPU model that the VM was last started with: one that every node of its cluster can run, or
	// CPUHostPassthrough; empty: as its node chose, by a release that chose there. PassedCPU is the node's own CPU
	// (NodeFacts.HostCPU) of a VM that has it passed through.
	CPU       string `json:"cpu,omitempty"`
	PassedCPU string `json:"passed_cpu,omitempty"`

	// HA lets Berth start the VM elsewhere once it is proven that it runs nowhere. Restarts counts that since somebody last
	// started it, and RestartedAt is when it last was.
	HA          bool      `json:"ha,omitempty"`
	Restarts    int       `json:"restarts,omitempty"`
	RestartedAt time.Time `json:"restarted_at,omitzero"`
	// Adopted tells that the domain was not made by Berth.
	Adopted bool `json:"adopted,omitempty"`
	// Discards are paused copies that an operation had to leave behind, because their nodes did not answer. Nobody resumes
	// them, and each goes when its node answers again.
	Discards []Discard `json:"discards,omitempty"`
	// Copies are copies of its disks that a migration has left, because nobody has seen the disks themselves since; nil: none.
	Copies *DiskCopies `json:"copies,omitempty"`
	// Persistent tells that libvirt keeps a definition of the VM on the node that has it, as it did before it was adopted.
	Persistent bool `json:"persistent,omitempty"`

	Description string `json:"description,omitempty"` // for people
	// Restart says when it is started again by itself; empty: as its cluster says.
	Restart Restart `json:"restart,omitempty"`
	// RestartAfter are labels of VMs that are to run before it is started again by itself, ascending.
	RestartAfter []string `json:"restart_after,omitempty"`
	// RestartPriority says how soon a VM with HA is restarted, compared with others that wait.
	RestartPriority RestartPriority `json:"restart_priority,omitempty"`
	// Whereabouts is what was found out about where it runs. It means nothing more once another node holds the VM.
	Whereabouts Whereabouts `json:"whereabouts,omitzero"`
	// Kept is the node, by ID, that has told last that its libvirt keeps memory of the VM there; empty: none does. The next leader may not
	// hear that node before it is proven to be off, and a boot of that host may let the guest run on.
	Kept string `json:"kept,omitempty"`
	// Bound is the node, by ID, that alone has a file of the VM, as far as anybody has proven; empty: all nodes of its cluster have all. It
	// starts nowhere else, also in a cluster with shared storage: elsewhere a file of the same path would be another one.
	Bound string `json:"bound,omitempty"`
	// Needs are the permissions, with commas between, that its document needs and that nobody has given: it was adopted with what the guard
	// does not let through, so that only its node runs it. Empty: none.
	Needs string `json:"needs,omitempty"`
	// Ran are the devices that it was started with last, or was accepted to run with since, whatever its record has become; nil: not known.
	Ran []RanDevice `json:"ran,omitempty"`
	// RanSize is how large it was started last, or was made with Berth while it runs, whatever its record has become since; zero: not known.
	// Pending is what of its record was changed since, or by whom it was changed while it runs.
	RanSize Size            `json:"ran_size,omitzero"`
	Pending []PendingChange `json:"pending,omitempty"`
	// Settled is the epoch of the last run if somebody has changed devices with Berth since it ended: what a node tells later of that run
	// changes nothing any more.
	Settled uint64 `json:"settled,omitempty"`
	// Unwatched is the epoch of the last run if nobody has seen how it ended: what its guest ran with last is not known. 0: somebody has.
	Unwatched uint64 `json:"unwatched,omitempty"`
	// Ballooned tells that its memory was changed with Berth while it runs, or can be: it is as large as its balloon leaves it, and not as
	// its domain says.
	Ballooned bool `json:"ballooned,omitempty"`
	// Drift is what somebody has changed of it beside Berth; nil: nothing.
	Drift *Drift `json:"drift,omitempty"`
	// Losses are the hosts that were lost soon after the VM had started on them, since somebody last started it; at most MaxLosses.
	Losses []Loss `json:"losses,omitempty"`
	// Paused is who has paused it with Berth while it runs, until somebody lets it run on, with whatever.
	Paused Stand `json:"paused,omitzero"`
	// Snapshots are those of its disks, oldest first; at most MaxSnapshots.
	Snapshots []Snapshot `json:"snapshots,omitempty"`
	// Reverting is the name of the snapshot that its disks are being reverted to: until all are, it is not started. Empty: none.
	Reverting string `json:"reverting,omitempty"`
}

// Whereabouts is what was found out about where a VM runs.
type Whereabouts struct {
	// Boot is that of the holder's host under which the VM runs there; empty: not known. When the host boots anew, its guest has ended.
	// Of a VM that nobody holds it is that of a host that has shown it since Missing: somebody has started it there beside Berth.
	Boot string `json:"boot,omitempty"`
	// Missing is when the node that had it was found without it, and nobody had seen its end. Any node may run it since, until all
	// have listed their domains or are proven to be off. Zero: it is not missing.
	Missing time.Time `json:"missing,omitzero"`
}

// Beside tells whether a VM with this holder was seen to run where Berth has not started it.
func (w Whereabouts) Beside(holder string) bool {
	return holder == "" && w.Boot != "" && !w.Missing.IsZero()
}

// Guarded tells whether Berth is to start the VM elsewhere once it is proven that it runs nowhere. For one that it is never to start no
// node is fenced.
func (v *VM) Guarded() bool { return v.HA && v.Restart != RestartNever }

// Discard is a paused copy of a VM that is to be discarded.
type Discard struct {
	Node  string `json:"node"` // ID
	Epoch uint64 `json:"epoch"`
}

// DiskCopies are volumes that a migration has filled, of a VM that it has lost, or after the hand-over those that it has filled them from.
// They may be the last copy of its disks. They go when the VM has run with its disks again, or by somebody's word.
type DiskCopies struct {
	Operation string        `json:"operation"` // ID of the migration
	Node      string        `json:"node"`      // ID of the node that has them
	Volumes   []VolumeOrder `json:"volumes"`
	Whole     bool          `json:"whole,omitempty"`  // all was there when the guest stood still to be handed over
	Source    bool          `json:"source,omitempty"` // they are those of the migration's source, and the VM's disks are on its target
}

// Side is whose copies they are, as a person says it who keeps them, and Other whose disks they are not.
func (c *DiskCopies) Side() (side, other string) {
	if c.Source {
		return "source", "target"
	}
	return "target", "source"
}

// Migration says who may move a running VM.
type Migration string

// Who may move a running VM.
const (
	MigrateAutomatic Migration = ""       // Berth by itself, and people
	MigrateManual    Migration = "manual" // people only; a drain, which somebody asked for, takes it along
	MigrateNever     Migration = "never"  // nobody: it is immovable
)

// RestartPriority says whose restart goes first.
type RestartPriority string

// The priorities of restarts.
const (
	RestartNormal RestartPriority = ""
	RestartHigh   RestartPriority = "high"
	RestartLow    RestartPriority = "low"
)

// VMSpec is what a VM is made of. Either XML is set (with Memory and VCPUs read from it) or the other fields are.
type VMSpec struct {
	Memory   units.Bytes `json:"memory"`
	VCPUs    int         `json:"vcpus"`
	Kernel   string      `json:"kernel,omitempty"`
	Initrd   string      `json:"initrd,omitempty"`
	Cmdline  string      `json:"cmdline,omitempty"`
	Disks    []Disk      `json:"disks,omitempty"`
	Networks []string    `json:"networks,omitempty"` // libvirt network names, or bridge:NAME
	XML      string      `json:"xml,omitempty"`

	Machine  string `json:"machine,omitempty"`   // q35, pc, virt ...; empty: as the node has it by default
	Firmware string `json:"firmware,omitempty"`  // FirmwareBIOS or FirmwareEFI; empty: what the machine type has by default
	CPU      string `json:"cpu,omitempty"`       // CPUHostPassthrough, or a model by name; empty: the cluster's baseline
	UserData string `json:"user_data,omitempty"` // of cloud-init: the guest gets it on a seed image

	// MaxMemory and MaxVCPUs are how large it can become while it runs; 0: not larger than it is started.
	MaxMemory units.Bytes `json:"max_memory,omitempty"`
	MaxVCPUs  int         `json:"max_vcpus,omitempty"`
}

// Words of a VM's firmware and CPU.
const (
	FirmwareBIOS       = "bios"
	FirmwareEFI        = "efi"
	CPUHostPassthrough = "host-passthrough" // the VM then moves only to nodes with the very same CPU
)

// Disk is one block device of a VM: a file on the nodes or a volume of one of their pools.
type Disk struct {
	Path     string `json:"path"`
	Format   string `json:"format"` // raw or qcow2; explicit, never probed
	Bus      string `json:"bus"`    // virtio, sata or scsi
	ReadOnly bool   `json:"read_only,omitempty"`

	// Pool and Volume are libvirt's names of a volume; then there is no path.
	Pool   string `json:"pool,omitempty"`
	Volume string `json:"volume,omitempty"`
}

// Ranges of a VM's size. libvirt and QEMU have their own; these refuse what can only be a slip.
const (
	MinVMMemory = units.MiB
	MaxVMMemory = 24 * units.TiB
	MaxVCPUs    = 4096
)

// More ranges of a VM's description, so that one record stays small in the replicated log.
const (
	MaxNameLength    = 64
	MaxDescription   = 256 // characters
	MaxPathLength    = 4096
	MaxCmdlineLength = 4096
	MaxDisks         = 64
	MaxNetworks      = 32
	MaxXMLLength     = 256 << 10
	MaxUserData      = 64 << 10
)

// EndUnwatched tells whether nobody has seen how the VM's last run ended.
func (v *VM) EndUnwatched() bool { return v.Unwatched != 0 && v.Unwatched == v.Epoch }

// EpochsGiven is the highest epoch that the VM was ever given. The next one has to be above it.
func (v *VM) EpochsGiven() uint64 { return max(v.Epoch, v.LastEpoch) }
