package libvirt

import (
	"context"
	"fmt"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// Suspend implements hypervisor.Hypervisor.
func (h *domains) Suspend(ctx context.Context, uuid string, epoch uint64) error {
	return h.on(ctx, &h.calls, "suspend", uuid, &epoch, func(d *libvirtgo.Domain) error {
		state, reason, err := d.GetState()
		if err != nil {
			return err
		}
		switch shown, _ := stateOf(state, reason); shown {
		case hypervisor.Paused, hypervisor.PausedMigration:
			return nil
		default:
			return d.Suspend()
		}
	})
}

// Mark implements hypervisor.Hypervisor.
func (h *domains) Mark(ctx context.Context, uuid string, mark domxml.Mark) error {
	return h.on(ctx, &h.calls, "mark", uuid, nil, func(d *libvirtgo.Domain) error {
		persistent, err := d.IsPersistent()
		if err != nil {
			return err
		}
		if persistent {
			if err := d.SetAutostart(false); err != nil {
				return err
			}
		}
		return h.setMark(d, uuid, mark.Text())
	})
}

// Unmark implements hypervisor.Hypervisor.
func (h *domains) Unmark(ctx context.Context, uuid string, epoch uint64) error {
	return h.on(ctx, &h.calls, "unmark", uuid, &epoch, func(d *libvirtgo.Domain) error {
		return h.setMark(d, uuid, "")
	})
}

// setMark writes the mark wherever the domain has metadata; no text takes it away. What was known of the mark is forgotten,
// whether or not libvirt tells of the change.
func (h *domains) setMark(d *libvirtgo.Domain, uuid, text string) error {
	var where libvirtgo.DomainModificationImpact
	active, err := d.IsActive()
	if err != nil {
		return err
	}
	persistent, err := d.IsPersistent()
	if err != nil {
		return err
	}
	if active {
		where |= libvirtgo.DOMAIN_AFFECT_LIVE
	}
	if persistent {
		where |= libvirtgo.DOMAIN_AFFECT_CONFIG
	}
	defer h.guests.news.Heard(uuid)
	return d.SetMetadata(libvirtgo.DOMAIN_METADATA_ELEMENT, text, domxml.Prefix, domxml.Namespace, where)
}

// Definition implements hypervisor.Hypervisor.
func (h *domains) Definition(ctx context.Context, uuid string) (string, error) {
	text, err := query(ctx, h.connection, func(conn *libvirtgo.Connect) (string, error) {
		d, err := lookup(conn, uuid)
		if err != nil {
			return "", err
		}
		defer free(d)
		// Inactive: without what libvirt found or chose when it started it. Whether there are secrets is asked of the common
		// form: the migratable one has them, whatever the flags say.
		open, err := d.GetXMLDesc(libvirtgo.DOMAIN_XML_INACTIVE)
		if err != nil {
			return "", err
		}
		whole, err := d.GetXMLDesc(libvirtgo.DOMAIN_XML_INACTIVE | libvirtgo.DOMAIN_XML_SECURE)
		if err != nil {
			return "", err
		}
		if whole != open {
			return "", errSecrets
		}
		return d.GetXMLDesc(libvirtgo.DOMAIN_XML_INACTIVE | libvirtgo.DOMAIN_XML_MIGRATABLE)
	})
	if err != nil {
		return "", fmt.Errorf("read the definition of domain %s: %w", uuid, err)
	}
	return text, nil
}

// errSecrets names no secret.
var errSecrets = fmt.Errorf("%w: its XML has a secret, a password of its graphics for instance", hypervisor.ErrUnsupported)

// Define implements hypervisor.Hypervisor.
func (h *domains) Define(ctx context.Context, xml string) error {
	info, err := domxml.Parse(xml)
	if err != nil {
		return fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
	}
	err = act(ctx, h.connection, &h.calls, func(conn *libvirtgo.Connect) error {
		d, err := conn.DomainDefineXMLFlags(xml, libvirtgo.DOMAIN_DEFINE_VALIDATE)
		if err != nil {
			return err
		}
		return d.Free()
	})
	if err != nil {
		return fmt.Errorf("define domain %s: %w", info.Name, err)
	}
	return nil
}

// Undefine implements hypervisor.Hypervisor.
func (h *domains) Undefine(ctx context.Context, uuid string, epoch uint64) error {
	return h.on(ctx, &h.calls, "undefine", uuid, &epoch, func(d *libvirtgo.Domain) error {
		active, err := d.IsActive()
		if err != nil {
			return err
		}
		if active {
			return fmt.Errorf("%w: it is not off", hypervisor.ErrInvalidState)
		}
		return d.UndefineFlags(libvirtgo.DOMAIN_UNDEFINE_KEEP_NVRAM)
	})
}
