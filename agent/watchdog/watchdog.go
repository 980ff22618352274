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
}

// petEvery is between two pets. The shortest timeout that a watchdog takes is a second.
const petEvery = 250 * time.Millisecond

// Watchdog keeps the host alive while a lease lasts. It is safe for concurrent use. Times are of the monotonic clock, which the
// host's being asleep or frozen does not turn back.
type Watchdog struct {
	Config

	mu     sync.Mutex
	device Device    // nil: not armed
	until  time.Time // the end of the lease
	ended  bool      // the lease has, and it was said
}

// New makes a watchdog that is not armed.
func New(config Config) *Watchdog { return &Watchdog{Config: config} }

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
	if until.After(w.until) {
		w.until = until
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
		w.mu.Lock()
		w.pet()
		w.mu.Unlock()
	}
}

// pet pets the device if the lease lasts. The caller holds the lock.
func (w *Watchdog) pet() {
	switch {
	case w.device == nil:
	case time.Now().Before(w.until):
		if err := w.device.Pet(); err != nil {
			w.Logger.Error("the watchdog could not be petted", "error", err)
		}
	case !w.ended:
		w.ended = true
		w.Logger.Error("no leader was heard for too long: the watchdog resets this node", "within", w.device.Timeout())
	}
}
