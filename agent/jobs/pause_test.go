package jobs

import (
	"strings"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

func pauseOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Pause{Pause: &berthv1.PauseCommand{}}
}

func unpauseOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Unpause{Unpause: &berthv1.UnpauseCommand{}}
}

func TestPauseAndUnpause(t *testing.T) {
	starved := func(b *bench) {
		b.node.Edit(vmID, func(d *hypervisor.Domain) { d.State, d.Reason = hypervisor.Paused, hypervisor.ReasonIOError })
	}
	gone := func(b *bench) { _ = b.node.Destroy(b.Context(), vmID, 5) }
	other := func(b *bench) { b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Epoch = 9 }) }
	works := func(b *bench) { b.node.Edit(vmID, func(d *hypervisor.Domain) { d.JobActive = true }) }
	ended := func(b *bench) { b.set(hypervisor.Crashed) }
	moves := func(b *bench) { b.set(hypervisor.PausedMigration) }
	for name, c := range map[string]struct {
		prepare func(b *bench)
		order   func(*berthv1.Command)
		outcome berthv1.CommandOutcome
		code    string
		state   berthv1.DomainState
		says    string
		calls   int // of suspend and resume
	}{
		"pause":                    {func(*bench) {}, pauseOrder, done_, "", paused, "", 1},
		"pause what is paused":     {func(b *bench) { b.set(hypervisor.Paused) }, pauseOrder, done_, "", paused, "", 0},
		"pause what has no room":   {starved, pauseOrder, refused_, "invalid_state", paused, "stands still already", 0},
		"pause what is gone":       {gone, pauseOrder, refused_, "not_found", absentState, "does not run here", 0},
		"pause another epoch":      {other, pauseOrder, refused_, "other_epoch", running, "under epoch 9", 0},
		"pause what has a job":     {works, pauseOrder, refused_, "busy", running, "a job of it runs", 0},
		"pause what has crashed":   {ended, pauseOrder, refused_, "invalid_state", crashedState, "crashed", 0},
		"resume":                   {func(b *bench) { b.set(hypervisor.Paused) }, unpauseOrder, done_, "", running, "", 1},
		"resume what runs":         {func(*bench) {}, unpauseOrder, done_, "", running, "", 0},
		"resume what had no room":  {starved, unpauseOrder, done_, "", running, "", 1},
		"resume what is gone":      {gone, unpauseOrder, refused_, "not_found", absentState, "does not run here", 0},
		"resume what has a job":    {works, unpauseOrder, refused_, "busy", running, "a job of it runs", 0},
		"resume what has crashed":  {ended, unpauseOrder, refused_, "invalid_state", crashedState, "crashed", 0},
		"resume a migration's own": {moves, unpauseOrder, refused_, "invalid_state", pausedMigration, "migration", 0},
		"libvirt refuses": {
			func(b *bench) { b.node.Inject("suspend", fake.Fault{Err: hypervisor.ErrDenied}) }, pauseOrder, refused_, "denied", running, "denied", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.start(5)
				c.prepare(b)
				r := b.do(command("op1", 1, 5, c.order))
				b.want(r, c.outcome, c.code, c.state)
				if calls := b.calls("suspend") + b.calls("resume"); calls != c.calls || !strings.Contains(r.GetError(), c.says) {
					b.Errorf("said %q, calls %v", r.GetError(), b.node.Calls())
				}
				if again := b.do(command("op1", 1, 5, c.order)); !again.GetRepeated() || again.GetOutcome() != c.outcome {
					b.Errorf("the same order again: %v", again)
				}
			})
		})
	}
}

// What nobody could look at is in doubt, and the same order is tried again. It is not remembered as an answer.
func TestAPauseInDoubtIsTriedAgain(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.node.Inject("lookup", fake.Fault{Err: hypervisor.ErrUnavailable})
		b.want(b.do(command("op1", 1, 5, pauseOrder)), ambiguous, "unavailable", unknown)
		b.node.Heal("lookup")
		b.node.Inject("suspend", fake.Fault{Err: hypervisor.ErrAmbiguous, Times: 1})
		b.want(b.do(command("op1", 1, 5, pauseOrder)), ambiguous, "ambiguous", running)
		time.Sleep(time.Second)
		b.want(b.do(command("op1", 1, 5, pauseOrder)), done_, "", paused)
	})
}
