package control

import (
	"context"
	"sync"
	"time"

	"berth/coordinator/control/adoption"
	"berth/coordinator/control/answering"
	"berth/coordinator/control/drifts"
	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/locks"
	"berth/coordinator/control/outofband"
	"berth/coordinator/control/plans"
	"berth/coordinator/control/profiles"
	"berth/coordinator/control/recovery"
	"berth/coordinator/control/volumes"
)

// Config is what the leader's work stands on.
type Config struct {
	lead.Config

	Fences fencing.FenceDevices
	Plans  plans.Config
}

// Control does the leader's work. It is safe for concurrent use.
type Control struct {
	*lead.Leader
	*volumes.Volumes
	*fencing.Fencing
	*locks.Locks
	*lifecycle.Lifecycle
	*adoption.Adoption
	*plans.Plans
	*profiles.Profiles

	outOfBand *outofband.Watch
	recovery  *recovery.Recovery
	drifts    *drifts.Drifts
	answering *answering.Answering
}

// New makes a Control that does nothing until Lead is called.
func New(config Config) *Control {
	leader := lead.New(config.Config)
	c := &Control{Leader: leader, drifts: drifts.New(leader), Locks: locks.New(leader), Profiles: profiles.New(leader)}
	c.Volumes = volumes.New(leader, c.drifts)
	c.Fencing = fencing.New(leader, config.Fences, func(node string) { c.AgentConnected(node) })
	c.Lifecycle = lifecycle.New(leader, c.Volumes, c.Fencing, c.drifts)
	c.Adoption = adoption.New(leader, c.Lifecycle, c.Fencing)
	c.Plans = plans.New(leader, c.Lifecycle, c.drifts, config.Plans)
	c.outOfBand = outofband.New(leader, c.Adoption, c.Fencing)
	c.answering = answering.New(leader, func(node string) { c.AgentConnected(node) })
	c.recovery = recovery.New(leader, c.Lifecycle, c.Fencing, c.Plans)
	return c
}

// Lead does the leader's work until the context ends: it goes on with every live operation and plan, accepts new ones, and keeps VMs
// well placed. The caller has passed a barrier before. It returns when nothing of this is at work any more.
func (c *Control) Lead(ctx context.Context, term uint64) {
	c.Plans.Reset()
	c.Begin(ctx, term)
	c.Fencing.Reset(c.Now())
	operations, unfinished := c.takeUp()
	c.Logger.Info(
		"leading", "term", term, "state_index", c.Store.Snapshot().Index(), "live_operations", operations, "live_plans", unfinished,
	)
	var loops sync.WaitGroup
	for what, loop := range map[string]func(context.Context){
		"passes over clusters": c.RunPasses, "fencing": c.Fencing.Watch, "trials of locks": c.TryLocks,
		"groups":         c.FollowGroups,
		"what others do": c.outOfBand.Follow, "copies": c.outOfBand.WatchCopies, "changed devices": c.drifts.Follow,
		"readiness": c.recovery.RunReadiness, "answers to starts": c.answering.Follow,
		"restarts": c.recovery.RunRestarts, "stamps": c.recovery.RunStamps, "quarantine": c.recovery.Reconcile,
	} {
		c.Beside(&loops, what, func() { c.Keep(ctx, what, loop) })
	}
	c.Keep(ctx, "taking up", c.goOn) // to the end of the leadership
	loops.Wait()
	c.End()
	c.Plans.Wait()
	c.Lifecycle.Wait()
	c.Logger.Info("leading no more", "term", term)
}

// Nowhere are the VMs that are to be highly available and that no other node would take, with the reason, by ID, as they were found last.
func (c *Control) Nowhere() map[string]string { return c.recovery.Nowhere() }

// ShrunkVMs are the VMs, by ID, of which a disk was smaller than its record when somebody looked last.
func (c *Control) ShrunkVMs() []string { return c.drifts.ShrunkVMs() }

// takeUpEvery is between two looks for work that nobody does.
const takeUpEvery = 5 * time.Second

// goOn takes up, until the context ends, what nobody works on.
func (c *Control) goOn(ctx context.Context) {
	ticker := time.NewTicker(takeUpEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.takeUp()
		}
	}
}

// takeUp goes on with every operation and plan that has not ended and that nobody works on: an earlier leader has left it, or its
// caller went away before it began. It returns how many of them have not ended.
func (c *Control) takeUp() (operations, unfinished int) { return c.TakeUp(), c.Resume() }
