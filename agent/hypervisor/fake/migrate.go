package fake

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"berth/agent/hypervisor"
)

const (
	copyTick   = 100 * time.Millisecond
	switchOver = 20 * time.Millisecond // the guest stands still: its last pages travel
)

// job is a migration under way. It belongs to the daemons: nobody who waits for it can end it by leaving.
type job struct {
	hypervisor.Job
	began time.Time
	ended chan struct{}
	err   error

	copies []diskCopy
}

// stop ends the job with an error, once. The wire is locked.
func (j *job) stop(err error) {
	select {
	case <-j.ended:
	default:
		j.err = err
		close(j.ended)
	}
}

// Migrate implements hypervisor.Hypervisor.
func (h *Hypervisor) Migrate(ctx context.Context, uuid string, options hypervisor.MigrateOptions) error {
	var j *job
	var lost chan struct{}
	err := h.change(ctx, "migrate", 0, func() (err error) {
		lost = h.lost
		j, err = h.begin(uuid, options)
		return err
	})
	if err != nil {
		return err
	}
	select {
	case <-j.ended:
		h.wire.mu.Lock()
		defer h.wire.mu.Unlock()
		return j.err
	case <-lost:
		return fmt.Errorf("%w: the connection broke", hypervisor.ErrAmbiguous)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", hypervisor.ErrAmbiguous, ctx.Err())
	}
}

// begin prepares the target and starts to copy. The wire is locked.
func (h *Hypervisor) begin(uuid string, options hypervisor.MigrateOptions) (*job, error) {
	d, err := h.find(uuid)
	if err != nil {
		return nil, err
	}
	if d.JobActive {
		return nil, fmt.Errorf("%w: a migration", hypervisor.ErrBusy)
	}
	target, err := h.peer(options.TargetURI)
	if err != nil {
		return nil, err
	}
	incoming, err := read(options.DomainXML)
	if err != nil {
		return nil, err
	}
	if _, clash := target.all[uuid]; clash {
		return nil, fmt.Errorf("%s has a domain with UUID %s already", target.Name, uuid)
	}
	if free := target.free(); incoming.MemoryBytes > free {
		return nil, fmt.Errorf("%w: on %s", hypervisor.ErrNoMemory, target.Name)
	}
	copies, err := h.copies(d, incoming, target, options)
	if err != nil {
		return nil, err
	}
	disks := bytesOf(copies)
	j := &job{began: time.Now(), ended: make(chan struct{}), copies: copies, Job: hypervisor.Job{
		Active: true, DataTotal: d.MemoryBytes + disks, DataRemaining: d.MemoryBytes + disks, Iteration: 1,
		DiskTotal: disks, DiskRemaining: disks,
	}}
	d.job, d.JobActive = j, true
	incoming.State, incoming.Reason, incoming.JobActive, incoming.Persistent = hypervisor.PausedMigration, "migration", true, d.Persistent
	target.all[uuid] = incoming
	target.publish(incoming, "started", "migrated")
	go h.copy(d, incoming, target, j, options)
	return j, nil
}

func (h *Hypervisor) peer(uri string) (*Hypervisor, error) {
	parsed, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	target, found := h.wire.hosts[parsed.Hostname()]
	if !found || target.down != nil || h.wire.cut[[2]string{h.Name, target.Name}] {
		return nil, fmt.Errorf("cannot connect to %s", uri)
	}
	return target, nil
}

// copy moves memory until there is none left, and hands over.
func (h *Hypervisor) copy(d, incoming *domain, target *Hypervisor, j *job, options hypervisor.MigrateOptions) {
	rate := h.LinkBPS
	if options.BandwidthBPS > 0 {
		rate = options.BandwidthBPS
	}
	for {
		select {
		case <-j.ended:
		case <-time.After(copyTick):
		}
		h.wire.mu.Lock()
		if f, faulty := h.fault("copy"); faulty {
			j.stop(f.Err)
		}
		if h.wire.cut[[2]string{h.Name, target.Name}] {
			j.stop(errors.New("the link is gone"))
		}
		if target.all[d.UUID] != incoming {
			j.stop(errors.New("the incoming guest is gone"))
		}
		select {
		case <-j.ended:
			h.rollBack(d, incoming, target)
			h.wire.mu.Unlock()
			return
		default:
		}
		sent := min(j.DataRemaining, rate*int64(copyTick)/int64(time.Second))
		dirtied := h.guests[d.UUID].DirtyBPS * int64(copyTick) / int64(time.Second)
		j.DataProcessed += sent
		j.DiskProcessed = min(j.DataProcessed, j.DiskTotal) // disks go first
		j.DiskRemaining = j.DiskTotal - j.DiskProcessed
		j.DataRemaining = min(j.DataRemaining-sent+dirtied, j.DataTotal)
		j.MemoryBPS, j.DirtyRate, j.Elapsed = rate, h.guests[d.UUID].DirtyBPS/4096, time.Since(j.began)
		// What is left must fit into one switch-over.
		arrived := j.DataRemaining <= rate*int64(switchOver)/int64(time.Second)
		h.wire.mu.Unlock()
		if arrived {
			break
		}
	}
	h.handOver(d, incoming, target, j, options.Paused)
}

