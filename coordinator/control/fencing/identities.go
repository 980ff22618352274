package fencing

import (
	"time"

	"berth/coordinator/model"
)

// How often a fence device is asked which machine it switches: now and then, and again when it is about to switch one off.
const (
	identityEvery = time.Hour
	identityFresh = 2 * time.Minute
	mostChecks    = 8
)

// identity is what the devices of a node have said about which machine they switch.
type identity struct {
	said     model.FenceIdentities
	device   model.FenceDevice
	hardware string // of the node then
	at       time.Time
	asking   bool
}

// identities are what the devices have said, by node ID.
type identities map[string]identity

// Identity is what a node's devices have said; empty: they were not asked yet.
func (all identities) Identity(node *model.Node) model.FenceIdentities {
	if is, known := all[node.ID]; known && is.device.Equal(node.Fence) {
		return is.said
	}
	return nil
}

// Checking tells whether a node's device is being asked which machine it switches.
func (all identities) Checking(node string) bool { return all[node].asking }

// Begin tells that a node's device is to be asked which machine it switches: nobody does, and what it said last is of another device
// or machine, or older than that.
func (all identities) Begin(node *model.Node, older time.Duration, at time.Time) bool {
	if node.Fence.Method != model.FenceCommand || all.Checking(node.ID) || all.nextCheck(node, older).After(at) {
		return false
	}
	is := all[node.ID]
	is.asking = true
	all[node.ID] = is
	return true
}

// nextCheck is when a node's device is to be asked, if its answer is to be no older than that.
func (all identities) nextCheck(node *model.Node, older time.Duration) time.Time {
	is, known := all[node.ID]
	if !known || !is.device.Equal(node.Fence) || is.hardware != node.Hardware {
		return time.Time{}
	}
	return is.at.Add(older)
}

// identified takes in what a node's devices say. One that does not answer now is believed to switch what it switched before.
func (all identities) identified(node *model.Node, said model.FenceIdentities, at time.Time) {
	before := all.Identity(node)
	for i := range said {
		if said[i].Machine == "" && i < len(before) && before[i].Machine != "" {
			said[i] = before[i]
		}
	}
	all[node.ID] = identity{device: node.Fence, hardware: node.Hardware, at: at, said: said}
}
