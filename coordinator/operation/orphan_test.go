package operation

import (
	"testing"

	"berth/coordinator/model"
)

// Of a guest that libvirt has forgotten operations know as little as of one whose node cannot tell.
func TestAnOrphanIsNotJudged(t *testing.T) {
	for shown, want := range map[model.DomainState]model.DomainState{
		model.DomainOrphan: model.DomainUnknown, model.DomainUnknown: model.DomainUnknown, model.DomainAbsent: model.DomainAbsent,
		model.DomainRunning: model.DomainRunning, model.DomainShutoff: model.DomainShutoff,
	} {
		if got := Seen(shown); got != want {
			t.Errorf("%s is seen as %s, want %s", shown, got, want)
		}
	}
}
