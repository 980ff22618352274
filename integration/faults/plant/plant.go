// Package plant has journals that agents do not heed, and libvirts that agents misread, for the simulator's planted bugs.
package plant

import (
	"context"
	"errors"
	"fmt"

	"berth/agent/hypervisor"
	"berth/agent/jobs"
	"berth/integration/faults/machine"
)

// Libvirt is a libvirt that an agent misreads.
type Libvirt struct {
	*machine.Libvirt
	SilenceIsGone  bool // no answer about a guest says that it is gone
	NoProcesses    bool // nobody looks for processes
	ResumesBlindly bool // a migration that has failed leaves a guest that may run
}

// Lookup implements hypervisor.Hypervisor.
func (l Libvirt) Lookup(ctx context.Context, uuid string) (hypervisor.Domain, error) {
	d, err := l.Libvirt.Lookup(ctx, uuid)
	if l.SilenceIsGone && errors.Is(err, hypervisor.ErrUnavailable) {
		err = fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
	}
	return d, err
}

// Processes implements hypervisor.Hypervisor.
func (l Libvirt) Processes(ctx context.Context) ([]hypervisor.Process, error) {
	if l.NoProcesses {
		return nil, nil
	}
	return l.Libvirt.Processes(ctx)
}

// Migrate implements hypervisor.Hypervisor.
func (l Libvirt) Migrate(ctx context.Context, uuid string, options hypervisor.MigrateOptions) error {
	err := l.Libvirt.Migrate(ctx, uuid, options)
	h := l.At
	if d := h.Domains[uuid]; l.ResumesBlindly && err != nil && d != nil && d.State == hypervisor.PausedMigration && h.Up {
		h.Set(d, hypervisor.Running, "unpaused")
	}
	return err
}

// Journal is one of which an agent does not heed some buckets: those that are Empty never have anything, and those that are Unread are
// written.
type Journal struct {
	machine.Journal
	Empty, Unread []string
}

// View implements jobs.Storage.
func (j Journal) View(read func(jobs.Tx) error) error {
	return j.Journal.View(func(t jobs.Tx) error { return read(tx{t, j}) })
}

// Update implements jobs.Storage.
func (j Journal) Update(change func(jobs.Tx) error) error {
	return j.Journal.Update(func(t jobs.Tx) error { return change(tx{t, j}) })
}
