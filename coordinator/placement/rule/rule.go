// Package rule is what every placement rule is given and gives back: the input of one decision, a constraint's verdict,
// a weigher's terms. The engine turns them into the Decision that is kept.
package rule

import (
	"math"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/view"
	"berth/shared/units"
)

// Input is what is to be placed and on what, as the rules see it. Rules do not change it. Nodes are named by their index
// into the columns.
type Input struct {
	Columns    *view.Columns
	Now        int64       // of the decision, nanoseconds since 1970
	Memory     units.Bytes // of the VM and of those that come along
	VCPUs      int         // of the VM and of those that come along
	Along      int         // how many VMs come along to the same node
	Pinned     string      // node ID: no other one will do; empty: any
	PinnedName string
	Excluded   []string // node IDs that failed this request before
	Current    string   // node ID that runs the VM now; empty when none does
	Home       string   // node ID that has the VM's disk, in a cluster with local storage; empty: any will do
	Leave      bool     // the current node will not do
	Restart    bool     // it is started again because its node has failed
	Among      []string // node IDs that the VM may go to, and it may stay; none: any
	AmongWho   string   // who sends it there alone, in words: "the drain sends it"
	AmongWhy   string   // and why
	Preferred  []string // node IDs that are better than others for a VM that does not run yet

	// Disks are those that are volumes or become some; CopyStorage lets a move take disks of local pools along, and
	// DispersePools puts the customer's volumes in pools that have few of them. Networks, CPU and PassedCPU are what the VM
	// needs of that name.
	Disks          []Disk
	CopyStorage    bool
	DispersePools  bool
	Networks       []string
	CPU, PassedCPU string

	// Bindings are what keeps the VM on the current node while it runs, and what lets it go, in words.
	Bindings []string
	// Apart are the nodes that have other storage under the name of a shared pool than what the VM's disks are in.
	Apart []Apart

	// ManagerGrace is by how many VMs a node that carries the site's management is to have less than others.
	ManagerGrace int

	SystemKeys   []key.Weighted
	CustomerKeys []key.Weighted

	// System has for each system key the column of the nodes' values, not given where nodes have no such key; Near tells that all of
	// them are at most 1 away from what the key wants. Reserved has the columns of the customer keys. Met are the residents
	// that the customer keys meet, by key.
	System   []view.Column[float64]
	Near     []bool
	Reserved []view.Column[float64]
	Met      []Met

	// Groups are the affinity groups that have a say, Bounds what their hard rules leave, OfNodes and OfVMs the rules that
	// weigh, those of the highest priority first. Fixed and Members count the other members of all positive groups.
	Groups         []Membership
	Bounds         Bounds
	OfNodes, OfVMs []SoftRule
	Fixed, Members int

	// Headroom tells what could not be restarted if nodes failed; nil where nobody asks. Uncovered is the same by node, as a
	// decision has kept it.
	Headroom  *Headroom
	Uncovered []Uncovered

	scratch []Met // of Meet, so that Met may also be given
}

// Apart is a node, by ID, that has other storage under the name of a pool, and what proves it, in words.
type Apart struct {
	Node string `json:"node"`
	Why  string `json:"why"`
}

// Met is one value that a customer key of the VM meets on nodes.
type Met struct {
	Key int `json:"key"` // index into the customer keys
	view.Posting
}

// Meet looks the keys up in the columns. The slices of an earlier decision are used again.
func (in *Input) Meet(scope model.KeyScope, owner model.Owner) {
	in.Resolve()
	in.scratch = in.scratch[:0]
	for k := range in.CustomerKeys {
		wanted := &in.CustomerKeys[k]
		in.Columns.Residents.Match(scope, wanted.Class, owner, wanted.Name, wanted.Value, func(p view.Posting) {
			in.scratch = append(in.scratch, Met{Key: k, Posting: p})
		})
	}
	in.Met = in.scratch
}

