package jobs

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/errorcode"
	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

func term(c *berthv1.Command, term uint64) *berthv1.Command {
	c.Term = term
	return c
}

func TestOlderOrdersAreRefused(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.want(b.do(term(command("op1", 1, 5, startOrder), 7)), done_, "", running)

		b.want(b.do(term(command("op2", 1, 5, stopOrder(1)), 6)), refused_, "stale_term", unseen)
		b.want(b.do(term(command("op3", 1, 4, stopOrder(1)), 7)), refused_, "stale_epoch", unseen)
		b.crash() // it is on the disk
		b.want(b.do(term(command("op2", 1, 5, stopOrder(1)), 6)), refused_, "stale_term", unseen)
		if b.asked("shutdown") || b.asked("destroy") {
			b.Error("an old order was obeyed")
		}
		// A refusal is not an answer: the same order from a newer leader is carried out.
		b.want(b.do(term(command("op2", 1, 5, stopOrder(10)), 8)), done_, "", absentState)
		// What was answered before is answered again, whoever asks: nothing is done for it.
		b.want(b.do(term(command("op1", 1, 5, startOrder), 6)), done_, "", running)
		// After the stop its epoch is over.
		b.want(b.do(term(command("op4", 1, 5, startOrder), 8)), refused_, "stale_epoch", unseen)
		b.want(b.do(term(command("op5", 1, 6, startOrder), 8)), done_, "", running)
	})
}

// A leader is followed from its welcome on, before it has ordered anything, and over the agent's restart.
func TestALeaderThatWasSucceededIsNotFollowed(t *testing.T) {
	inBubble(t, func(b *bench) {
		for _, term := range []uint64{7, 7, 9} {
			if err := b.jobs.Follow(term); err != nil {
				b.Errorf("term %d: %v", term, err)
			}
		}
		b.crash()
		if err := b.jobs.Follow(8); !errors.Is(err, errorcode.ErrStaleTerm) {
			b.Errorf("term 8 after term 9: %v", err)
		}
		b.want(b.do(term(command("op1", 1, 5, startOrder), 8)), refused_, "stale_term", unseen)
		b.want(b.do(term(command("op1", 1, 5, startOrder), 9)), done_, "", running)
	})
}

// An order that an earlier life began is as old as it was: what was obeyed since counts against it too.
func TestOldIntentIsRefused(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.node.Inject("lookup", fake.Fault{Hang: true})
		old := command("op1", 1, 5, startOrder)
		b.jobs.Do(b.Context(), old)
		time.Sleep(time.Second)
		b.crash()
		b.node.Heal("lookup")
		b.want(b.do(term(command("op2", 1, 6, startOrder), 2)), done_, "", running)
		b.want(b.do(old), refused_, "stale_term", unseen)
		b.want(b.do(term(old, 2)), refused_, "stale_epoch", unseen)
	})
}

func TestCommandsOfOneVMWaitForEachOther(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.node.SetGuest(vmID, fake.Guest{IgnoresShutdown: true})
		b.jobs.Do(b.Context(), command("op1", 1, 5, stopOrder(20)))
		time.Sleep(time.Second)
		b.jobs.Do(b.Context(), command("op2", 1, 6, startOrder))
		time.Sleep(time.Second)
		b.want(b.do(command("op3", 1, 6, inspectOrder)), done_, "", running) // a look waits for nobody
		b.want(b.answer(), done_, "", absentState)
		b.want(b.answer(), done_, "", running)
		if d := b.shows(b.node); d.Epoch != 6 {
			b.Errorf("got %+v", d)
		}
	})
}

func TestMalformedCommands(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Managed, d.Epoch = false, 0 })
		b.want(b.do(command("op1", 1, 0, stopOrder(0))), refused_, "malformed", unseen)
		b.want(b.do(command("", 1, 5, stopOrder(0))), refused_, "malformed", unseen)
		if b.asked("destroy") {
			b.Error("a domain that is not Berth's was destroyed")
		}
		b.want(b.do(command("op1", 1, 5, func(*berthv1.Command) {})), refused_, "unsupported", unseen)
	})
}

