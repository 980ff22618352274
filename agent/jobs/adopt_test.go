package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

func adoptOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Adopt{Adopt: &berthv1.AdoptCommand{}}
}

func releaseOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Release{Release: &berthv1.ReleaseCommand{}}
}

func persistentOrder(c *berthv1.Command) {
	startOrder(c)
	c.GetStart().Persistent = true
}

// foreign is a domain that runs and is not Berth's.
func (b *bench) foreign() {
	b.Helper()
	b.start(1)
	if err := b.node.Unmark(b.Context(), vmID, 1); err != nil {
		b.Fatal(err)
	}
}

func TestAdopt(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(b *bench)
		outcome berthv1.CommandOutcome
		code    string
		state   berthv1.DomainState
		epoch   uint64 // that it has in the end; 0: it has no mark
	}{
		"a domain that is not Berth's": {func(b *bench) { b.foreign() }, done_, "", running, 5},
		"one that somebody has paused": {func(b *bench) { b.foreign(); b.set(hypervisor.Paused) }, done_, "", paused, 5},
		"one of an earlier epoch":      {func(b *bench) { b.start(4) }, done_, "", running, 5},
		"one that is marked already":   {func(b *bench) { b.start(4); b.edit(5) }, done_, "", running, 5},
		"one of a later epoch":         {func(b *bench) { b.start(4); b.edit(6) }, failed, "other_epoch", running, 6},
		"nothing":                      {func(*bench) {}, failed, "not_found", absentState, 0},
		"one that is off": {
			func(b *bench) { b.foreign(); b.set(hypervisor.Shutoff) }, failed, "not_found", berthv1.DomainState_DOMAIN_STATE_SHUTOFF, 0,
		},
		"another name": {func(b *bench) {
			b.foreign()
			b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Name = "other" })
		}, failed, "invalid_state", running, 0},
		"libvirt away for a moment": {
			func(b *bench) { b.foreign(); b.node.Stop(); time.AfterFunc(5*time.Second, b.node.Restart) }, done_, "", running, 5,
		},
		"the answer is lost": {func(b *bench) {
			b.foreign()
			b.node.Inject("mark", fake.Fault{Hang: true, Effect: true, Times: 1})
		}, done_, "", running, 5},
		"it is being migrated": {func(b *bench) { b.foreign(); b.set(hypervisor.PausedMigration) }, ambiguous, "busy", pausedMigration, 0},
		"the hypervisor forbids it": {func(b *bench) {
			b.foreign()
			b.node.Inject("mark", fake.Fault{Err: hypervisor.ErrDenied})
		}, failed, "denied", running, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				c.prepare(b)
				b.want(b.do(command("op1", 1, 5, adoptOrder)), c.outcome, c.code, c.state)
				if d := b.shows(b.node); d.Epoch != c.epoch || d.Managed != (c.epoch > 0) {
					b.Errorf("got %+v, want epoch %d", d, c.epoch)
				}
				for _, changing := range []string{"destroy", "shutdown", "suspend", "resume"} {
					if b.asked(changing) {
						b.Errorf("the guest was touched: %v", b.node.Calls())
					}
				}
			})
		})
	}
}

func (b *bench) edit(epoch uint64) {
	b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Epoch = epoch })
}

// An agent that dies while it adopts finds out what it did.
func TestAdoptSurvivesACrash(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.foreign()
		b.node.Inject("mark", fake.Fault{Hang: true, Effect: true, Times: 1})
		b.jobs.Do(b.Context(), command("op1", 1, 5, adoptOrder))
		time.Sleep(time.Second)
		b.crash()
		b.want(b.do(command("op1", 1, 5, adoptOrder)), done_, "", running)
		if b.calls("mark") != 1 {
			b.Errorf("calls: %v", b.node.Calls())
		}
		// What is adopted is obeyed for under its epoch, and no earlier one.
		b.want(b.do(command("op2", 1, 4, stopOrder(1))), refused_, "stale_epoch", unseen)
		b.want(b.do(command("op3", 1, 5, stopOrder(10))), done_, "", absentState)
	})
}

func TestRelease(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.want(b.do(command("op1", 1, 5, releaseOrder)), done_, "", running)
		if d := b.shows(b.node); d.Managed || d.Epoch != 0 || d.State != hypervisor.Running {
			b.Errorf("got %+v", d)
		}
		b.want(b.do(command("op2", 1, 5, stopOrder(1))), refused_, "stale_epoch", unseen)
		if b.asked("destroy") || b.asked("shutdown") {
			b.Errorf("calls: %v", b.node.Calls())
		}
		b.want(b.do(command("op3", 1, 6, adoptOrder)), done_, "", running) // and back
		b.want(b.do(command("op4", 1, 6, releaseOrder)), done_, "", running)
	})
}

