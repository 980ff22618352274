package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// How long libvirt's calls take at most, as the real one's do.
const (
	queryLimit = 5 * time.Second
	busyLimit  = 30 * time.Second // row "a call on a VM with a running job"
)

// Libvirt is a machine's libvirt as one life of its agent sees it. Of storage only volumes on disks of its own are simulated, and
// consoles are not.
type Libvirt struct {
	hypervisor.Hypervisor
	At    *Machine
	agent Agent
}

var (
	errGone  = fmt.Errorf("%w: the daemon is away", hypervisor.ErrUnavailable)
	errStuck = fmt.Errorf("%w: no answer in time", hypervisor.ErrUnavailable)
	errLost  = fmt.Errorf("%w: the connection broke", hypervisor.ErrAmbiguous)
)

// Connected implements hypervisor.Hypervisor.
func (l *Libvirt) Connected() (bool, error) {
	if l.At.Up {
		return true, nil
	}
	return false, errGone
}

// query waits until the daemon can be asked.
func (l *Libvirt) query(ctx context.Context) error {
	h := l.At
	limited, cancel := l.agent.Limit(ctx, queryLimit)
	defer cancel()
	if l.agent.IsDead() {
		return errGone
	}
	if h.Chance(200) {
		if _, err := l.agent.Wait(limited, nil, h.Between(time.Millisecond, 20*time.Millisecond)); err != nil {
			return errGone
		}
	}
	daemon := h.daemon
	for h.Up && h.Hung && h.daemon == daemon {
		if _, err := l.agent.Wait(limited, h.moment, 0); err != nil {
			return errStuck
		}
	}
	if !h.Up || h.daemon != daemon {
		return errGone
	}
	return nil
}

// change asks the daemon for something that changes a domain.
func (l *Libvirt) change(ctx context.Context, kind, uuid string, effect func() error) error {
	h := l.At
	if l.agent.IsDead() || ctx.Err() != nil {
		return errGone // it was not asked
	}
	if !h.Up {
		return errGone
	}
	h.Note("call "+kind, h.ID, uuid, "")
	daemon := h.daemon
	if _, err := l.agent.Wait(ctx, nil, h.Between(time.Millisecond, 50*time.Millisecond)); err != nil {
		if h.daemon == daemon && h.Up && h.Chance(500) { // the call had left, the caller is dead
			_ = effect()
		}
		return errLost
	}
	for h.Up && h.Hung && h.daemon == daemon {
		if _, err := l.agent.Wait(ctx, h.moment, 0); err != nil {
			if h.Chance(h.Mix.LateCalls) {
				h.queue = append(h.queue, func() { _ = effect() })
			}
			return errLost
		}
	}
	switch {
	case h.daemon != daemon || !h.Up:
		return errLost
	case h.Chance(h.Mix.CallFails):
		return errors.New("internal error: unable to execute QEMU command")
	}
	err := effect()
	switch {
	case h.Chance(h.Mix.AnswersLost):
		return errLost
	case err == nil && h.Chance(200): // the answer takes its time
		if _, waited := l.agent.Wait(ctx, nil, h.Between(time.Millisecond, 100*time.Millisecond)); waited != nil {
			return errLost
		}
	}
	return err
}

// Host implements hypervisor.Hypervisor.
func (l *Libvirt) Host(ctx context.Context) (hypervisor.HostInfo, error) {
	if err := l.query(ctx); err != nil {
		return hypervisor.HostInfo{}, err
	}
	return hypervisor.HostInfo{HostName: l.At.ID, CapabilitiesXML: capabilities, MemoryBytes: l.At.Memory, CPUs: 64}, nil
}

const capabilities = `<capabilities><host><uuid>11111111-2222-4333-8444-555555555555</uuid><cpu><arch>x86_64</arch>` +
	`<topology sockets='1' cores='64' threads='1'/></cpu></host><guest><os_type>hvm</os_type><arch name='x86_64'>` +
	`<machine>q35</machine><domain type='kvm'/></arch></guest></capabilities>`

// Lookup implements hypervisor.Hypervisor.
func (l *Libvirt) Lookup(ctx context.Context, uuid string) (hypervisor.Domain, error) {
	if err := l.query(ctx); err != nil {
		return hypervisor.Domain{}, err
	}
	if d := shown(l.At, uuid); d != nil {
		return d.Domain, nil
	}
	return hypervisor.Domain{}, fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
}

// Domains implements hypervisor.Hypervisor.
func (l *Libvirt) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	if err := l.query(ctx); err != nil {
		return nil, err
	}
	return Listed(l.At), nil
}

