package consensus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

const (
	upkeepEvery = 5 * time.Second
	sweepEvery  = 500 * time.Millisecond
	// A leader that should not lead hands over at most this often: the next one may be no better.
	handoverEvery = time.Minute
)

// watchPeers closes the connections of members that were removed or revoked, within a second.
func (c *Consensus) watchPeers() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for c.stream != nil {
		select {
		case <-tick.C:
			c.stream.sweep()
		case <-c.stop:
			return
		}
	}
}

// upkeep looks after what changes without Raft: the disk and the clock.
func (c *Consensus) upkeep() {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	var low bool
	var handedOver time.Time
	for {
		select {
		case <-tick.C:
		case <-c.stop:
			return
		}
		err := checkDisk(c.cfg.DataDir, c.cfg.MinFree)
		if err != nil && !low {
			c.logger.Error("nothing is proposed here until there is space again", "error", err)
		}
		low = err != nil
		if !c.IsLeader() || time.Since(handedOver) <= handoverEvery {
			continue
		}
		if heirs, why := c.unfit(err); why != nil && len(heirs) > 0 {
			handedOver = time.Now()
			c.logger.Warn("another coordinator is asked to lead", "reason", why)
			if err := c.transferTo(context.Background(), heirs); err != nil {
				c.logger.Warn("the leadership could not be handed on", "error", err)
			}
		}
	}
}

// unfit tells who should lead in this member's place, and why; nil: it should itself. Low is why its disk takes nothing.
func (c *Consensus) unfit(low error) (heirs []raft.Server, why error) {
	others := c.otherVoters()
	if low != nil {
		return others, low
	}
	if err := c.checkClock(); err != nil {
		return others, err
	}
	if heirs, why := c.deaf(others); why != nil {
		return heirs, why
	}
	own := c.logs.pace.p99(time.Now())
	if own <= slowWrite {
		return nil, nil
	}
	// One that is as slow would only hand it back.
	for _, other := range others {
		report, told := c.reportOf(other.ID)
		if told && report.Write < own/2 && c.lag(other.ID) == "" {
			heirs = append(heirs, other)
		}
	}
	return heirs, errors.New(slowness(own))
}

// deaf says that this member, which leads, hears fewer agents than ask another one again and again for the leader: they cannot reach it
// here. Those that they ask should lead, the one that most ask first.
func (c *Consensus) deaf(others []raft.Server) (heirs []raft.Server, why error) {
	own, _ := c.reportOf(raft.ServerID(c.cfg.MemberID))
	most := 0
	for _, other := range others {
		report, told := c.reportOf(other.ID)
		switch {
		case !told || report.Asking <= own.Hearing || c.lag(other.ID) != "":
		case report.Asking > most:
			most, heirs = report.Asking, append([]raft.Server{other}, heirs...)
		default:
			heirs = append(heirs, other)
		}
	}
	if len(heirs) == 0 {
		return nil, nil
	}
	return heirs, fmt.Errorf("it hears %d agents, and %d that cannot reach it ask another coordinator for the leader", own.Hearing, most)
}
