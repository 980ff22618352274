package jobs

import (
	"context"
	"strings"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

func rebootOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Reboot{Reboot: &berthv1.RebootCommand{}}
}

func resetOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Reboot{Reboot: &berthv1.RebootCommand{Force: true}}
}

func TestReboot(t *testing.T) {
	deaf := fake.Guest{IgnoresShutdown: true}
	for name, c := range map[string]struct {
		guest   fake.Guest
		prepare func(b *bench)
		order   func(*berthv1.Command)
		outcome berthv1.CommandOutcome
		code    string
		state   berthv1.DomainState
		says    string
		least   time.Duration
		asked   int
	}{
		"the guest restarts": {fake.Guest{}, func(*bench) {}, rebootOrder, done_, "", running, "", time.Second, 1},
		"it is reset":        {deaf, func(*bench) {}, resetOrder, done_, "", running, "", 0, 0},
		"it does not react": {
			deaf, func(*bench) {}, rebootOrder, failed, "ambiguous", running, "did not restart within 3m0s; it may do so later", rebootLimit, 1,
		},
		"it ends instead": {
			deaf, func(b *bench) {
				time.AfterFunc(20*time.Second, func() { _ = b.node.Destroy(context.Background(), vmID, 5) })
			},
			rebootOrder, failed, "internal", absentState, "has ended, and no restart", 20 * time.Second, 1,
		},
		"it is paused": {
			fake.Guest{}, func(b *bench) { b.set(hypervisor.Paused) }, rebootOrder, refused_, "invalid_state", paused, "it is paused", 0, 0,
		},
		"it has a job": {
			fake.Guest{},
			func(b *bench) { b.node.Edit(vmID, func(d *hypervisor.Domain) { d.JobActive = true }) },
			rebootOrder, refused_, "busy", running, "it is being migrated", 0, 0,
		},
		"it is gone": {
			fake.Guest{},
			func(b *bench) { _ = b.node.Destroy(b.Context(), vmID, 5) },
			rebootOrder, refused_, "not_found", absentState, "it does not run here", 0, 0,
		},
		"another epoch": {
			fake.Guest{},
			func(b *bench) { b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Epoch = 9 }) },
			rebootOrder, refused_, "other_epoch", running, "under epoch 9", 0, 0,
		},
		"libvirt refuses": {
			fake.Guest{},
			func(b *bench) { b.node.Inject("reboot", fake.Fault{Err: hypervisor.ErrDenied}) },
			rebootOrder, refused_, "denied", running, "denied", 0, 1,
		},
		"libvirt is away": {
			fake.Guest{}, func(b *bench) { b.node.Stop() }, rebootOrder, refused_, "unavailable", unknown, "stopped", 0, 0,
		},
		"libvirt goes away and the guest restarts later": {
			deaf, func(b *bench) {
				b.away(5*time.Second, 6*time.Second)
				time.AfterFunc(30*time.Second, func() { _ = b.node.Reboot(context.Background(), vmID, 5, hypervisor.RebootReset) })
			},
			rebootOrder, done_, "", running, "", 30 * time.Second, 1,
		},
		"libvirt goes away and nothing is seen": {
			deaf, func(b *bench) { b.away(5*time.Second, 6*time.Second) },
			rebootOrder, ambiguous, "ambiguous", running, "nobody saw whether", rebootLimit, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.start(5)
				b.node.SetGuest(vmID, c.guest)
				c.prepare(b)
				begun := time.Now()
				r := b.do(command("op1", 1, 5, c.order))
				b.want(r, c.outcome, c.code, c.state)
				if took := time.Since(begun); !strings.Contains(r.GetError(), c.says) || took < c.least || took > c.least+haste+2*time.Second {
					b.Errorf("it took %s, want about %s, and said %q", took, c.least, r.GetError())
				}
				if b.calls("reboot") != c.asked {
					b.Errorf("calls: %v", b.node.Calls())
				}
				again := b.do(command("op1", 1, 5, c.order))
				if !again.GetRepeated() || again.GetOutcome() != c.outcome || b.calls("reboot") != c.asked {
					b.Errorf("the same order again: %v, calls %v", again, b.node.Calls())
				}
			})
		})
	}
}

