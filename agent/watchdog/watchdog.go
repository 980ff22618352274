package watchdog

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Config is what a Watchdog stands on.
type Config struct {
	Open   func() (Device, error)
	Logger hclog.Logger
	// Slept is for how long the host has been asleep since it booted. Nil: what the kernel's clocks tell.
	Slept func() time.Duration
	// Guests are paused when the host has slept beyond its lease, and run on when there is a lease again. Nil: none are.
	Guests Guests
}

// petEvery is between two pets. The shortest timeout that a watchdog takes is a second.
const petEvery = 250 * time.Millisecond

// Watchdog keeps the host alive while a lease lasts. It is safe for concurrent use. Times are of the monotonic clock, which stands
// while the host is asleep; what it has slept is taken off the lease, because the leader has counted on.
type Watchdog struct {
	Config

	mu     sync.Mutex
	device Device    // nil: not armed
	until  time.Time // the end of the lease, if the host does not sleep
	slept  time.Duration
	ended  bool // the lease has, and it was said
	paused bool // the guests were, because the host has slept for too long
}

// New makes a watchdog that is not armed.
func New(config Config) *Watchdog {
	if config.Slept == nil {
		config.Slept = slept
	}
	return &Watchdog{Config: config}
}

// Asleep is for how long the host has been asleep since it booted. What it sleeps between a report and the lease that answers it is
// taken off that lease by whoever takes the lease in.
func (w *Watchdog) Asleep() time.Duration { return w.Slept() }

// end is when the lease ends, with what the host has slept since it came.
func (w *Watchdog) end() time.Time { return w.until.Add(w.slept - w.Slept()) }

// Lease keeps the host alive until then, and arms the watchdog if it is not. A lease never ends earlier than one before it. One that
// is over already changes nothing.
func (w *Watchdog) Lease(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !time.Now().Before(until) {
		return
	}
	if w.device == nil {
		device, err := w.Open()
		if err != nil {
			w.Logger.Error("the watchdog could not be armed: silence of this node proves nothing", "error", err)
			return
		}
		w.device = device
		w.Logger.Info("the watchdog is armed", "timeout", device.Timeout())
	}
	if until.After(w.end()) {
		w.until, w.slept = until, w.Slept()
	}
	w.ended = false
	w.pet()
}

// Release disarms the watchdog. It is called when a leader says so, and never else.
func (w *Watchdog) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.device == nil {
		return
	}
	if err := w.device.Disarm(); err != nil {
		w.Logger.Error("the watchdog could not be disarmed: it resets this node if it still runs", "error", err)
	} else {
		w.Logger.Info("the watchdog is disarmed")
	}
	w.device, w.until = nil, time.Time{}
}

// Armed is after how long without a lease the host is reset; 0: it would not be.
func (w *Watchdog) Armed() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.device == nil {
		return 0
	}
	return w.device.Timeout()
}

// Run pets the device while a lease lasts, until the context ends. It leaves the device armed.
func (w *Watchdog) Run(ctx context.Context) {
	ticker := time.NewTicker(petEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		w.look(ctx)
	}
}

// look pets the device, after the guests have been paused if the host has slept beyond its lease: another node may run them by now,
// and the reset takes until the watchdog's time is over.
func (w *Watchdog) look(ctx context.Context) {
	w.mu.Lock()
	lasts := time.Now().Before(w.end())
	pause := w.device != nil && !lasts && w.Slept() > w.slept && !w.paused
	resume := w.paused && lasts
	w.paused = (w.paused || pause) && !resume
	w.mu.Unlock()
	switch {
	case w.Guests == nil:
	case pause:
		w.Logger.Error("this host has slept beyond its lease: its guests are paused until a leader is heard")
		w.Guests.Pause(ctx)
	case resume:
		w.Logger.Info("there is a lease again: the guests that were paused run on")
		w.Guests.Resume(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pet()
}

// pet pets the device if the lease lasts. The caller holds the lock.
func (w *Watchdog) pet() {
	switch {
	case w.device == nil:
	case time.Now().Before(w.end()):
		if err := w.device.Pet(); err != nil {
			w.Logger.Error("the watchdog could not be petted", "error", err)
		}
	case !w.ended:
		w.ended = true
		w.Logger.Error("no leader was heard for too long: the watchdog resets this node", "within", w.device.Timeout())
	}
}
