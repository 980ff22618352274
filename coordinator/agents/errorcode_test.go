package agents

import (
	"testing"

	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestEveryCodeOfAnAgentIsKnown(t *testing.T) {
	seen := map[operation.ErrorCode]bool{}
	for number, name := range berthv1.AgentErrorCode_name {
		code, known := errorCodes[berthv1.AgentErrorCode(number)]
		if !known || seen[code] {
			t.Errorf("%s is %q, known %t", name, code, known)
		}
		seen[code] = true
	}
}

// The words are those that agents of release 0.6 send. They stay for ever: an agent keeps its answers.
func TestAnAnswerWithoutACodeIsReadByItsWord(t *testing.T) {
	for word, want := range map[string]operation.ErrorCode{
		"": operation.NoError, "internal": operation.Internal, "stale_term": operation.StaleTerm, "stale_epoch": operation.StaleEpoch,
		"journal": operation.Journal, "timeout": operation.Timeout, "no_memory": operation.NoMemory, "no_space": operation.NoSpace,
		"no_pool": operation.NoPool, "no_volume": operation.NoVolume, "in_use": operation.InUse, "exists": operation.Exists,
		"invalid_xml": operation.InvalidXML, "ambiguous": operation.Ambiguous, "too_old": operation.TooOld,
		"unavailable": operation.Unavailable, "busy": operation.Busy, "denied": operation.Denied, "unsupported": operation.Unsupported,
		"other_epoch": operation.OtherEpoch, "invalid_state": operation.InvalidState, "not_found": operation.NotFound,
		"aborted": operation.Aborted, "invalid": operation.Invalid, "malformed": operation.Malformed, "a word of nobody": operation.Internal,
	} {
		got := Answer("n1", "boot", &berthv1.CommandResult{ErrorCode: word}).Code
		if got != want {
			t.Errorf("%q is %q, want %q", word, got, want)
		}
	}
}

func TestTheCodeOfAnAnswerCountsAndNotItsWord(t *testing.T) {
	for code, want := range map[berthv1.AgentErrorCode]operation.ErrorCode{
		berthv1.AgentErrorCode_AGENT_ERROR_CODE_JOURNAL: operation.Journal,
		berthv1.AgentErrorCode(1000):                    operation.Internal,
	} {
		if got := Answer("n1", "boot", &berthv1.CommandResult{Code: code, ErrorCode: "exists"}).Code; got != want {
			t.Errorf("%s is %q, want %q", code, got, want)
		}
	}
}
