// Package departures knows which guests have left their node before libvirt says so.
package departures

import "sync"

// Departures are the guests that are on their way to another node. When one stands still for good, libvirtd ends its process
// and looks whether it has ended only 200 ms later (virProcessKillPainfullyDelay), with the domain locked. The process is
// gone after a few milliseconds, and nobody runs the guest until somebody is sure of that. So its end is awaited here.
//
// That the process has ended shows that the guest does not run here, and not that it was handed over: when the target's reply
// is lost, libvirt lets the guest run on, and it may end later. So it has to have stood still from the switchover on, by all
// that libvirt had told of it when the process had ended. Of anything else the end of the job tells, as without this.
// The zero value is ready.
type Departures struct {
	mu    sync.Mutex
	known map[string]*Departure // by UUID, for as long as libvirtd has not answered
}

// Departure is one guest's.
type Departure struct {
	Left   chan struct{} // closed once it is surely not here
	stands bool          // libvirt has stopped it for the switchover and told nothing of it since
}

// New is the departure of a guest that begins.
func New() *Departure { return &Departure{Left: make(chan struct{})} }

// Begin is to be called before the guest can stand still.
func (d *Departures) Begin(uuid string, one *Departure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]*Departure{}
	}
	d.known[uuid] = one
}

// End is for when libvirtd has answered: it is asked again from now on.
func (d *Departures) End(uuid string, one *Departure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[uuid] == one {
		delete(d.known, uuid)
	}
}

// Saw takes in what libvirt tells of a guest: that it was stopped for the switchover, or anything else.
func (d *Departures) Saw(uuid string, stopped bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one := d.known[uuid]; one != nil {
		one.stands = stopped
	}
}

// Missed is for when events may have been.
func (d *Departures) Missed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.known {
		one.stands = false
	}
}

// Conclude is for when the process has ended and all that libvirt had to tell was taken in. It reports whether the guest has
// left, which is not to be known by this if it did not stand still.
func (d *Departures) Conclude(uuid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.known[uuid]
	if one == nil || !one.stands || one.HasLeft() {
		return false
	}
	close(one.Left)
	return true
}

// Gone tells whether the guest has left although libvirtd has not said so yet.
func (d *Departures) Gone(uuid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.known[uuid]
	return one != nil && one.HasLeft()
}

// HasLeft tells whether Left is closed.
func (d *Departure) HasLeft() bool {
	select {
	case <-d.Left:
		return true
	default:
		return false
	}
}
