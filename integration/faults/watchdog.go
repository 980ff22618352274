package faults

import "time"

// watchdog is a host's, with what its agent does about it: it is petted while a lease lasts, the agent lives and the host runs.
type watchdog struct {
	host    *host
	takes   time.Duration // from the last pet to the reset
	armed   bool
	petting bool
	until   time.Time // the end of the lease
	turn    uint64    // grows whenever petting begins or ends
}

// time is after how long without a lease the host is reset; 0: it would not be.
func (d *watchdog) time() time.Duration {
	if !d.armed {
		return 0
	}
	return d.takes
}

// lease is one that the agent has got.
func (d *watchdog) lease(until time.Time) {
	w := d.host.world
	if d.takes == 0 || !w.now.Before(until) {
		return
	}
	d.armed = true
	if until.After(d.until) {
		d.until = until
	}
	d.pet()
}

// pet begins to pet it, until the lease ends.
func (d *watchdog) pet() {
	w := d.host.world
	if !d.armed || !w.now.Before(d.until) {
		return
	}
	d.turn++
	d.petting = true
	turn := d.turn
	w.after(d.until.Sub(w.now), func() {
		if d.turn == turn {
			d.starve()
		}
	})
}

// starve ends the petting: the lease is over, or nobody is there to pet it.
func (d *watchdog) starve() {
	if !d.armed || !d.petting {
		return
	}
	w := d.host.world
	d.turn++
	d.petting = false
	turn := d.turn
	w.after(d.takes, func() {
		if d.turn != turn || !d.host.on {
			return
		}
		w.note("watchdog fires", d.host.id, "", "")
		d.host.powerCut()
		w.after(w.between(5*time.Second, time.Minute), d.host.powerOn)
	})
}

// off is the host's end: nothing is armed any more.
func (d *watchdog) off() {
	d.turn++
	d.armed, d.petting, d.until = false, false, time.Time{}
}
