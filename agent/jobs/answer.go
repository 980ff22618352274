package jobs

import (
	"errors"
	"fmt"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

func result(command *berthv1.Command, outcome berthv1.CommandOutcome, code string, err error, domain *berthv1.Domain) *berthv1.CommandResult {
	out := &berthv1.CommandResult{
		OperationId: command.GetOperationId(), Step: command.GetStep(), Outcome: outcome, ErrorCode: code, Domain: domain,
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

func success(command *berthv1.Command, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_DONE, "", nil, domain)
}

func failure(command *berthv1.Command, err error, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED, codeOf(err), err, domain)
}

func doubt(command *berthv1.Command, err error, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_AMBIGUOUS, codeOf(err), err, domain)
}

// refused is for an order that does not fit what is here: nothing was tried.
func refused(command *berthv1.Command, err error, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED, codeOf(err), err, domain)
}

// refusal is the journal's.
func refusal(command *berthv1.Command, err error) *berthv1.CommandResult {
	code := "journal" // a full or broken disk: nothing is done that could not be remembered
	switch {
	case errors.Is(err, ErrStaleTerm):
		code = "stale_term"
	case errors.Is(err, ErrStaleEpoch):
		code = "stale_epoch"
	default:
		err = fmt.Errorf("the node's journal does not work, so nothing was done: %w: free space on its disk", err)
	}
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED, code, err, nil)
}

// codes are the stable words of causes, the more telling ones first.
var codes = []struct {
	cause error
	code  string
}{
	{errDeadline, "timeout"},
	{hypervisor.ErrNoMemory, "no_memory"},
	{hypervisor.ErrNoSpace, "no_space"},
	{hypervisor.ErrNoPool, "no_pool"},
	{hypervisor.ErrNoVolume, "no_volume"},
	{hypervisor.ErrInUse, "in_use"},
	{hypervisor.ErrExists, "exists"},
	{hypervisor.ErrInvalidXML, "invalid_xml"},
	{hypervisor.ErrAmbiguous, "ambiguous"},
	{hypervisor.ErrTooOld, "too_old"},
	{hypervisor.ErrUnavailable, "unavailable"},
	{hypervisor.ErrBusy, "busy"},
	{hypervisor.ErrDenied, "denied"},
	{hypervisor.ErrUnsupported, "unsupported"},
	{hypervisor.ErrOtherEpoch, "other_epoch"},
	{hypervisor.ErrInvalidState, "invalid_state"},
	{hypervisor.ErrNotFound, "not_found"},
	{hypervisor.ErrAborted, "aborted"},
}

// codeOf is the stable word of an error's cause.
func codeOf(err error) string {
	for _, known := range codes {
		if errors.Is(err, known.cause) {
			return known.code
		}
	}
	return "internal"
}