// Processes implements hypervisor.Hypervisor.
func (l *Libvirt) Processes(context.Context) ([]hypervisor.Process, error) {
	if l.agent.IsDead() {
		return nil, errGone
	}
	return Processes(l.At), nil
}

// Left implements hypervisor.Hypervisor.
func (l *Libvirt) Left(_ context.Context, uuid, _ string) bool { return l.At.LastLeft(uuid) }

// XML implements hypervisor.Hypervisor.
func (l *Libvirt) XML(ctx context.Context, uuid string) (string, error) {
	if err := l.query(ctx); err != nil {
		return "", err
	}
	if d := l.At.listed(uuid); d != nil {
		return d.xml, nil
	}
	return "", fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
}

// Start implements hypervisor.Hypervisor.
func (l *Libvirt) Start(ctx context.Context, xml string) error {
	h := l.At
	read, err := readXML(xml)
	if err != nil {
		return err
	}
	volumes, err := disksOf(xml)
	if err != nil {
		return err
	}
	var launched *Domain
	err = l.change(ctx, "start", read.UUID, func() error {
		if other := h.Domains[read.UUID]; other != nil && other.Forgotten {
			h.Broken("I8", read.UUID, "is started on %s beside its own process, which libvirt there has forgotten", h.ID)
		}
		switch {
		case h.Domains[read.UUID] != nil:
			return fmt.Errorf("%w: %s", hypervisor.ErrExists, read.UUID)
		case h.Now.Before(h.StorageFrom):
			return fmt.Errorf("%w: default", hypervisor.ErrNoPool)
		case h.free() < (&Domain{Domain: read, xml: xml}).wants() || h.Chance(h.Mix.StartFails):
			return fmt.Errorf("%w: %d bytes", hypervisor.ErrNoMemory, read.MemoryBytes)
		case h.lacks(volumes) != "":
			return fmt.Errorf("%w: %s", hypervisor.ErrNoVolume, h.lacks(volumes))
		case lacksFile(h, &read):
			return errNoFile
		}
		h.Witness.Ordered(h, read.UUID, read.Epoch, "start")
		launched = h.launch(read, xml, volumes)
		begun := launched
		h.After(h.Between(10*time.Millisecond, 2*time.Second), func() {
			if h.Domains[read.UUID] == begun && begun.State == hypervisor.Starting {
				h.Set(begun, hypervisor.Running, "booted")
				h.stir()
			}
		})
		return nil
	})
	for daemon := h.daemon; err == nil && h.Domains[read.UUID] == launched && launched.State == hypervisor.Starting; {
		if _, waited := l.agent.Wait(ctx, h.moment, 0); waited != nil || h.daemon != daemon {
			return errLost
		}
	}
	return err
}

// Shutdown implements hypervisor.Hypervisor.
func (l *Libvirt) Shutdown(ctx context.Context, uuid string) error {
	h := l.At
	return l.change(ctx, "shutdown", uuid, func() error {
		d := h.listed(uuid)
		switch {
		case d == nil:
			return fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
		case d.State != hypervisor.Running:
			return fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
		}
		h.Witness.Ends(d, "shutdown")
		if h.Chance(700) { // others do not listen
			h.After(h.Between(100*time.Millisecond, 20*time.Second), func() {
				if h.Domains[uuid] == d && d.State == hypervisor.Running {
					h.Witness.Excuse(uuid) // whatever the stop has come to
					h.remove(d, "shut down")
				}
			})
		}
		return nil
	})
}

func (h *Machine) find(uuid string, epoch uint64) (*Domain, error) {
	d := h.listed(uuid)
	switch {
	case d == nil:
		return nil, fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
	case d.Epoch != epoch:
		return nil, fmt.Errorf("%w: it has %d, not %d", hypervisor.ErrOtherEpoch, d.Epoch, epoch)
	}
	return d, nil
}

// Destroy implements hypervisor.Hypervisor.
func (l *Libvirt) Destroy(ctx context.Context, uuid string, epoch uint64) error {
	h := l.At
	stops := h.Witness.IsStopping(uuid, h)
	return l.change(ctx, "destroy", uuid, func() error {
		d, err := h.find(uuid, epoch)
		if err != nil {
			return err
		}
		if stops {
			h.Witness.Excuse(uuid) // whatever the stop has come to, when a daemon that hung carries it out
		}
		h.Witness.Ends(d, "destroy")
		h.remove(d, "destroyed")
		return nil
	})
}

