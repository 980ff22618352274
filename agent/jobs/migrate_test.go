package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestMigrate(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		r := b.do(command("op1", 1, 5, migrateOrder))
		b.want(r, done_, "", absentState)
		if m := r.GetMigration(); m.GetDataProcessedBytes() < 1<<29 || m.GetElapsedSeconds() <= 0 || m.DowntimeSeconds == nil {
			b.Errorf("figures: %+v", m)
		}
		if d := b.shows(b.peer); d.State != hypervisor.Paused || d.Epoch != 6 || d.OperationID != "op1" {
			b.Errorf("on the target: %+v", d)
		}
		// The source has let go of the old epoch.
		b.want(b.do(command("op2", 1, 5, startOrder)), refused_, "stale_epoch", unseen)
	})
}

// What a node reports of itself becomes part of another node's orders, whose libvirt is root there.
func TestAMigrationToWhatIsNoNodeOpensNothing(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		for i, uri := range []string{
			"qemu+ext:///system?command=/tmp/evil", "qemu+tcp://n2/system", "qemu+ssh://n2/system", "qemu+tls://n2/system?no_verify=1",
			"qemu+tls://n2/session", "qemu+tls://127.0.0.1/system",
		} {
			r := b.do(command(fmt.Sprintf("op%d", i+1), 1, 5, func(c *berthv1.Command) {
				migrateOrder(c)
				c.GetMigrate().TargetUri = uri
			}))
			b.want(r, failed, "invalid", running)
		}
		if d := b.shows(b.node); d.State != hypervisor.Running || d.JobActive {
			b.Errorf("after orders to nowhere: %+v", d)
		}
	})
}

// lingering is a hypervisor that clears up for a while behind a guest that has left.
type lingering struct {
	hypervisor.Hypervisor
	over time.Time
}

func (l *lingering) Lookup(ctx context.Context, uuid string) (hypervisor.Domain, error) {
	domain, err := l.Hypervisor.Lookup(ctx, uuid)
	if errors.Is(err, hypervisor.ErrNotFound) && time.Now().Before(l.over) {
		return hypervisor.Domain{UUID: uuid, State: hypervisor.Absent, JobActive: true}, nil
	}
	return domain, err
}

// The target need not wait for what the hypervisor does behind a guest that has left. Whoever wants it back has to.
func TestMigrateIsAnsweredBeforeTheHypervisorHasClearedUp(t *testing.T) {
	for name, again := range map[string]uint64{"the order that is refused": 5, "an order of another epoch": 9} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.start(5)
				slow := &lingering{b.node, time.Now().Add(30 * time.Second)}
				if err := b.jobs.Close(); err != nil {
					b.Fatal(err)
				}
				var err error
				b.jobs, err = Open(Config{Journal: b.journal, Hypervisor: slow, NodeID: "n1", VirtType: "auto", Logger: hclog.NewNullLogger()})
				if err != nil {
					b.Fatal(err)
				}
				r := b.do(command("op1", 1, 5, migrateOrder))
				b.want(r, done_, "", absentState)
				if !r.GetDomain().GetJobActive() || !time.Now().Before(slow.over) {
					b.Errorf("answered at %s, cleared up at %s: %v", time.Now(), slow.over, r)
				}
				r = b.do(command("op1", 2, again, discardOrder))
				if again == 5 {
					b.want(r, refused_, "stale_epoch", absentState)
				} else {
					b.want(r, done_, "", absentState)
				}
				if r.GetDomain().GetJobActive() || time.Now().Before(slow.over) {
					b.Errorf("answered at %s, cleared up at %s: %v", time.Now(), slow.over, r)
				}
			})
		})
	}
}

func TestMigrateTellsOfItsProgress(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.node.LinkBPS = 100 << 20 // about 10 s
		b.jobs.Do(b.Context(), command("op1", 3, 5, migrateOrder))
		var reports int
		var last int64
		for ended := false; !ended; {
			select {
			case p := <-b.jobs.Progress():
				if p.GetOperationId() != "op1" || p.GetStep() != 3 || p.GetStats().GetDataProcessedBytes() <= last {
					b.Errorf("progress: %+v after %d bytes", p, last)
				}
				last = p.GetStats().GetDataProcessedBytes()
				reports++
			case <-b.jobs.Results():
				ended = true
			}
		}
		if reports < 8 || reports > 11 {
			b.Errorf("%d reports in 10 s", reports)
		}
	})
}

