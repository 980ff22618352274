package jobs

import (
	"errors"
	"fmt"

	"berth/agent/errorcode"
	berthv1 "berth/shared/gen/berth/v1"
)

func result(
	command *berthv1.Command, outcome berthv1.CommandOutcome, err error, domain *berthv1.Domain,
) *berthv1.CommandResult {
	out := &berthv1.CommandResult{
		OperationId: command.GetOperationId(), Step: command.GetStep(), Outcome: outcome, Domain: domain,
	}
	if err != nil {
		out.Code, out.Error = errorcode.Of(err), err.Error()
		out.ErrorCode = errorcode.Word(out.GetCode())
	}
	return out
}

func success(command *berthv1.Command, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_DONE, nil, domain)
}

func failure(command *berthv1.Command, err error, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED, err, domain)
}

func doubt(command *berthv1.Command, err error, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_AMBIGUOUS, err, domain)
}

// refused is for an order that does not fit what is here: nothing was tried.
func refused(command *berthv1.Command, err error, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED, err, domain)
}

// refusal is the journal's. One that is not for the order's age has a full or broken disk for its reason: nothing is done that
// could not be remembered.
func refusal(command *berthv1.Command, err error) *berthv1.CommandResult {
	if !errors.Is(err, errorcode.ErrStaleTerm) && !errors.Is(err, errorcode.ErrStaleEpoch) {
		err = fmt.Errorf("%w: %w: free space on its disk", errorcode.ErrJournal, err)
	}
	return refused(command, err, nil)
}
