package jobs

import (
	"testing"
	"time"

	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

const unsaid = berthv1.DomainState_DOMAIN_STATE_UNSPECIFIED

func takenBack(order func(*berthv1.Command)) func(*berthv1.Command) {
	return func(c *berthv1.Command) {
		order(c)
		c.TakenBack = true
	}
}

// What was taken back before it had begun here never is: not if the order itself comes after all, not in the agent's next life.
func TestWhatIsTakenBackBeforeItHasBegunNeverDoes(t *testing.T) {
	for name, order := range map[string]func(*berthv1.Command){"stop": stopOrder(0), "reboot": rebootOrder} {
		state := map[string]berthv1.DomainState{"stop": absentState, "reboot": running}[name]
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.start(5)
				b.want(b.do(command("op1", 1, 5, takenBack(order))), refused_, "too_late", unsaid)
				b.want(b.do(command("op1", 1, 5, order)), refused_, "too_late", unsaid)
				b.crash()
				b.want(b.do(command("op1", 1, 5, order)), refused_, "too_late", unsaid)
				if b.asked("shutdown") || b.asked("destroy") || b.asked("reboot") {
					b.Errorf("calls: %v", b.node.Calls())
				}
				b.want(b.do(command("op2", 1, 5, order)), done_, "", state)
			})
		})
	}
}

// What has begun goes on when it is taken back, and answers as ever, also after a crash.
func TestWhatHasBegunIsNotTakenBack(t *testing.T) {
	for _, crash := range []bool{false, true} {
		inBubble(t, func(b *bench) {
			b.start(5)
			b.node.SetGuest(vmID, fake.Guest{IgnoresShutdown: true})
			b.jobs.Do(b.Context(), command("op1", 1, 5, stopOrder(60)))
			time.Sleep(time.Second)
			if crash {
				b.crash()
			}
			b.want(b.do(command("op1", 1, 5, takenBack(stopOrder(60)))), done_, "", absentState)
		})
	}
}

// An order that waits for its turn has not begun.
func TestWhatWaitsForItsTurnIsTakenBack(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		giveBack, err := b.jobs.turns.take(b.Context(), vmID)
		if err != nil {
			b.Fatal(err)
		}
		b.jobs.Do(b.Context(), command("op1", 1, 5, stopOrder(0)))
		time.Sleep(time.Second)
		b.jobs.Do(b.Context(), command("op1", 1, 5, takenBack(stopOrder(0))))
		giveBack()
		b.want(b.answer(), refused_, "too_late", unsaid)
	})
}

// A leader that is not one any more takes nothing back.
func TestAnOldLeaderTakesNothingBack(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		if err := b.jobs.Follow(7); err != nil {
			b.Fatal(err)
		}
		b.want(b.do(command("op1", 1, 5, takenBack(stopOrder(0)))), refused_, "stale_term", unsaid)
		now := command("op1", 1, 5, stopOrder(0))
		now.Term = 7
		b.want(b.do(now), done_, "", absentState)
	})
}
