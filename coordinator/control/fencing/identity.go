package fencing

import (
	"context"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
)

// checkDevices asks the devices which machines they switch, where it is time.
func (c *Fencing) checkDevices(ctx context.Context, moment evidence.Moment) {
	var nodes []model.Node
	c.with(func(f *Fencer) { nodes = f.Checks(moment) })
	for i := range nodes {
		c.check(ctx, nodes[i], identityEvery)
	}
}

// checkAnew asks the device of a node that is about to be fenced, if its answer is not fresh. It reports whether it does.
func (c *Fencing) checkAnew(ctx context.Context, node model.Node) bool {
	return c.check(ctx, node, identityFresh)
}

func (c *Fencing) check(ctx context.Context, node model.Node, older time.Duration) (begun bool) {
	c.with(func(f *Fencer) { begun = f.Begin(&node, older, c.Now()) })
	if begun {
		c.Beside(&c.work, "asking which machine fences node "+node.Name, func() { c.identify(ctx, &node) })
	}
	return begun
}

func (c *Fencing) identify(ctx context.Context, node *model.Node) (is model.FenceIdentities) {
	c.checks <- struct{}{}
	defer func() { <-c.checks }()
	var said model.FenceIdentities
	for _, device := range node.Fence.All() {
		machine := ""
		err := lead.Survive(c.Logger, "asking which machine fences node "+node.Name, func() (err error) {
			machine, err = c.devices.Identity(ctx, device)
			return err
		})
		one := model.FenceIdentity{Machine: machine}
		if err != nil {
			one = model.FenceIdentity{Why: err.Error()}
		}
		said = append(said, one)
	}
	c.with(func(f *Fencer) {
		f.Identified(node, said, c.Now())
		is = f.Identity(node)
	})
	if why, _ := is.Refused(node); why != "" {
		c.Logger.Error("a fence device is refused", "node", node.Name, "why", why)
	}
	return is
}

// Identify asks a node's devices now which machine they switch.
func (c *Fencing) Identify(ctx context.Context, node *model.Node) model.FenceIdentities {
	begun := false
	c.with(func(f *Fencer) { begun = f.Begin(node, 0, c.Now()) })
	if begun {
		return c.identify(ctx, node)
	}
	return c.IdentityOf(node)
}

// IdentityOf is what a node's devices have said about which machine they switch; empty: they were not asked yet.
func (c *Fencing) IdentityOf(node *model.Node) (is model.FenceIdentities) {
	c.with(func(f *Fencer) { is = f.Identity(node) })
	return is
}