// Resume implements hypervisor.Hypervisor.
func (l *Libvirt) Resume(ctx context.Context, uuid string, epoch uint64) error {
	h := l.At
	if d := h.listed(uuid); d != nil && d.move != nil {
		if over, err := l.agent.Wait(ctx, d.move.ended, busyLimit); err != nil || !over {
			return fmt.Errorf("%w: a migration", hypervisor.ErrBusy)
		}
	}
	return l.change(ctx, "resume", uuid, func() error {
		d, err := h.find(uuid, epoch)
		switch {
		case err != nil:
			return err
		case d.move != nil:
			return fmt.Errorf("%w: a migration", hypervisor.ErrBusy)
		case d.State != hypervisor.Paused && d.State != hypervisor.PausedMigration:
			return fmt.Errorf("%w: it is %s", hypervisor.ErrInvalidState, d.State)
		}
		h.Witness.Ordered(h, uuid, epoch, "resume")
		if d.ByOwner {
			h.Broken("I9", uuid, "%s resumes the guest that its owner has paused", h.ID)
		}
		h.Set(d, hypervisor.Running, "unpaused")
		return nil
	})
}

// Mark implements hypervisor.Hypervisor.
func (l *Libvirt) Mark(ctx context.Context, uuid string, mark domxml.Mark) error {
	return l.change(ctx, "mark", uuid, func() error {
		d := l.At.listed(uuid)
		if d == nil {
			return fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
		}
		d.Managed, d.Epoch, d.OperationID = true, mark.Epoch, mark.Operation
		tellRun(l.At, d, false)
		l.At.changed(d)
		return nil
	})
}

// Migrate implements hypervisor.Hypervisor.
func (l *Libvirt) Migrate(ctx context.Context, uuid string, options hypervisor.MigrateOptions) error {
	h := l.At
	var m *move
	err := l.change(ctx, "migrate", uuid, func() (err error) {
		m, err = h.migrate(uuid, options)
		return err
	})
	if err != nil {
		return err
	}
	for daemon := h.daemon; !m.over; {
		if h.daemon != daemon {
			return errLost
		}
		if _, err := l.agent.Wait(ctx, h.moment, 0); err != nil {
			return errLost
		}
	}
	return m.err
}

// Job implements hypervisor.Hypervisor.
func (l *Libvirt) Job(ctx context.Context, uuid string, completed bool) (hypervisor.Job, error) {
	if err := l.query(ctx); err != nil {
		return hypervisor.Job{}, err
	}
	h := l.At
	if completed {
		if job, known := h.completed[uuid]; known {
			return job, nil
		}
		return hypervisor.Job{}, fmt.Errorf("%w: no completed job", hypervisor.ErrNotFound)
	}
	d := h.listed(uuid)
	switch {
	case d == nil:
		return hypervisor.Job{}, fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
	case d.move == nil:
		return hypervisor.Job{}, nil
	}
	m, total := d.move, d.MemoryBytes
	elapsed := h.Now.Sub(m.began)
	left := max(total-int64(float64(total)*float64(elapsed)/float64(m.copying+1)), 0)
	return hypervisor.Job{Active: true, Elapsed: elapsed, DataTotal: total, DataProcessed: total - left, DataRemaining: left}, nil
}

// AbortJob implements hypervisor.Hypervisor.
func (l *Libvirt) AbortJob(ctx context.Context, uuid string) error {
	return l.change(ctx, "abort", uuid, func() error {
		d := l.At.listed(uuid)
		if d == nil || d.move == nil || d.move.source != l.At {
			return fmt.Errorf("%w: no job to abort", hypervisor.ErrInvalidState)
		}
		return d.move.abort()
	})
}

// readXML reads what matters of a domain's document.
func readXML(xml string) (hypervisor.Domain, error) {
	info, err := domxml.Parse(xml)
	if err != nil {
		return hypervisor.Domain{}, fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
	}
	mark, managed := domxml.Metadata(xml)
	attached, err := hypervisor.AttachedIn(xml)
	if err != nil {
		return hypervisor.Domain{}, err
	}
	// All guests write to the pool of their machine as well, as if a part of their disks lay there.
	sources := append(attached.Written, hypervisor.Source{Pool: Pool, Volume: "part-of-" + info.UUID})
	return hypervisor.Domain{
		UUID: strings.ToLower(info.UUID), Name: info.Name, MemoryBytes: info.MemoryBytes, VCPUs: info.VCPUs,
		Managed: managed, Epoch: mark.Epoch, OperationID: mark.Operation, Sources: sources, Devices: attached.Devices,
	}, nil
}
