package evidence

import (
	"testing"
	"time"

	"berth/coordinator/model"
)

// The leader that restarted it had a clock a little ahead of this one's, so the restart has not come yet.
func TestAVMWithoutARestDoesNotWaitForAnothersClock(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	vm := model.VM{
		ID: "v1", Name: "db", HA: true, Desired: model.Running, Restarts: 1,
		StartedAt: now.Add(3 * time.Minute), RestartedAt: now.Add(3 * time.Minute),
	}
	ready, resting := Restartable([]model.VM{vm}, now, func(*model.VM) bool { return true })
	if len(ready) != 1 || len(resting) != 0 {
		t.Errorf("ready are %d, resting %v", len(ready), resting)
	}
}
