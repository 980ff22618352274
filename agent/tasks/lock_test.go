package tasks

import (
	"path/filepath"
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

func TestALockIsHeldUntilItIsReleased(t *testing.T) {
	inBubble(t, func(b *bench) {
		step := func(step berthv1.LockStep, code string) bool {
			b.Helper()
			return b.wantCode(&berthv1.Task{Id: "t", Action: &berthv1.Task_Lock{
				Lock: &berthv1.LockTask{Pool: "local", Volume: "try", Step: step},
			}}, code).GetLocked()
		}
		const hold, look, release = berthv1.LockStep_LOCK_STEP_HOLD, berthv1.LockStep_LOCK_STEP_LOOK, berthv1.LockStep_LOCK_STEP_RELEASE
		kept := NewSharedPools(filepath.Join(b.TempDir(), "shared-pools.json"))
		b.tasks.Shared = kept
		saw := func(found, held bool) {
			b.Helper()
			pools, err := kept.Read()
			if is := pools["local"]; err != nil || is.Found != found || is.Held != held || !is.At.Equal(time.Now()) {
				b.Errorf("it is kept that %+v, %v", is, err)
			}
		}
		step(look, "no_volume")
		saw(false, false)
		step(release, "")
		step(hold, "")
		step(hold, "") // the answer was lost, and it is asked for again
		if !step(look, "") {
			b.Error("it is not locked")
		}
		saw(true, true)
		step(release, "")
		step(look, "no_volume")
		step(hold, "")
		time.Sleep(lockLife + time.Second) // nobody releases it
		step(look, "no_volume")
		step(berthv1.LockStep_LOCK_STEP_UNSPECIFIED, "unsupported")
	})
}