// rollBack leaves the source as it was and removes the incoming guest. The wire is locked.
func (h *Hypervisor) rollBack(d, incoming *domain, target *Hypervisor) {
	if h.all[d.UUID] == d {
		d.job, d.JobActive = nil, false
		if d.State == hypervisor.PausedMigration {
			d.State, d.Reason = hypervisor.Running, "migration cancelled"
			h.publish(d, "resumed", "")
		}
	}
	if target.all[d.UUID] == incoming {
		delete(target.all, d.UUID)
		target.publish(incoming, "stopped", "failed to start")
	}
}

func (h *Hypervisor) handOver(d, incoming *domain, target *Hypervisor, j *job, paused bool) {
	h.wire.mu.Lock()
	if h.all[d.UUID] != d { // destroyed in the last moment
		h.rollBack(d, incoming, target)
		j.stop(errors.New("the guest is gone"))
		h.wire.mu.Unlock()
		return
	}
	d.State, d.Reason = hypervisor.PausedMigration, "migration"
	h.publish(d, "suspended", "")
	h.wire.mu.Unlock()
	time.Sleep(switchOver)

	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	incoming.JobActive = false
	incoming.State, incoming.Reason = hypervisor.Running, "migrated"
	if paused {
		incoming.State, incoming.Reason = hypervisor.Paused, "user"
	} else {
		target.publish(incoming, "resumed", "")
	}
	f, faulty := h.fault("finish")
	if faulty && !f.Effect {
		// The target's last message got lost: the source cannot know, and stays as it is.
		d.job, d.JobActive = nil, false
		j.stop(f.Err)
		return
	}
	for _, c := range j.copies {
		c.to.content, c.to.backing = c.from.read(), nil
	}
	downtime := switchOver
	j.Active, j.Elapsed, j.DataRemaining, j.Downtime = false, time.Since(j.began), 0, &downtime
	h.done[d.UUID], target.done[d.UUID] = j.Job, j.Job
	d.job, d.JobActive = nil, false
	if h.all[d.UUID] == d {
		delete(h.all, d.UUID) // a definition goes along
		h.endConsole(d.UUID)
		h.left[d.UUID] = true
		h.publish(d, "stopped", "migrated")
	}
	j.stop(f.Err)
}

// Job implements hypervisor.Hypervisor.
func (h *Hypervisor) Job(ctx context.Context, uuid string, completed bool) (hypervisor.Job, error) {
	end, err := h.enter(ctx, "job")
	if err != nil {
		return hypervisor.Job{}, err
	}
	defer end()
	if completed {
		if job, found := h.done[uuid]; found {
			return job, nil
		}
		return hypervisor.Job{}, fmt.Errorf("%w: no completed migration of %s", hypervisor.ErrNotFound, uuid)
	}
	d, err := h.find(uuid)
	if err != nil {
		return hypervisor.Job{}, err
	}
	if d.job == nil {
		return hypervisor.Job{Active: d.JobActive}, nil
	}
	return d.job.Job, nil
}

// AbortJob implements hypervisor.Hypervisor.
func (h *Hypervisor) AbortJob(ctx context.Context, uuid string) error {
	return h.change(ctx, "abort", 0, func() error {
		d, err := h.find(uuid)
		if err != nil {
			return err
		}
		if d.job == nil || d.State == hypervisor.PausedMigration {
			return fmt.Errorf("%w: no job to abort", hypervisor.ErrInvalidState)
		}
		d.job.stop(hypervisor.ErrAborted)
		return nil
	})
}
