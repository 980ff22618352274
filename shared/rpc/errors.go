package rpc

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// The codes of ErrorDetail. Programs may rely on them; they never change their meaning.
const (
	NoNodeFits  = "no_node_fits" // placement refused every node; the detail carries the decision
	NotFound    = "not_found"    // the subject does not exist
	Exists      = "exists"       // the subject exists already
	Busy        = "busy"         // an operation is under way on the subject
	Invalid     = "invalid"      // the request makes no sense as it stands
	Stale       = "stale"        // the cluster changed under the request; try again
	NoLeader    = "no_leader"    // the coordinators have no leader at the moment
	Unreachable = "unreachable"  // the other side does not answer
	Timeout     = "timeout"      // not finished in time; it may still finish
	Denied      = "denied"       // the caller may not do this
	Unavailable = "unavailable"  // something that is needed does not work at the moment
	Conflict    = "conflict"     // the subject is in a state that does not allow this
	Internal    = "internal"     // a fault in Berth
	Overloaded  = "overloaded"   // there is too much to do; nothing was done, try again when the answer says
)

// Errorf makes an error to answer with. The text is for people: lower case, naming the thing; the next step stands in d.
func Errorf(code connect.Code, d *berthv1.ErrorDetail, format string, a ...any) *connect.Error {
	err := connect.NewError(code, fmt.Errorf(format, a...))
	if d == nil {
		return err
	}
	if detail, encodeErr := connect.NewErrorDetail(d); encodeErr == nil {
		err.AddDetail(detail)
	}
	return err
}

// Detail is the ErrorDetail that rides on err, or nil when there is none.
func Detail(err error) *berthv1.ErrorDetail {
	var wire *connect.Error
	if !errors.As(err, &wire) {
		return nil
	}
	for _, detail := range wire.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		if d, ok := value.(*berthv1.ErrorDetail); ok {
			return d
		}
	}
	return nil
}
