package placement

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/planner"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/rule"
	"berth/shared/units"
)

// Purpose is the reason for a placement.
type Purpose string

// The purposes so far.
const (
	ForStart   Purpose = "start"
	ForMigrate Purpose = "migrate"
	ForCreate  Purpose = "create" // of a VM in a cluster with local storage: where its disk goes

	// Moves that nobody asked for by name.
	ForDrain   Purpose = "drain"   // the node is being emptied
	ForReturn  Purpose = "return"  // it came from there before a drain
	ForRepair  Purpose = "repair"  // a group's rule does not hold
	ForBalance Purpose = "balance" // the cluster is uneven
)

// PurposeNames are the names of all purposes.
func PurposeNames() []string {
	return []string{
		string(ForStart), string(ForMigrate), string(ForCreate), string(ForDrain), string(ForReturn), string(ForRepair), string(ForBalance),
	}
}

// ordering says who lets a VM go to some nodes alone, and why.
func (p Purpose) ordering() (who, why string) {
	switch p {
	case ForStart:
		return "it starts", "the VMs that it starts together with are planned there"
	case ForDrain:
		return "the drain sends it", "the VMs that rules tie to it go there"
	case ForReturn:
		return "it returns", "a drain has taken it away from there"
	case ForRepair:
		return "the repair sends it", "there the broken rule of its group holds, or holds better"
	case ForBalance:
		return "the balancer sends it", "that makes the cluster more even, and no rule holds worse there"
	default:
		return "", ""
	}
}

// Moves tells whether the request is for a running VM, whose own node is a candidate.
func (p Purpose) Moves() bool { return p != ForStart && p != ForCreate }

// Request is what is to be placed.
type Request struct {
	Purpose  Purpose     `json:"purpose"`
	VM       string      `json:"vm"` // ID; left out of its own node's figures
	VMName   string      `json:"vm_name"`
	Memory   units.Bytes `json:"memory"`
	VCPUs    int         `json:"vcpus"`
	Pinned   string      `json:"pinned,omitempty"`   // node ID named by the caller: no other one will do
	Excluded []string    `json:"excluded,omitempty"` // node IDs that failed this request before
	Current  string      `json:"current,omitempty"`  // migrate: node ID that runs it; chosen means stay

	Cluster      string         `json:"cluster,omitempty"`       // name; only its nodes are looked at
	SystemKeys   []key.Weighted `json:"system_keys,omitempty"`   // compiled, by name
	CustomerKeys []key.Weighted `json:"customer_keys,omitempty"` // compiled, by name; billing-entity keys are among them
	Owner        model.Owner    `json:"owner,omitzero"`
	// Home is the node ID that has the VM's disk in a cluster with local storage: the algorithm is not used.
	Home string `json:"home,omitempty"`
	// IfBetter is the smallest gain of score that makes a migration worth it; 0: any.
	IfBetter float64 `json:"if_better,omitempty"`

	// Labels are the VM's labels, by which groups include it.
	Labels []string `json:"labels,omitempty"`
	// Leave tells that the VM must leave its current node.
	Leave bool `json:"leave,omitempty"`
	// Among is the only node IDs that the VM may go to; the current node is allowed too unless Leave is set. Nil: any node.
	Among     []string `json:"among,omitempty"`
	Preferred []string `json:"preferred,omitempty"` // node IDs that are better than others
	// Unit is the VMs that come along to the same node because hard rules tie them to this one. Their memory and vCPUs must fit
	// too, and rules ignore where they are now.
	Unit *Unit `json:"unit,omitempty"`

	// Planner orders clusters and cuts nodes into tiers; empty: the policy's.
	Planner string `json:"planner,omitempty"`
	// Disks are the VM's disks that are volumes or will be. Networks are what its NICs are connected to (a libvirt network's
	// name, or bridge:NAME), each once, ascending.
	Disks    []Disk   `json:"disks,omitempty"`
	Networks []string `json:"networks,omitempty"`
	// CopyStorage lets a migration take disks of local pools along.
	CopyStorage bool `json:"copy_storage,omitempty"`
	// CPU is a CPU model that the node must support; PassedCPU is the host CPU that the VM was passed. Empty: any.
	CPU       string `json:"cpu,omitempty"`
	PassedCPU string `json:"passed_cpu,omitempty"`
	// HA tells that Berth starts the VM elsewhere when its node has failed. Restart tells that this placement is such a start:
	// it may use the memory that is kept free for it.
	HA      bool `json:"ha,omitempty"`
	Restart bool `json:"restart,omitempty"`
	// Bindings are what keeps the VM on its node while it runs, and what lets it go, in words. With any it moves nowhere.
	Bindings []string `json:"bindings,omitempty"`
	// Last is the node ID that the VM ran on last, if that node is to be tried before all others.
	Last string `json:"last,omitempty"`
	// Apart are the nodes that have other storage under the name of a shared pool than what the VM's disks are in.
	Apart []Apart `json:"apart,omitempty"`
}