func TestMigrateThatDoesNotGoThrough(t *testing.T) {
	hot := func(b *bench) { b.node.SetGuest(vmID, fake.Guest{DirtyBPS: 2 << 30}) }
	within := func(seconds float64) func(*berthv1.Command) {
		return func(c *berthv1.Command) {
			migrateOrder(c)
			c.GetMigrate().DeadlineSeconds = seconds
		}
	}
	for name, c := range map[string]struct {
		prepare func(b *bench)
		order   func(*berthv1.Command)
		outcome berthv1.CommandOutcome
		code    string
		state   berthv1.DomainState
		says    string
	}{
		"the guest writes too fast": {hot, within(20), failed, "timeout", running, "not done after 20s"},
		"nobody knows how far it is": {
			func(b *bench) { hot(b); b.node.Inject("job", fake.Fault{Err: hypervisor.ErrBusy}) }, within(20), failed, "timeout",
			running, "not done after 20s",
		},
		"no deadline, by the size": {hot, migrateOrder, failed, "timeout", running, "not done after 2m30s"},
		"target unreachable": {
			func(b *bench) { b.wire.Cut("n1", "n2", true) }, migrateOrder, failed, "internal", running, "cannot connect",
		},
		"target full": {func(b *bench) { b.peer.MemoryBytes = 1 << 20 }, migrateOrder, failed, "no_memory", running, "n2"},
		"link cut while copying": {
			func(b *bench) { b.slow(); time.AfterFunc(3*time.Second, func() { b.wire.Cut("n1", "n2", true) }) }, migrateOrder, failed,
			"internal", running, "link",
		},
		"it does not run here": {
			func(b *bench) { _ = b.node.Destroy(b.Context(), vmID, 5) }, migrateOrder, failed, "not_found", absentState, "does not run here",
		},
		"its owner paused it": {func(b *bench) { b.set(hypervisor.Paused) }, migrateOrder, refused_, "invalid_state", paused, "paused"},
		"another epoch runs": {
			func(b *bench) { b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Epoch = 9 }) }, migrateOrder, refused_, "other_epoch", running,
			"epoch 9",
		},
		"the last message got lost": {
			func(b *bench) { b.node.Inject("finish", fake.Fault{Err: errors.New("lost")}) }, migrateOrder, ambiguous, "internal",
			pausedMigration, "lost",
		},
		"gone, but with an error": {
			func(b *bench) { b.node.Inject("finish", fake.Fault{Err: errors.New("odd"), Effect: true}) }, migrateOrder, ambiguous,
			"internal", absentState, "odd",
		},
		"libvirt away and back": {
			func(b *bench) { b.slow(); b.away(3*time.Second, 8*time.Second) }, migrateOrder, ambiguous, "ambiguous", absentState, "unseen",
		},
		"libvirt away and rolled back": {
			func(b *bench) { b.slow(); b.away(3*time.Second, 8*time.Second); b.break_(5 * time.Second) }, migrateOrder, failed, "aborted",
			running, "and the guest stayed",
		},
		"libvirt away for good": {
			func(b *bench) { b.slow(); time.AfterFunc(3*time.Second, b.node.Stop) }, migrateOrder, ambiguous, "ambiguous", unknown, "broke",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.start(5)
				c.prepare(b)
				r := b.do(command("op1", 1, 5, c.order))
				b.want(r, c.outcome, c.code, c.state)
				if !strings.Contains(r.GetError(), c.says) {
					b.Errorf("it says %q, want %q in it", r.GetError(), c.says)
				}
				b.node.Restart()
				if r.GetOutcome() != ambiguous && c.state == running {
					if d := b.shows(b.peer); d.State != hypervisor.Absent {
						b.Errorf("a leftover on the target: %+v", d)
					}
					// The epoch stays with the source.
					b.want(b.do(command("op2", 1, r.GetDomain().GetEpoch(), inspectOrder)), done_, "", running)
				}
			})
		})
	}
}

// slow makes a migration take about 16 s.
func (b *bench) slow() { b.node.LinkBPS = 64 << 20 }

// break_ makes the copy fail after a while.
func (b *bench) break_(after time.Duration) {
	time.AfterFunc(after, func() { b.node.Inject("copy", fake.Fault{Err: errors.New("the copy broke")}) })
}

