// Package policies has the policies that decisions are made by: which rules a cluster uses, with what parameters. It is plain data; what
// the rules do, and whether they are there, the engine of the package placement knows.
package policies

import "berth/coordinator/model"

// Policy is what a cluster uses: plain data, rules by name. It is validated where it comes in (placement.Validate).
type Policy struct {
	Name        string   `json:"name"`
	Constraints []string `json:"constraints"` // all have to pass
	Planner     string   `json:"planner"`
	Gate        Gate     `json:"gate"`
	Weighers    []Factor `json:"weighers"`
	Selector    string   `json:"selector"` // how several weighers are combined

	// CustomerKeyScope is whose VMs a customer key can meet.
	CustomerKeyScope model.KeyScope `json:"customer_key_scope"`

	// ManagerGrace is how many fewer VMs a node with the site's management should have, for vm-count (oVirt's SPMVMCountGrace).
	ManagerGrace int `json:"manager_grace,omitempty"`

	// SoftRules is where soft rules of groups and preferred nodes count; empty, as in decisions of earlier releases: WithinBands.
	SoftRules SoftRules `json:"soft_rules,omitempty"`
	// ContendedAbove is the percent of waiting above which no soft rule sends a VM to a node; 0: waiting does not matter.
	ContendedAbove float64 `json:"contended_above,omitempty"`
}

// SoftRules says where soft rules of groups and preferred nodes count.
type SoftRules string

// The places of soft rules.
const (
	BeforeBands SoftRules = "before-bands" // Prefer: only candidates that break the least come to the gate
	WithinBands SoftRules = "within-bands" // they weigh among the nodes that the gate let in
)

// DefaultContendedAbove is the percent of the time in which work waits for the CPU or the memory of a node that is contended.
const DefaultContendedAbove = 60.0

// PreferLevel is the feature level of the members from which decisions know Prefer. Before it soft rules count within the
// bands, as every member explains it.
const PreferLevel = 3

// MaxManagerGrace bounds Policy.ManagerGrace.
const MaxManagerGrace = 100_000

// Factor is one weigher of a policy. With only one weigher its factor does not count.
type Factor struct {
	Weigher string  `json:"weigher"`
	Factor  float64 `json:"factor"`
}