func TestJournalOfTwoAgents(t *testing.T) {
	inBubble(t, func(b *bench) {
		_, err := Open(Config{Journal: b.journal, Hypervisor: b.node, Logger: hclog.NewNullLogger()})
		if err == nil || !strings.Contains(err.Error(), "another berth-agent runs") {
			b.Errorf("got %v", err)
		}
	})
}

func TestDamagedJournal(t *testing.T) {
	path := t.TempDir() + "/journal.db"
	if err := os.WriteFile(path, []byte(strings.Repeat("not a journal ", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Config{Journal: path, Logger: hclog.NewNullLogger()})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move the file away") {
		t.Errorf("got %v, want the file named and what to do", err)
	}
}

func TestJournalForgetsWhatIsOldButNotTheEpochs(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.want(b.do(command("op1", 1, 5, startOrder)), done_, "", running)
		b.want(b.do(command("op2", 1, 5, stopOrder(10))), done_, "", absentState)
		time.Sleep(keepAnswers + pruneEvery + time.Minute)
		if before, err := b.jobs.journal.answered("op1", 1); before != nil || err != nil {
			b.Errorf("still there: %+v, %v", before, err)
		}
		b.want(b.do(command("op1", 1, 5, startOrder)), refused_, "stale_epoch", unseen)
	})
}

// A migration to this node failed and it let go of the epochs up to that one's. Then somebody moved the VM here with virsh:
// it still runs under its old epoch, and whoever has it stopped or moved away means this VM.
func TestAVMThatCameBackByOtherHandsIsObeyed(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.do(command("op1", 1, 6, discardOrder))
		b.want(b.do(command("op2", 1, 5, startOrder)), refused_, "stale_epoch", unseen)
		b.want(b.do(command("op3", 1, 5, resumeOrder)), refused_, "stale_epoch", unseen)
		b.want(b.do(command("op4", 1, 4, stopOrder(10))), refused_, "stale_epoch", unseen)
		b.want(b.do(term(command("op5", 1, 5, stopOrder(10)), 0)), refused_, "stale_term", unseen)
		if d := b.shows(b.node); d.State != hypervisor.Running || d.Epoch != 5 {
			b.Fatalf("got %+v", d)
		}
		b.want(b.do(command("op6", 1, 5, stopOrder(10))), done_, "", absentState)
		b.want(b.do(command("op7", 1, 5, stopOrder(10))), refused_, "stale_epoch", unseen)
	})
}

// fragile is a journal's storage that takes no entry for a while.
type fragile struct {
	Storage
	full func() bool
}

func (f fragile) Update(change func(Tx) error) error {
	if f.full() {
		return errors.New("no space left on device")
	}
	return f.Storage.Update(change)
}

// An order whose end the journal did not take is asked for again, and may then be carried out: nobody may have been told that
// it never will be.
func TestAnAnswerThatWasNotJournalledIsNoPromise(t *testing.T) {
	for name, one := range map[string]struct {
		order   func(*berthv1.Command)
		prepare func(b *bench)
		ends    berthv1.CommandOutcome
		code    string
		state   berthv1.DomainState
	}{
		"a start that fails": {
			startOrder, func(b *bench) { b.node.Inject("start", fake.Fault{Err: hypervisor.ErrNoMemory, Times: 1}) }, done_, "", running,
		},
		"a stop not tried": {
			stopOrder(1), func(b *bench) { b.start(5); b.node.Inject("lookup", fake.Fault{Err: hypervisor.ErrUnavailable}) }, done_, "",
			absentState,
		},
		"a stop that is done": {stopOrder(1), func(b *bench) { b.start(5) }, done_, "", absentState},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				one.prepare(b)
				entries := -1 // that are still taken; below 0: all
				b.jobs.journal.storage = fragile{b.jobs.journal.storage, func() bool {
					entries--
					return entries == -1
				}}
				entries = 1 // the intent
				b.want(b.do(command("op1", 1, 5, one.order)), refused_, "journal", unseen)
				b.node.Heal("lookup")
				b.want(b.do(command("op1", 1, 5, one.order)), one.ends, one.code, one.state)
			})
		})
	}
}
