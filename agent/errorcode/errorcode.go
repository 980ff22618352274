// Package errorcode says with which code an agent answers for each cause of an error.
package errorcode

import (
	"errors"
	"strings"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

// The causes that are the agent's own, and not its hypervisor's.
var (
	ErrStaleTerm  = errors.New("it is from an older leader")
	ErrStaleEpoch = errors.New("the order is for an older epoch of the VM")
	ErrJournal    = errors.New("the node's journal does not work, so nothing was done")
	ErrGivenUp    = errors.New("given up")
	ErrInvalid    = errors.New("not what was announced")
	ErrMalformed  = errors.New("a command without operation, VM or epoch")
	ErrTooLate    = errors.New("it was taken back before it had begun here")
	ErrUnknown    = errors.New("this agent does not know the command: upgrade it")
)

// codes are in the order in which an error with more than one cause is looked up: the more telling cause comes first.
var codes = []struct {
	cause error
	code  berthv1.AgentErrorCode
}{
	{ErrStaleTerm, berthv1.AgentErrorCode_AGENT_ERROR_CODE_STALE_TERM},
	{ErrStaleEpoch, berthv1.AgentErrorCode_AGENT_ERROR_CODE_STALE_EPOCH},
	{ErrJournal, berthv1.AgentErrorCode_AGENT_ERROR_CODE_JOURNAL},
	{ErrTooLate, berthv1.AgentErrorCode_AGENT_ERROR_CODE_TOO_LATE},
	{ErrGivenUp, berthv1.AgentErrorCode_AGENT_ERROR_CODE_TIMEOUT},
	{ErrInvalid, berthv1.AgentErrorCode_AGENT_ERROR_CODE_INVALID},
	{ErrMalformed, berthv1.AgentErrorCode_AGENT_ERROR_CODE_MALFORMED},
	{ErrUnknown, berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSUPPORTED},
	{hypervisor.ErrOrphan, berthv1.AgentErrorCode_AGENT_ERROR_CODE_EXISTS}, // a start elsewhere would be a second copy
	{hypervisor.ErrOverlaid, berthv1.AgentErrorCode_AGENT_ERROR_CODE_OVERLAID},
	{hypervisor.ErrNoMemory, berthv1.AgentErrorCode_AGENT_ERROR_CODE_NO_MEMORY},
	{hypervisor.ErrNoSpace, berthv1.AgentErrorCode_AGENT_ERROR_CODE_NO_SPACE},
	{hypervisor.ErrNoPool, berthv1.AgentErrorCode_AGENT_ERROR_CODE_NO_POOL},
	{hypervisor.ErrNoVolume, berthv1.AgentErrorCode_AGENT_ERROR_CODE_NO_VOLUME},
	{hypervisor.ErrInUse, berthv1.AgentErrorCode_AGENT_ERROR_CODE_IN_USE},
	{hypervisor.ErrHeld, berthv1.AgentErrorCode_AGENT_ERROR_CODE_IN_USE},
	{hypervisor.ErrExists, berthv1.AgentErrorCode_AGENT_ERROR_CODE_EXISTS},
	{hypervisor.ErrInvalidXML, berthv1.AgentErrorCode_AGENT_ERROR_CODE_INVALID_XML},
	{hypervisor.ErrAmbiguous, berthv1.AgentErrorCode_AGENT_ERROR_CODE_AMBIGUOUS},
	{hypervisor.ErrTooOld, berthv1.AgentErrorCode_AGENT_ERROR_CODE_TOO_OLD},
	{hypervisor.ErrUnavailable, berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNAVAILABLE},
	{hypervisor.ErrBusy, berthv1.AgentErrorCode_AGENT_ERROR_CODE_BUSY},
	{hypervisor.ErrDenied, berthv1.AgentErrorCode_AGENT_ERROR_CODE_DENIED},
	{hypervisor.ErrUnsafe, berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSAFE},
	{hypervisor.ErrUnsupported, berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSUPPORTED},
	{hypervisor.ErrOtherEpoch, berthv1.AgentErrorCode_AGENT_ERROR_CODE_OTHER_EPOCH},
	{hypervisor.ErrInvalidState, berthv1.AgentErrorCode_AGENT_ERROR_CODE_INVALID_STATE},
	{hypervisor.ErrNotFound, berthv1.AgentErrorCode_AGENT_ERROR_CODE_NOT_FOUND},
	{hypervisor.ErrAborted, berthv1.AgentErrorCode_AGENT_ERROR_CODE_ABORTED},
}

// Of is the code of an error's cause; unspecified when there is no error.
func Of(err error) berthv1.AgentErrorCode {
	if err == nil {
		return berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSPECIFIED
	}
	for _, known := range codes {
		if errors.Is(err, known.cause) {
			return known.code
		}
	}
	return berthv1.AgentErrorCode_AGENT_ERROR_CODE_INTERNAL
}

// Word is a code as coordinators of releases up to 0.6 read it; empty for the unspecified one.
func Word(code berthv1.AgentErrorCode) string {
	if code == berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(code.String(), "AGENT_ERROR_CODE_"))
}

// TaskWord is the word of a code in the answer to a task. Coordinators of releases up to 0.6 try again what is busy, and know
// no other word for a volume that is in use.
func TaskWord(code berthv1.AgentErrorCode) string {
	if code == berthv1.AgentErrorCode_AGENT_ERROR_CODE_IN_USE {
		code = berthv1.AgentErrorCode_AGENT_ERROR_CODE_BUSY
	}
	return Word(code)
}
