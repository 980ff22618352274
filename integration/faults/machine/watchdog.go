package machine

import "time"

// Watchdog is a machine's, with what its agent does about it: it is petted while a lease lasts, the agent lives and the host runs.
type Watchdog struct {
	at      *Machine
	Takes   time.Duration // from the last pet to the reset
	armed   bool
	petting bool
	until   time.Time // the end of the lease
	turn    uint64    // grows whenever petting begins or ends
	Needed  time.Time // when a leader has found last that something needs it
}

// needless is after how long a reset serves nobody: a lease, the watchdog's own time, and what it takes a leader to say that it is
// disarmed, though elections and lost messages come between.
const needless = 20 * time.Minute

// Time is after how long without a lease the host is reset; 0: it would not be.
func (d *Watchdog) Time() time.Duration {
	if !d.armed {
		return 0
	}
	return d.Takes
}

// Lease is one that the agent has got.
func (d *Watchdog) Lease(until time.Time) {
	if d.Takes == 0 || !d.at.Now.Before(until) {
		return
	}
	d.armed = true
	if until.After(d.until) {
		d.until = until
	}
	d.pet()
}

// pet begins to pet it, until the lease ends.
func (d *Watchdog) pet() {
	if !d.armed || !d.at.Now.Before(d.until) {
		return
	}
	d.turn++
	d.petting = true
	turn := d.turn
	d.at.After(d.until.Sub(d.at.Now), func() {
		if d.turn == turn {
			d.Starve()
		}
	})
}

// Starve ends the petting: the lease is over, or nobody is there to pet it.
func (d *Watchdog) Starve() {
	if !d.armed || !d.petting {
		return
	}
	d.turn++
	d.petting = false
	turn := d.turn
	d.at.After(d.Takes, func() {
		if d.turn != turn || !d.at.On {
			return
		}
		d.at.Note("watchdog fires", d.at.ID, "", "")
		if d.at.Now.Sub(d.Needed) > needless {
			d.at.Broken("W11", d.at.ID, "its watchdog resets it, and nothing has needed that for %s or longer", needless)
		}
		d.at.PowerCut()
		d.at.After(d.at.Between(5*time.Second, time.Minute), d.at.PowerOn)
	})
}

// Release disarms it: a leader has said that nothing needs it.
func (d *Watchdog) Release() {
	d.turn++
	d.armed, d.petting, d.until = false, false, time.Time{}
}

// Pause lets a virtual machine stand still with all its clocks, this one's too.
func (d *Watchdog) Pause() {
	d.at.Note("is paused", d.at.ID, "", "")
	d.at.Frozen = true
	d.turn++
}

// off is the host's end: nothing is armed any more.
func (d *Watchdog) off() { d.Release() }
