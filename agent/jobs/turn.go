package jobs

import (
	"context"
	"sync"
)

// turns make the commands of one VM wait for each other.
type turns struct {
	scheduler Scheduler
	mu        sync.Mutex
	of        map[string]*turn // by VM ID
}

// turn is one VM's. Who has received from the channel has it.
type turn struct {
	free  chan struct{}
	users int // who has it or waits for it
}

// take waits for the VM's turn. The caller gives it back. The only error is the end of the context.
func (t *turns) take(ctx context.Context, vm string) (giveBack func(), err error) {
	one := t.join(vm)
	taken, err := t.scheduler.Wait(ctx, one.free, 0)
	giveBack = func() {
		if taken {
			one.free <- struct{}{}
		}
		t.leave(vm, one)
	}
	if err != nil {
		giveBack()
		return nil, err
	}
	return giveBack, nil
}

// tryTake takes the VM's turn if nobody has it. GiveBack must be called in either case.
func (t *turns) tryTake(vm string) (giveBack func()) {
	one := t.join(vm)
	select {
	case <-one.free:
		return func() {
			one.free <- struct{}{}
			t.leave(vm, one)
		}
	default:
		return func() { t.leave(vm, one) }
	}
}

func (t *turns) join(vm string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[vm]
	if one == nil {
		one = &turn{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		t.of[vm] = one
	}
	one.users++
	return one
}

func (t *turns) leave(vm string, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(t.of, vm)
	}
}
