package evidence

import (
	"fmt"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// FailedStart is a start that has failed a moment ago, of which a node shows the domain still. The node has ended that before it said that
// the start failed, and has not told yet that it is gone.
type FailedStart struct {
	Operation string // ID
	At        time.Time
}

// How long after a failed start its domain is taken for one that goes: a node tells within a moment that a domain is gone, and at the
// latest when it lists all of them anew. Whoever asks in the first seconds waits.
const (
	goesWithin = model.InventoryInterval
	goesSoon   = 5 * time.Second
)

// GoesSoon tells whether it is worth to wait for what the node tells next.
func (f *FailedStart) GoesSoon(at time.Time) bool { return at.Before(f.At.Add(goesSoon)) }

// Text says what the domain is.
func (f *FailedStart) Text() string {
	return fmt.Sprintf("it is of the start that has failed there (operation %s), and is being removed", f.Operation)
}

// FailedStart is the start that has left a domain; nil: none has. The domain's mark names the operation that made it.
func (s *Survey) FailedStart(domain *model.Domain) *FailedStart {
	if domain == nil || !domain.Managed {
		return nil
	}
	for _, op := range s.Operations() {
		failed := op.Kind == operation.Start && op.Result == operation.Failed && op.VM == domain.UUID && op.ID == domain.Operation
		if failed && s.At.Before(op.EndedAt.Add(goesWithin)) {
			return &FailedStart{Operation: op.ID, At: op.EndedAt}
		}
	}
	return nil
}
