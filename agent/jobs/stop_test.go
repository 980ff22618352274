package jobs

import (
	"errors"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestStop(t *testing.T) {
	force := func(c *berthv1.Command) { c.Action = &berthv1.Command_Stop{Stop: &berthv1.StopCommand{Force: true}} }
	for name, c := range map[string]struct {
		guest   fake.Guest
		prepare func(b *bench)
		order   func(*berthv1.Command)
		least   time.Duration // it takes this long
		most    time.Duration
		destroy bool
	}{
		"guest powers off": {fake.Guest{}, func(*bench) {}, stopOrder(90), time.Second, 2 * time.Second, false},
		"guest ignores it": {fake.Guest{IgnoresShutdown: true}, func(*bench) {}, stopOrder(30), 30 * time.Second, 31 * time.Second, true},
		"force":            {fake.Guest{}, func(*bench) {}, force, 0, time.Second, true},
		"crashed":          {fake.Guest{}, func(b *bench) { b.set(hypervisor.Crashed) }, stopOrder(30), 0, time.Second, true},
		"it cannot be asked": {
			fake.Guest{},
			func(b *bench) { b.node.Inject("shutdown", fake.Fault{Err: errors.New("no ACPI")}) }, stopOrder(5),
			5 * time.Second, 6 * time.Second, true,
		},
		"gone already": {
			fake.Guest{}, func(b *bench) { _ = b.node.Destroy(b.Context(), vmID, 5) }, stopOrder(30), 0, time.Second, true,
		},
		"off already": {fake.Guest{}, func(b *bench) { b.define() }, stopOrder(30), 0, time.Second, false},
		"libvirt away meanwhile": {
			fake.Guest{IgnoresShutdown: true},
			func(b *bench) { b.away(3*time.Second, 6*time.Second) }, stopOrder(5), 5 * time.Second,
			20 * time.Second, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.start(5)
				b.node.SetGuest(vmID, c.guest)
				c.prepare(b)
				begun := time.Now()
				r := b.do(command("op1", 1, 5, c.order))
				took := time.Since(begun)
				if r.GetOutcome() == ambiguous { // libvirt was away in the wrong moment: the coordinator asks anew
					r = b.do(command("op1", 2, 5, c.order))
				}
				if r.GetOutcome() != done_ || r.GetDomain().GetState() == running {
					b.Errorf("got %+v", r)
				}
				if took < c.least || took > c.most {
					b.Errorf("it took %s, want %s to %s", took, c.least, c.most)
				}
				if b.asked("destroy") != c.destroy {
					b.Errorf("calls: %v", b.node.Calls())
				}
			})
		})
	}
}

func (b *bench) set(state hypervisor.State) {
	b.node.Edit(vmID, func(d *hypervisor.Domain) { d.State = state })
}

// away takes libvirt away for a while.
func (b *bench) away(from, to time.Duration) {
	time.AfterFunc(from, b.node.Stop)
	time.AfterFunc(to, b.node.Restart)
}

func TestStopLeavesOtherEpochsAlone(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Epoch = 4 }) // as if somebody else had started it
		b.want(b.do(command("op1", 1, 5, stopOrder(1))), failed, "other_epoch", running)
		if b.asked("shutdown") || b.asked("destroy") {
			b.Errorf("calls: %v", b.node.Calls())
		}
	})
}

// What somebody's migration has left is ended, and its guest may run where that went: the order does not say that it ended here.
func TestStopOfWhatAMigrationHasLeft(t *testing.T) {
	for name, left := range map[string]bool{"it runs here": false, "its source was left here": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.start(5)
				if left {
					b.set(hypervisor.PausedMigration)
				}
				result := b.do(command("op1", 1, 5, stopOrder(1)))
				b.want(result, done_, "", absentState)
				if result.GetDomain().GetMissing() != left {
					b.Errorf("nobody has seen how it left: %t", !left)
				}
			})
		})
	}
}

func TestStopThatNeverSucceeds(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.node.Inject("destroy", fake.Fault{Err: hypervisor.ErrBusy})
		b.node.SetGuest(vmID, fake.Guest{IgnoresShutdown: true})
		b.want(b.do(command("op1", 1, 5, stopOrder(1))), failed, "busy", running)
	})
}

func TestLibvirtAwayBeforeAnythingIsTried(t *testing.T) {
	for name, order := range map[string]func(*berthv1.Command){"stop": stopOrder(1), "migrate": migrateOrder} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.start(5)
				b.node.Stop()
				begun := time.Now()
				b.want(b.do(command("op1", 1, 5, order)), refused_, "unavailable", unknown)
				if took := time.Since(begun); took > haste+time.Second {
					b.Errorf("it took %s", took)
				}
				// But what an earlier life began may have happened.
				b.jobs.Do(b.Context(), command("op2", 1, 5, order))
				time.Sleep(time.Second)
				b.crash()
				b.want(b.do(command("op2", 1, 5, order)), ambiguous, "unavailable", unknown)
			})
		})
	}
}