// Apart is a node that has other storage under the name of a pool.
type Apart = rule.Apart

// Disk is what one disk of a VM needs of a node.
type Disk = rule.Disk

// ImagePlace is a pool that an image is in.
type ImagePlace = rule.ImagePlace

// PoolChoice says which pool a new disk goes to.
type PoolChoice struct {
	Disk     string `json:"disk"` // ID of the resource
	Pool     string `json:"pool"` // ID
	PoolName string `json:"pool_name"`
	// ImagePool is the pool, by ID, whose volume of the image the disk is a thin copy of; empty: the image is in only one pool.
	ImagePool string `json:"image_pool,omitempty"`
}

// Unit is what comes along with a VM; it is nil for a VM by itself.
type Unit struct {
	VMs    []string    `json:"vms"`    // IDs, ascending
	Memory units.Bytes `json:"memory"` // of all of them, without the VM itself
	VCPUs  int         `json:"vcpus"`
	Names  []string    `json:"names,omitempty"` // of the VMs, in their order, for people
}

// Outcome is the result of a decision.
type Outcome = planner.Outcome

// The outcomes of a decision.
const (
	Placed  = planner.Placed
	Stay    = planner.Stay // the VM's own node is the best one
	Refused = planner.Refused
)

// Phase is the stage at which a placement fails.
type Phase string

// The phases of a failure.
const (
	PhaseConstraint Phase = "constraint" // no node passes all constraints
	PhaseSystem     Phase = "system"     // no candidate has a system score above the last threshold
	PhaseThreshold  Phase = "threshold"  // every cluster would be filled beyond its capacity threshold
)

// Decision records one run of the engine. It is immutable. It keeps the request, the result, and the figures that it was made
// on. Everything else that an explanation shows follows from these (Explain), and so does the decision itself (Replay).
type Decision struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Caller     string    `json:"caller"`
	Operation  string    `json:"operation,omitempty"`
	DryRun     bool      `json:"dry_run,omitempty"`
	Policy     string    `json:"policy"`
	Seed       uint64    `json:"seed"`
	Request    Request   `json:"request"`
	Outcome    Outcome   `json:"outcome"`
	Winner     string    `json:"winner,omitempty"`      // node ID
	WinnerName string    `json:"winner_name,omitempty"` // node name
	Margin     float64   `json:"margin,omitempty"`      // over the runner-up; negative when the VM stays because the gain is too small
	Reason     string    `json:"reason"`

	// What Explain fills in. Release 0.1 kept it. The order of the fields is that of the replicated records for good.
	Counterfactual string       `json:"counterfactual,omitempty"`
	Order          string       `json:"order,omitempty"`
	Gate           string       `json:"gate,omitempty"`
	Selector       string       `json:"selector,omitempty"`
	Nodes          []NodeResult `json:"nodes,omitzero"` // candidates by rank, then the refused by name

	Omitted     int              `json:"omitted,omitempty"` // nodes that the record leaves out
	FailedPhase Phase            `json:"failed_phase,omitempty"`
	Round       int              `json:"round,omitempty"`   // system round that the winner entered at, from 1; 0: the gate is off
	Changes     []Change         `json:"changes,omitempty"` // of a refusal: each of them alone would let it fit
	Rules       *policies.Policy `json:"rules,omitempty"`   // the policy as it was
	Inputs      *Inputs          `json:"inputs,omitempty"`  // nil in decisions of release 0.1

	// Ranks are the table of the policy's weighers, which Explain fills in: one row each, of the nodes of the winner's round.
	Ranks []RankRow `json:"ranks,omitempty"`

	Tried []Tried      `json:"tried,omitempty"` // the clusters that were looked at, when there was more than one
	Pools []PoolChoice `json:"pools,omitempty"` // where the winner's disks that are to be made go

	Across *Across `json:"across,omitempty"` // how the clusters were put in order, or why they were not

	Prefer string `json:"prefer,omitempty"` // what soft rules left of the candidates; Explain fills it in

	// Warnings are what the winner comes to beyond what it has, although no constraint of the policy refuses it. Explain fills them in.
	Warnings []string `json:"warnings,omitempty"`
}

