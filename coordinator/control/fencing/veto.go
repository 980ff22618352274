package fencing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
)

// A fence device may say that a machine is off which runs on: it lies, lags, or switches another one that nobody hears. Where the
// machine is only cut off from the coordinators, other nodes still reach it, and one that does has a veto.

// mostPeers is how many nodes are asked at most.
const mostPeers = 8

// peersWithin is how long they may take. One that has not answered by then has no veto.
const peersWithin = 5 * time.Second

// Peers are the nodes that are asked whether they reach another one: those that answer, of its cluster first.
func (f *Fencer) Peers(p evidence.Moment, asked *model.Node) []string {
	var peers []model.Node
	for _, node := range p.Nodes() {
		if node.ID != asked.ID && !node.Fenced() && !node.Held() && p.Facts(node.ID).Liveness == model.Up {
			peers = append(peers, node)
		}
	}
	far := func(node model.Node) int {
		if node.ClusterName() == asked.ClusterName() {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(peers, func(a, b model.Node) int { return cmp.Compare(far(a), far(b)) })
	ids := make([]string, 0, mostPeers)
	for i := range peers[:min(len(peers), mostPeers)] {
		ids = append(ids, peers[i].ID)
	}
	return ids
}

// errReached says that the word of a device does not count.
var errReached = errors.New("it is not off, or another machine has its address")

// askPeers asks other nodes, and this machine, whether they still reach a node of which its device says that it is off. With an error
// the device's word does not count.
func (c *Fencing) askPeers(ctx context.Context, node *model.Node) error {
	addresses := node.Reach()
	if len(addresses) == 0 {
		return nil
	}
	moment := c.Moment(c.Store.Snapshot())
	var peers []string
	c.with(func(f *Fencer) { peers = f.Peers(moment, node) })
	limited, cancel := context.WithTimeout(ctx, peersWithin)
	defer cancel()
	reached := make([]string, len(peers)+1) // the address, as each has reached it
	var asked sync.WaitGroup
	for i, peer := range peers {
		c.Beside(&asked, "asking whether node "+node.Name+" is reached", func() {
			done, err := c.Agents.Perform(limited, peer, lead.Task{Reach: addresses})
			if err != nil {
				c.Logger.Debug("a node does not say whether it reaches another one", "node", moment.NodeName(peer), "error", err)
			}
			reached[i] = done.Reached
		})
	}
	c.Beside(&asked, "reaching node "+node.Name, func() { reached[len(peers)] = c.devices.Reach(limited, addresses) })
	asked.Wait()
	var who []string
	at := ""
	for i, address := range reached {
		if address == "" {
			continue
		}
		at = address
		if i < len(peers) {
			who = append(who, "node "+moment.NodeName(peers[i]))
		} else {
			who = append(who, "the leading coordinator")
		}
	}
	if len(who) == 0 {
		return nil
	}
	return fmt.Errorf(
		"%s says that it is off, and %s still reached it at %s then: %w", node.Fence.Title(), strings.Join(who, ", "), at, errReached,
	)
}
