package agents

import (
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

var errorCodes = map[berthv1.AgentErrorCode]operation.ErrorCode{
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSPECIFIED:   operation.NoError,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_INTERNAL:      operation.Internal,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_STALE_TERM:    operation.StaleTerm,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_STALE_EPOCH:   operation.StaleEpoch,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_JOURNAL:       operation.Journal,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_TIMEOUT:       operation.Timeout,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_NO_MEMORY:     operation.NoMemory,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_NO_SPACE:      operation.NoSpace,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_NO_POOL:       operation.NoPool,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_NO_VOLUME:     operation.NoVolume,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_IN_USE:        operation.InUse,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_EXISTS:        operation.Exists,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_INVALID_XML:   operation.InvalidXML,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_AMBIGUOUS:     operation.Ambiguous,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_TOO_OLD:       operation.TooOld,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNAVAILABLE:   operation.Unavailable,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_BUSY:          operation.Busy,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_DENIED:        operation.Denied,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSUPPORTED:   operation.Unsupported,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_OTHER_EPOCH:   operation.OtherEpoch,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_INVALID_STATE: operation.InvalidState,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_NOT_FOUND:     operation.NotFound,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_ABORTED:       operation.Aborted,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_INVALID:       operation.Invalid,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_MALFORMED:     operation.Malformed,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_TOO_LATE:      operation.TooLate,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSAFE:        operation.Unsafe,
	berthv1.AgentErrorCode_AGENT_ERROR_CODE_OVERLAID:      operation.Overlaid,
}

// errorCode reads the code of an answer. Agents of releases up to 0.6 send its word alone, and so does any agent for an answer
// that it gave and journalled when it was one of those. A later release may send a code that this one does not know: nothing is
// decided by it.
func errorCode(code berthv1.AgentErrorCode, word string) operation.ErrorCode {
	if code == berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSPECIFIED {
		for _, known := range errorCodes {
			if string(known) == word {
				return known
			}
		}
		return operation.Internal
	}
	if known, ok := errorCodes[code]; ok {
		return known
	}
	return operation.Internal
}