func TestMigrateCancelled(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.slow()
		b.jobs.Do(b.Context(), command("op1", 1, 5, migrateOrder))
		time.Sleep(3 * time.Second)
		if ids := b.jobs.Running(); len(ids) != 1 || ids[0] != "op1" {
			b.Errorf("running: %v", ids)
		}
		begun := time.Now()
		b.jobs.Cancel("op1", 1)
		b.want(b.answer(), cancelled, "aborted", running)
		if took := time.Since(begun); took > 5*time.Second {
			b.Errorf("it took %s", took)
		}
		if d := b.shows(b.peer); d.State != hypervisor.Absent {
			b.Errorf("on the target: %+v", d)
		}
	})
}

// An order that comes again for a copy that was given up begins nothing: its journal may have taken no entry until now, and the target
// may hear no leader any more.
func TestACopyThatWasGivenUpIsNotBegun(t *testing.T) {
	givenUp := func(c *berthv1.Command) {
		migrateOrder(c)
		c.GetMigrate().GivenUp = true
	}
	inBubble(t, func(b *bench) {
		b.start(5)
		b.slow()
		begun := time.Now()
		b.jobs.Do(b.Context(), command("op1", 1, 5, givenUp))
		b.want(b.answer(), cancelled, "aborted", running)
		b.jobs.Do(b.Context(), command("op2", 1, 5, migrateOrder))
		time.Sleep(3 * time.Second)
		b.jobs.Do(b.Context(), command("op2", 1, 5, givenUp))
		b.want(b.answer(), cancelled, "aborted", running)
		if took := time.Since(begun); took > 8*time.Second {
			b.Errorf("it took %s", took)
		}
		if d := b.shows(b.peer); d.State != hypervisor.Absent {
			b.Errorf("on the target: %+v", d)
		}
	})
}

func TestCancelOfSomethingElse(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.jobs.Cancel("nobody", 1)
		b.start(5)
		b.jobs.Do(b.Context(), command("op1", 1, 5, stopOrder(30)))
		b.jobs.Cancel("op1", 1)
		b.want(b.answer(), done_, "", absentState)
	})
}

func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(b *bench)
		epoch   uint64
		outcome berthv1.CommandOutcome
		code    string
		state   berthv1.DomainState
	}{
		"paused":             {func(*bench) {}, 5, done_, "", running},
		"runs already":       {func(b *bench) { b.set(hypervisor.Running) }, 5, done_, "", running},
		"paused, mid-way":    {func(b *bench) { b.set(hypervisor.PausedMigration) }, 5, done_, "", running},
		"gone":               {func(b *bench) { _ = b.node.Destroy(b.Context(), vmID, 5) }, 5, failed, "not_found", absentState},
		"another epoch":      {func(*bench) {}, 6, ambiguous, "other_epoch", paused},
		"another epoch runs": {func(b *bench) { b.set(hypervisor.Running) }, 6, ambiguous, "other_epoch", running},
		"crashed":            {func(b *bench) { b.set(hypervisor.Crashed) }, 5, failed, "invalid_state", crashedState},
		"libvirt away, back": {func(b *bench) { b.away(0, 20*time.Second); time.Sleep(time.Millisecond) }, 5, done_, "", running},
		"libvirt away":       {func(b *bench) { b.node.Stop() }, 5, ambiguous, "unavailable", unknown},
		"refused at first":   {func(b *bench) { b.node.Inject("resume", fake.Fault{Err: hypervisor.ErrBusy, Times: 5}) }, 5, done_, "", running},
		"answer lost": {
			func(b *bench) { b.node.Inject("resume", fake.Fault{Hang: true, Effect: true, Times: 1}) }, 5, done_, "", running,
		},
		"job not over, later": {func(b *bench) { b.job(5 * time.Second) }, 5, done_, "", running},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.arrive(5)
				c.prepare(b)
				r := b.do(command("op1", 1, c.epoch, resumeOrder))
				b.want(r, c.outcome, c.code, c.state)
				if r.GetOutcome() == done_ && r.GetMigration().DowntimeSeconds == nil {
					b.Errorf("no figures: %+v", r.GetMigration())
				}
			})
		})
	}
}

// job lets a migration job look active for a while.
func (b *bench) job(d time.Duration) {
	b.node.Edit(vmID, func(d *hypervisor.Domain) { d.JobActive = true })
	time.AfterFunc(d, func() { b.node.Edit(vmID, func(d *hypervisor.Domain) { d.JobActive = false }) })
}

