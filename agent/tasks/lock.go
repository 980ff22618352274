package tasks

import (
	"context"
	"fmt"
	"time"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	lockLimit = 45 * time.Second // for one step
	lockLife  = time.Minute      // of a lock that nobody releases
)

// heldLock is a lock that is held so that another node looks whether it sees it.
type heldLock struct {
	release func(context.Context) error
	expiry  *time.Timer
}

// lock does one step of trying whether locks of files reach other nodes.
func (t *Tasks) lock(ctx context.Context, order *berthv1.LockTask) (held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	pool, volume := order.GetPool(), order.GetVolume()
	switch order.GetStep() {
	case berthv1.LockStep_LOCK_STEP_HOLD:
		return false, t.holdLock(ctx, pool, volume)
	case berthv1.LockStep_LOCK_STEP_LOOK:
		held, err = t.Hypervisor.LockHeld(ctx, pool, volume)
		if failure := t.Shared.saw(pool, held, err, time.Now()); failure != nil {
			t.Logger.Warn("what was seen of a shared pool could not be written down", "pool", pool, "error", failure)
		}
		return held, err
	case berthv1.LockStep_LOCK_STEP_RELEASE:
		return false, t.releaseLock(ctx, pool, volume)
	default:
		return false, fmt.Errorf("%w: this agent does not know the step: upgrade it", hypervisor.ErrUnsupported)
	}
}

func (t *Tasks) holdLock(ctx context.Context, pool, volume string) error {
	if err := t.releaseLock(ctx, pool, volume); err != nil {
		return err
	}
	release, err := t.Hypervisor.HoldLock(ctx, pool, volume)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.locks == nil {
		t.locks = map[string]heldLock{}
	}
	t.locks[pool+"/"+volume] = heldLock{release, time.AfterFunc(lockLife, func() {
		ctx, cancel := context.WithTimeout(context.Background(), lockLimit)
		defer cancel()
		if err := t.releaseLock(ctx, pool, volume); err != nil {
			t.Logger.Warn("a volume for trying locks could not be removed", "pool", pool, "volume", volume, "error", err)
		}
	})}
	return nil
}

// releaseLock ends a lock. One that is not held is released.
func (t *Tasks) releaseLock(ctx context.Context, pool, volume string) error {
	t.mu.Lock()
	one, held := t.locks[pool+"/"+volume]
	delete(t.locks, pool+"/"+volume)
	t.mu.Unlock()
	if !held {
		return nil
	}
	one.expiry.Stop()
	return one.release(ctx)
}
