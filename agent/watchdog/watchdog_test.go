package watchdog

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// board is a device that tells when it would have reset the host.
type board struct {
	mu      sync.Mutex // of petted, which a test may read while it is in use
	timeout time.Duration
	petted  time.Time
	reset   time.Time // zero: it has not
	stopped bool
}

func (f *board) Timeout() time.Duration { return f.timeout }

func (f *board) lastPetted() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.petted
}

func (f *board) look() {
	if at := f.petted.Add(f.timeout); !f.stopped && f.reset.IsZero() && time.Now().After(at) {
		f.reset = at
	}
}

func (f *board) Pet() error {
	f.look()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.petted = time.Now()
	return nil
}

func (f *board) Disarm() error {
	f.look()
	f.stopped = true
	return nil
}

// armed is a watchdog with a fake device; opened counts how often it was opened.
func armed(t *testing.T) (w *Watchdog, f *board, opened *int, stop func()) {
	f, opened = &board{timeout: 30 * time.Second}, new(int)
	w = New(Config{Logger: hclog.NewNullLogger(), Open: func() (Device, error) {
		*opened++
		f.mu.Lock()
		f.petted, f.stopped = time.Now(), false
		f.mu.Unlock()
		return f, nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		w.Run(ctx)
		close(done)
	}()
	return w, f, opened, func() {
		cancel()
		<-done
	}
}

func TestAHostLivesAsLongAsItsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f, opened, stop := armed(t)
		defer stop()
		time.Sleep(time.Hour)
		if *opened != 0 || w.Armed() != 0 {
			t.Fatal("it is armed without a lease")
		}
		w.Lease(time.Now().Add(-time.Second))
		if *opened != 0 {
			t.Fatal("it is armed by a lease that is over")
		}
		for range 100 {
			w.Lease(time.Now().Add(time.Minute))
			time.Sleep(50 * time.Second)
		}
		synctest.Wait()
		if f.look(); !f.reset.IsZero() || *opened != 1 || w.Armed() != 30*time.Second {
			t.Fatalf("with leases it was reset at %s, opened %d times", f.reset, *opened)
		}
		w.Lease(time.Now().Add(time.Second)) // a shorter one takes nothing away
		end := w.until
		time.Sleep(time.Hour)
		synctest.Wait()
		if f.look(); f.reset.IsZero() || f.reset.After(end.Add(f.timeout)) || f.reset.Before(end) {
			t.Errorf("the lease ended at %s and it was reset at %s", end, f.reset)
		}
	})
}

func TestOnlyALeaderDisarmsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f, _, stop := armed(t)
		w.Lease(time.Now().Add(time.Minute))
		w.Release()
		time.Sleep(time.Hour)
		synctest.Wait()
		if f.look(); !f.reset.IsZero() || w.Armed() != 0 {
			t.Errorf("after a release it was reset at %s", f.reset)
		}
		w.Lease(time.Now().Add(time.Minute))
		stop() // the agent ends: the device goes on
		time.Sleep(time.Hour)
		if f.look(); f.reset.IsZero() || f.stopped {
			t.Error("an agent that ends has disarmed it")
		}
	})
}

func TestADeviceThatCannotBeOpenedArmsNothing(t *testing.T) {
	w := New(Config{Logger: hclog.NewNullLogger(), Open: func() (Device, error) { return nil, errors.New("busy") }})
	w.Lease(time.Now().Add(time.Minute))
	if w.Armed() != 0 {
		t.Error("it says that it is armed")
	}
	if _, err := OpenDevice(t.TempDir(), time.Minute); err == nil {
		t.Error("a directory is no watchdog")
	}
}
