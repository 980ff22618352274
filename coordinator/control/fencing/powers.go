package fencing

import (
	"context"
	"time"

	"berth/coordinator/model"
)

// How often the fence devices of a node are asked for the power state although nothing is wrong: a device that would not answer in an
// emergency is known before. One device of the site is asked at a time, because many let one caller in at a time.
const (
	powerEvery = time.Hour
	powerAgain = 5 * time.Minute // after one that would have proved nothing
	powerLimit = 15 * time.Second
)

// power is what came of asking the devices of a node.
type power struct {
	device model.FenceDevice
	at     time.Time
	why    string // they would prove nothing; empty: they answered
	times  int    // in a row
}

// powers are what the devices have answered, by node ID.
type powers map[string]power

// every is how long after that they are asked again.
func (p *power) every() time.Duration {
	if p.why != "" {
		return powerAgain
	}
	return powerEvery
}

// of is what the devices that a node has now have answered; the zero value: they were not asked yet.
func (all powers) of(node *model.Node) power {
	if last := all[node.ID]; last.device.Equal(node.Fence) {
		return last
	}
	return power{}
}

// tried takes in what came of asking the devices of a node.
func (all powers) tried(node *model.Node, why string, at time.Time) {
	now := power{device: node.Fence, at: at, why: why}
	if why != "" {
		now.times = all.of(node).times + 1
	}
	all[node.ID] = now
}

// useless says why the devices of a node would prove nothing; empty: that is not known. One failure may be chance.
func (all powers) useless(node *model.Node) string {
	if last := all.of(node); last.times > 1 {
		return last.why
	}
	return ""
}

// trial is the question for a node's power state that is under way although nothing is wrong.
type trial struct {
	cancel context.CancelFunc
	ended  chan struct{}
}
