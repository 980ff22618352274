package libvirt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/singleflight"
	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// MinVersion is the oldest libvirt that Berth works with: the first whose statistics of a completed job can be read more
// than once, and the oldest that a supported server distribution still ships.
const MinVersion = 6_000_000 // 6.0.0, as libvirt counts

// Hypervisor is one node's libvirtd.
type Hypervisor struct {
	hypervisor.Feed

	log   hclog.Logger
	calls pool
	moves pool
	watch watch
	slow  slowStats
	done  completed
	jobs  singleflight.Group // job queries by UUID: one at a time each, because they wait for the guest

	mu       sync.Mutex
	hungAt   time.Time // of the first query since the last answered one that libvirtd left unanswered; zero: none
	answered time.Time

	cancel context.CancelFunc
	ended  chan struct{}
}

var _ hypervisor.Hypervisor = (*Hypervisor)(nil)

// Open starts to connect to a libvirt URI and returns at once; Connected tells how that goes.
func Open(uri string, log hclog.Logger) *Hypervisor {
	ctx, cancel := context.WithCancel(context.Background())
	h := &Hypervisor{
		log:    log,
		calls:  pool{uri: uri},
		moves:  pool{uri: uri},
		cancel: cancel,
		ended:  make(chan struct{}),
	}
	h.watch.init(uri)
	go func() {
		defer close(h.ended)
		h.keepWatch(ctx)
	}()
	return h
}

// Close ends the connections. Calls that hang in libvirtd are left to themselves.
func (h *Hypervisor) Close() error {
	h.cancel()
	select {
	case <-h.ended:
	case <-time.After(time.Second): // it hangs in libvirtd
	}
	h.calls.drain(true)
	h.moves.drain(true)
	return nil
}

// Connected implements hypervisor.Hypervisor.
func (h *Hypervisor) Connected() (bool, error) {
	if err := h.watch.state(); err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.hungAt.IsZero() {
		return false, fmt.Errorf("%w: libvirtd has not answered since %s (stuck): see `systemctl status libvirtd`",
			hypervisor.ErrUnavailable, h.hungAt.Format(time.TimeOnly))
	}
	return true, nil
}

// query runs a call that never waits for a guest. One that libvirtd leaves unanswered means that libvirtd is stuck.
func query[T any](ctx context.Context, h *Hypervisor, call func(*libvirtgo.Connect) (T, error)) (T, error) {
	if err := h.watch.state(); err != nil {
		var none T
		return none, err
	}
	// While libvirtd hangs a probe or two suffice to see that it is back.
	if _, err := h.Connected(); err != nil && h.calls.count() >= 2 {
		var none T
		return none, err
	}
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	value, _, err := ask(limited, &h.calls, call)
	hung := errors.Is(err, errHung)
	if hung {
		err = fmt.Errorf("%w: %w", hypervisor.ErrUnavailable, err)
	}
	h.note(start, hung && ctx.Err() == nil, err)
	return value, err
}

// note keeps whether libvirtd answers.
func (h *Hypervisor) note(start time.Time, hung bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case hung && start.After(h.answered) && h.hungAt.IsZero():
		h.hungAt = start
		h.log.Warn("libvirtd does not answer", "since", start)
	case !hung && !errors.Is(err, hypervisor.ErrUnavailable) && !errors.Is(err, context.Canceled):
		h.answered = time.Now()
		if !h.hungAt.IsZero() {
			h.log.Info("libvirtd answers again", "after", h.answered.Sub(h.hungAt).Round(time.Second).String())
		}
		h.hungAt = time.Time{}
	}
}

// act runs a call that changes something.
func act(ctx context.Context, h *Hypervisor, p *pool, call func(*libvirtgo.Connect) error) error {
	if _, err := h.Connected(); err != nil {
		return err
	}
	_, began, err := ask(ctx, p, func(conn *libvirtgo.Connect) (struct{}, error) { return struct{}{}, call(conn) })
	lost := errors.Is(err, errHung) || errors.Is(err, hypervisor.ErrUnavailable) || ctx.Err() != nil && errors.Is(err, ctx.Err())
	switch {
	case !lost:
		return err
	case began:
		return fmt.Errorf("%w: %w", hypervisor.ErrAmbiguous, err)
	case errors.Is(err, hypervisor.ErrUnavailable):
		return err
	default:
		return fmt.Errorf("%w: %w", hypervisor.ErrUnavailable, err)
	}
}

// lookup finds a domain on a connection. The caller frees it.
func lookup(conn *libvirtgo.Connect, uuid string) (*libvirtgo.Domain, error) {
	return conn.LookupDomainByUUIDString(uuid)
}
