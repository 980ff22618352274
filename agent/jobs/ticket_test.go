package jobs

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

// brought has the VM come from an agent on n2, paused under an epoch, as a migration brings it.
func (b *bench) brought(epoch uint64) {
	b.Helper()
	other, err := Open(Config{Journal: b.journal + "-peer", Hypervisor: b.peer, NodeID: "n2", VirtType: "auto", Logger: b.jobs.Logger})
	if err != nil {
		b.Fatal(err)
	}
	for _, order := range []*berthv1.Command{
		command("op-boot", 1, epoch-1, startOrder),
		command("op-move", 2, epoch-1, func(c *berthv1.Command) {
			c.Action = &berthv1.Command_Migrate{Migrate: &berthv1.MigrateCommand{
				TargetUri: "qemu+tls://n1/system", TargetNode: "n1", TargetEpoch: epoch,
			}}
		}),
	} {
		other.Do(b.Context(), order)
		for answered := false; !answered; {
			select {
			case r := <-other.Results():
				if r.GetOutcome() != done_ {
					b.Fatalf("%s: %s", r.GetOutcome(), r.GetError())
				}
				answered = true
			case <-other.Progress():
			}
		}
	}
	if err := other.Close(); err != nil {
		b.Fatal(err)
	}
	if d := b.shows(b.node); d.State != hypervisor.Paused || d.Epoch != epoch {
		b.Fatalf("arrived as %+v", d)
	}
}

func TestAGuestWithATicketIsResumedThoughTheJournalIsFull(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.want(b.do(command("op-move", 1, 6, prepareOrder())), done_, "", absentState)
		b.brought(6)
		b.full.Store(true)
		b.want(b.do(command("op-move", 3, 6, resumeOrder)), done_, "", running)
		// Its owner pauses it. The same order, come late, lets it pause.
		if err := b.node.Suspend(b.Context(), vmID, 6); err != nil {
			b.Fatal(err)
		}
		b.want(b.do(command("op-move", 3, 6, resumeOrder)), done_, "", running)
		if d := b.shows(b.node); d.State != hypervisor.Paused {
			b.Errorf("an answer was given twice, and the guest is %s", d.State)
		}
		// With room the answer is written, and outlives the agent.
		b.full.Store(false)
		time.Sleep(time.Minute)
		b.crash()
		b.want(b.do(command("op-move", 3, 6, resumeOrder)), done_, "", running)
		if d := b.shows(b.node); d.State != hypervisor.Paused {
			b.Errorf("an answer was forgotten, and the guest is %s", d.State)
		}
	})
}

func TestATicketIsForOneOperationAndEpoch(t *testing.T) {
	for name, order := range map[string]*berthv1.Command{
		"none":               command("op-other", 3, 6, resumeOrder),
		"another epoch":      command("op-move", 3, 7, resumeOrder),
		"an older leader":    term(command("op-move", 3, 6, resumeOrder), 0),
		"not what was asked": command("op-move", 3, 6, stopOrder(1)),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.want(b.do(command("op-move", 1, 6, prepareOrder())), done_, "", absentState)
				b.brought(6)
				b.full.Store(true)
				if answer := b.do(order); answer.GetOutcome() != refused_ {
					b.Errorf("%s: %s", answer.GetOutcome(), answer.GetError())
				}
				if d := b.shows(b.node); d.State != hypervisor.Paused {
					b.Errorf("the guest is %s", d.State)
				}
			})
		})
	}
}

func TestAJournalThatTakesNoTicketPromisesNothing(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.full.Store(true)
		b.want(b.do(command("op-move", 1, 6, prepareOrder())), refused_, "journal", unseen)
		b.full.Store(false)
		b.brought(6)
		b.full.Store(true)
		b.want(b.do(command("op-move", 3, 6, resumeOrder)), refused_, "journal", unseen)
	})
}

// A full disk takes a small entry now and then. That is no room.
func TestASmallEntryThatIsTakenIsNoRoom(t *testing.T) {
	full := errors.New("no space left on device")
	var h health
	for _, step := range []struct {
		err, is error
		try     bool
	}{
		{nil, nil, false}, {full, full, true}, {nil, full, false}, {nil, nil, true}, {full, full, false}, {nil, full, false}, {nil, nil, true},
	} {
		if h.note(step.err, step.try); !errors.Is(h.err, step.is) || h.err == nil && step.is != nil {
			t.Fatalf("after %+v: %v", step, h.err)
		}
	}
}

// A journal that nothing is written to is tried now and then, so that a full disk is known before a guest comes.
func TestAnAgentSaysThatItsJournalAils(t *testing.T) {
	inBubble(t, func(b *bench) {
		time.Sleep(2 * probeIdle)
		if err := b.jobs.Ailing(); err != nil {
			b.Errorf("a sound journal: %v", err)
		}
		b.full.Store(true)
		time.Sleep(probeIdle + 2*probeEvery)
		synctest.Wait()
		err := b.jobs.Ailing()
		if err == nil || !strings.Contains(err.Error(), "its agent's journal takes no entry: no space left on device: free space on its disk") {
			b.Errorf("a full disk: %v", err)
		}
		b.full.Store(false)
		time.Sleep(2 * probeEvery)
		synctest.Wait()
		if err := b.jobs.Ailing(); err != nil {
			b.Errorf("with room: %v", err)
		}
	})
}
