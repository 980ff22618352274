package errorcode

import (
	"errors"
	"fmt"
	"testing"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

// The words are those that agents of release 0.6 sent, which coordinators of that release decide by.
func TestEveryCodeKeepsItsWord(t *testing.T) {
	for _, c := range []struct {
		err  error
		word string
	}{
		{nil, ""},
		{errors.New("odd"), "internal"},
		{ErrStaleTerm, "stale_term"},
		{ErrStaleEpoch, "stale_epoch"},
		{ErrJournal, "journal"},
		{ErrGivenUp, "timeout"},
		{ErrInvalid, "invalid"},
		{ErrMalformed, "malformed"},
		{ErrUnknown, "unsupported"},
		{hypervisor.ErrNoMemory, "no_memory"},
		{hypervisor.ErrNoSpace, "no_space"},
		{hypervisor.ErrNoPool, "no_pool"},
		{hypervisor.ErrNoVolume, "no_volume"},
		{hypervisor.ErrInUse, "in_use"},
		{hypervisor.ErrHeld, "in_use"},
		{hypervisor.ErrExists, "exists"},
		{hypervisor.ErrInvalidXML, "invalid_xml"},
		{hypervisor.ErrAmbiguous, "ambiguous"},
		{hypervisor.ErrTooOld, "too_old"},
		{hypervisor.ErrUnavailable, "unavailable"},
		{hypervisor.ErrBusy, "busy"},
		{hypervisor.ErrDenied, "denied"},
		{hypervisor.ErrUnsupported, "unsupported"},
		{hypervisor.ErrUnsafe, "unsafe"},
		{hypervisor.ErrOtherEpoch, "other_epoch"},
		{hypervisor.ErrInvalidState, "invalid_state"},
		{hypervisor.ErrNotFound, "not_found"},
		{hypervisor.ErrAborted, "aborted"},
	} {
		if got := Word(Of(c.err)); got != c.word {
			t.Errorf("%v has the word %q, want %q", c.err, got, c.word)
		}
	}
	if got := TaskWord(Of(hypervisor.ErrInUse)); got != "busy" {
		t.Errorf("a task on a volume that is in use has the word %q", got)
	}
}

func TestOfTwoCausesTheMoreTellingOneCounts(t *testing.T) {
	err := fmt.Errorf("%w: %w", hypervisor.ErrNotFound, hypervisor.ErrInUse)
	if got := Of(err); got != berthv1.AgentErrorCode_AGENT_ERROR_CODE_IN_USE {
		t.Errorf("got %s", got)
	}
}
