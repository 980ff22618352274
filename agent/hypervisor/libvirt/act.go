package libvirt

import (
	"context"
	"fmt"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// Start implements hypervisor.Hypervisor.
func (h *Hypervisor) Start(ctx context.Context, xml string) error {
	return h.WithHolder(ctx, h.start(ctx, xml))
}

func (h *domains) start(ctx context.Context, xml string) error {
	info, err := domxml.Parse(xml)
	if err != nil {
		return fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
	}
	err = act(ctx, h.connection, &h.calls, func(conn *libvirtgo.Connect) error {
		// libvirt gives a clash of names no error number of its own, and starts over a definition of the same UUID.
		if err := taken(conn, info); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err // nobody waits any more: better not begun than begun and not known of
		}
		h.starting.Store(info.UUID, time.Now())
		defer h.starting.Delete(info.UUID)
		d, err := conn.DomainCreateXML(xml, libvirtgo.DOMAIN_START_VALIDATE)
		if err != nil {
			return err
		}
		return d.Free()
	})
	if err != nil {
		return fmt.Errorf("start domain %s: %w", info.Name, err)
	}
	return nil
}

func taken(conn *libvirtgo.Connect, info domxml.Info) error {
	d, err := lookup(conn, info.UUID)
	if err == nil {
		free(d)
		return fmt.Errorf("%w: UUID %s", hypervisor.ErrExists, info.UUID)
	}
	if !is(err, libvirtgo.ERR_NO_DOMAIN) {
		return err
	}
	d, err = conn.LookupDomainByName(info.Name)
	if err == nil {
		free(d)
		return fmt.Errorf("%w: another domain has the name %q", hypervisor.ErrExists, info.Name)
	}
	if !is(err, libvirtgo.ERR_NO_DOMAIN) {
		return err
	}
	return nil
}

// on runs a call on one domain; with an epoch, only if the domain has it.
func (h *connection) on(ctx context.Context, p *pool, verb, uuid string, epoch *uint64, call func(*libvirtgo.Domain) error) error {
	err := act(ctx, h, p, func(conn *libvirtgo.Connect) error {
		d, err := lookup(conn, uuid)
		if err != nil {
			return err
		}
		defer free(d)
		if epoch != nil {
			mark, _, err := markOf(d)
			if err != nil {
				return err
			}
			if mark.Epoch != *epoch {
				return fmt.Errorf("%w: it has %d, not %d", hypervisor.ErrOtherEpoch, mark.Epoch, *epoch)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return call(d)
	})
	if err != nil {
		return fmt.Errorf("%s domain %s: %w", verb, uuid, err)
	}
	return nil
}

// Shutdown implements hypervisor.Hypervisor.
func (h *domains) Shutdown(ctx context.Context, uuid string) error {
	return h.on(ctx, &h.calls, "shut down", uuid, nil, (*libvirtgo.Domain).Shutdown)
}

// Destroy implements hypervisor.Hypervisor. It is gentle first, so that QEMU can flush what it has to.
func (h *domains) Destroy(ctx context.Context, uuid string, epoch uint64) error {
	return h.on(ctx, &h.calls, "destroy", uuid, &epoch, func(d *libvirtgo.Domain) error {
		err := d.DestroyFlags(libvirtgo.DOMAIN_DESTROY_GRACEFUL)
		if err == nil || is(err, libvirtgo.ERR_NO_DOMAIN, libvirtgo.ERR_OPERATION_INVALID) {
			return err
		}
		return d.DestroyFlags(libvirtgo.DOMAIN_DESTROY_DEFAULT)
	})
}

// Resume implements hypervisor.Hypervisor.
func (h *domains) Resume(ctx context.Context, uuid string, epoch uint64) error {
	return h.on(ctx, &h.calls, "resume", uuid, &epoch, (*libvirtgo.Domain).Resume)
}

// AbortJob implements hypervisor.Hypervisor.
func (h *migrations) AbortJob(ctx context.Context, uuid string) error {
	return h.on(ctx, &h.calls, "abort the job of", uuid, nil, (*libvirtgo.Domain).AbortJob)
}
