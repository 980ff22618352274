package machine

import (
	"context"
	"time"

	"berth/agent/hypervisor"
)

// Reboot implements hypervisor.Hypervisor.
func (l *Libvirt) Reboot(ctx context.Context, uuid string, epoch uint64, how hypervisor.RebootMode) error {
	h := l.At
	if err := l.query(ctx); err != nil {
		return err
	}
	d, err := h.find(uuid, epoch)
	if err != nil {
		return err
	}
	daemon, before := h.daemon, d.restarts
	if how != hypervisor.RebootWatch {
		err = l.change(ctx, string(how)+" to restart", uuid, func() error {
			d, err := h.find(uuid, epoch)
			if err != nil {
				return err
			}
			h.Witness.Asked(d)
			switch {
			case how == hypervisor.RebootReset:
				h.restart(d)
			case h.Chance(700): // others do not listen
				h.After(h.Between(100*time.Millisecond, time.Minute), func() { h.restart(d) })
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for d.restarts == before || h.Hung {
		if h.daemon != daemon || !h.Up {
			return errLost
		}
		if _, err := l.agent.Wait(ctx, h.moment, 0); err != nil {
			return errLost
		}
	}
	return nil
}

// restart is a guest that has shut down and boots again, in the same process.
func (h *Machine) restart(d *Domain) {
	if h.Domains[d.UUID] != d || d.State != hypervisor.Running {
		return
	}
	h.Note("restart", h.ID, d.UUID, "")
	d.restarts++
	h.Witness.Restarted(d)
	h.stir()
}
