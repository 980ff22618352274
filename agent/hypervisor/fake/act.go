package fake

import (
	"context"
	"fmt"
	"time"

	"berth/agent/hypervisor"
)

// startTime and powerOffTime are how long those take.
const (
	startTime    = 100 * time.Millisecond
	powerOffTime = time.Second
)

// Start implements hypervisor.Hypervisor.
func (h *domains) Start(ctx context.Context, xml string) error {
	return h.change(ctx, "start", startTime, func() error {
		d, err := read(xml)
		if err != nil {
			return err
		}
		for _, other := range h.all {
			if other.UUID == d.UUID || other.Name == d.Name {
				return fmt.Errorf("%w: %s, UUID %s", hypervisor.ErrExists, other.Name, other.UUID)
			}
		}
		if free := h.free(); d.MemoryBytes > free {
			return fmt.Errorf("%w: %d bytes needed, %d free", hypervisor.ErrNoMemory, d.MemoryBytes, free)
		}
		if err := h.storage.checkDisks(d); err != nil {
			return err
		}
		d.State, d.Reason = hypervisor.Running, "booted"
		h.all[d.UUID] = d
		h.publish(d, "started", "booted")
		return nil
	})
}

// Shutdown implements hypervisor.Hypervisor.
func (h *domains) Shutdown(ctx context.Context, uuid string) error {
	return h.change(ctx, "shutdown", 0, func() error {
		d, err := h.find(uuid)
		if err != nil {
			return err
		}
		if d.State == hypervisor.Shutoff {
			return fmt.Errorf("%w: it is off", hypervisor.ErrInvalidState)
		}
		if h.guests[uuid].IgnoresShutdown {
			return nil
		}
		time.AfterFunc(powerOffTime, func() {
			h.wire.mu.Lock()
			defer h.wire.mu.Unlock()
			if h.all[uuid] == d && d.State == hypervisor.Running {
				h.remove(d, "shut down")
			}
		})
		return nil
	})
}

// Reboot implements hypervisor.Hypervisor.
func (h *domains) Reboot(ctx context.Context, uuid string, epoch uint64, how hypervisor.RebootMode) error {
	end, err := h.enter(ctx, "watch")
	if err != nil {
		return err
	}
	d, err := h.findEpoch(uuid, epoch)
	if err == nil && d.State == hypervisor.Shutoff {
		err = fmt.Errorf("%w: it is off", hypervisor.ErrInvalidState)
	}
	if err != nil {
		end()
		return err
	}
	restarted, lost := d.restarted, h.lost
	end()
	switch how {
	case hypervisor.RebootAsk:
		err = h.change(ctx, "reboot", 0, func() error {
			if !h.guests[uuid].IgnoresShutdown {
				time.AfterFunc(powerOffTime, func() {
					h.wire.mu.Lock()
					defer h.wire.mu.Unlock()
					h.restart(d)
				})
			}
			return nil
		})
	case hypervisor.RebootReset:
		err = h.change(ctx, "reset", 0, func() error { h.restart(d); return nil })
	}
	if err != nil {
		return err
	}
	select {
	case <-restarted:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: nothing was heard of a restart", hypervisor.ErrAmbiguous)
	case <-lost:
		return fmt.Errorf("%w: the connection broke", hypervisor.ErrAmbiguous)
	}
}

// restart is what a guest does that shuts down and is not to be off.
func (h *domains) restart(d *domain) {
	if h.all[d.UUID] != d || d.State != hypervisor.Running {
		return
	}
	d.started = time.Now()
	close(d.restarted)
	d.restarted = make(chan struct{})
}

// Destroy implements hypervisor.Hypervisor.
func (h *domains) Destroy(ctx context.Context, uuid string, epoch uint64) error {
	return h.change(ctx, "destroy", 0, func() error {
		d, err := h.findEpoch(uuid, epoch)
		if err != nil {
			return err
		}
		h.remove(d, "destroyed")
		return nil
	})
}

func (h *domains) findEpoch(uuid string, epoch uint64) (*domain, error) {
	d, err := h.find(uuid)
	if err == nil && d.Epoch != epoch {
		err = fmt.Errorf("%w: it has %d, not %d", hypervisor.ErrOtherEpoch, d.Epoch, epoch)
	}
	return d, err
}

// remove takes a transient domain away and leaves a persistent one off.
func (h *domains) remove(d *domain, detail string) {
	if d.Persistent {
		d.State, d.Reason, d.job, d.JobActive = hypervisor.Shutoff, detail, nil, false
	} else {
		delete(h.all, d.UUID)
	}
	h.endConsole(d.UUID)
	if d.job != nil {
		d.job.stop(hypervisor.ErrAborted)
	}
	h.left[d.UUID] = false
	h.publish(d, "stopped", detail)
}

// Resume implements hypervisor.Hypervisor.
func (h *domains) Resume(ctx context.Context, uuid string, epoch uint64) error {
	return h.change(ctx, "resume", 0, func() error {
		d, err := h.findEpoch(uuid, epoch)
		if err != nil {
			return err
		}
		if d.JobActive {
			return fmt.Errorf("%w: a migration", hypervisor.ErrBusy)
		}
		if d.State != hypervisor.Paused && d.State != hypervisor.PausedMigration {
			return fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
		}
		d.State, d.Reason = hypervisor.Running, "unpaused"
		h.publish(d, "resumed", "")
		return nil
	})
}
