package libvirt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// Reconnects to a local socket are cheap, so the pause between them stays short.
const (
	minPause = 200 * time.Millisecond
	maxPause = 5 * time.Second
)

// watch is the state of the connection that brings events.
type watch struct {
	uri string

	mu   sync.Mutex
	down error              // nil: up
	conn *libvirtgo.Connect // while it is up
}

func (w *watch) init(uri string) {
	w.uri = uri
	w.down = fmt.Errorf("%w: connecting to %s", hypervisor.ErrUnavailable, uri)
}

func (w *watch) state() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down
}

func (w *watch) set(down error, conn *libvirtgo.Connect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down, w.conn = down, conn
}

// forget is for a connection that is about to be closed.
func (w *watch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = nil
}

// toldAll returns once every lifecycle event was taken in that libvirtd had queued when it was called. It may take as long
// as libvirtd hangs; the error says that events may be missing.
func (w *watch) toldAll() error {
	conn, err := w.hold()
	if err != nil {
		return err
	}
	defer func() { _, _ = conn.Close() }()
	// An event comes on this connection before the answer to a question that libvirtd has read in a later turn of its loop
	// than the one in which it sends the event. It may read the first question in that same turn, and the second it cannot.
	for range 2 {
		if _, err := conn.GetLibVersion(); err != nil {
			return explain(err)
		}
	}
	// What came before the answer is in the queue of our own loop now, and so is this behind it.
	turned := make(chan struct{}, 1)
	timer, err := libvirtgo.EventAddTimeout(0, func(int) {
		select {
		case turned <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return explain(err)
	}
	<-turned
	return explain(libvirtgo.EventRemoveTimeout(timer))
}

// hold is one more reference to the connection, to be closed.
func (w *watch) hold() (*libvirtgo.Connect, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.down != nil:
		return nil, w.down
	case w.conn == nil:
		return nil, fmt.Errorf("%w: the connection is being closed", hypervisor.ErrUnavailable)
	}
	held := *w.conn // closing a connection for the last time writes to it
	return &held, explain(held.Ref())
}

// eventLoop runs libvirt's own loop. It must stand before the first connection is opened, and there is one a process.
var eventLoop = sync.OnceValue(func() error {
	if err := libvirtgo.EventRegisterDefaultImpl(); err != nil {
		return unreachable("install libvirt on this node", err)
	}
	go func() {
		for {
			_ = libvirtgo.EventRunDefaultImpl() // one turn; an error in it is the next turn's too, and of no use to anybody
		}
	}()
	return nil
})

// watcher holds the connection that brings events, and tells the parts of the hypervisor.
type watcher struct {
	*Hypervisor
	minimum uint32 // version
}

// keepWatch holds the watching connection and opens it again whenever it ends, until the context does.
func (h *watcher) keepWatch(ctx context.Context) {
	pause := minPause
	for first := true; ctx.Err() == nil; first = false {
		w, err := h.openWatch()
		if err != nil {
			if h.watch.state().Error() != err.Error() {
				h.log.Warn("libvirt is not reachable", "uri", h.watch.uri, "error", err)
			}
			h.watch.set(err, nil)
		} else {
			h.log.Info("connected to libvirt", "uri", h.watch.uri)
			h.guests.news.Reconnected()
			h.quiet.Reset()
			h.departures.Missed()
			h.watch.set(nil, w.conn)
			if !first {
				h.logs.Missed()
				h.Publish(hypervisor.Event{Kind: hypervisor.EventReconnected})
			}
			pause = minPause
			connected, end := context.WithCancel(ctx)
			go h.keepSweeping(connected)
			h.waitLost(ctx, w)
			end()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, maxPause)
	}
}

func (h *watcher) waitLost(ctx context.Context, w *watched) {
	select {
	case <-ctx.Done():
	case why := <-w.lost:
		down := fmt.Errorf("%w: %s", hypervisor.ErrUnavailable, why)
		h.watch.set(down, nil)
		h.log.Warn("libvirt is lost", "uri", h.watch.uri, "reason", why)
		h.Publish(hypervisor.Event{Kind: hypervisor.EventDisconnected, Detail: down.Error()})
		for _, p := range h.pools() {
			p.drain(false)
		}
	}
	h.watch.forget()
	w.release()
}

// watched is an open watching connection. A registered callback holds it open, so release takes them back first.
type watched struct {
	conn      *libvirtgo.Connect
	callbacks []int
	others    []func() error // take back callbacks that are not of domains
	lost      chan string    // says why the connection ended, once
}

func (w *watched) release() {
	for _, id := range w.callbacks {
		_ = w.conn.DomainEventDeregister(id)
	}
	for _, deregister := range w.others {
		_ = deregister()
	}
	_ = w.conn.UnregisterCloseCallback()
	_, _ = w.conn.Close()
}

// openWatch connects, checks versions and registers for events.
func (h *watcher) openWatch() (*watched, error) {
	if err := eventLoop(); err != nil {
		return nil, err
	}
	conn, err := dial(h.watch.uri)
	if err != nil {
		return nil, unreachable(h.watch.uri, err)
	}
	w := &watched{conn: conn, lost: make(chan string, 1)}
	if err := h.register(w); err != nil {
		w.release()
		return nil, err
	}
	return w, nil
}

func (h *watcher) register(w *watched) error {
	if err := h.checkVersion(w.conn); err != nil {
		return err
	}
	err := w.conn.RegisterCloseCallback(func(_ *libvirtgo.Connect, reason libvirtgo.ConnectCloseReason) {
		why := "libvirtd closed the connection"
		if reason == libvirtgo.CONNECT_CLOSE_REASON_KEEPALIVE {
			why = "libvirtd does not answer (stuck): see `systemctl status libvirtd`"
		}
		select {
		case w.lost <- why:
		default:
		}
	})
	if err != nil && !is(err, libvirtgo.ERR_NO_SUPPORT) {
		return unreachable("watch the connection", err)
	}
	lifecycle, err := w.conn.DomainEventLifecycleRegister(nil, h.onLifecycle)
	if err != nil {
		return unreachable("register for lifecycle events", err)
	}
	w.callbacks = append(w.callbacks, lifecycle)
	for what, register := range map[string]func() (int, error){
		"figures of completed migrations": func() (int, error) { return w.conn.DomainEventJobCompletedRegister(nil, h.onJobCompleted) },
		"migrations under way":            func() (int, error) { return w.conn.DomainEventMigrationIterationRegister(nil, h.onIteration) },
		"changed memory":                  func() (int, error) { return w.conn.DomainEventBalloonChangeRegister(nil, h.onBalloon) },
		"changed devices":                 func() (int, error) { return w.conn.DomainEventDeviceAddedRegister(nil, h.onDevice) },
		"changed metadata":                func() (int, error) { return w.conn.DomainEventMetadataChangeRegister(nil, h.onMetadata) },
	} {
		id, err := register()
		if err != nil { // the test driver has none of them, and all are found out otherwise, only later
			h.log.Debug("libvirt does not tell of everything", "what", what, "error", explain(err))
			continue
		}
		w.callbacks = append(w.callbacks, id)
	}
	h.registerResources(w)
	return nil
}

// registerResources has libvirt tell of pools and networks. Without it they are found out with the next inventory.
func (h *watcher) registerResources(w *watched) {
	pools, err := w.conn.StoragePoolEventLifecycleRegister(nil, func(
		_ *libvirtgo.Connect, pool *libvirtgo.StoragePool, _ *libvirtgo.StoragePoolEventLifecycle,
	) {
		name, _ := pool.GetName() // only for people
		h.Publish(hypervisor.Event{Kind: hypervisor.EventChanged, Detail: "storage pool " + name})
	})
	if err != nil {
		h.log.Debug("libvirt does not tell of everything", "what", "storage pools", "error", explain(err))
	} else {
		w.others = append(w.others, func() error { return w.conn.StoragePoolEventDeregister(pools) })
	}
	networks, err := w.conn.NetworkEventLifecycleRegister(nil, func(
		_ *libvirtgo.Connect, network *libvirtgo.Network, _ *libvirtgo.NetworkEventLifecycle,
	) {
		name, _ := network.GetName() // only for people
		h.Publish(hypervisor.Event{Kind: hypervisor.EventChanged, Detail: "network " + name})
	})
	if err != nil {
		h.log.Debug("libvirt does not tell of everything", "what", "networks", "error", explain(err))
	} else {
		w.others = append(w.others, func() error { return w.conn.NetworkEventDeregister(networks) })
	}
}

func (h *watcher) onIteration(_ *libvirtgo.Connect, d *libvirtgo.Domain, _ *libvirtgo.DomainEventMigrationIteration) {
	if uuid, err := d.GetUUIDString(); err == nil {
		h.quiet.Set(uuid, false)
	}
}

func (h *watcher) onMetadata(_ *libvirtgo.Connect, d *libvirtgo.Domain, _ *libvirtgo.DomainEventMetadataChange) {
	h.heard(d)
	if uuid, err := d.GetUUIDString(); err == nil {
		name, _ := d.GetName() // only for people
		h.Publish(hypervisor.Event{UUID: uuid, Name: name, Kind: hypervisor.EventMetadata})
	}
}

func (h *watcher) onBalloon(_ *libvirtgo.Connect, d *libvirtgo.Domain, _ *libvirtgo.DomainEventBalloonChange) {
	h.heard(d)
}

func (h *watcher) onDevice(_ *libvirtgo.Connect, d *libvirtgo.Domain, _ *libvirtgo.DomainEventDeviceAdded) {
	h.heard(d)
}

func (h *watcher) heard(d *libvirtgo.Domain) {
	if uuid, err := d.GetUUIDString(); err == nil {
		h.guests.news.Heard(uuid)
	}
}

func (h *watcher) checkVersion(conn *libvirtgo.Connect) error {
	daemon, err := conn.GetLibVersion()
	if err != nil {
		return unreachable("ask for the version", err)
	}
	library, err := libvirtgo.GetVersion()
	if err != nil {
		return unreachable("ask for the library's version", err)
	}
	return judgeVersions(daemon, library, h.minimum)
}

func judgeVersions(daemon, library, minimum uint32) error {
	if older := min(daemon, library); older < minimum {
		return fmt.Errorf("%w: libvirt %s, and %s or newer is needed: upgrade libvirt on this node",
			hypervisor.ErrTooOld, versionText(older), versionText(minimum))
	}
	return nil
}

// versionText prints libvirt's counting: 9000000 is 9.0.0.
func versionText(version uint32) string {
	return fmt.Sprintf("%d.%d.%d", version/1_000_000, version/1000%1000, version%1000)
}

func (h *watcher) onLifecycle(_ *libvirtgo.Connect, d *libvirtgo.Domain, event *libvirtgo.DomainEventLifecycle) {
	uuid, err := d.GetUUIDString()
	if err != nil {
		h.departures.Missed()
		h.logs.Missed()
		h.Publish(hypervisor.Event{Kind: hypervisor.EventReconnected, Detail: "an event without a domain"})
		return
	}
	h.guests.news.Heard(uuid)
	h.quiet.Set(uuid, false)
	h.departures.Saw(uuid, stoppedForMove(event))
	h.logs.Heard(uuid)
	name, _ := d.GetName() // only for people
	kind, detail := eventWords(event)
	h.Publish(hypervisor.Event{UUID: uuid, Name: name, Kind: kind, Detail: detail})
}
