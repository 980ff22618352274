package libvirt

import (
	"context"
	"fmt"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// brokenEvery is how often the wait for a restart looks whether it can still be told of it.
const brokenEvery = time.Second

// Reboot implements hypervisor.Hypervisor. It holds a connection of the migrations' kind, because it may take minutes.
func (h *domains) Reboot(ctx context.Context, uuid string, epoch uint64, how hypervisor.RebootMode) error {
	return h.on(ctx, &h.moves, "reboot", uuid, &epoch, func(d *libvirtgo.Domain) error {
		conn, err := d.DomainGetConnect()
		if err != nil {
			return err
		}
		defer func() { _, _ = conn.Close() }()
		restarted := make(chan struct{}, 1)
		heard, err := conn.DomainEventRebootRegister(d, func(*libvirtgo.Connect, *libvirtgo.Domain) {
			select {
			case restarted <- struct{}{}:
			default:
			}
		})
		if err != nil {
			return err
		}
		defer func() { _ = conn.DomainEventDeregister(heard) }()
		switch how {
		case hypervisor.RebootAsk:
			err = d.Reboot(libvirtgo.DOMAIN_REBOOT_DEFAULT)
		case hypervisor.RebootReset:
			err = d.Reset(0)
		}
		if err != nil {
			return err
		}
		return awaitRestart(ctx, conn, restarted)
	})
}

// awaitRestart waits for the event of a restart, which comes on this connection only.
func awaitRestart(ctx context.Context, conn *libvirtgo.Connect, restarted <-chan struct{}) error {
	look := time.NewTicker(brokenEvery)
	defer look.Stop()
	for {
		select {
		case <-restarted:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			if alive, err := conn.IsAlive(); err != nil || !alive {
				return fmt.Errorf("%w: the connection to libvirtd broke", hypervisor.ErrUnavailable)
			}
		}
	}
}
