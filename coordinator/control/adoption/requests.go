package adoption

import (
	"berth/coordinator/operation"
	"berth/shared/domxml/guard"
)

// AdoptVMs asks for domains that run and are not Berth's to be taken under management. No guest is touched: a mark is written
// into the domain's metadata, and a record is made of what it is.
type AdoptVMs struct {
	Domains   []string // names or UUIDs
	All       bool     // every domain that is not Berth's, instead
	Node      string   // ID of the only node; empty: all
	VDC       string   // ID of what the VMs link to; empty: none
	DryRun    bool
	RequestID string
	Caller    string
	Lacks     []guard.Permission // those that the caller does not have
}

// AdoptedVM is what became of one domain.
type AdoptedVM struct {
	Name, ID  string
	Node      string              // name
	Operation operation.Operation // ID is empty on a dry run and if there is a problem
	Note      string              // what its owner should know
	Problem   string              // why it was not taken
	NextStep  string
}
