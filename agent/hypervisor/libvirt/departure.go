package libvirt

import (
	"bytes"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor/processes"
)

// departures are the guests that are on their way to another node. When one stands still for good, libvirtd ends its process
// and looks whether it has ended only 200 ms later (virProcessKillPainfullyDelay), with the domain locked. The process is
// gone after a few milliseconds, and nobody runs the guest until somebody is sure of that. So its end is awaited here.
//
// That the process has ended shows that the guest does not run here, and not that it was handed over: when the target's reply
// is lost, libvirt lets the guest run on, and it may end later. So it has to have stood still from the switchover on, by all
// that libvirt had told of it when the process had ended. Of anything else the end of the job tells, as without this.
// The zero value is ready.
type departures struct {
	mu    sync.Mutex
	known map[string]*departure // by UUID, for as long as libvirtd has not answered
}

type departure struct {
	stands bool          // libvirt has stopped it for the switchover and told nothing of it since
	left   chan struct{} // closed once it is surely not here
}

func newDeparture() *departure { return &departure{left: make(chan struct{})} }

// begin is to be called before the guest can stand still.
func (d *departures) begin(uuid string, one *departure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]*departure{}
	}
	d.known[uuid] = one
}

// end is for when libvirtd has answered: it is asked again from now on.
func (d *departures) end(uuid string, one *departure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[uuid] == one {
		delete(d.known, uuid)
	}
}

// saw takes in what libvirt tells of a guest.
func (d *departures) saw(uuid string, event *libvirtgo.DomainEventLifecycle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one := d.known[uuid]; one != nil {
		one.stands = event.Event == libvirtgo.DOMAIN_EVENT_SUSPENDED &&
			event.Detail == int(libvirtgo.DOMAIN_EVENT_SUSPENDED_MIGRATED)
	}
}

// missed is for when events may have been.
func (d *departures) missed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.known {
		one.stands = false
	}
}

// conclude is for when the process has ended and all that libvirt had to tell was taken in. It reports whether the guest has
// left, which is not to be known by this if it did not stand still.
func (d *departures) conclude(uuid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.known[uuid]
	if one == nil || !one.stands || one.hasLeft() {
		return false
	}
	close(one.left)
	return true
}

// left tells whether the guest has left although libvirtd has not said so yet.
func (d *departures) left(uuid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.known[uuid]
	return one != nil && one.hasLeft()
}

func (d *departure) hasLeft() bool {
	select {
	case <-d.left:
		return true
	default:
		return false
	}
}

// depart closes the departure's channel when the guest has left before libvirtd says so. It is to be called before the guest
// can stand still; end takes it back when libvirtd has answered. Where the process cannot be seen it does nothing.
func (h *migrations) depart(d *libvirtgo.Domain, uuid string, one *departure) (end func()) {
	name, err := d.GetName()
	if err != nil {
		return func() {}
	}
	life, err := findLife(h.runDir, name, uuid)
	if err != nil {
		h.log.Debug("a guest leaves whose process is not to be seen", "domain", uuid, "error", err)
		return func() {}
	}
	h.departures.begin(uuid, one)
	go h.awaitDeparture(uuid, life)
	return func() {
		h.departures.end(uuid, one)
		life.close()
	}
}

// awaitDeparture waits for the end of the process and reports whether the guest has left with it.
func (h *migrations) awaitDeparture(uuid string, life *life) bool {
	if life.awaitEnd() != nil {
		return false
	}
	if err := h.watch.toldAll(); err != nil {
		h.log.Debug("a guest's process has ended and libvirt does not tell how", "domain", uuid, "error", err)
		return false
	}
	return h.departures.conclude(uuid)
}

// life is a guest's process, held by a descriptor that tells of its end, and of no other process that gets its number.
type life struct{ file *os.File }

// findLife opens the process of a domain. No privilege is needed for it. The error is processes.ErrNotHere.
func findLife(runDir, name, uuid string) (*life, error) {
	pid, err := processes.PIDOf(runDir, name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", processes.ErrNotHere, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that its end is awaited without a thread
		_ = unix.Close(fd)
		return nil, fmt.Errorf("%w: %w", processes.ErrNotHere, err)
	}
	l := &life{file: os.NewFile(uintptr(fd), fmt.Sprintf("process %d", pid))}
	// The number had an owner when the descriptor was opened. If that one lives still, the command line is its own.
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err != nil || !bytes.Contains(line, []byte(uuid)) || hasEnded(fd) {
		l.close()
		return nil, fmt.Errorf("%w: process %d is not it", processes.ErrNotHere, pid)
	}
	return l, nil
}

// awaitEnd returns nil once the process has ended, with all its threads: it executes nothing, and has no file open. It is an
// error if close came first.
func (l *life) awaitEnd() error {
	conn, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool { return hasEnded(int(fd)) })
}

func (l *life) close() { _ = l.file.Close() }

// hasEnded tells whether the process of a descriptor has ended.
func hasEnded(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1 && poll[0].Revents&unix.POLLIN != 0
}
