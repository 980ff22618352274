package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	libvirtgo "libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/disksnapshot"
)

// Snapshot implements hypervisor.Snapshots. The agent may not write to disks, and libvirt has no call for snapshots of disks alone. So QEMU
// is asked, that of the guest or, for files that nobody has open, that of a domain which stands still from its beginning to its end. QEMU
// locks what it opens, so that no other host has it open meanwhile.
func (h *domains) Snapshot(ctx context.Context, work hypervisor.SnapshotWork, of hypervisor.DiskSnapshot) error {
	change := func(d *libvirtgo.Domain) error {
		return disksnapshot.Monitor(func(command string) (string, error) {
			return d.QemuMonitorCommand(command, libvirtgo.DOMAIN_QEMU_MONITOR_COMMAND_DEFAULT)
		}).Work(work, of)
	}
	verb := string(work) + " a snapshot of"
	if of.UUID != "" {
		if work == hypervisor.SnapshotRestore {
			return fmt.Errorf("%w: the disks of a domain that runs cannot be restored", hypervisor.ErrInvalidState)
		}
		return h.on(ctx, &h.calls, verb, of.UUID, &of.Epoch, change)
	}
	helper, text, err := disksnapshot.HelperFor(of)
	if err != nil {
		return untouched(err)
	}
	err = act(ctx, h.connection, &h.moves, func(conn *libvirtgo.Connect) error {
		defer h.helpers.Use(helper.UUID)()
		if err := cleanHelper(conn, helper.UUID); err != nil {
			return untouched(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		err := whileOpen(conn, text, change)
		switch {
		case work != hypervisor.SnapshotRestore:
			return err
		case err != nil:
			return untouched(err) // it was only looked for
		}
		return restore(ctx, conn, helper, text, of.Tag)
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, strings.Join(of.Files, ", "), err)
	}
	return nil
}

// untouched says of an error that it came before the work on the disks. It keeps the cause: explain does not look behind it any more.
func untouched(err error) error {
	if errors.Is(err, hypervisor.ErrUntouched) {
		return err
	}
	return fmt.Errorf("%w: %w", hypervisor.ErrUntouched, explain(err))
}

// cleanHelper takes away what an earlier life of the agent has left.
func cleanHelper(conn *libvirtgo.Connect, uuid string) error {
	d, err := lookup(conn, uuid)
	if is(err, libvirtgo.ERR_NO_DOMAIN) {
		return nil
	}
	if err != nil {
		return err
	}
	defer free(d)
	persistent, err := d.IsPersistent()
	if err == nil {
		err = d.Destroy()
	}
	if err != nil && !is(err, libvirtgo.ERR_NO_DOMAIN, libvirtgo.ERR_OPERATION_INVALID) {
		return err
	}
	if !persistent {
		return nil
	}
	return d.UndefineFlags(libvirtgo.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA)
}

// whileOpen runs a call while a domain has the files open, which ends with it, and with the agent.
func whileOpen(conn *libvirtgo.Connect, text string, call func(*libvirtgo.Domain) error) error {
	d, err := conn.DomainCreateXML(text, libvirtgo.DOMAIN_START_PAUSED|libvirtgo.DOMAIN_START_AUTODESTROY)
	if err != nil {
		if e, ok := errors.AsType[libvirtgo.Error](err); ok && slices.ContainsFunc(disksnapshot.HeldElsewhere,
			func(words string) bool { return strings.Contains(e.Message, words) }) {
			return hypervisor.Said(hypervisor.ErrInUse, e.Message)
		}
		return untouched(err)
	}
	defer free(d)
	err = call(d)
	if ended := d.Destroy(); ended != nil && !is(ended, libvirtgo.ERR_NO_DOMAIN) {
		err = errors.Join(err, explain(ended))
	}
	return err
}

// restore has libvirt have the disks of a domain that is off be as they were. It believes what it is told of a snapshot, and runs qemu-img,
// which QEMU's locks keep from files that somebody has open.
func restore(ctx context.Context, conn *libvirtgo.Connect, helper *libvirtxml.Domain, text, tag string) (err error) {
	if err := ctx.Err(); err != nil {
		return err // whoever asked has left, and may have the VM start meanwhile
	}
	d, err := conn.DomainDefineXML(text)
	if err != nil {
		return untouched(err)
	}
	defer free(d)
	defer func() { err = errors.Join(err, explain(d.UndefineFlags(libvirtgo.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA))) }()
	full, err := d.GetXMLDesc(libvirtgo.DOMAIN_XML_INACTIVE)
	if err != nil {
		return untouched(err)
	}
	if text, err = disksnapshot.Document(helper, full, tag, time.Now()); err != nil {
		return untouched(err)
	}
	made, err := d.CreateSnapshotXML(text, libvirtgo.DOMAIN_SNAPSHOT_CREATE_REDEFINE)
	if err != nil {
		return untouched(err)
	}
	defer func() { _ = made.Free() }()
	if err := ctx.Err(); err != nil {
		return err
	}
	return made.RevertToSnapshot(0)
}

// Freeze implements hypervisor.Snapshots.
func (h *domains) Freeze(ctx context.Context, uuid string, epoch uint64) error {
	return h.on(ctx, &h.calls, "freeze", uuid, &epoch, func(d *libvirtgo.Domain) error { return unanswered(d.FSFreeze(nil, 0)) })
}

// Thaw implements hypervisor.Snapshots.
func (h *domains) Thaw(ctx context.Context, uuid string, epoch uint64) error {
	return h.on(ctx, &h.calls, "thaw", uuid, &epoch, func(d *libvirtgo.Domain) error { return unanswered(d.FSThaw(nil, 0)) })
}

// IsFrozen implements hypervisor.Snapshots. libvirt keeps no note of it, so it passes the question on.
func (h *domains) IsFrozen(ctx context.Context, uuid string) (bool, error) {
	const limit = libvirtgo.DomainQemuAgentCommandTimeout(1) // seconds
	said, err := h.migrations.atMost(ctx, uuid+" frozen", func(d *libvirtgo.Domain) (any, error) {
		return d.QemuAgentCommand(`{"execute":"guest-fsfreeze-status"}`, limit, 0)
	}, uuid)
	if err != nil {
		return false, fmt.Errorf("ask the guest of domain %s whether it is frozen: %w", uuid, explain(unanswered(err)))
	}
	return strings.Contains(said.(string), `"frozen"`), nil
}

// unanswered names the cause of what was not done because no agent in the guest answers, or the guest stands still.
func unanswered(err error) error {
	if !is(err, libvirtgo.ERR_AGENT_UNRESPONSIVE, libvirtgo.ERR_ARGUMENT_UNSUPPORTED, libvirtgo.ERR_OPERATION_INVALID) {
		return err
	}
	if e, ok := errors.AsType[libvirtgo.Error](err); ok { // libvirt's number would say another cause
		const ours = "no agent answers in the guest: start qemu-guest-agent there"
		return fmt.Errorf("%w: %s; libvirt says: %s", hypervisor.ErrUnsupported, ours, e.Message)
	}
	return err
}
