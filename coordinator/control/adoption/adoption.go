// Package adoption takes running domains in: those that are not Berth's, and VMs that run where Berth has not started them. No guest
// is touched: a mark is written into the domain's metadata, and a record is made of what it is.
package adoption

import (
	"context"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/evidence"
	"berth/coordinator/state"
)

// Operations begins what a record tells to be done.
type Operations interface {
	// BeginOperation commits the first record of an operation and sets it going. Again tells that it was decided on a state that is
	// no more.
	BeginOperation(ctx context.Context, first lifecycle.First) (started lifecycle.Started, again lead.Retry, err error)
}

// Fencing knows which nodes are proven to be off.
type Fencing interface {
	// Survey listens to all nodes now.
	Survey(snapshot *state.Snapshot) *evidence.Survey
}

// Adoption is safe for concurrent use.
type Adoption struct {
	*lead.Leader

	operations Operations
	fencing    Fencing
}

// New makes an Adoption.
func New(leader *lead.Leader, operations Operations, fencing Fencing) *Adoption {
	return &Adoption{Leader: leader, operations: operations, fencing: fencing}
}
