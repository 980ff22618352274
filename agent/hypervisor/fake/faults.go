package fake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/agent/hypervisor"
)

// Fault is what goes wrong with calls of one kind: host, memory, domains, processes, stats, lookup, xml, job, start, shutdown,
// reboot, reset, watch, destroy, resume, suspend,
// attach, detach, update, resize, take, forget, restore, freeze, thaw, mark, unmark, definition, define, undefine, migrate, abort, console,
// create-volume,
// upload-volume, lookup-volume, delete-volume, grow-volume,
// grow-disk, volumes; and, of a migration under way, copy or finish.
type Fault struct {
	Err    error         // what the call returns
	Effect bool          // the call takes effect all the same
	Hang   bool          // the call is never answered; with Effect, it takes effect first
	Late   time.Duration // the call takes effect after this time, also if nobody waits any more; with Hang
	Times  int           // how many calls; 0: until Heal
}

// daemon is what every call to a host goes through. It fails as it is told to.
type daemon struct {
	hypervisor.Feed
	wire   *Wire
	down   error
	lost   chan struct{} // closed when the daemon goes away
	faults map[string]*Fault
	calls  []string
}

// Inject makes calls of a kind fail.
func (h *daemon) Inject(kind string, fault Fault) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	h.faults[kind] = &fault
}

// Heal ends a fault.
func (h *daemon) Heal(kind string) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	delete(h.faults, kind)
}

// Calls are the changes that were asked for since the start, by kind: "start", "destroy" ...
func (h *daemon) Calls() []string {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	return slices.Clone(h.calls)
}

// SetGuest says how the guest of a domain behaves, also before there is one.
func (h *domains) SetGuest(uuid string, guest Guest) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	h.guests[uuid] = guest
}

// Edit changes a domain behind everybody's back, as virsh would.
func (h *domains) Edit(uuid string, change func(*hypervisor.Domain)) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	if d, found := h.all[uuid]; found {
		change(&d.Domain)
	}
}

// Stop takes the daemon away. Guests and migrations go on; calls that wait for an answer never get it.
func (h *daemon) Stop() {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	h.down = fmt.Errorf("%w: the daemon is stopped", hypervisor.ErrUnavailable)
	close(h.lost)
	h.lost = make(chan struct{})
	h.Publish(hypervisor.Event{Kind: hypervisor.EventDisconnected, Detail: h.down.Error()})
}

// Restart brings the daemon back after Stop.
func (h *daemon) Restart() {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	h.down = nil
	h.Publish(hypervisor.Event{Kind: hypervisor.EventReconnected})
}

// Forget is a daemon that does not know a guest any more after a restart: of one with a definition only that is left. Its process
// runs on until EndProcess.
func (h *domains) Forget(uuid string) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	d, found := h.all[uuid]
	if !found || d.State == hypervisor.Shutoff {
		return
	}
	forgotten := *d
	h.orphans[uuid] = &forgotten
	if delete(h.all, uuid); d.Persistent {
		d.State, d.Reason, d.job, d.JobActive = hypervisor.Shutoff, "unknown", nil, false
		h.all[uuid] = d
	}
}

// EndProcess ends the process of a guest that the daemon has forgotten.
func (h *domains) EndProcess(uuid string) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	delete(h.orphans, uuid)
}

// Crash is the host's death: its guests are gone, and what was on its way from or to it never arrives.
func (h *Hypervisor) Crash() {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	for _, d := range h.all {
		if d.job != nil {
			d.job.stop(errors.New("the host died"))
		}
	}
	for uuid := range h.consoles {
		h.endConsole(uuid)
	}
	clear(h.all)
	clear(h.orphans)
	clear(h.done)
	h.down = fmt.Errorf("%w: the host is dead", hypervisor.ErrUnavailable)
}

// fault takes a fault of a kind if there is one. The wire is locked.
func (h *daemon) fault(kind string) (Fault, bool) {
	f, found := h.faults[kind]
	if !found {
		return Fault{}, false
	}
	if f.Times > 0 {
		if f.Times--; f.Times == 0 {
			delete(h.faults, kind)
		}
	}
	return *f, true
}

// enter begins a query: it locks the wire, or tells why there is no answer.
func (h *daemon) enter(ctx context.Context, kind string) (end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.wire.mu.Lock()
	f, faulty := h.fault(kind)
	switch {
	case h.down != nil:
		err = h.down
	case faulty && f.Hang:
		h.wire.mu.Unlock()
		return nil, h.hang(ctx, hypervisor.ErrUnavailable)
	case faulty:
		err = f.Err
	}
	if err != nil {
		h.wire.mu.Unlock()
		return nil, err
	}
	return h.wire.mu.Unlock, nil
}

// hangTimeout is the deadline of queries, as on the real side.
const hangTimeout = 5 * time.Second

func (h *daemon) hang(ctx context.Context, cause error) error {
	if errors.Is(cause, hypervisor.ErrUnavailable) {
		limited, cancel := context.WithTimeout(ctx, hangTimeout)
		defer cancel()
		ctx = limited
	}
	h.wire.mu.Lock()
	lost := h.lost
	h.wire.mu.Unlock()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: no answer in time (stuck)", cause)
	case <-lost:
		return fmt.Errorf("%w: the connection broke", cause)
	}
}

// change runs something that changes a domain.
func (h *daemon) change(ctx context.Context, kind string, takes time.Duration, effect func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.wire.mu.Lock()
	if h.down != nil {
		defer h.wire.mu.Unlock()
		return h.down
	}
	h.calls = append(h.calls, kind)
	f, faulty := h.fault(kind)
	h.wire.mu.Unlock()

	if faulty && !f.Effect {
		if f.Late > 0 {
			time.AfterFunc(f.Late, func() {
				h.wire.mu.Lock()
				defer h.wire.mu.Unlock()
				_ = effect()
			})
		}
		if f.Hang {
			return h.hang(ctx, hypervisor.ErrAmbiguous)
		}
		return f.Err
	}
	time.Sleep(takes)
	h.wire.mu.Lock()
	err := effect()
	h.wire.mu.Unlock()
	if faulty && f.Hang {
		return h.hang(ctx, hypervisor.ErrAmbiguous)
	}
	if faulty {
		return f.Err
	}
	return err
}