// Resolve looks the keys up in the columns of the nodes alone: no residents are met.
func (in *Input) Resolve() {
	in.System, in.Near, in.Reserved, in.Met = in.System[:0], in.Near[:0], in.Reserved[:0], nil
	for k := range in.SystemKeys {
		column, near := in.systemColumn(&in.SystemKeys[k])
		in.System, in.Near = append(in.System, column), append(in.Near, near)
	}
	for k := range in.CustomerKeys {
		var column view.Column[float64]
		if name := in.CustomerKeys[k].Name; model.IsReservedKey(name) {
			column, _ = in.nodeKey(name, 0)
		}
		in.Reserved = append(in.Reserved, column)
	}
}

func (in *Input) systemColumn(wanted *key.Weighted) (column view.Column[float64], near bool) {
	switch {
	case wanted.Name == model.SpecialRAM:
		return in.Columns.RAM, false // some of it may be Unknown
	case wanted.Name == model.SpecialCPU:
		return in.Columns.CPU, false
	case wanted.Name == model.SpecialLoad:
		return in.Columns.Busy, false
	case model.IsReservedKey(wanted.Name): // a node's reserved keys are shown to customer keys alone
		return column, false
	default:
		return in.nodeKey(wanted.Name, wanted.Value)
	}
}

func (in *Input) nodeKey(name string, wanted float64) (column view.Column[float64], near bool) {
	for k := range in.Columns.NodeKeys {
		if in.Columns.NodeKeys[k].Name == name {
			span := in.Columns.Spans[k]
			return in.Columns.NodeKeys[k].Values, 1-math.Abs(span[0]-wanted) >= 0 && 1-math.Abs(span[1]-wanted) >= 0
		}
	}
	return column, false
}

// TelemetryAge is how old a node's telemetry is; false if it has sent none.
func (in *Input) TelemetryAge(node int) (time.Duration, bool) {
	if in.Columns.Known[node]&view.KnowsTelemetry == 0 {
		return 0, false
	}
	return max(time.Duration(in.Now-in.Columns.TelemetryAt.At(node)), 0), true
}

// AsTold gives a verdict the age of what the node has told of itself. A node that has told nothing gives it none.
func (in *Input) AsTold(node int, verdict Verdict) Verdict {
	if in.Columns.Known[node]&view.KnowsInventory == 0 {
		return verdict
	}
	return verdict.AtAge(time.Duration(in.Now - in.Columns.InventoryAt.At(node)))
}

// Name is what people call the node.
func (in *Input) Name(node int) string {
	if name := in.Columns.Names[node]; name != "" {
		return name
	}
	return in.Columns.IDs[node]
}

// Unit is what a verdict's amounts are counted in.
type Unit string

// Bytes counts memory, VCPUs what guests take for CPUs.
const (
	Bytes Unit = "bytes"
	VCPUs Unit = "vcpus"
)

// Verdict is a constraint's answer for one node. It is small and holds no text of its own, so that a scan over many
// nodes allocates nothing.
type Verdict struct {
	Passed bool
	Code   string // of a refusal: one of the constraint's own words

	// Needed must be exceeded by Available, or of VCPUs not exceed it. Both mean something only when Unit is set.
	Needed, Available float64
	Unit              Unit

	// Age is that of the input, if Aged.
	Age  time.Duration
	Aged bool
}

// Pass is a verdict without figures.
func Pass() Verdict { return Verdict{Passed: true} }

// Refuse is a refusal without figures.
func Refuse(code string) Verdict { return Verdict{Code: code} }

// AtAge adds the age of the input.
func (v Verdict) AtAge(age time.Duration) Verdict {
	v.Age, v.Aged = max(age, 0), true
	return v
}

// Relaxation is a change that would lift a refusal. Among those of one constraint, the smallest cost is told.
type Relaxation struct {
	Text string
	Cost float64

	// Apply makes the change to columns that hold the refused node alone, and to the request's input, so that it can be
	// tried out.
	Apply func(figures *view.Figures, in *Input)
}

// Term is one part of a node's score.
type Term struct {
	Key          *key.Weighted // of the VM; nil in a weigher that looks at no keys
	Group        string        // name; of a weigher that looks at groups
	Note         string        // in words, what the group has against the node
	Raw          float64       // the measured value, or the node's value of the key
	Proximity    float64       // of a key weigher
	Contribution float64
	Count        int  // how many VMs on the node show the value; 0: the node itself has it
	Unknown      bool // the value could not be measured: it contributes nothing
}
