package consensus

import (
	"context"
	"time"
)

const (
	upkeepEvery = 5 * time.Second
	// A leader with a full disk hands over at most this often: the next one's may be full as well.
	handoverEvery = time.Minute
)

// upkeep looks after what changes without Raft: the disk, and the connections of members that were removed.
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
		if c.stream != nil {
			c.stream.sweep()
		}
		err := checkDisk(c.cfg.DataDir, c.cfg.MinFree)
		if err != nil && !low {
			c.logger.Error("nothing is proposed here until there is space again", "error", err)
		}
		if low = err != nil; low && c.IsLeader() && len(c.otherVoters()) > 0 && time.Since(handedOver) > handoverEvery {
			handedOver = time.Now()
			if err := c.Transfer(context.Background()); err != nil {
				c.logger.Warn("the leadership could not be handed on", "error", err)
			}
		}
	}
}