func TestReleaseOfWhatIsNotHere(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.want(b.do(command("op1", 1, 5, releaseOrder)), failed, "not_found", absentState)
		b.start(6)
		b.want(b.do(command("op2", 1, 7, releaseOrder)), failed, "other_epoch", running)
		if d := b.shows(b.node); d.Epoch != 6 {
			b.Errorf("got %+v", d)
		}
	})
}

func TestRefuse(t *testing.T) {
	inBubble(t, func(b *bench) {
		refuse := func(epoch uint64) error { return b.jobs.Refuse(b.Context(), vmID, epoch) }
		b.start(5)
		if err := refuse(5); !errors.Is(err, hypervisor.ErrInvalidState) {
			b.Errorf("it runs: %v", err)
		}
		b.want(b.do(command("op1", 1, 5, inspectOrder)), done_, "", running)
		b.node.Stop()
		if err := refuse(5); !errors.Is(err, hypervisor.ErrUnavailable) {
			b.Errorf("libvirt is away: %v", err)
		}
		b.node.Restart()
		if err := b.node.Destroy(b.Context(), vmID, 5); err != nil {
			b.Fatal(err)
		}
		if err := refuse(5); err != nil {
			b.Fatal(err)
		}
		b.crash() // it is on the disk
		for _, late := range []func(*berthv1.Command){startOrder, resumeOrder, adoptOrder} {
			b.want(b.do(command("op2", 1, 5, late)), refused_, "stale_epoch", unseen)
		}
		b.want(b.do(command("op3", 1, 6, startOrder)), done_, "", running)
		if refuse(0) == nil {
			b.Error("epoch 0 was refused")
		}
	})
}

// An order that is begun may still bring the VM: then it is not refused, and not said to be gone.
func TestRefuseWhileAStartMayTakeEffect(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.node.Inject("start", fake.Fault{Hang: true, Late: 90 * time.Second, Times: 1})
		b.jobs.Do(b.Context(), command("op1", 1, 5, startOrder))
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		if err := b.jobs.Refuse(ctx, vmID, 5); !errors.Is(err, hypervisor.ErrBusy) {
			b.Errorf("while it is worked on: %v", err)
		}
		cancel()
		b.crash()
		if err := b.jobs.Refuse(b.Context(), vmID, 5); !errors.Is(err, hypervisor.ErrBusy) {
			b.Errorf("after a crash: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if err := b.jobs.Refuse(b.Context(), vmID, 5); !errors.Is(err, hypervisor.ErrInvalidState) {
			b.Errorf("it came: %v", err)
		}
	})
}

// A persistent VM keeps its definition where it is, also when it is started anew there.
func TestPersistentVMsAreStartedOverTheirDefinition(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.want(b.do(command("op1", 1, 5, persistentOrder)), done_, "", running)
		if d := b.shows(b.node); !d.Persistent {
			b.Errorf("got %+v", d)
		}
		off := berthv1.DomainState_DOMAIN_STATE_SHUTOFF
		b.want(b.do(command("op2", 1, 5, stopOrder(10))), done_, "", off)
		b.want(b.do(command("op4", 1, 7, persistentOrder)), done_, "", running)
		if d := b.shows(b.node); !d.Persistent || d.Epoch != 7 {
			b.Errorf("got %+v", d)
		}
		b.want(b.do(command("op5", 1, 7, stopOrder(10))), done_, "", off)
		b.want(b.do(command("op6", 1, 7, persistentOrder)), refused_, "stale_epoch", unseen)
	})
}

// Somebody has libvirt keep a definition of a VM that Berth has started without one: it is started again all the same, and keeps one.
func TestAVMThatSomebodyHasDefinedIsStartedAgain(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(3)
		b.define()
		b.want(b.do(command("op1", 1, 5, startOrder)), done_, "", running)
		if d := b.shows(b.node); !d.Persistent || d.Epoch != 5 {
			b.Errorf("got %+v", d)
		}
	})
}

func TestAVMRunsThoughItsDefinitionCannotBeKept(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.node.Inject("define", fake.Fault{Err: hypervisor.ErrDenied})
		b.want(b.do(command("op1", 1, 5, persistentOrder)), done_, "", running)
		if d := b.shows(b.node); d.Persistent {
			b.Errorf("got %+v", d)
		}
	})
}

func TestSomebodyElsesDefinitionStays(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.foreign()
		b.node.Edit(vmID, func(d *hypervisor.Domain) { d.State, d.Persistent = hypervisor.Shutoff, true })
		b.want(b.do(command("op1", 1, 5, persistentOrder)), failed, "exists", berthv1.DomainState_DOMAIN_STATE_SHUTOFF)
		if b.asked("undefine") {
			b.Errorf("calls: %v", b.node.Calls())
		}
	})
}
