package refusal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/state"
	"berth/shared/rpc"
)

func TestABackupOfALaterReleaseIsRefusedWithTheReleaseToInstall(t *testing.T) {
	command := state.RaiseLevel(state.FeatureLevel + 1)
	command.Key, command.Kind, command.Caller, command.At = "k", "raise", "coordinator/c1", time.Unix(1, 0)
	command.Level = 0 // as that release would apply it
	entry, err := command.Encode()
	if err != nil {
		t.Fatal(err)
	}
	store, backup := state.NewStore(), new(bytes.Buffer)
	store.FSM().Apply(&raft.Log{Index: 1, Data: entry})
	if err := store.Snapshot().Save(backup); err != nil {
		t.Fatal(err)
	}
	_, err = state.Load(backup)
	refused := Of(err)
	detail := rpc.Detail(refused)
	if detail.GetCode() != rpc.Invalid || detail.GetSubject() != "snapshot" || !strings.Contains(detail.GetNextStep(), "install the release") {
		t.Errorf("refused with %v", detail)
	}
	if !strings.Contains(refused.Error(), "it needs level 4, this release goes up to 3; install release ") {
		t.Errorf("it says %v", refused)
	}
}