func TestDiscard(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(b *bench)
		epoch   uint64
		outcome berthv1.CommandOutcome
		code    string
		state   berthv1.DomainState
		destroy bool
	}{
		"paused":              {func(*bench) {}, 5, done_, "", absentState, true},
		"paused, mid-way":     {func(b *bench) { b.set(hypervisor.PausedMigration) }, 5, done_, "", absentState, true},
		"gone":                {func(b *bench) { b.node.Crash(); b.node.Restart() }, 5, done_, "", absentState, false},
		"it runs":             {func(b *bench) { b.set(hypervisor.Running) }, 5, failed, "invalid_state", running, false},
		"it has crashed":      {func(b *bench) { b.set(hypervisor.Crashed) }, 5, failed, "invalid_state", crashedState, false},
		"another epoch":       {func(*bench) {}, 6, done_, "", paused, false},
		"another one running": {func(b *bench) { b.set(hypervisor.Running) }, 6, done_, "", running, false},
		"job not over, later": {func(b *bench) { b.job(5 * time.Second) }, 5, done_, "", absentState, true},
		"job never over":      {func(b *bench) { b.job(time.Hour / 2) }, 5, ambiguous, "busy", paused, false},
		"libvirt away, back":  {func(b *bench) { b.away(0, 20*time.Second); time.Sleep(time.Millisecond) }, 5, done_, "", absentState, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.arrive(5)
				c.prepare(b)
				b.want(b.do(command("op1", 1, c.epoch, discardOrder)), c.outcome, c.code, c.state)
				if b.asked("destroy") != c.destroy {
					b.Errorf("calls: %v", b.node.Calls())
				}
			})
		})
	}
}

// What an operation had to leave behind is discarded as a task, once.
func TestDiscardAsATask(t *testing.T) {
	inBubble(t, func(b *bench) {
		discard := func(epoch uint64) error { return b.jobs.Discard(b.Context(), vmID, epoch) }
		b.arrive(5)
		if err := discard(4); err != nil {
			b.Errorf("another epoch: %v", err)
		}
		b.set(hypervisor.Running)
		if err := discard(5); !errors.Is(err, hypervisor.ErrInvalidState) {
			b.Errorf("it runs: %v", err)
		}
		b.set(hypervisor.Paused)
		b.node.Stop()
		if err := discard(5); !errors.Is(err, hypervisor.ErrUnavailable) {
			b.Errorf("libvirt is away: %v", err)
		}
		b.node.Restart()
		if b.asked("destroy") {
			b.Fatalf("calls: %v", b.node.Calls())
		}
		if err := discard(5); err != nil || !b.asked("destroy") {
			b.Errorf("paused: %v, calls: %v", err, b.node.Calls())
		}
		b.crash() // what it promised is on the disk
		b.want(b.do(command("op2", 1, 5, resumeOrder)), refused_, "stale_epoch", unseen)
		if err := discard(5); err != nil {
			b.Errorf("again: %v", err)
		}
		if discard(0) == nil {
			b.Error("epoch 0 was discarded")
		}
	})
}

// What is left of a crashed guest makes way for its restart, and nothing else does.
func TestACrashedGuestIsEndedAsATask(t *testing.T) {
	inBubble(t, func(b *bench) {
		end := func(epoch uint64) error { return b.jobs.EndCrashed(b.Context(), vmID, epoch) }
		b.arrive(5)
		for _, state := range []hypervisor.State{hypervisor.Running, hypervisor.Paused} {
			if b.set(state); !errors.Is(end(5), hypervisor.ErrInvalidState) {
				b.Errorf("one that is %s was ended", state)
			}
		}
		if b.set(hypervisor.Crashed); !errors.Is(end(4), hypervisor.ErrInvalidState) || b.asked("destroy") {
			b.Errorf("one of another epoch was ended: %v", b.node.Calls())
		}
		if err := end(5); err != nil || !b.asked("destroy") {
			b.Errorf("crashed: %v, calls: %v", err, b.node.Calls())
		}
		b.want(b.do(command("op2", 1, 5, resumeOrder)), refused_, "stale_epoch", unseen)
		if err := end(5); err != nil {
			b.Errorf("again: %v", err)
		}
	})
}

// A discard that did not succeed is tried anew when it is asked for again, because it is asked for until it has.
func TestDiscardIsTriedAnew(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.arrive(5)
		b.node.Inject("destroy", fake.Fault{Err: hypervisor.ErrBusy})
		b.want(b.do(command("op1", 1, 5, discardOrder)), ambiguous, "busy", paused)
		b.node.Heal("destroy")
		b.want(b.do(command("op1", 1, 5, discardOrder)), done_, "", absentState)
	})
}
