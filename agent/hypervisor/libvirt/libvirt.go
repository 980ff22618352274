package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/guestlog"
	"berth/agent/hypervisor/processes"
	"berth/agent/hypervisor/statusfiles"
)

// MinVersion is the oldest libvirt that Berth works with: the first whose statistics of a completed job can be read more
// than once, and the oldest that a supported server distribution still ships.
const MinVersion = 6_000_000 // 6.0.0, as libvirt counts

// defaultRunDir is where libvirt keeps the process IDs of its guests.
const defaultRunDir = statusfiles.DefaultFolder

// Hypervisor is one node's libvirtd. Its parts are by what they ask libvirtd about.
type Hypervisor struct {
	hypervisor.Feed
	*connection
	*migrations
	*domains
	*volumes
	processes.Seen

	virt   string
	cancel context.CancelFunc
	ended  chan struct{}
}

// connection is how libvirtd is asked, and whether it answers.
type connection struct {
	log     hclog.Logger
	queries pool // never wait for a guest: one that takes long means that libvirtd is stuck
	calls   pool
	moves   pool
	storage pool // may hang with the file system below a storage pool
	watch   watch
}

var _ hypervisor.Hypervisor = (*Hypervisor)(nil)

// Options are what can be chosen of a connection.
type Options struct {
	// MinVersion refuses an older libvirt, as libvirt counts: 9000000 is 9.0.0. Below MinVersion it has no effect.
	MinVersion uint32
	// RunDir is where libvirt keeps the process IDs of its guests, if not in /run/libvirt/qemu.
	RunDir string
	// StatusSocket is of the service that passes on what libvirt keeps there; empty: there is none.
	StatusSocket string
	// LogDir is where libvirt keeps the logs of its guests, if not in /var/log/libvirt/qemu.
	LogDir string
	// VirtType is how guests are run here: domxml.VirtAuto (also if empty), VirtKVM or VirtQEMU. What CPUs they can have
	// depends on it.
	VirtType string
	// ProcDir and CgroupDir are where the host's processes and control groups are seen, if not in /proc and /sys/fs/cgroup.
	ProcDir, CgroupDir string
	// RootDir is where the host's own files are seen, if not in /.
	RootDir string
}

// ParseVersion reads a version such as 9.0.0 the way libvirt counts.
func ParseVersion(text string) (uint32, error) {
	var major, minor, release uint32
	if n, err := fmt.Sscanf(
		text+".0.0", "%d.%d.%d", &major, &minor, &release,
	); err != nil || n != 3 || major > 999 || minor > 999 || release > 999 {
		return 0, fmt.Errorf("libvirt version %q: write for instance 9.0.0", text)
	}
	return major*1_000_000 + minor*1000 + release, nil
}

// Open starts to connect to a libvirt URI and returns at once; Connected tells how that goes.
func Open(uri string, log hclog.Logger) *Hypervisor { return OpenWith(uri, log, Options{}) }

// OpenWith is Open with options.
func OpenWith(uri string, log hclog.Logger, options Options) *Hypervisor {
	ctx, cancel := context.WithCancel(context.Background())
	c := &connection{
		log: log, queries: pool{uri: uri}, calls: pool{uri: uri}, moves: pool{uri: uri}, storage: pool{uri: uri},
	}
	c.watch.init(uri)
	runDir := cmp.Or(options.RunDir, defaultRunDir)
	leaving := &migrations{connection: c, runDir: runDir, logs: guestlog.At(cmp.Or(options.LogDir, guestlog.DefaultDir), guestlog.DefaultNote)}
	h := &Hypervisor{
		connection: c, migrations: leaving, domains: &domains{connection: c, migrations: leaving, runDir: runDir},
		volumes: &volumes{connection: c, rootDir: options.RootDir}, virt: options.VirtType,
		Seen:   processes.Seen{Proc: cmp.Or(options.ProcDir, "/proc"), Cgroups: cmp.Or(options.CgroupDir, "/sys/fs/cgroup")},
		cancel: cancel, ended: make(chan struct{}),
	}
	w := &watcher{Hypervisor: h, minimum: max(MinVersion, options.MinVersion)}
	go func() {
		defer close(h.ended)
		w.keepWatch(ctx)
	}()
	go w.watchDevices(ctx, statusfiles.Source{Folder: runDir, Socket: options.StatusSocket})
	go w.watchJobs(ctx)
	go h.sizes.Watch(ctx, h.diskSizes, h.Publish)
	return h
}

// Close ends the connections. Calls that hang in libvirtd are left to themselves.
func (h *Hypervisor) Close() error {
	h.cancel()
	select {
	case <-h.ended:
	case <-time.After(time.Second): // it hangs in libvirtd
	}
	for _, p := range h.pools() {
		p.drain(true)
	}
	return nil
}

func (h *connection) pools() []*pool { return []*pool{&h.queries, &h.calls, &h.moves, &h.storage} }

// Connected implements hypervisor.Hypervisor.
func (h *connection) Connected() (bool, error) {
	if err := h.watch.state(); err != nil {
		return false, err
	}
	if _, since := h.queries.waiting(); !since.IsZero() && time.Since(since) > queryTimeout {
		return false, fmt.Errorf("%w: libvirtd has not answered since %s (stuck): see `systemctl status libvirtd`",
			hypervisor.ErrUnavailable, since.Format(time.TimeOnly))
	}
	return true, nil
}

// query runs a call that never waits for a guest.
func query[T any](ctx context.Context, h *connection, do func(*libvirtgo.Connect) (T, error)) (T, error) {
	var none T
	if err := h.watch.state(); err != nil {
		return none, err
	}
	// While libvirtd is stuck a probe or two suffice to see that it is back.
	if _, err := h.Connected(); err != nil {
		if waiting, _ := h.queries.waiting(); waiting >= 2 {
			return none, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	value, _, err := ask(limited, &h.queries, do)
	if errors.Is(err, errHung) {
		err = fmt.Errorf("%w: %w", hypervisor.ErrUnavailable, err)
	}
	return value, err
}

// act runs a call that changes something.
func act(ctx context.Context, h *connection, p *pool, do func(*libvirtgo.Connect) error) error {
	if _, err := h.Connected(); err != nil {
		return err
	}
	_, began, err := ask(ctx, p, func(conn *libvirtgo.Connect) (struct{}, error) { return struct{}{}, do(conn) })
	lost := errors.Is(err, errHung) || errors.Is(err, hypervisor.ErrUnavailable) || ctx.Err() != nil && errors.Is(err, ctx.Err())
	switch {
	case !lost:
		return err
	case began:
		return fmt.Errorf("%w: %w", hypervisor.ErrAmbiguous, err)
	case errors.Is(err, hypervisor.ErrUnavailable):
		return err
	default:
		return fmt.Errorf("%w: %w", hypervisor.ErrUnavailable, err)
	}
}

// lookup finds a domain on a connection. The caller frees it.
func lookup(conn *libvirtgo.Connect, uuid string) (*libvirtgo.Domain, error) {
	return conn.LookupDomainByUUIDString(uuid)
}