func TestADomainThatARestartWouldEndIsNotRebooted(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.jobs.Hypervisor = defined{b.node, "<domain type='kvm'><on_reboot>destroy</on_reboot></domain>"}
		r := b.do(command("op1", 1, 5, rebootOrder))
		b.want(r, refused_, "unsupported", running)
		if !strings.Contains(r.GetError(), "on_reboot") || b.asked("reboot") {
			b.Errorf("said %q, calls %v", r.GetError(), b.node.Calls())
		}
		b.jobs.Hypervisor = defined{b.node, "<domain"}
		b.want(b.do(command("op2", 1, 5, rebootOrder)), refused_, "invalid_xml", running)
		b.jobs.Hypervisor = b.node
		b.node.Inject("xml", fake.Fault{Err: hypervisor.ErrUnavailable, Times: 1})
		b.want(b.do(command("op3", 1, 5, rebootOrder)), refused_, "unavailable", running)
	})
}

// defined has one definition for all.
type defined struct {
	*fake.Hypervisor
	xml string
}

// XML implements hypervisor.Hypervisor.
func (d defined) XML(context.Context, string) (string, error) { return d.xml, nil }

// The agent dies while the guest shuts down. Its next life asks nothing, and sees the restart if it comes.
func TestARebootGoesOnWithoutAskingTwice(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(b *bench)
		later     func(b *bench)
		outcome   berthv1.CommandOutcome
		code      string
		state     berthv1.DomainState
	}{
		"it restarts afterwards": {
			func(*bench) {}, func(b *bench) {
				time.AfterFunc(time.Minute, func() { _ = b.node.Reboot(context.Background(), vmID, 5, hypervisor.RebootReset) })
			}, done_, "", running,
		},
		"it has restarted meanwhile": {
			func(b *bench) { _ = b.node.Reboot(b.Context(), vmID, 5, hypervisor.RebootReset) }, func(*bench) {}, ambiguous, "ambiguous", running,
		},
		"it ends afterwards": {
			func(*bench) {}, func(b *bench) {
				time.AfterFunc(time.Minute, func() { _ = b.node.Destroy(context.Background(), vmID, 5) })
			}, failed, "internal", absentState,
		},
		"it ended meanwhile": {
			func(b *bench) { _ = b.node.Destroy(b.Context(), vmID, 5) }, func(*bench) {}, failed, "internal", absentState,
		},
		"libvirt is away then": {
			func(b *bench) { b.node.Inject("lookup", fake.Fault{Err: hypervisor.ErrUnavailable}) },
			func(b *bench) { time.AfterFunc(2*patience, func() { b.node.Heal("lookup") }) }, ambiguous, "ambiguous", running,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.start(5)
				b.node.SetGuest(vmID, fake.Guest{IgnoresShutdown: true})
				order := command("op1", 1, 5, rebootOrder)
				b.jobs.Do(b.Context(), order)
				time.Sleep(10 * time.Second)
				if err := b.jobs.Close(); err != nil {
					t.Fatal(err)
				}
				c.meanwhile(b)
				b.open()
				c.later(b)
				b.want(b.do(order), c.outcome, c.code, c.state)
				if b.calls("reboot") != 1 {
					b.Errorf("calls: %v", b.node.Calls())
				}
			})
		})
	}
}

// The journal takes the order and no more: nothing is asked of the guest.
func TestARebootThatCannotBeJournalledIsNotAsked(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		entries := 0
		b.jobs.journal.storage = fragile{b.jobs.journal.storage, func() bool { entries++; return entries > 1 }}
		order := command("op1", 1, 5, rebootOrder)
		b.want(b.do(order), refused_, "journal", unseen)
		if b.asked("reboot") {
			b.Error("the guest was asked")
		}
		b.jobs.journal.storage = b.jobs.journal.storage.(fragile).Storage
		b.want(b.do(order), done_, "", running)
	})
}
