package fake

import (
	"context"
	"fmt"
	"strings"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// Suspend implements hypervisor.Hypervisor.
func (h *domains) Suspend(ctx context.Context, uuid string, epoch uint64) error {
	return h.change(ctx, "suspend", 0, func() error {
		d, err := h.findEpoch(uuid, epoch)
		if err != nil {
			return err
		}
		switch d.State {
		case hypervisor.Paused, hypervisor.PausedMigration:
			return nil
		case hypervisor.Running:
			d.State, d.Reason = hypervisor.Paused, "user"
			h.publish(d, "suspended", "")
			return nil
		default:
			return fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
		}
	})
}

// Mark implements hypervisor.Hypervisor.
func (h *domains) Mark(ctx context.Context, uuid string, mark domxml.Mark) error {
	return h.change(ctx, "mark", 0, func() error {
		d, err := h.find(uuid)
		if err != nil {
			return err
		}
		marked, err := domxml.WithIdentity(d.xml, domxml.Identity{UUID: d.UUID, Name: d.Name, Mark: mark})
		if err != nil {
			return err
		}
		d.xml, d.Managed, d.Epoch, d.OperationID = marked, true, mark.Epoch, mark.Operation
		h.publish(d, hypervisor.EventMetadata, "")
		return nil
	})
}

// Unmark implements hypervisor.Hypervisor.
func (h *domains) Unmark(ctx context.Context, uuid string, epoch uint64) error {
	return h.change(ctx, "unmark", 0, func() error {
		d, err := h.findEpoch(uuid, epoch)
		if err != nil {
			return err
		}
		plain, err := domxml.WithoutMark(d.xml)
		if err != nil {
			return err
		}
		d.xml, d.Managed, d.Epoch, d.OperationID = plain, false, 0, ""
		h.publish(d, hypervisor.EventMetadata, "")
		return nil
	})
}

// Definition implements hypervisor.Hypervisor.
func (h *domains) Definition(ctx context.Context, uuid string) (string, error) {
	end, err := h.enter(ctx, "definition")
	if err != nil {
		return "", err
	}
	defer end()
	d, err := h.find(uuid)
	if err != nil {
		return "", err
	}
	if strings.Contains(d.xml, " passwd=") {
		return "", fmt.Errorf("%w: its XML has a secret", hypervisor.ErrUnsupported)
	}
	return d.xml, nil
}

// Document implements hypervisor.Hypervisor.
func (h *domains) Document(ctx context.Context, uuid string) (string, error) {
	text, err := h.XML(ctx, uuid)
	return domxml.WithoutSecrets(text), err
}

// Define implements hypervisor.Hypervisor.
func (h *domains) Define(ctx context.Context, xml string) error {
	return h.change(ctx, "define", 0, func() error {
		fresh, err := read(xml)
		if err != nil {
			return err
		}
		for _, other := range h.all {
			if other.UUID != fresh.UUID && other.Name == fresh.Name {
				return fmt.Errorf("%w: %s, UUID %s", hypervisor.ErrExists, other.Name, other.UUID)
			}
		}
		d, there := h.all[fresh.UUID]
		switch {
		case !there:
			fresh.State = hypervisor.Shutoff
			h.all[fresh.UUID], d = fresh, fresh
		case d.State == hypervisor.Shutoff:
			fresh.State, fresh.Reason = d.State, d.Reason
			*d = *fresh
		}
		d.Persistent = true
		h.publish(d, "defined", "")
		return nil
	})
}

// Undefine implements hypervisor.Hypervisor.
func (h *domains) Undefine(ctx context.Context, uuid string, epoch uint64) error {
	return h.change(ctx, "undefine", 0, func() error {
		d, err := h.findEpoch(uuid, epoch)
		if err != nil {
			return err
		}
		if d.State != hypervisor.Shutoff {
			return fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
		}
		delete(h.all, uuid)
		h.publish(d, "undefined", "")
		return nil
	})
}
