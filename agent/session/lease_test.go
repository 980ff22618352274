package session

import (
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// dog remembers what it was told.
type dog struct {
	until    time.Time
	released int
	asleep   time.Duration
}

func (d *dog) Lease(until time.Time) { d.until = until }
func (d *dog) Release()              { d.released++ }
func (d *dog) Armed() time.Duration  { return time.Minute }
func (d *dog) Asleep() time.Duration { return d.asleep }

// A lease lasts from when its report was sent, however long it was on its way, and one for a report that was never sent is none.
func TestALeaseLastsFromItsReport(t *testing.T) {
	d := &dog{}
	c := &connection{Session: New(Config{Watchdog: d})}
	begun := time.Now()
	for i := range uint64(100) {
		c.samples.note(2*i+1, begun.Add(time.Duration(i)*time.Second), d.asleep)
	}
	c.leased(&berthv1.Lease{Seconds: 60, Sequence: 181})
	if want := begun.Add(90*time.Second + time.Minute); !d.until.Equal(want) {
		t.Errorf("it lasts until %s, want %s", d.until, want)
	}
	d.asleep = 20 * time.Second // since the reports: the clock of the report has stood for as long
	c.leased(&berthv1.Lease{Seconds: 60, Sequence: 181})
	if want := begun.Add(70*time.Second + time.Minute); !d.until.Equal(want) {
		t.Errorf("after a sleep it lasts until %s, want %s", d.until, want)
	}
	d.until = time.Time{}
	for _, sequence := range []uint64{0, 1, 182, 1000} { // none, long forgotten, no sample, not sent yet
		c.leased(&berthv1.Lease{Seconds: 60, Sequence: sequence})
	}
	if !d.until.IsZero() || d.released != 0 {
		t.Errorf("a lease for no report lasts until %s, %d releases", d.until, d.released)
	}
	c.leased(&berthv1.Lease{})
	if d.released != 1 || c.armed() != time.Minute {
		t.Errorf("%d releases, armed %s", d.released, c.armed())
	}
	without := &connection{Session: New(Config{})}
	without.leased(&berthv1.Lease{Seconds: 60, Sequence: 1})
	if without.armed() != 0 {
		t.Error("a node without a watchdog says that it has one")
	}
}