// Change is one thing that alone would turn a refusal into a placement. It was tried.
type Change struct {
	Kind string `json:"kind"` // a constraint's name, or one of the kinds below
	Text string `json:"text"` // one sentence without a full stop
	Node string `json:"node"` // ID of the node that would take the VM

	Key    string  `json:"key,omitempty"`    // of ChangeKey
	Figure float64 `json:"figure,omitempty"` // bytes of ChangeSize and ChangeOverhead, threshold of ChangeFinal
	VM     string  `json:"vm,omitempty"`     // of ChangeMove: ID of the VM that would have to move away
	To     string  `json:"to,omitempty"`     // of ChangeMove: ID of a node that has room for it
}

// The kinds of change that belong to no single constraint.
const (
	ChangeSize     = "size"     // a smaller VM
	ChangeOverhead = "overhead" // less memory kept free on the node
	ChangeKey      = "key"      // without one system key
	ChangeFinal    = "final"    // a lower threshold of the last system round
	ChangeMove     = "move"     // one VM moved away

	ChangeThreshold = "threshold" // a higher capacity threshold of a cluster
)

// NodeResult is what the engine found of one node.
type NodeResult struct {
	Node        string             `json:"node"` // ID
	Name        string             `json:"name"`
	Admitted    bool               `json:"admitted"`
	Current     bool               `json:"current,omitempty"`
	Constraints []ConstraintResult `json:"constraints"`
	Terms       []Term             `json:"terms,omitempty"`
	Score       float64            `json:"score,omitempty"` // that decided among the nodes of one round
	Rank        int                `json:"rank,omitempty"`  // 1 is best
	Tier        int                `json:"tier,omitempty"`
	Band        int                `json:"band,omitempty"` // round at which the gate let it in; 0: gate off

	SystemScore   float64 `json:"system_score,omitempty"`
	CustomerScore float64 `json:"customer_score,omitempty"`

	Wish int `json:"wish,omitempty"` // by what it breaks of the VM's soft rules, 1 is least; 0: there are none, or they weigh
}

// ConstraintResult is one constraint's answer for one node. A refusal has a code. If it is about an amount, it also has what
// was needed and what is available.
type ConstraintResult struct {
	Constraint string   `json:"constraint"`
	Passed     bool     `json:"passed"`
	Code       string   `json:"code,omitempty"`
	Message    string   `json:"message,omitempty"`
	Needed     *float64 `json:"needed,omitempty"`
	Available  *float64 `json:"available,omitempty"`
	Unit       string   `json:"unit,omitempty"`
	AgeSeconds *float64 `json:"age_seconds,omitempty"` // of the input it was judged on
}

// Term is one part of a node's score.
type Term struct {
	Weigher      string   `json:"weigher"`
	Key          string   `json:"key,omitempty"`
	Raw          float64  `json:"raw"`
	Proximity    *float64 `json:"proximity,omitempty"`
	Weight       float64  `json:"weight"`
	Contribution float64  `json:"contribution"`
	Note         string   `json:"note,omitempty"` // what is unusual about it, for instance that the value is not known

	Class  model.KeyClass `json:"class,omitempty"`  // of the VM's key
	Level  string         `json:"level,omitempty"`  // of the hierarchy, that the VM's key was set at
	Wanted float64        `json:"wanted,omitempty"` // the VM's value; Raw is the node's
	Count  int            `json:"count,omitempty"`  // VMs on the node that show the value; 0: the node itself has it
	Share  float64        `json:"share,omitempty"`  // of one of several weighers: what the selector made of Raw
}
